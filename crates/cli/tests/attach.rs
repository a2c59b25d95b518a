//! `sooner attach` on a device of the test's own: what it adds goes away with it, however it ends,
//! and mistakes change nothing.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use crate::attach_in_use::until;
use crate::host::{ADDRESS, DEVICE, Host};
use rustix::process::Signal;
use serde_json::Value;
use sooner_kernel::process_table;
use sooner_testbed::ChildGuard;

/// Where something listens in these tests.
pub const PORT: &str = "8080";

/// What this file asks of the host.
pub trait Attaches {
    fn sooner(&self, arguments: &[&str]) -> Command;
    fn said(&self, arguments: &[&str]) -> Output;
    fn attach(&self, more: &[&str]) -> (ChildGuard, String, String);
    fn attach_at(&self, rate: &str, more: &[&str]) -> (ChildGuard, String, String);
    fn listener(&self) -> ChildGuard;
    fn everything(&self) -> String;
}

impl Attaches for Host {
    fn sooner(&self, arguments: &[&str]) -> Command {
        let mut command = self.inside(env!("CARGO_BIN_EXE_sooner"));
        command.arg("attach").args(arguments);
        command
    }

    fn said(&self, arguments: &[&str]) -> Output {
        self.sooner(arguments).output().unwrap()
    }

    /// Attaches, and waits until it says so; gives what it said on standard output and on standard
    /// error before.
    fn attach(&self, more: &[&str]) -> (ChildGuard, String, String) {
        self.attach_at("10mbit", more)
    }

    fn attach_at(&self, rate: &str, more: &[&str]) -> (ChildGuard, String, String) {
        let basic = ["web", "--dev", DEVICE, "--uplink", rate, "--port", PORT];
        started(self.sooner(&[&basic, more].concat()))
    }

    /// Something that listens on the port.
    fn listener(&self) -> ChildGuard {
        let serve =
            ["serve", &self.root.path().display().to_string(), "--listen"].map(String::from);
        let mut command = self.inside(env!("CARGO_BIN_EXE_sooner"));
        command.args(serve).arg(format!("{ADDRESS}:{PORT}"));
        let mut running = ChildGuard(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(running.0.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.contains("serving"), "{line}");
        running
    }

    /// All that an attachment changes.
    fn everything(&self) -> String {
        let filters = ["ingress", "egress"]
            .map(|side| self.printed("tc", &["filter", "show", "dev", DEVICE, side]));
        format!("{}{}{}", self.qdiscs(), self.link(), filters.concat())
    }
}

/// Waits until an attachment says that it is ready; gives what it said on standard output, and on
/// standard error before.
pub fn started(mut command: Command) -> (ChildGuard, String, String) {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = ChildGuard(piped.spawn().unwrap());
    let mut ready = String::new();
    let stdout = running.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut ready).unwrap();
    let mut before = String::new();
    if !ready.starts_with("ready:") {
        let stderr = running.0.stderr.take().unwrap();
        BufReader::new(stderr).read_line(&mut before).unwrap();
    }
    (running, ready, before)
}

/// One line on standard error, exit code 2, and these words in it.
pub fn assert_refused(output: &Output, words: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    for word in words {
        assert!(message.contains(word), "{word} is not in {message}");
    }
}

#[test]
fn it_comes_and_goes_with_any_signal_by_either_way() {
    let Some(host) = Host::new("attach-signals") else {
        return;
    };
    let _listener = host.listener();
    let before = host.everything();
    for way in [&[][..], &["--clsact"]] {
        for signal in [
            Signal::TERM,
            Signal::INT,
            Signal::HUP,
            Signal::USR1,
            Signal::USR2,
        ] {
            let (running, ready, _) = host.attach(way);
            assert!(
                ready.contains("port 8080 on s0 in 8 bands at 10 Mbit/s"),
                "{ready}"
            );
            assert!(host.qdiscs().contains("htb 5005:"), "{}", host.qdiscs());
            assert_eq!(host.qdiscs().contains("clsact"), !way.is_empty());
            running.end(signal).unwrap();
            assert_eq!(host.everything(), before);
        }
    }
}

