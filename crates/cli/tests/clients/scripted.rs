//! Libraries that programs ask with: Node's `fetch` and Python's `requests`, each by a script that
//! asks for what it is told.

use super::client::{Client, command, is_missing};
use super::site::Site;
use super::table::{Case, Got};
use super::way::Way;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

const FETCH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/clients/scripts/fetch.mjs"
);
const REQUESTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/clients/scripts/requests_client.py"
);

#[test]
fn node_fetch_agrees_with_the_files() {
    let has_fetch = "process.exit(typeof fetch === 'function' ? 0 : 1)";
    if is_missing(
        "node_fetch_agrees_with_the_files",
        &["node", "-e", has_fetch],
        "nodejs",
    ) {
        return;
    }
    let fetch = Client {
        ways: Way::HTTP1,
        cannot: &[],
        unpacks: true,
        // It asks before it has taken back the connection of the answer before.
        connections_max: |_| Some(2),
        ask: |site, way, cases| {
            let mut node = command("node");
            node.arg(FETCH).env("NODE_EXTRA_CA_CERTS", site.authority());
            ask(&mut node, site, way, cases)
        },
    };
    fetch.check();
}

#[test]
fn python_requests_agrees_with_the_files() {
    let import = ["python3", "-c", "import requests"];
    if is_missing(
        "python_requests_agrees_with_the_files",
        &import,
        "python3-requests",
    ) {
        return;
    }
    let requests = Client {
        ways: Way::HTTP1,
        cannot: &[],
        unpacks: true,
        connections_max: |_| Some(1),
        ask: |site, way, cases| {
            let mut python = command("python3");
            python.arg(REQUESTS).arg(site.authority());
            ask(&mut python, site, way, cases)
        },
    };
    requests.check();
}

/// What a script prints of each answer.
#[derive(Deserialize)]
struct Answer {
    status: u16,
    fields: BTreeMap<String, String>,
}

/// Tells the script what to ask for, and reads what it says and the bodies it wrote.
fn ask(script: &mut Command, site: &Site, way: Way, cases: &[Case]) -> Vec<Got> {
    let body_file = |nth: usize| site.scratch(&format!("{nth}.body"));
    let told = |(nth, case): (usize, &Case)| -> Value {
        let fields: BTreeMap<_, _> = case.fields.iter().cloned().collect();
        let url = site.url(way, case.path);
        json!({"method": case.method, "url": url, "fields": fields, "body_file": body_file(nth)})
    };
    let all: Value = cases.iter().enumerate().map(told).collect();
    let mut child = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(all.to_string().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{way:?}: {said}");
    let answers: Vec<Answer> = serde_json::from_slice(&output.stdout).unwrap();
    let got = |(nth, answer): (usize, Answer)| Got {
        status: answer.status,
        fields: answer
            .fields
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect(),
        body: fs::read(body_file(nth)).unwrap(),
    };
    answers.into_iter().enumerate().map(got).collect()
}
