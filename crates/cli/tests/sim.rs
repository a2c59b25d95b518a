//! `sooner sim` as a process: figures that are known, files, and mistakes in one line.

mod slowdown;
mod units;
mod warnings;

use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

fn sim(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.arg("sim").args(words).output().unwrap()
}

fn json(words: &[&str]) -> Value {
    let output = sim(&[words, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

const PLAIN: [&str; 6] = ["--sizes", "exp:mean=3", "--load", "0.8", "--jobs", "1e6"];

#[test]
fn simulated_means_are_beside_exact_ones() {
    let document = json(&[&PLAIN[..], &["--policy", "srpt,fair,fsp"]].concat());
    assert_eq!(document["time_unit"], "mean_service");
    for (run, exact) in [(0, 2.352_773), (1, 5.0)] {
        let run = &document["runs"][run];
        assert_eq!(run["verdict"], "VALID", "{run}");
        assert!((run["exact_mean_response"].as_f64().unwrap() / exact - 1.0).abs() < 1e-4);
        let found = run["controlled_mean_response"].as_f64().unwrap();
        assert!((found / exact - 1.0).abs() < 0.02, "{found}, exact {exact}");
    }
    assert_eq!(document["runs"][2]["exact_mean_response"], Value::Null);
    let (srpt, fair) = (&document["runs"][0], &document["runs"][1]);
    assert_eq!(
        srpt["realised_load"], fair["realised_load"],
        "the same jobs for every policy"
    );
}

#[test]
fn kinds_and_several_servers_have_formulas_too() {
    for words in [
        &["--sizes", "h2:mean=1,c2=8", "--policy", "pesjf,peljf"][..],
        &[
            "--sizes",
            "exp:mean=1",
            "--policy",
            "fcfs,fair",
            "--servers",
            "3",
        ],
    ] {
        let document = json(&[words, &["--load", "0.7", "--jobs", "1e6"]].concat());
        for run in document["runs"].as_array().unwrap() {
            let [found, exact] = ["controlled_mean_response", "exact_mean_response"]
                .map(|name| run[name].as_f64().unwrap());
            assert!(
                (found / exact - 1.0).abs() < 0.03,
                "{found}, exact {exact}: {run}"
            );
        }
    }
}

#[test]
fn results_do_not_depend_on_the_threads() {
    let strip = |threads: &str| {
        let mut document =
            json(&[&PLAIN[..4], &["--jobs", "20000", "--threads", threads]].concat());
        for run in document["runs"].as_array_mut().unwrap() {
            run["jobs_per_second"] = Value::Null;
        }
        document
    };
    assert_eq!(strip("1"), strip("3"));
}

#[test]
fn what_is_given_several_times_is_combined() {
    let output = sim(&[
        "--sizes",
        "exp:mean=1",
        "--load",
        "0.5,0.7",
        "--mpl",
        "1,4",
        "--policy",
        "fcfs,srpt",
        "--jobs",
        "2000",
        "--csv",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..4], ["load", "mpl", "policy", "mean response"]);
    let combined: Vec<String> = rows[1..].iter().map(|row| row[..3].join(" ")).collect();
    assert_eq!(
        combined,
        [
            "0.5 1 fcfs",
            "0.5 1 srpt",
            "0.5 4 fcfs",
            "0.5 4 srpt",
            "0.7 1 fcfs",
            "0.7 1 srpt",
            "0.7 4 fcfs",
            "0.7 4 srpt"
        ]
    );
}

#[test]
fn a_model_file_says_what_flags_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let (model, page) = (dir.path().join("model.toml"), dir.path().join("sim.html"));
    let text = "sizes = \"h2:mean=1,c2=4\"\nschedule = 0.8\npolicy = \"srpt\"\n[users]\nkind = \"partly-open\"\nstay = 0.5\n";
    fs::write(&model, text).unwrap();
    let (model, page) = (model.to_str().unwrap(), page.to_str().unwrap());
    let document = json(&[model, "--jobs", "2000", "--load", "0.4,0.6", "--html", page]);
    let loads: Vec<&Value> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["offered_load"])
        .collect();
    assert_eq!(loads, [0.4, 0.6]);
    assert_eq!(document["runs"][0]["policy"], "srpt");
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .contains("Mean response time by load")
    );
}

