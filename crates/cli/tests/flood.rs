//! A flood of SYNs: handshakes lose their place before all responses, and get it back.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::host::{ADDRESS, DEVICE, Host};
use rustix::process::Signal;
use serde_json::Value;
use sooner_testbed::{ChildGuard, skip};

const PORT: &str = "8080";
/// The other end of the host's device: what is sent there comes in.
const OUTSIDE: &str = "s1";

/// Lets packets to addresses that no host has leave this host, into nothing.
fn nobody_answers(host: &Host) -> String {
    let mac = |device: &str| {
        let shown = host.printed("ip", &["-br", "link", "show", "dev", device]);
        shown.split_whitespace().nth(2).unwrap().to_owned()
    };
    let outside = mac(OUTSIDE);
    for last in 100..200 {
        let address = format!("10.78.0.{last}");
        let neighbour = ["neigh", "add", &address, "lladdr", &outside];
        host.printed(
            "ip",
            &[&neighbour[..], &["dev", DEVICE, "nud", "permanent"]].concat(),
        );
    }
    mac(DEVICE)
}

/// The flood; None, after saying why, where it cannot be made.
fn flood(host: &Host, test: &str) -> Option<Command> {
    if Command::new("python3").arg("--version").output().is_err() {
        skip(test, "no python3 to send SYNs with");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flood/syns.py");
    let mut command = host.inside("python3");
    command.args([
        script,
        OUTSIDE,
        &nobody_answers(host),
        ADDRESS,
        PORT,
        "6000",
        "3000",
    ]);
    Some(command)
}

fn serve(host: &Host, more: &[&str]) -> ChildGuard {
    let root = host.root.path().display().to_string();
    // A server that does not say what the test waits for must not hang the test.
    let mut command = host.inside("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_sooner")]);
    command.args(["serve", &root, "--listen", &format!("{ADDRESS}:{PORT}")]);
    ChildGuard(command.args(more).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn a_server_puts_handshakes_last_while_there_is_a_flood() {
    let Some(host) = Host::new("flood-serve") else {
        return;
    };
    let Some(mut flood) = flood(
        &host,
        "a_server_puts_handshakes_last_while_there_is_a_flood",
    ) else {
        return;
    };
    let mut server = serve(&host, &["--uplink", "10mbit"]);
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let mut until =
        |word: &str| while !lines.next().expect("it says so").unwrap().contains(word) {};
    until("serving");
    let mut flooding = ChildGuard(flood.spawn().unwrap());
    until("they go last");
    flooding.0.wait().unwrap();
    until("go first again");
    server.end(Signal::TERM).unwrap();
}

#[test]
fn an_attachment_puts_handshakes_last_while_there_is_a_flood() {
    let Some(host) = Host::new("flood-attach") else {
        return;
    };
    let Some(mut flood) = flood(
        &host,
        "an_attachment_puts_handshakes_last_while_there_is_a_flood",
    ) else {
        return;
    };
    let mut server = serve(&host, &[]);
    let mut line = String::new();
    BufReader::new(server.0.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let mut command = host.inside(env!("CARGO_BIN_EXE_sooner"));
    command.args([
        "attach", "web", "--dev", DEVICE, "--uplink", "10mbit", "--port", PORT,
    ]);
    let mut attached = ChildGuard(command.stdout(Stdio::piped()).spawn().unwrap());
    BufReader::new(attached.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("ready:"), "{line}");
    assert!(flood.status().unwrap().success());
    let top = host
        .inside(env!("CARGO_BIN_EXE_sooner"))
        .args(["attach", "top", "--json"])
        .output();
    let top: Value = serde_json::from_slice(&top.unwrap().stdout).unwrap();
    let lowered = top["lowered_syn_acks"].as_u64().unwrap();
    assert!(lowered > 1000, "{top}");
    assert_eq!(top["responses"], 0, "a handshake is no response");
    attached.end(Signal::TERM).unwrap();
    server.end(Signal::TERM).unwrap();
}
