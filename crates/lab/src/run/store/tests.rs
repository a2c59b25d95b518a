//! What counts of what was measured.

use super::*;
use crate::run::example;
use serde_json::json;

fn case() -> Case {
    example::case("peers = [\"nginx\"]")
}

fn line(case: &Case, verdict: &str, attempt: u32) -> Line {
    Line {
        run: json!({"verdict": verdict, "verdict_reason": "send lag", "ccdf": [1, 2]}),
        ..example::line(case, "nginx", attempt)
    }
}

#[test]
fn a_valid_run_counts_and_a_new_set_up_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let mut case = case();
    assert!(store.best(&case, 1, "nginx").is_none());
    for (verdict, attempt) in [("INVALID", 1), ("VALID", 2), ("INVALID", 3)] {
        let mut line = line(&case, verdict, attempt);
        line.run["ccdf"] = json!([attempt]);
        store.add(line, &[json!({"s": 1})]).unwrap();
    }
    let again = Store::read(folder.path()).unwrap();
    let best = again.best(&case, 1, "nginx").unwrap();
    assert_eq!(best.attempt, 2);
    assert!(best.run.get("ccdf").is_none(), "a line has no plots");
    assert_eq!(again.detail(best).unwrap()["ccdf"], json!([2]));
    case.setup.seconds += 1;
    assert!(again.best(&case, 1, "nginx").is_none());
}

#[test]
fn a_server_that_had_no_processor_is_measured_again() {
    let case = case();
    let mut held_up = line(&case, "VALID", 1);
    let limit_s = CPU_WAIT_SHARE_MAX * case.setup.seconds as f64;
    held_up.counters = json!({"cpu_wait_s": limit_s * 0.9});
    held_up.judge_processor();
    assert!(held_up.is_valid());
    held_up.counters = json!({"cpu_wait_s": limit_s * 1.1});
    let mut caddy = Line {
        peer: "caddy".into(),
        ..held_up.clone()
    };
    caddy.judge_processor();
    assert!(caddy.is_valid(), "its threads wait for each other");
    held_up.judge_processor();
    assert!(
        !held_up.is_valid() && held_up.was_held_up(),
        "{}",
        held_up.run
    );
}

#[test]
fn a_wider_limit_gives_old_runs_their_verdict_back_unless_requests_were_lost() {
    let case = case();
    let judged = |wait: f64, lost: u64| {
        let run = json!({"verdict": "INVALID", "verdict_reason": format!("the server {WAITED} 6 %"),
                         "incompletes": lost, "all": {"n": 1000, "errors": 0}});
        let counters = json!({"cpu_wait_s": wait * case.setup.seconds as f64});
        let mut line = Line {
            run,
            counters,
            ..example::line(&case, "nginx", 1)
        };
        line.judge_processor();
        line.is_valid()
    };
    assert!(judged(CPU_WAIT_SHARE_MAX * 0.9, 10));
    assert!(!judged(CPU_WAIT_SHARE_MAX * 0.9, 11));
    assert!(!judged(CPU_WAIT_SHARE_MAX * 1.1, 0));
}

#[test]
fn of_attempts_that_are_equally_valid_the_quietest_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let case = case();
    for (attempt, wait_s) in [(1, 2.0), (2, 0.5), (3, 1.0)] {
        let run = json!({"verdict": "VALID"});
        let counters = json!({"cpu_wait_s": wait_s});
        let line = Line {
            run,
            counters,
            ..example::line(&case, "nginx", attempt)
        };
        store.add(line, &[]).unwrap();
    }
    assert_eq!(store.best(&case, 1, "nginx").unwrap().attempt, 2);
}

#[test]
fn what_did_not_run_at_the_same_time_is_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let case = example::case("peers = [\"nginx\", \"caddy\"]");
    let mut keep = |peer: &str, verdict: &str, attempt| {
        let run = json!({"verdict": verdict});
        let of_peer = example::line(&case, peer, attempt);
        store.add(Line { run, ..of_peer }, &[]).unwrap();
        let best = |peer| store.best(&case, 1, peer).map(|line| line.attempt);
        (best("nginx"), best("caddy"))
    };
    keep("nginx", "VALID", 1);
    assert_eq!(keep("caddy", "INVALID", 1), (Some(1), Some(1)));
    assert_eq!(keep("nginx", "INVALID", 2), (Some(1), Some(1)));
    assert_eq!(keep("caddy", "VALID", 2), (Some(2), Some(2)));
    keep("nginx", "VALID", 3);
    assert_eq!(keep("caddy", "VALID", 3), (Some(3), Some(3)));
    // one that was cut short
    assert_eq!(keep("nginx", "VALID", 4), (Some(3), Some(3)));
}

#[test]
fn what_a_server_lost_counts_against_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, case) = (Store::open(folder.path()).unwrap(), case());
    let mut keep = |reason: &str, attempt| {
        let mut line = line(&case, "INVALID", attempt);
        line.run = json!({"verdict": "INVALID", "verdict_reason": reason,
            "all": {"mean_response_ms": 2.0, "mean_response_at_least_ms": 5.0}});
        store.add(line, &[]).unwrap();
        let figure = |pointer| store.figure(&case, 1, "nginx", pointer);
        ["/all/mean_response_ms", "/all/mean_response_at_least_ms"].map(figure)
    };
    assert_eq!(keep("the generator was held up", 1), [None, None]);
    let lost = "9 of 10 requests were never answered: x";
    assert_eq!(keep(lost, 2), [None, Some(5.0)]);
}

#[test]
fn connections_that_broke_count_against_a_server_and_other_failures_do_not() {
    let counts = |kind: &str, errors: u32| {
        let mut line = line(&case(), "INVALID", 1);
        line.run = json!({"verdict": "INVALID", "verdict_reason": "9 of 10 requests failed, mostly: x",
            "errors_by_kind": {kind: errors}, "incompletes": 10, "all": {"errors": errors, "n": 100}});
        line.counts()
    };
    assert!(counts("timeout", 40));
    assert!(!counts("timeout", 41), "it did not work at all");
    assert!(!counts("status", 2));
}

#[test]
fn only_one_writes_to_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = Store::open(folder.path()).unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("another"), "{error}");
    drop(first);
    Store::open(folder.path()).unwrap();
}

#[test]
fn a_line_cut_off_by_a_crash_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, case) = (Store::open(folder.path()).unwrap(), case());
    store.add(line(&case, "VALID", 1), &[]).unwrap();
    let path = folder.path().join(LINES);
    let half = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{half}{}", &half[..half.len() / 2])).unwrap();
    drop(store);
    let mut store = Store::open(folder.path()).unwrap();
    store.add(line(&case, "VALID", 2), &[]).unwrap();
    assert_eq!(Store::read(folder.path()).unwrap().lines().len(), 2);
}
