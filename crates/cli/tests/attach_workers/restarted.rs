//! While the server is away: what is still shown, removed and reported.

use super::{PATIENCE, Server, ask, nice, until};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use sooner_testbed::OwnedChild;

fn sooner(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    command.args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn one_that_waits_for_its_server_is_seen_and_removed() {
    let test = "one_that_waits_for_its_server_is_seen_and_removed";
    let Some(mut server) = Server::start(test, 2) else {
        return;
    };
    for more in [&[][..], &["--observe"]] {
        let mut attached = server.attach(more);
        let status = || -> Vec<Value> {
            let output = sooner(&["attach", "status", "--json"]);
            serde_json::from_slice(&output.stdout).unwrap()
        };
        assert_eq!(status()[0]["is_waiting"], false);
        server.process.end_by(Signal::TERM);
        server.process.end();
        until("it waits", || {
            status()
                .first()
                .is_some_and(|one| one["is_waiting"] == true)
        });
        let line = text(&sooner(&["attach", "status"]));
        assert!(line.contains("waits for the server"), "{line}");
        let top = sooner(&["attach", "top", "--once"]);
        assert!(top.status.success() && text(&top).contains("waits"));
        let removed = sooner(&["attach", "remove", "--cpu"]);
        assert!(removed.status.success(), "{removed:?}");
        assert!(text(&removed).contains("has ended"), "{removed:?}");
        until("it has ended", || attached.has_ended());
        assert!(attached.end().unwrap().success());
        server.process = Server::process(&server.folder, server.address, 2, &[]);
        sleep(Duration::from_millis(1500));
        assert!(server.workers().iter().all(|worker| nice(*worker) == 0));
    }
}

#[test]
fn an_explanation_survives_the_end_of_its_server() {
    let test = "an_explanation_survives_the_end_of_its_server";
    let Some(mut server) = Server::start(test, 2) else {
        return;
    };
    let port = server.address.port().to_string();
    for flag in ["--port", "--pid"] {
        let process = server.process.id().to_string();
        let named = [flag, if flag == "--port" { &port } else { &process }];
        let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
        command.args(["attach", "cpu", "--explain", "--for", "60s"]);
        command.args(named);
        let mut child = OwnedChild::spawn(&mut command).unwrap();
        child.next_message(PATIENCE).unwrap();
        for _ in 0..5 {
            ask(server.address, 20).unwrap();
        }
        server.process.end_by(Signal::TERM);
        server.process.end();
        let first = child.next_line(PATIENCE).unwrap();
        assert!(first.contains("workers of gunicorn"), "{first}");
        let mut lines = std::iter::from_fn(|| child.next_line(PATIENCE).ok());
        assert!(lines.any(|line| line.starts_with("requests") && line.trim_end().ends_with('5')));
        until("it has ended", || child.has_ended());
        assert!(child.end().unwrap().success());
        assert!(child.message().contains("the server has ended"));
        if flag == "--port" {
            let address = server.address;
            server.process = Server::process(&server.folder, address, 2, &[]);
        }
    }
}