/// On a link sizes are bytes and times are seconds: 10 users who think 8 ms are 10 who think one
/// mean size of 10 kB at 10 Mbit/s.
#[test]
fn on_a_link_times_are_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("link.toml");
    let text = "sizes = \"exp:mean=10000\"\nuplink = \"10mbit\"\npolicy = \"fair\"\n[users]\nkind = \"closed\"\nusers = 10\nthink = \"exp:mean=0.008\"\n";
    fs::write(&model, text).unwrap();
    let link = json(&[model.to_str().unwrap(), "--jobs", "1e5"]);
    let plain = "--sizes exp:mean=1 --users 10 --think exp:mean=1 --policy fair --jobs 1e5";
    let plain = json(&plain.split(' ').collect::<Vec<_>>());
    let (link, plain) = (&link["runs"][0], &plain["runs"][0]);
    assert_eq!(link["mean_service_s"], 0.008);
    assert_eq!(plain["mean_service_s"], Value::Null);
    let exact = |run: &Value| run["exact_mean_response"].as_f64().unwrap();
    assert!((exact(link) / exact(plain) - 1.0).abs() < 1e-9);
    let found = |run: &Value| run["controlled_mean_response"].as_f64().unwrap();
    assert!((found(link) / found(plain) - 1.0).abs() < 0.01);
}

/// A trace's rush hours make longer queues than the same work spread by chance; estimates,
/// priorities and the guard of a file count.
#[test]
fn what_a_file_says_counts() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model.toml");
    let path = model.to_str().unwrap();
    let mean = |text: &str, words: &[&str]| {
        fs::write(&model, text).unwrap();
        let document = json(&[&[path, "--jobs", "4e5"], words].concat());
        document["runs"][0]["all"]["mean_response"]
            .as_f64()
            .unwrap()
    };
    let trace = "sizes = \"trace:epa\"\nschedule = 0.6\npolicy = \"fair\"\n";
    let (spread, rush) = (mean(trace, &[]), mean(trace, &["--gaps", "trace"]));
    assert!(rush > 1.5 * spread, "{rush}, spread {spread}");
    let own = mean(&format!("{trace}[arrivals]\nkind = \"trace\"\n"), &[]);
    assert_eq!(own, rush);

    let srpt = "sizes = \"h2:mean=1,c2=16\"\nschedule = 0.8\npolicy = \"srpt\"\n";
    let known = mean(srpt, &[]);
    assert!(mean(&format!("{srpt}error = 2.0\n"), &[]) > 1.1 * known);
    let fcfs = srpt.replace("srpt", "fcfs");
    let first = mean(&format!("{fcfs}priority = {{ share = 0.5 }}\n"), &[]);
    assert!(first < 0.9 * mean(&fcfs, &[]));
    let guarded = mean(&format!("{srpt}guard = true\nturn = 0.1\n"), &[]);
    assert!(guarded > 1.001 * known, "{guarded}, unguarded {known}");
}

#[test]
fn a_run_too_short_for_its_sizes_says_so() {
    let output = sim(&[
        "--sizes",
        "bpareto:k=1,p=1e6,alpha=1.1",
        "--load",
        "0.8",
        "--jobs",
        "20000",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("INVALID, fair: ") && text.contains("sizes larger than any that was drawn"),
        "{text}"
    );
}

/// Flags go before what a file says, and take nothing else of it away.
#[test]
fn what_flags_do_not_say_stays_as_the_file_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model.toml");
    let exact = |text: &str, words: &str| {
        fs::write(&model, text).unwrap();
        let words: Vec<&str> = words.split(' ').collect();
        let path = [
            model.to_str().unwrap(),
            "--jobs",
            "2000",
            "--policy",
            "fair",
        ];
        let run = json(&[&path[..], &words].concat())["runs"][0].clone();
        (
            run["exact_mean_response"].clone(),
            run["offered_load"].clone(),
        )
    };
    let closed =
        "sizes = \"exp:mean=1\"\n[users]\nkind = \"closed\"\nusers = 3\nthink = \"exp:mean=5\"\n";
    let found = exact(closed, "--users 10").0.as_f64().unwrap();
    assert!((found / 5.187_289 - 1.0).abs() < 1e-4, "{found}");
    let partly =
        "sizes = \"exp:mean=1\"\nschedule = 0.6\n[users]\nkind = \"partly-open\"\nstay = 0.5\n";
    assert_eq!(exact(partly, "--stay 0.8").1, 0.6);
    assert_eq!(
        exact(partly, "--load 1.5").0,
        Value::Null,
        "no formula beyond 1"
    );
}

