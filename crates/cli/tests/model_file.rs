//! One model file, read by the simulator, the formulas and the load generator: their means stand
//! side by side.

use serde_json::Value;
use sooner_testbed::ChildGuard;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn sooner(words: &[&str]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let output = command.args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // 1 says that a busy machine was late.
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{words:?}: {said}");
    output.stdout
}

fn run(words: &[&str]) -> Value {
    let document: Value = serde_json::from_slice(&sooner(words)).unwrap();
    document["runs"][0].clone()
}

/// `root` behind 10 Mbit/s, and its URL.
fn serve(root: &str) -> (ChildGuard, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(["serve", root, "--listen", "127.0.0.1:0"]);
    command.args(["--uplink", "10mbit", "--mechanism", "user-space"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    let serving = ChildGuard(child);
    for line in said.lines().map_while(Result::ok) {
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        if let Some(url) = url {
            return (serving, url.trim_end_matches(['/', ',', ';']).into());
        }
    }
    panic!("the server names no address")
}

#[test]
fn simulated_exact_and_measured_means_come_from_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.toml");
    let text =
        "sizes = \"exp:mean=12000\"\nschedule = 0.7\nuplink = \"10mbit\"\npolicy = \"srpt\"\n";
    fs::write(&path, text).unwrap();
    let (model, root) = (path.to_str().unwrap(), dir.path().join("root"));
    let root = root.to_str().unwrap();

    let solved = run(&["solve", "model", model, "--json"]);
    let simulated = run(&["sim", model, "--jobs", "4e5", "--json"]);
    let exact = solved["all"]["mean_response"].as_f64().unwrap();
    let found = simulated["controlled_mean_response"].as_f64().unwrap();
    assert!((found / exact - 1.0).abs() < 0.02, "{found}, exact {exact}");
    assert_eq!(solved["mean_service_s"], simulated["mean_service_s"]);

    sooner(&["load", "mkroot", model, root]);
    let (_serving, url) = serve(root);
    let measured = run(&[
        "load", "model", model, "--url", &url, "--for", "10", "--json",
    ]);
    assert_eq!(measured["policy"], "srpt");
    assert!(measured["all"]["n"].as_u64().unwrap() > 100);
    // Heads and packets are work too: a mean takes a little longer than its body alone, and the
    // formula knows it.
    let service_ms = 1000.0 * solved["mean_service_s"].as_f64().unwrap();
    let exact_ms = &measured["exact_mean_response_ms"];
    let on_the_wire = exact_ms["srpt"].as_f64().unwrap() / (exact * service_ms);
    assert!((1.0..1.2).contains(&on_the_wire), "{on_the_wire}");
    let of = |policy: &str| exact_ms[policy].as_f64().unwrap();
    assert!(of("srpt") < of("las") && of("srpt") < of("fair"));
    // So few requests say little; a unit that is wrong would be off by a thousand.
    let mean_ms = measured["all"]["mean_response_ms"].as_f64().unwrap();
    assert!((0.2..50.0).contains(&(mean_ms / of("srpt"))), "{mean_ms}");
}