#[test]
fn after_kill_9_remove_and_the_next_start_clean_up() {
    let Some(host) = Host::new("attach-kill") else {
        return;
    };
    let _listener = host.listener();
    let before = host.everything();
    for way in [&[][..], &["--clsact"]] {
        host.attach(way).0.end(Signal::KILL).unwrap();
        assert!(host.qdiscs().contains("htb 5005:"), "{}", host.qdiscs());
        let removed = host.said(&["remove"]);
        let words = String::from_utf8_lossy(&removed.stdout).into_owned();
        assert!(
            words.contains("s0: what a killed process left is gone"),
            "{words}"
        );
        assert_eq!(host.everything(), before);
        host.attach(way).0.end(Signal::KILL).unwrap();
        let (running, ready, _) = host.attach(&[]);
        assert!(ready.starts_with("ready:"), "{ready}");
        running.end(Signal::TERM).unwrap();
        assert_eq!(host.everything(), before);
    }
}

#[test]
fn whoever_asks_is_answered_and_remove_ends_it() {
    let Some(host) = Host::new("attach-ask") else {
        return;
    };
    let listener = host.listener();
    let before = host.everything();
    assert_refused(&host.said(&["top"]), &["nothing is attached here"]);
    let (mut running, _, _) = host.attach(&[]);
    let status = host.said(&["status", "--json"]);
    let found: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(found[0]["device"], "s0");
    assert_eq!(found[0]["ports"], serde_json::json!([8080]));
    let page = String::from_utf8(host.said(&["top"]).stdout).unwrap();
    assert!(page.contains("band") && page.contains("FAIR"), "{page}");
    let text = String::from_utf8(host.said(&["top", "--prometheus"]).stdout).unwrap();
    assert!(
        text.contains("sooner_attach_responses_total{device=\"s0\"} 0.0"),
        "{text}"
    );
    assert_refused(
        &host.said(&["web", "--dev", DEVICE, "--uplink", "1mbit", "--port", PORT]),
        &["s0", "stop it first"],
    );
    let removed = String::from_utf8(host.said(&["remove", "--dev", DEVICE]).stdout).unwrap();
    assert!(
        removed.contains("has ended, and the device is as it was"),
        "{removed}"
    );
    assert!(running.0.wait().unwrap().success());
    assert_eq!(host.everything(), before);
    let nothing = host.said(&["status"]);
    assert_eq!(nothing.stdout, b"nothing is attached\n");
    drop(listener);
}

