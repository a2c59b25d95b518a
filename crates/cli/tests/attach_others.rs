//! `sooner attach web` beside attachments of other users and of other containers: what can be known
//! of them is said, and what cannot is not lost in silence.

use std::path::Path;
use std::process::{Command, Output};

use crate::attach::{Attaches, PORT, assert_refused, started};
use crate::attach_in_use::until;
use crate::host::{DEVICE, Host};
use rustix::process::Signal;
use serde_json::Value;
use sooner_testbed::skip;

const ON: [&str; 6] = ["--dev", DEVICE, "--uplink", "10mbit", "--port", PORT];

/// An attachment by a user with the capabilities for it, who keeps records in a folder of its own.
fn by_another_user(host: &Host, folder: &Path, words: &[&str]) -> Command {
    let mut command = host.inside("setpriv");
    let ids = ["--reuid=54321", "--regid=54321", "--clear-groups"];
    let capabilities = ["--inh-caps=", "--ambient-caps="].map(|flag| {
        let all = "+net_admin,+bpf,+perfmon";
        format!("{flag}{all}")
    });
    command.args(ids).args(capabilities);
    command.arg(env!("CARGO_BIN_EXE_sooner")).arg("attach");
    command.args(words).env("XDG_RUNTIME_DIR", folder);
    command
}

/// None, after saying why, where another user cannot run the program.
fn folder_of_another(test: &str) -> Option<tempfile::TempDir> {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=54321", "--clear-groups"]);
    command.args([env!("CARGO_BIN_EXE_sooner"), "--version"]);
    if !command.output().is_ok_and(|output| output.status.success()) {
        skip(test, "another user cannot run the program where it is");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(54321), None).unwrap();
    Some(folder)
}

/// An attachment in a container: with a `/run` and numbers of processes of its own.
fn in_a_container(host: &Host, words: &[&str]) -> Command {
    let mut command = host.inside("unshare");
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child=TERM",
        "--mount-proc",
    ]);
    command.args(["sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh"]);
    command.arg(env!("CARGO_BIN_EXE_sooner")).arg("attach");
    command.args(words);
    command
}

fn said(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn configure(host: &Host) {
    let queue = "qdisc add dev s0 root handle 7: tbf rate 20mbit burst 32k latency 50ms";
    let done = host.inside("tc").args(queue.split(' ')).status().unwrap();
    assert!(done.success());
}

#[test]
fn what_only_another_user_can_restore_is_left_to_that_user() {
    let test = "what_only_another_user_can_restore_is_left_to_that_user";
    let (Some(host), Some(folder)) = (Host::new("attach-user"), folder_of_another(test)) else {
        return;
    };
    let _listener = host.listener();
    configure(&host);
    let before = host.everything();
    let (running, _, _) = host.attach(&["--replace-qdisc"]);
    running.end(Signal::KILL).unwrap();
    let left = host.everything();
    let start = [&["web"][..], &ON].concat();
    for words in [&start[..], &["remove"]] {
        let refused = by_another_user(&host, folder.path(), words)
            .output()
            .unwrap();
        assert_refused(
            &refused,
            &["s0: has the bands of a killed process of another user"],
        );
        assert_eq!(host.everything(), left, "{words:?}");
    }
    let removed = host.said(&["remove"]);
    assert_eq!(said(&removed), "s0: what a killed process left is gone\n");
    assert_eq!(host.everything(), before);
}

#[test]
fn root_says_that_what_another_user_replaced_is_not_known() {
    let test = "root_says_that_what_another_user_replaced_is_not_known";
    let (Some(host), Some(folder)) = (Host::new("attach-root"), folder_of_another(test)) else {
        return;
    };
    let _listener = host.listener();
    let start = [&["web"][..], &ON, &["--replace-qdisc"]].concat();
    configure(&host);
    let (running, _, _) = started(by_another_user(&host, folder.path(), &start));
    running.end(Signal::KILL).unwrap();
    let removed = host.said(&["remove"]);
    assert!(said(&removed).contains("what stood there before is not known"));
    assert_eq!(said(&removed).lines().count(), 1);
}

#[test]
fn one_out_of_sight_is_named_and_not_said_to_be_gone() {
    let test = "one_out_of_sight_is_named_and_not_said_to_be_gone";
    let (Some(host), Some(folder)) = (Host::new("attach-unseen"), folder_of_another(test)) else {
        return;
    };
    let _listener = host.listener();
    let start = [&["web"][..], &ON].concat();
    let by_user = by_another_user(&host, folder.path(), &start);
    // The parent in the container hands no signal on but its own death.
    let commands = [
        (by_user, Signal::TERM),
        (in_a_container(&host, &start), Signal::KILL),
    ];
    for (command, end) in commands {
        let (running, _, _) = started(command);
        let status = host.said(&["status"]);
        assert_eq!(status.status.code(), Some(0));
        let words = "s0: the attachment of another user, or of another container, is there";
        assert!(said(&status).contains(words), "{status:?}");
        for words in [&["remove"][..], &["top"]] {
            assert_refused(&host.said(words), &["does not answer here"]);
        }
        assert!(host.qdiscs().contains("htb 5005:"));
        running.end(end).unwrap();
        until("the bands are gone", || {
            (!host.qdiscs().contains("htb 5005:")).then_some(())
        });
    }
}

#[test]
fn one_in_a_pid_namespace_is_told_by_the_number_that_it_has_here() {
    let Some(host) = Host::new("attach-pid") else {
        return;
    };
    let _listener = host.listener();
    let mut command = host.inside("unshare");
    command.args(["--pid", "--fork", "--kill-child=TERM", "--mount-proc"]);
    command
        .arg(env!("CARGO_BIN_EXE_sooner"))
        .args(["attach", "web"]);
    command.args(ON);
    let (running, _, _) = started(command);
    let found: Value = serde_json::from_slice(&host.said(&["status", "--json"]).stdout).unwrap();
    let pid = found[0]["pid"].as_u64().unwrap();
    assert!(pid > 1, "{found}");
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    assert_eq!(name, "sooner\n");
    let removed = said(&host.said(&["remove"]));
    assert!(
        removed.contains(&format!("process {pid} has ended")),
        "{removed}"
    );
    drop(running);
}

#[test]
fn the_port_that_was_found_for_the_page_is_said() {
    let Some(host) = Host::new("attach-page") else {
        return;
    };
    let _listener = host.listener();
    let (mut running, _, _) = host.attach(&["--admin", "0"]);
    let mut line = String::new();
    let stderr = running.0.stderr.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line).unwrap();
    let address = line
        .trim()
        .strip_prefix("sooner attach: live page: ")
        .unwrap();
    let mut curl = host.inside("curl");
    let page = curl.args(["--silent", address]).output().unwrap();
    assert!(said(&page).contains("<html"), "{line}{page:?}");
    running.end(Signal::TERM).unwrap();
    // No browser goes to an address that stands for all.
    for (everywhere, local) in [
        ("0.0.0.0:0", "http://127.0.0.1:"),
        ("[::]:0", "http://[::1]:"),
    ] {
        let (mut running, _, _) = host.attach(&["--admin", everywhere]);
        let mut line = String::new();
        let stderr = running.0.stderr.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line).unwrap();
        assert!(line.contains(local), "{line}");
        assert!(line.contains("at every address of this host"), "{line}");
        running.end(Signal::TERM).unwrap();
    }
}
