//! The pages of experiments: true to the kept runs, honest about what failed, and writing nothing
//! else.

use crate::support;
use crate::support::Server;
use serde_json::json;
use sooner_lab::experiment::Experiment;
use sooner_lab::pages;
use sooner_lab::run::store::Store;
use sooner_report::number::{duration, significant};
use sooner_stats::{Run, Verdict};
use std::fs;
use std::path::Path;

const NGINX: Server = Server {
    name: "nginx",
    shortest_first: false,
    factor: 1.04,
    given_up_every: 0,
};
const SRPT: Server = Server {
    name: "sooner srpt user-space",
    shortest_first: true,
    factor: 1.06,
    given_up_every: 0,
};

const TEXT: &str = r#"
rows = ["C2", "B4"]
question = "Does <order> pay | everywhere?"
published = "2 to 8 times & more"
baseline = "nginx"
plots = ["by-size", "distribution", "over-time", "connections", "range", "cases"]
[setup]
peers = ["nginx", "sooner srpt user-space"]
seeds = [1, 2]
schedule = "0.9"
[[case]]
name = "rtt 0"
at = 0
published_gain = 8.0
setup = { clients = [{ rtt_ms = 0 }, { rtt_ms = 0 }] }
[[case]]
name = "rtt 50"
at = 50
published = "less with <delay>"
setup = { clients = [{ rtt_ms = 50 }], seeds = [1] }
[[case]]
name = "rtt 100"
at = 100
setup = { clients = [{ rtt_ms = 100 }] }
[[claim]]
text = "shorter in the mean"
figure = "/all/mean_response_ms"
peer = "nginx"
over = "sooner srpt user-space"
at_least = 1.5
cases = ["rtt 0", "rtt 50"]
[[claim]]
text = "a thousand times shorter"
figure = "/all/mean_response_ms"
peer = "nginx"
over = "sooner srpt user-space"
at_least = 1000
cases = ["rtt 0"]
[[claim]]
text = "not looked at"
figure = "/all/errors"
peer = "nginx"
at_most = 0
cases = ["rtt 100"]
"#;

/// Keeps runs of both servers in the experiment's first two cases; the third is not measured.
fn measured(folder: &Path) -> (Experiment, Vec<Run>) {
    let experiment = support::experiment(folder, "order", TEXT);
    let runs = experiment.folder.join("runs/2026-11-22-here");
    let mut store = Store::open(&runs).expect("a store");
    let mut all = Vec::new();
    for case in &experiment.cases[..2] {
        for &seed in &case.setup.seeds {
            for server in [NGINX, SRPT] {
                let run = support::run(server, seed, 0.9, 10);
                support::keep(&mut store, case, server.name, &run);
                all.push(run);
            }
        }
    }
    (experiment, all)
}

fn page(folder: &Path) -> String {
    let written = pages::write(folder, &[]).expect("pages");
    fs::read_to_string(&written[0]).expect("a page")
}

/// The table rows of `page` that begin with this name.
fn rows_of<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let rows = page.lines().filter(|line| line.starts_with("<tr>"));
    rows.filter(|line| line.contains(&format!("{name}</th>")))
        .collect()
}

#[test]
fn the_page_shows_the_runs_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, runs) = measured(folder.path());
    let page = page(folder.path());
    // the second case has one run a server: its cells are the run's own figures
    let [nginx, srpt] = &runs[4..] else {
        panic!("six runs")
    };
    let shown = rows_of(&page, SRPT.name);
    let of_second = shown
        .iter()
        .rfind(|row| row.contains("VALID (1)"))
        .expect("a row");
    let group = |run: &Run| run.largest_1_percent.clone();
    for figure in [
        srpt.all.mean_response_ms.map(duration),
        srpt.all.p99_response_ms.map(duration),
        srpt.all.response_c2.map(significant),
        srpt.all.mean_slowdown.map(significant),
        srpt.smallest_half.mean_response_ms.map(duration),
        group(srpt).mean_response_ms.map(duration),
        group(srpt).mean_slowdown.map(significant),
        srpt.largest.mean_response_ms.map(duration),
        Some(format!(
            "{}×",
            significant(nginx.all.mean_response_ms.unwrap() / srpt.all.mean_response_ms.unwrap())
        )),
    ] {
        let cell = format!(">{}<", figure.expect("measured"));
        assert!(of_second.contains(&cell), "{cell} in {of_second}");
    }
    let ideal = duration(nginx.all.ideal_ps_mean_response_ms.unwrap());
    assert!(rows_of(&page, "Ideal PS")[1].contains(&ideal));
    assert!(rows_of(&page, "Published")[0].contains("8.00×"));
    assert!(of_second.contains("2 given up"), "{of_second}");
    assert!(!page.contains("0 aborts"), "what nobody did is not told");
    let client = rows_of(&page, "10.77.2.2");
    let mean = srpt.smallest_half.mean_response_ms.map(duration);
    assert!(client[1].contains(&mean.expect("measured")), "{client:?}");
}

