//! Waiting time and numbers of jobs, as `sooner sim` and `sooner solve` print them, against the
//! closed forms of textbooks.

use serde_json::Value;
use std::process::Command;

fn run(words: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let output = command.args(words).arg("--json").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["runs"][0].clone()
}

/// Wq, L and Lq of the simulation lie about where they should, and the formulas beside them are
/// exact.
fn check(words: &[&str], expected: [f64; 3]) {
    let fields = ["mean_waiting", "mean_jobs", "mean_jobs_waiting"];
    let jobs = ["--jobs", "400000"];
    let found = run(&[&["sim"], words, &jobs].concat());
    let solved = run(&[&["solve", "model"], words].concat());
    for (field, exact) in fields.into_iter().zip(expected) {
        let close = |value: &Value| (value.as_f64().unwrap() / exact - 1.0).abs() < 1e-9;
        assert!(close(&found[format!("exact_{field}")]), "{words:?} {field}");
        assert!(close(&solved["all"][field]), "{words:?} {field}");
        let interval = &found[format!("{field}_ci95")];
        let (low, high) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
        let (middle, half) = ((low + high) / 2.0, (high - low) / 2.0);
        // One interval in twenty misses; none of these seeds is three times as far away.
        assert!(
            (middle - exact).abs() < 3.0 * half && half < 0.2 * exact,
            "{words:?} {field}: {low} to {high}, exact {exact}"
        );
    }
}

#[test]
fn mm1() {
    for policy in ["fifo", "ps"] {
        let words = ["--sizes", "exp:mean=5", "--load", "0.8", "--policy", policy];
        check(&words, [4.0, 4.0, 3.2]);
    }
}

#[test]
fn mm3() {
    // Erlang's C of three servers at 0.8 is 0.64719...
    let (offered, load) = (2.4_f64, 0.8);
    let last = offered.powi(3) / 6.0 / (1.0 - load);
    let must_wait = last / (1.0 + offered + offered * offered / 2.0 + last);
    let waiting = must_wait / (1.0 - load);
    let words = [
        "--sizes",
        "exp:mean=1",
        "--load",
        "0.8",
        "--servers",
        "3",
        "--policy",
        "fcfs",
    ];
    check(&words, [waiting, offered + load * waiting, load * waiting]);
}

#[test]
fn mg1() {
    // Pollaczek and Khinchine, with a squared coefficient of variation of 4.
    let load = 0.7;
    let waiting = load * (1.0 + 4.0) / (2.0 * (1.0 - load));
    let words = [
        "--sizes",
        "h2:mean=1,c2=4",
        "--load",
        "0.7",
        "--policy",
        "fcfs",
    ];
    check(&words, [waiting, load + load * waiting, load * waiting]);
}

#[test]
fn a_closed_system_has_all_its_users() {
    let words = [
        "--sizes",
        "exp:mean=1",
        "--users",
        "10",
        "--think",
        "exp:mean=5",
        "--policy",
        "ps",
    ];
    let found = run(&[&["sim"], &words[..], &["--jobs", "200000"]].concat());
    let jobs = found["mean_jobs"].as_f64().unwrap();
    let thinking = found["throughput"].as_f64().unwrap() * 5.0;
    assert!((jobs + thinking - 10.0).abs() < 0.2, "{jobs} {thinking}");
    let exact = found["exact_mean_jobs"].as_f64().unwrap();
    assert!((jobs / exact - 1.0).abs() < 0.1, "{jobs} {exact}");
}

#[test]
fn tables_show_them() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let words = [
        "sim",
        "--sizes",
        "exp:mean=1",
        "--load",
        "0.5",
        "--jobs",
        "2000",
    ];
    let output = command.args(words).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for head in ["waiting (Wq)", "in system (L)", "in queue (Lq)"] {
        assert!(text.contains(head), "{text}");
    }
}
