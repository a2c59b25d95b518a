//! `sooner solve` as a process: figures that are known, and mistakes in one line.

use serde_json::Value;
use std::process::{Command, Output};

fn solve(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.arg("solve").args(words).output().unwrap()
}

fn json(words: &[&str]) -> Value {
    let output = solve(&[words, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!(
        (found / expected - 1.0).abs() < 1e-4,
        "{found}, expected {expected}"
    );
}

#[test]
fn known_figures_in_units_of_the_mean() {
    let document = json(&[
        "mg1",
        "--policy",
        "srpt,fcfs",
        "--sizes",
        "h2:mean=3,c2=4",
        "--load",
        "0.8",
    ]);
    assert_eq!(document["time_unit"], "mean_service");
    near(&document["runs"][0]["all"]["mean_response"], 2.190_947);
    near(&document["runs"][1]["all"]["mean_response"], 11.0);
    assert_eq!(document["runs"][1]["all"]["mean_slowdown"], Value::Null);
    let document = json(&[
        "mpl",
        "--sizes",
        "h2:mean=2,c2=16",
        "--load",
        "0.8",
        "--mpl",
        "4",
    ]);
    near(&document["runs"][0]["all"]["mean_response"], 19.251_542);
    let document = json(&[
        "mva",
        "--demands",
        "1",
        "--think",
        "5",
        "--users",
        "10",
        "--share",
        "0.8",
    ]);
    near(&document["runs"][0]["mean_response_s"], 5.187_289);
    assert_eq!(document["users_for_share"], 6);
}

#[test]
fn the_systems_of_sim_are_solved_where_there_is_a_formula() {
    let words = "model --sizes h2:mean=3,c2=4 --load 0.5,0.8 --policy srpt,fsp";
    let document = json(&words.split(' ').collect::<Vec<_>>());
    near(&document["runs"][2]["all"]["mean_response"], 2.190_947);
    assert_eq!(document["runs"][2]["offered_load"], 0.8);
    assert_eq!(document["runs"][3]["all"]["mean_response"], Value::Null);
    let closed = "model --sizes exp:mean=1 --users 10 --think exp:mean=5 --policy fair";
    let document = json(&closed.split(' ').collect::<Vec<_>>());
    near(&document["runs"][0]["all"]["mean_response"], 5.187_289);
    let table = solve(
        &words
            .split(' ')
            .filter(|word| *word != "--json")
            .collect::<Vec<_>>(),
    );
    assert!(
        String::from_utf8(table.stdout)
            .unwrap()
            .contains("no formula")
    );
}

/// The approximation against the simulator: within a quarter where sizes vary and phases are long.
#[test]
fn an_alternating_overload_is_near_what_is_simulated() {
    let system = "--sizes h2:mean=1,c2=16 --schedule 0.4,1.4,10000,5000 --json";
    let words = format!("overload {}", system.trim_end_matches(" --json"));
    let solved = json(&words.split(' ').collect::<Vec<_>>());
    let output = Command::new(env!("CARGO_BIN_EXE_sooner"))
        .args(format!("sim {system} --policy fair,srpt --jobs 2e6").split(' '))
        .output()
        .unwrap();
    let simulated: Value = serde_json::from_slice(&output.stdout).unwrap();
    for index in [0, 1] {
        let (solved, simulated) = (&solved["runs"][index], &simulated["runs"][index]);
        assert_eq!(solved["policy"], simulated["policy"]);
        let [near, exact] = [
            &solved["all"]["mean_response"],
            &simulated["controlled_mean_response"],
        ]
        .map(|figure| figure.as_f64().unwrap());
        assert!(
            (near / exact - 1.0).abs() < 0.2,
            "{near}, simulated {exact}"
        );
    }
    let [fair, srpt] =
        [0, 1].map(|index| solved["runs"][index]["present_at_end"].as_f64().unwrap());
    assert!(fair > 5.0 * srpt, "{fair} and {srpt} jobs");
}

#[test]
fn an_overload_is_in_the_unit_of_the_sizes() {
    let mean = |sizes: &str, schedule: &str| {
        let document = json(&["overload", "--sizes", sizes, "--schedule", schedule]);
        let mean = &document["runs"][1]["all"]["mean_response"];
        mean.as_f64().unwrap()
    };
    let (small, usual) = (
        mean("exp:mean=1e-6", "0.4,1.4,0.01,0.005"),
        mean("exp:mean=1", "0.4,1.4,10000,5000"),
    );
    assert!((small / usual - 1.0).abs() < 1e-3, "{small} and {usual}");
}

#[test]
fn a_table_has_a_row_a_policy() {
    let output = solve(&["mg1", "--sizes", "trace:epa", "--load", "0.9"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for policy in ["fcfs", "fair", "sjf", "srpt", "psjf", "las"] {
        let mut lines = text.lines();
        let row = lines.find(|line| line.starts_with(policy)).unwrap();
        // Every request of this trace has bytes, so that all figures are finite.
        assert!(!row.contains("infinite"), "{text}");
    }
}

#[test]
fn several_loads_have_a_table_each() {
    let words = ["mg1", "--sizes", "exp:mean=2", "--load", "0.5,0.8,0.9"];
    let words = [&words[..], &["--policy", "fcfs,srpt"]].concat();
    let document = json(&words);
    let runs = document["runs"].as_array().unwrap();
    let loads = runs.iter().map(|run| run["offered_load"].as_f64().unwrap());
    assert_eq!(loads.collect::<Vec<_>>(), [0.5, 0.5, 0.8, 0.8, 0.9, 0.9]);
    // M/M/1: 1 / (1 - load).
    for (run, expected) in [(0, 2.0), (2, 5.0), (4, 10.0)] {
        near(&runs[run]["all"]["mean_response"], expected);
    }
    let text = String::from_utf8(solve(&words).stdout).unwrap();
    for load in ["load 0.5;", "load 0.8;", "load 0.9;"] {
        assert!(text.contains(load), "{text}");
    }
    let output = solve(&["mg1", "--sizes", "exp:mean=2", "--load", "0.5,1"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn mistakes_are_one_line() {
    for (words, said) in [
        ("mg1 --sizes exp:mean=1 --load 1.2", "below 1"),
        ("mg1 --sizes exp:mean=1", "--load"),
        ("mg1 --sizes exp --load 0.5", "mean"),
        ("mg1 --sizes trace:none --load 0.5", "none"),
        ("mg1 --sizes exp:mean=1 --load 0.5 --policy fsp", "srpt"),
        ("mg1 --sizes exp:mean=1 --load 0.5 --shares 1", "0.99"),
        (
            "overload --sizes exp:mean=1 --schedule 0.8",
            "--schedule: an alternating overload has one phase above 1",
        ),
        (
            "model --sizes exp:mean=1 --load 0.5 --policy fsp",
            "there is no formula",
        ),
        ("mva --demands 1,-1", "0 or above"),
        ("mva --demands 1 --users 0", "1 to 5000"),
        ("mpl --sizes det:mean=1 --load 0.5", "exp or h2"),
        ("mpl --sizes exp:mean=1 --load 0.5 --mpl 900", "1 to 400"),
    ] {
        let output = solve(&words.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
}