#[test]
fn several_seeds_give_the_median_and_its_range() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, runs) = measured(folder.path());
    let page = page(folder.path());
    let mut means = [
        runs[0].all.mean_response_ms.unwrap(),
        runs[2].all.mean_response_ms.unwrap(),
    ];
    means.sort_by(f64::total_cmp);
    let (median, high) = (f64::midpoint(means[0], means[1]), duration(means[1]));
    let low = duration(means[0]).replace(" ms", "");
    let cell = format!("{}<small>{low} to {high}</small>", duration(median));
    assert!(page.contains(&cell), "{cell}");
}

#[test]
fn verdicts_say_what_failed_what_is_thin_and_what_was_not_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    measured(folder.path());
    let page = page(folder.path());
    let verdict = |claim: &str, case: &str| {
        let body = page
            .split(&format!("{claim}</th></tr>"))
            .nth(1)
            .expect("a claim");
        let body = body.split("</tbody>").next().unwrap_or(body);
        let row = body
            .lines()
            .find(|line| line.contains(&format!(">{case}</th>")))
            .expect("a case");
        row.split("</span>")
            .next()
            .and_then(|row| row.rsplit('>').next())
            .unwrap_or("")
            .to_owned()
    };
    assert_eq!(verdict("shorter in the mean", "rtt 0"), "PASS");
    assert_eq!(verdict("shorter in the mean", "rtt 50"), "PASS, thin");
    assert_eq!(verdict("a thousand times shorter", "rtt 0"), "FAIL");
    assert_eq!(verdict("not looked at", "rtt 100"), "not measured");
    let readme = fs::read_to_string(folder.path().join("README.md")).expect("a README");
    assert!(
        readme.contains("| PASS, thin<br>**FAIL**<br>not measured |"),
        "{readme}"
    );
}

/// Two machines: of a seed both have, the one with more valid servers counts, and else the newer;
/// none is compared with one of the other.
#[test]
fn an_experiment_may_be_measured_in_parts_on_several_machines() {
    let folder = tempfile::tempdir().expect("a folder");
    let experiment = support::experiment(folder.path(), "order", TEXT);
    let case = &experiment.cases[0];
    let on = |machine: &str, seed: u64, factor: f64, is_valid: bool| {
        let runs = experiment.folder.join("runs").join(machine);
        let mut store = Store::open(&runs).expect("a store");
        for server in [Server { factor, ..NGINX }, SRPT] {
            let mut run = support::run(server, seed, 0.9, 10);
            if !is_valid {
                run.verdict = Verdict::Invalid;
            }
            support::keep(&mut store, case, server.name, &run);
        }
    };
    on("2026-11-22-a", 1, 1.04, true);
    on("2026-11-22-b", 1, 90.0, false);
    on("2026-11-22-b", 2, 1.04, true);
    let page = page(folder.path());
    assert!(page.contains("runs/2026-11-22-a; runs/2026-11-22-b"));
    assert!(
        !page.contains("INVALID</strong>"),
        "the other machine's run is valid"
    );
    assert!(page.contains("4 of 10 measured, 4 of them valid; 6 with all attempts"));
}