#[test]
fn an_overload_is_simulated_for_as_long_as_is_said_and_not_believed() {
    let overload = ["--sizes", "exp:mean=1", "--load", "1.5", "--policy", "fcfs"];
    let run = |jobs| json(&[&overload[..], &["--jobs", jobs]].concat())["runs"][0].clone();
    let (short, long) = (run("20000"), run("80000"));
    for run in [&short, &long] {
        let reason = run["verdict_reason"].as_str().unwrap();
        assert!(
            reason.contains("load 1.5 is more than the server can do"),
            "{reason}"
        );
    }
    assert!(short["all"]["mean_response"].is_null(), "it is infinite");
    let median = |run: &Value| run["all"]["p50_response"].as_f64().unwrap();
    assert!(median(&long) > 2.5 * median(&short));
}

/// Asserts that each of these is refused in one line that has these words.
fn refused(mistakes: &[(&str, &str)]) {
    for (words, expected) in mistakes {
        let output = sim(&words.split_whitespace().collect::<Vec<_>>());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert!(
            text.lines().count() == 1 && text.contains(expected),
            "{words:?}: {text}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn mistakes_are_one_line_each() {
    refused(&[
        ("", "no sizes: give --sizes h2:mean=1,c2=4, or a model file"),
        (
            "--sizes exp:mean=1",
            "no load: give --load, such as --load 0.8, or --users for a closed system",
        ),
        (
            "--sizes exp:mean=1 --load 1.1",
            "load 1.1 is more than the server can do",
        ),
        (
            "--sizes exp:mean=1 --schedule 0.9,1.3,10,10",
            "load 1.1 is more than the server can do",
        ),
        (
            "--sizes exp:mean=1e9 --schedule 0.4,1.4,10,10",
            "a phase of 1e-8 mean sizes is too short; give at least 0.01: phases are in the unit of the sizes; give --uplink where they are seconds",
        ),
        (
            "--sizes pareto:k=1,alpha=0.9 --load 0.8",
            "sizes without a mean above 0",
        ),
        (
            "--sizes exp:mean=1 --users 5 --load 0.8",
            "the load of a closed system follows from its users",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --gaps trace",
            "the gaps of a trace need its sizes too",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --gaps det:mean=0",
            "`det:mean=0` has no mean above 0",
        ),
        (
            "--sizes exp:mean=1 --users 1 --think exp:mean=1e9",
            "more than the clock holds",
        ),
        (
            "--sizes exp:mean=1 --load 1e-8",
            "more than the clock holds",
        ),
        (
            "--sizes trace:nowhere.swf --load 0.8 --uplink 1mbit",
            "the run times of a job log are seconds",
        ),
        (
            "--sizes trace:nowhere.swf --load 0.8",
            "nowhere.swf: cannot read on after line 0: No such file or directory (os error 2); correct the path",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --jobs 0",
            "--jobs 0 is out of range; give a whole number from 1",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --html /nowhere/page.html",
            "--html /nowhere/page.html: No such file",
        ),
    ]);
}

#[test]
fn what_does_not_go_together_is_said() {
    refused(&[
        (
            "--sizes exp:mean=1 --load 0.8 --policy fastest",
            "`fastest` is not a policy; use fair, fcfs, srpt",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --policy pesjf",
            "pesjf needs jobs of two kinds",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --policy las --servers 2",
            "las is simulated with one server",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --policy las --mpl 2",
            "those that wait outside have received none",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --policy hrrn --mpl 2",
            "hrrn and an MPL are not simulated together",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --policy boost:-1",
            "`boost:-1` is not a policy; use fair,",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --policy sjf --right-pairs 0.5",
            "--right-pairs 0.5 is out of range; give above 0.5 (chance) to 1",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --policy sjf --right-pairs 0.55",
            "--right-pairs 0.55 is out of range for sizes exp:mean=1; give 0.5",
        ),
        (
            "--sizes det:mean=1 --load 0.8 --policy sjf --right-pairs 0.7",
            "--right-pairs: all sizes are equal, so no pair has an order",
        ),
        (
            "--sizes exp:mean=1 --load 0.8 --policy srpt --mpl 2 --guard",
            "an MPL and turns, guard or priorities are not simulated together",
        ),
    ]);
}

#[test]
fn infinite_means_are_called_infinite() {
    let line = "--sizes pareto:k=1,alpha=1.5 --load 0.5 --jobs 2e4 --policy \
                fcfs,sjf,ljf,pljf,fair,srpt,psjf,las,fsp";
    let document = json(&line.split_whitespace().collect::<Vec<_>>());
    for run in document["runs"].as_array().unwrap() {
        let policy = run["policy"].as_str().unwrap();
        let is_infinite = ["fcfs", "sjf", "ljf", "pljf"].contains(&policy);
        assert_eq!(run["mean_is_infinite"], is_infinite, "{policy}");
        for mean in ["/controlled_mean_response", "/all/mean_response"] {
            let mean = run.pointer(mean).unwrap();
            assert_eq!(mean.is_null(), is_infinite, "{policy}");
        }
        assert!(!is_infinite || run["verdict"] == "INVALID", "{policy}");
    }
    for (line, is_infinite) in [
        ("exp:mean=1 --load 1.2 --policy srpt", true),
        ("exp:mean=1 --load 1 --policy fair", true),
        (
            "pareto:k=1,alpha=1.5 --load 0.5 --mpl 1 --policy fair",
            true,
        ),
        // With a second place one large job holds up nothing, at this load.
        (
            "pareto:k=1,alpha=1.6 --load 0.4 --servers 2 --policy fcfs",
            false,
        ),
        (
            "pareto:k=1,alpha=1.6 --load 0.6 --servers 2 --policy fcfs",
            true,
        ),
        (
            "pareto:k=1,alpha=1.5 --load 0.5 --error 1 --policy srpt",
            true,
        ),
        (
            "bpareto:k=1,p=1e6,alpha=1.5 --load 0.5 --policy fcfs",
            false,
        ),
    ] {
        let line = format!("--sizes {line} --jobs 2e4 --csv");
        let output = sim(&line.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8(output.stdout).unwrap();
        let row = text.lines().nth(1).expect(&line);
        assert_eq!(row.contains("infinite"), is_infinite, "{line}: {row}");
    }
}

#[test]
fn what_a_sweep_has_done_survives_ctrl_c() {
    let child = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args([
            "sim",
            "--sizes",
            "exp:mean=1",
            "--load",
            "0.5,0.6,0.7,0.8,0.9",
            "--policy",
        ])
        .args([
            "fair,srpt,fsp,las,psjf,sjf,fcfs,ljf",
            "--jobs",
            "3e5",
            "--csv",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Some of 40 cases are done by then, and not all.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    if output.status.success() {
        return assert_eq!(printed.lines().count(), 41, "a quick machine: {said}");
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    // Warnings come before.
    let words: Vec<&str> = said.lines().last().unwrap_or("").split(' ').collect();
    let finished: usize = words[2].parse().expect(&said);
    let rows = printed.lines().count().saturating_sub(1);
    assert_eq!(rows, finished, "{said}{printed}");
    assert!(said.contains("of 40 runs are finished"), "{said}");
}

#[test]
fn estimates_are_as_wrong_as_is_said() {
    let words = "--sizes lognormal:mu=0,sigma=1 --load 0.8 --policy boost,boost:x1,nudge:3 --jobs 2e4 --json";
    let words: Vec<&str> = words.split(' ').collect();
    // Of normal logarithms as wide as the error a pair is right with probability 3/4.
    let [by_share, by_sigma] = [["--right-pairs", "0.75"], ["--error", "1"]].map(|error| {
        let output = sim(&[&words[..], &error[..]].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    });
    let mean = |document: &serde_json::Value, run: usize| {
        document["runs"][run]["all"]["mean_response"]
            .as_f64()
            .unwrap()
    };
    assert_eq!(by_share["runs"][0]["system"]["right pairs"], "0.75");
    assert!((mean(&by_share, 0) / mean(&by_sigma, 0) - 1.0).abs() < 0.02);
    // The same scale by two names; another order.
    assert_eq!(mean(&by_share, 0), mean(&by_share, 1));
    assert_ne!(mean(&by_share, 0), mean(&by_share, 2));
    let interval = &by_share["runs"][0]["p99_response_ci95"];
    let p99 = by_share["runs"][0]["all"]["p99_response"].as_f64().unwrap();
    assert!(interval[0].as_f64().unwrap() < p99 && p99 < 1.5 * interval[1].as_f64().unwrap());
}