#[test]
fn a_server_with_bands_of_its_own_is_no_attachment() {
    let Some(host) = Host::new("attach-serve") else {
        return;
    };
    let root = host.root.path().display().to_string();
    let mut command = host.inside(env!("CARGO_BIN_EXE_sooner"));
    command.args(["serve", &root, "--uplink", "10mbit", "--listen"]);
    command.arg(format!("{ADDRESS}:{PORT}"));
    let mut server = ChildGuard(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(server.0.stderr.take().unwrap()).lines();
    while !said.next().expect("it serves").unwrap().contains("serving") {}
    let before = host.everything();
    assert!(before.contains("htb 5005:"), "{before}");
    let removed = host.said(&["remove"]);
    assert_eq!(removed.stdout, b"nothing is attached\n");
    assert_eq!(host.everything(), before);
    let on = ["web", "--dev", DEVICE, "--uplink", "10mbit", "--port", PORT];
    assert_refused(&host.said(&on), &["stop it first"]);
    server.end(Signal::TERM).unwrap();
}

#[test]
fn a_mistake_is_one_line_and_changes_nothing() {
    let Some(host) = Host::new("attach-mistakes") else {
        return;
    };
    let _listener = host.listener();
    let before = host.everything();
    let web = |more: &[&str]| {
        let output = host.said(&[&["web"][..], more].concat());
        assert_eq!(host.everything(), before);
        output
    };
    let on = ["--dev", DEVICE, "--uplink"];
    assert_refused(
        &web(&["--dev", "eth9", "--uplink", "1mbit"]),
        &["eth9", "s0"],
    );
    assert_refused(&web(&[&on[..], &["1mbt"]].concat()), &["mbt"]);
    assert_refused(
        &web(&[&on[..], &["10mbit"]].concat()),
        &["nothing listens on port 80 or 443"],
    );
    assert_refused(
        &web(&[&on[..], &["10mbit", "--pid", "4000000"]].concat()),
        &["no process 4000000"],
    );
    assert_refused(
        &web(&[&on[..], &["10mbit", "--cgroup", "no.such"]].concat()),
        &["no control group `no.such`"],
    );
    assert_refused(
        &web(&[&on[..], &["99gbit", "--port", PORT]].concat()),
        &["more than device `s0` carries"],
    );
    assert_refused(
        &web(&[&on[..], &["10mbit", "--port", PORT, "--share", "50"]].concat()),
        &["--share 50"],
    );
    assert_refused(
        &web(&["--dev", "lo", "--uplink", "1mbit", "--port", PORT]),
        &["loopback"],
    );
    let own = std::process::id().to_string();
    assert_refused(
        &web(&[&on[..], &["10mbit", "--pid", &own]].concat()),
        &["is in another network namespace", "--port"],
    );
    let idle = ChildGuard(host.inside("sleep").arg("60").spawn().unwrap());
    let pid = idle.id();
    until("it is inside", || {
        (process_table::name(pid).ok()? == "sleep").then_some(())
    });
    assert_refused(
        &web(&[&on[..], &["10mbit", "--pid", &pid.to_string()]].concat()),
        &["listens on no port"],
    );
}

#[test]
fn a_server_of_another_network_namespace_goes_with_the_ports_that_are_published_here() {
    let Some(host) = Host::new("attach-elsewhere") else {
        return;
    };
    let before = host.everything();
    let server = ChildGuard(Command::new("sleep").arg("60").spawn().unwrap());
    let pid = server.id().to_string();
    let on = ["web", "--dev", DEVICE, "--uplink", "10mbit", "--port", PORT];
    let attach = host.sooner(&[&on[..], &["--pid", &pid]].concat());
    let (running, ready, said) = started(attach);
    let words = "responses of port 8080 on s0";
    assert!(ready.contains(words), "{ready}{said}");
    running.end(Signal::TERM).unwrap();
    assert_eq!(host.everything(), before);
}

#[test]
fn what_the_operator_configured_is_not_touched() {
    let Some(host) = Host::new("attach-operator") else {
        return;
    };
    let _listener = host.listener();
    host.printed(
        "tc",
        &[
            "qdisc", "add", "dev", DEVICE, "root", "handle", "7:", "pfifo", "limit", "10",
        ],
    );
    host.printed("tc", &["qdisc", "add", "dev", DEVICE, "clsact"]);
    host.printed(
        "tc",
        &[
            "filter", "add", "dev", DEVICE, "egress", "matchall", "action", "ok",
        ],
    );
    let before = host.everything();
    let on = ["web", "--dev", DEVICE, "--uplink", "10mbit", "--port", PORT];
    assert_refused(
        &host.said(&on),
        &["pfifo", "7:", "--replace-qdisc", "comes back"],
    );
    assert_eq!(host.everything(), before);
    let (running, _, _) = host.attach(&["--replace-qdisc"]);
    assert_ne!(host.everything(), before);
    running.end(Signal::TERM).unwrap();
    assert_eq!(host.everything(), before);
    host.printed("tc", &["qdisc", "del", "dev", DEVICE, "root"]);
    let before = host.everything();
    let (running, ready, _) = host.attach(&["--clsact"]);
    assert!(ready.starts_with("ready:"), "{ready}");
    running.end(Signal::TERM).unwrap();
    assert_eq!(host.everything(), before, "the operator's filter stays");
}

#[test]
fn without_the_capabilities_it_says_which_and_changes_nothing() {
    let Some(host) = Host::new("attach-unprivileged") else {
        return;
    };
    let _listener = host.listener();
    let before = host.everything();
    for (drop, missing) in [("-all", "CAP_NET_ADMIN"), ("-bpf,-sys_admin", "CAP_BPF")] {
        let mut command = host.inside("setpriv");
        command.args([&format!("--bounding-set={drop}"), "--inh-caps=-all", "--"]);
        command.arg(env!("CARGO_BIN_EXE_sooner"));
        command.args([
            "attach", "web", "--dev", DEVICE, "--uplink", "10mbit", "--port", PORT,
        ]);
        assert_refused(
            &command.output().unwrap(),
            &[missing, "AmbientCapabilities"],
        );
        assert_eq!(host.everything(), before);
    }
}