#[test]
fn an_invalid_run_proves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let experiment = support::experiment(folder.path(), "order", TEXT);
    let mut store = Store::open(&experiment.folder.join("runs/2026-11-22-here")).expect("a store");
    for seed in [1, 2] {
        for server in [NGINX, SRPT] {
            let mut run = support::run(server, seed, 0.9, 5);
            run.verdict = Verdict::Invalid;
            run.verdict_reason = "send lag p99 <12 ms>".into();
            support::keep(&mut store, &experiment.cases[0], server.name, &run);
        }
    }
    let page = page(folder.path());
    assert!(page.contains("INVALID</strong> (nginx, seed 1): send lag p99 &lt;12 ms&gt;"));
    assert!(!page.contains("PASS") && !page.contains("FAIL"));
}

#[test]
fn the_page_is_one_sound_file_without_network_or_script() {
    let folder = tempfile::tempdir().expect("a folder");
    measured(folder.path());
    let page = page(folder.path());
    for forbidden in [
        "http://", "https://", "<script", "<link", "@import", "url(", "src=", "NaN", "inf ",
        "None", "Some(",
    ] {
        assert!(!page.contains(forbidden), "the page contains {forbidden}");
    }
    for element in [
        "svg", "g", "text", "figure", "table", "thead", "tbody", "tr", "th", "td", "ul", "li",
        "dl", "details", "pre", "p", "main",
    ] {
        let opened = page.matches(&format!("<{element} ")).count()
            + page.matches(&format!("<{element}>")).count();
        assert_eq!(
            opened,
            page.matches(&format!("</{element}>")).count(),
            "<{element}>"
        );
    }
    let ids = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let mut ids: Vec<&str> = ids.collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(all, ids.len());
    // four pictures in each of two cases, two of all cases; each wide and narrow
    assert_eq!(page.matches("role=\"img\"").count(), 2 * (4 * 2 + 2));
    for words in [
        "Round-trip time, ms",
        "tcp: listen overflows",
        "sooner lab run order",
        "worker_processes 1;",
        "0123abc",
        "SYNs dropped",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn text_from_outside_cannot_become_markup() {
    let folder = tempfile::tempdir().expect("a folder");
    measured(folder.path());
    let page = page(folder.path());
    for markup in ["<order>", "<delay>", "<tag>", "<netem>"] {
        assert!(!page.contains(markup), "{markup}");
        let text = markup.replace('<', "&lt;").replace('>', "&gt;");
        assert!(page.contains(&text), "{text}");
    }
}

#[test]
fn the_readme_changes_only_between_its_markers_and_nothing_else_is_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    let (experiment, _) = measured(folder.path());
    let never_run = TEXT.replace("[\"C2\", \"B4\"]", "[\"A2\"]");
    let other = support::experiment(folder.path(), "other", &never_run);
    let readme = folder.path().join("README.md");
    let hand = "# Experiments\r\nby hand, without an end";
    fs::write(&readme, hand).expect("written");
    let first = pages::write(folder.path(), &[]).expect("pages");
    assert_eq!(
        first,
        [experiment.folder.join("report.html"), readme.clone()]
    );
    let text = fs::read_to_string(&readme).expect("readable");
    assert!(text.starts_with(hand));
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    let rows: Vec<&str> = lines[1..].iter().map(|line| &line[..4]).collect();
    assert_eq!(rows, ["| A2", "| B4", "| C2"], "by row");
    assert!(
        lines[1].contains("](other/)") && lines[1].contains("not measured"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].contains("](order/report.html)") && lines[2].contains("pay \\| everywhere"),
        "{}",
        lines[2]
    );
    let again = pages::write(folder.path(), &["other".into()]).expect("pages");
    assert!(
        again.is_empty(),
        "no runs, and the table is as it was: {again:?}"
    );
    assert_eq!(fs::read_to_string(&readme).expect("readable"), text);
    assert_eq!(fs::read_dir(&other.folder).expect("readable").count(), 1);
    let entries = fs::read_dir(&experiment.folder).expect("readable").count();
    assert_eq!(entries, 3, "experiment.toml, runs, report.html");
}

#[test]
fn an_experiment_whose_first_run_was_not_kept_has_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = folder.path().join("begun");
    let runs = experiment.join("runs/2026-11-22-m");
    fs::create_dir_all(&runs).unwrap();
    fs::write(experiment.join("experiment.toml"), TEXT).unwrap();
    fs::write(runs.join("runs.jsonl"), "").unwrap();
    pages::write(folder.path(), &[]).unwrap();
    assert!(!experiment.join("report.html").exists());
}

