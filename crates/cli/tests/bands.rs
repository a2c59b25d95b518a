//! `sooner serve` with kernel bands: what it sets up goes away with it, however it ends, and
//! nothing of the operator's is touched.

use std::io::{BufRead, BufReader};
use std::process::{ChildStderr, Command, Stdio};

use crate::host::{ADDRESS, DEVICE, Host};
use crate::terminal::{OnTerminal, has_script};
use rustix::process::Signal;
use sooner_testbed::ChildGuard;

/// What this file asks of the host.
trait Serves {
    fn serve(&self, listen: &str, more: &[&str]) -> Command;
    /// Starts a server and waits until it says that it serves; returns it with what it said.
    fn start(&self, listen: &str, more: &[&str]) -> (ChildGuard, String);
    /// The same with what it says later.
    fn listen_to(&self, listen: &str, more: &[&str]) -> (ChildGuard, Lines, String);
}

impl Serves for Host {
    fn serve(&self, listen: &str, more: &[&str]) -> Command {
        let mut command = self.inside(env!("CARGO_BIN_EXE_sooner"));
        command.arg("serve").arg(self.root.path());
        command.args(["--listen", listen, "--uplink", "10mbit"]);
        command.args(more);
        command
    }

    fn start(&self, listen: &str, more: &[&str]) -> (ChildGuard, String) {
        let (running, _, said) = self.listen_to(listen, more);
        (running, said)
    }

    fn listen_to(&self, listen: &str, more: &[&str]) -> (ChildGuard, Lines, String) {
        let mut command = self.serve(listen, more);
        let mut running = ChildGuard(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(running.0.stderr.take().unwrap()).lines();
        let said = until(&mut lines, "serving");
        (running, lines, said)
    }
}

/// What a server says on standard error.
type Lines = std::io::Lines<BufReader<ChildStderr>>;

/// What is said up to the line with this word, and that line.
fn until(lines: &mut Lines, word: &str) -> String {
    let mut said = String::new();
    while !said.contains(word) {
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("no {word} in {said}"));
        said += &line.unwrap();
        said.push('\n');
    }
    said
}

#[test]
fn bands_come_with_the_server_and_go_with_any_signal() {
    let Some(host) = Host::new("signals") else {
        return;
    };
    let before = (host.qdiscs(), host.link());
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let (child, said) = host.start(&format!("{ADDRESS}:8080"), &[]);
        assert!(said.contains("kernel bands on s0"), "{said}");
        assert!(host.qdiscs().contains("htb 5005:"), "{}", host.qdiscs());
        assert_ne!(host.link(), before.1, "super-packets are limited");
        child.end(signal).unwrap();
        assert_eq!((host.qdiscs(), host.link()), before);
    }
}

#[test]
fn bands_go_with_the_terminal() {
    let Some(host) = Host::new("terminal") else {
        return;
    };
    if !has_script("bands_go_with_the_terminal") {
        return;
    }
    let before = (host.qdiscs(), host.link());
    let (root, listen) = (host.root.path(), format!("{ADDRESS}:8080"));
    for is_closed in [false, true] {
        let mut server = OnTerminal::start(
            host.inside("script"),
            "",
            &[
                "serve",
                root.to_str().unwrap(),
                "--listen",
                &listen,
                "--uplink",
                "10mbit",
            ],
        );
        let said = server.until("serving");
        assert!(said.contains("kernel bands on s0"), "{said}");
        assert!(host.qdiscs().contains("htb 5005:"), "{}", host.qdiscs());
        match is_closed {
            true => server.close(),
            false => server.signal(Signal::HUP),
        }
        server.wait_for_end();
        assert_eq!((host.qdiscs(), host.link()), before);
    }
}

#[test]
fn two_bands_are_two_queues_under_any_policy_that_has_bands() {
    let Some(host) = Host::new("two") else {
        return;
    };
    let before = (host.qdiscs(), host.link());
    for policy in ["srpt", "psjf", "swift", "fcf"] {
        let listen = format!("{ADDRESS}:8080");
        let (child, said) = host.start(
            &listen,
            &["--mechanism", "bands", "--bands", "2", "--policy", policy],
        );
        assert!(said.contains("kernel bands on s0 (2 of them)"), "{said}");
        assert_eq!(host.qdiscs().matches("pfifo").count(), 2);
        child.end(Signal::TERM).unwrap();
        assert_eq!((host.qdiscs(), host.link()), before);
    }
}

#[test]
fn after_kill_9_the_next_start_cleans_up_whatever_it_is_asked_to_do() {
    let Some(host) = Host::new("kill") else {
        return;
    };
    let before = (host.qdiscs(), host.link());
    let (child, _) = host.start(&format!("{ADDRESS}:8080"), &[]);
    child.end(Signal::KILL).unwrap();
    assert!(host.qdiscs().contains("htb 5005:"), "{}", host.qdiscs());
    let (child, said) = host.start("127.0.0.1:8081", &["--mechanism", "user-space"]);
    assert!(
        said.contains("s0: what a killed process left is gone"),
        "{said}"
    );
    assert_eq!((host.qdiscs(), host.link()), before);
    child.end(Signal::TERM).unwrap();
}