#[test]
fn an_unknown_name_is_refused_with_those_that_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    measured(folder.path());
    let error = pages::write(folder.path(), &["ordre".into()]).expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "there is no experiment ordre; there are: order"
    );
}

#[test]
fn eight_servers_have_each_a_line_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = |name, shortest_first, factor, given_up_every| Server {
        name,
        shortest_first,
        factor,
        given_up_every,
    };
    let servers = [
        server("nginx", false, 1.04, 211),
        server("apache-event", false, 1.2, 190),
        server("apache-prefork", false, 1.5, 150),
        server("caddy", false, 1.1, 0),
        server("sooner fair user-space", false, 1.01, 0),
        server("sooner srpt user-space", true, 1.04, 0),
        server("sooner srpt bands", true, 1.3, 0),
        server("sooner las user-space", true, 1.9, 0),
    ];
    let names = servers
        .map(|server| format!("\"{}\"", server.name))
        .join(", ");
    let peers = "peers = [\"nginx\", \"sooner srpt user-space\"]\nseeds = [1, 2]";
    let text = TEXT.replace(peers, &format!("peers = [{names}]\nseeds = [1, 2]"));
    assert_ne!(text, TEXT);
    let experiment = support::experiment(folder.path(), "order", &text);
    let mut store = Store::open(&experiment.folder.join("runs/2026-11-22-here")).expect("a store");
    for (case, load) in experiment.cases.iter().zip([0.9, 0.7, 0.5]) {
        for &seed in &case.setup.seeds {
            for server in servers {
                let run = support::run(server, seed, load, 20);
                support::keep(&mut store, case, server.name, &run);
            }
        }
    }
    let page = page(folder.path());
    let legend = page
        .split("<ul class=\"legend\">")
        .nth(1)
        .expect("a legend");
    let legend = legend.split("</ul>").next().unwrap_or(legend);
    let mut classes: Vec<&str> = legend
        .split("class=\"line ")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(classes.len(), servers.len() + 2, "and both ideals");
    classes.sort_unstable();
    classes.dedup();
    assert_eq!(classes.len(), servers.len() + 2);
    fs::write(
        concat!(env!("CARGO_TARGET_TMPDIR"), "/experiment.html"),
        &page,
    )
    .expect("a place for the sample page");
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}

#[test]
fn what_plots_need_is_not_taken_from_another_attempt() {
    let folder = tempfile::tempdir().expect("a folder");
    let (experiment, _) = measured(folder.path());
    let mut store = Store::open(&experiment.folder.join("runs/2026-11-22-here")).expect("a store");
    let mut later = support::run(NGINX, 1, 0.5, 10);
    later.verdict = Verdict::Invalid;
    support::keep(&mut store, &experiment.cases[0], NGINX.name, &later);
    let page = page(folder.path());
    let remark = "rtt 0, seed 1, nginx: what plots need is of another attempt and is not drawn";
    assert!(page.contains(remark));
    assert!(!page.contains("INVALID</strong>"), "the valid run counts");
}

#[test]
fn goodput_of_endless_downloads_is_judged_and_has_no_response_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "{TEXT}[[case]]\nname = \"full\"\nsetup = {{ model = \"saturated\", users = 5, seeds = [1] }}\n\
         [[claim]]\ntext = \"as much goodput\"\nfigure = \"/goodput_bits_per_sec\"\npeer = \"sooner srpt user-space\"\n\
         over = \"nginx\"\nat_least = 0.985\ncases = [\"full\"]\n"
    );
    let experiment = support::experiment(folder.path(), "order", &text);
    let mut store = Store::open(&experiment.folder.join("runs/2026-11-22-here")).expect("a store");
    let full = experiment.case("full").expect("the case");
    for (server, goodput) in [(NGINX, 9.5e6), (SRPT, 9.4905e6)] {
        // As `sooner load closed` prints it, without what a replay knows.
        let run = json!({"connections": 5, "verdict": "VALID", "verdict_reason": "", "goodput_bits_per_sec": goodput,
            "all": {"n": 3, "max_response_ms": 4.5}});
        support::keep_json(&mut store, full, server.name, 1, run, &[]);
    }
    let page = page(folder.path());
    assert!(page.contains("as much goodput"), "the claim");
    assert!(page.contains("0.999"), "its value");
}