#[test]
fn what_the_operator_configured_is_not_touched_unless_asked() {
    let Some(host) = Host::new("operator") else {
        return;
    };
    let shaped = [
        "qdisc", "add", "dev", DEVICE, "root", "handle", "7:", "pfifo", "limit", "10",
    ];
    host.printed("tc", &shaped);
    let before = (host.qdiscs(), host.link());
    let listen = format!("{ADDRESS}:8080");
    let refused = host
        .serve(&listen, &["--mechanism", "both"])
        .output()
        .unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    for word in ["pfifo", "7:", "--replace-qdisc"] {
        assert!(message.contains(word), "{word} is not in {message}");
    }
    let (child, said) = host.start(&listen, &[]);
    assert!(said.contains("in user space"), "{said}");
    assert!(said.contains("--replace-qdisc"), "{said}");
    child.end(Signal::TERM).unwrap();
    assert_eq!((host.qdiscs(), host.link()), before);
    let (child, said) = host.start(&listen, &["--replace-qdisc"]);
    assert!(said.contains("kernel bands on s0"), "{said}");
    child.end(Signal::TERM).unwrap();
    assert_eq!((host.qdiscs(), host.link()), before);
}

/// Of the live page: where the order is made.
fn mechanism(host: &Host) -> String {
    host.printed("curl", &["-s", "http://127.0.0.1:8081/status.json"])
}

#[test]
fn bands_that_another_program_takes_away_are_missed() {
    let Some(host) = Host::new("taken") else {
        return;
    };
    let listen = format!("{ADDRESS}:8080");
    let before = (host.qdiscs(), host.link());
    let operators = "qdisc replace dev s0 root handle 9: pfifo limit 10";
    for (mechanism_name, order, taken) in [
        (
            "bands",
            "responses are not ordered",
            "qdisc del dev s0 root",
        ),
        (
            "both",
            "user space orders responses",
            "qdisc del dev s0 root",
        ),
        ("both", "user space orders responses", operators),
    ] {
        let more = ["--mechanism", mechanism_name, "--admin", "127.0.0.1:8081"];
        let (child, mut lines, _) = host.listen_to(&listen, &more);
        assert!(!mechanism(&host).contains("gone"), "{}", mechanism(&host));
        host.namespace.tc(taken).unwrap();
        let left = host.qdiscs();
        let said = until(&mut lines, "gone");
        for words in ["bands on s0", "another program", order, "restart"] {
            assert!(said.contains(words), "{words} is not in {said}");
        }
        assert!(mechanism(&host).contains(order), "{}", mechanism(&host));
        assert_eq!((host.qdiscs(), host.link()), (left, before.1.clone()));
        child.end(Signal::TERM).unwrap();
        // What the operator put there stays his.
        let is_his = taken == operators;
        assert_eq!(
            host.qdiscs().contains("pfifo 9:"),
            is_his,
            "{}",
            host.qdiscs()
        );
    }
}

#[test]
fn bands_go_and_come_with_their_device() {
    let Some(host) = Host::new("device") else {
        return;
    };
    let before = (host.qdiscs(), host.link());
    let listen = "127.0.0.1:8080";
    let more = ["--uplink-device", DEVICE, "--mechanism", "bands"];
    let (child, mut lines, _) = host.listen_to(listen, &more);
    host.namespace.ip("link del s0").unwrap();
    let said = until(&mut lines, "gone");
    assert!(said.contains("device s0 is gone"), "{said}");
    host.namespace
        .ip("link add s0 type veth peer name s1")
        .unwrap();
    let said = until(&mut lines, "back,");
    assert!(said.contains("device s0 is back"), "{said}");
    assert!(host.qdiscs().contains("htb 5005:"), "{}", host.qdiscs());
    child.end(Signal::TERM).unwrap();
    host.namespace.ip("link set s0 up").unwrap();
    assert_eq!((host.qdiscs(), host.link()), before);
}

#[test]
fn without_the_capability_it_serves_and_says_what_it_would_gain() {
    let Some(host) = Host::new("unprivileged") else {
        return;
    };
    let (before, listen) = (host.qdiscs(), format!("{ADDRESS}:8080"));
    let drop = ["--bounding-set=-all", "--inh-caps=-all", "--"];
    let serve = |more: &[&str]| {
        let mut command = host.inside("setpriv");
        command.args(drop).arg(env!("CARGO_BIN_EXE_sooner"));
        command.arg("serve").arg(host.root.path());
        command.args(["--listen", &listen, "--uplink", "10mbit"]);
        command.args(more).stderr(Stdio::piped());
        command
    };
    let refused = serve(&["--mechanism", "bands"]).output().unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("CAP_NET_ADMIN"), "{message}");
    let mut child = ChildGuard(serve(&[]).spawn().unwrap());
    let mut said = String::new();
    let mut lines = BufReader::new(child.0.stderr.take().unwrap());
    lines.read_line(&mut said).unwrap();
    child.end(Signal::TERM).unwrap();
    assert!(said.contains("in user space"), "{said}");
    assert!(said.contains("CAP_NET_ADMIN"), "{said}");
    assert_eq!(host.qdiscs(), before);
}

#[test]
fn a_device_that_does_not_exist_is_named_with_those_that_do() {
    let Some(host) = Host::new("device") else {
        return;
    };
    let listen = format!("{ADDRESS}:8080");
    let refused = host
        .serve(&listen, &["--uplink-device", "eth9"])
        .output()
        .unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    for word in ["eth9", "s0", "--uplink-device"] {
        assert!(message.contains(word), "{word} is not in {message}");
    }
}
