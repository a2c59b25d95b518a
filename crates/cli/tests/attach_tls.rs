//! `sooner attach` before servers that speak TLS: lengths are read before they are encrypted.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::attach_in_use::{PORT, SOONER, attach_by, clients, nginx_with, top, until};
use crate::host::{ADDRESS, Host};
use rustix::process::Signal;
use serde_json::Value;
use sooner_kernel::classifier::lacks_for_tls;
use sooner_testbed::certificate::Certificate;
use sooner_testbed::namespace::Namespace;
use sooner_testbed::{OwnedChild, program, skip};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attach_tls/server.js");
/// Of each answer.
const WRITTEN: &str = "%{http_version}:%{http_code}:%{size_download} ";

/// A host and its clients; None, after saying why, where it cannot be tried here.
fn start(test: &str, name: &str) -> Option<(Host, Namespace, Certificate)> {
    if let Some(what) = lacks_for_tls() {
        skip(test, &format!("needs {what}"));
        return None;
    }
    if program::find(&["curl"]).is_none() {
        skip(test, "needs the package curl");
        return None;
    }
    let host = Host::new(name)?;
    let clients = clients(&host);
    let made = Certificate::make(host.root.path(), &[ADDRESS]).unwrap();
    Some((host, clients, made))
}

/// What curl gets for these files in one process, over one connection where it can.
fn curl(clients: &Namespace, flags: &[&str], files: &[&str]) -> String {
    let mut command = clients.command("curl");
    command.args([
        "--silent",
        "--show-error",
        "--insecure",
        "--write-out",
        WRITTEN,
    ]);
    command.args(flags);
    for file in files {
        let url = format!("https://{ADDRESS}:{PORT}/{file}");
        command.args([&url, "--output", "/dev/null"]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What `attach top` has counted, once all responses are over.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    sized: u64,
    wrong: u64,
}

fn counted(host: &Host) -> Counted {
    until("all responses are over", || {
        let all: Value = top(host);
        let of = |name: &str| all[name].as_u64().unwrap();
        (of("under_way") == 0).then(|| Counted {
            sized: of("sized_by_tls"),
            wrong: of("wrong_lengths"),
        })
    })
}

/// What these requests add to it.
fn added(host: &Host, ask: impl FnOnce()) -> (u64, u64) {
    let before = counted(host);
    ask();
    // What was seen is collected ten times a second.
    std::thread::sleep(Duration::from_millis(300));
    let after = counted(host);
    (after.sized - before.sized, after.wrong - before.wrong)
}

/// Every answer has its length, in both versions.
fn lengths_are_known(host: &Host, clients: &Namespace) {
    for (flag, version, head) in [("--http1.1", "1.1", (2, 1)), ("--http2", "2", (1, 0))] {
        let three = format!("{version}:200:1000 {version}:200:200000 {version}:200:1000");
        let ask = || assert_eq!(curl(clients, &[flag], &["small", "large", "small"]), three);
        assert_eq!(added(host, ask), (3, 0), "{flag}");
        // The answer to HEAD says a length and has none; what follows has one again.
        let both = || {
            let url = format!("https://{ADDRESS}:{PORT}/large");
            let next = ["--next", "--insecure", flag, "--write-out", WRITTEN];
            let discard = ["--output", "/dev/null"];
            let flags = [&[flag, "--head", &url][..], &discard, &next].concat();
            let got = curl(clients, &flags, &["large"]);
            assert_eq!(got, format!("{version}:200:0 {version}:200:200000"));
        };
        assert_eq!(added(host, both), head, "{flag}, HEAD");
    }
}

#[test]
fn nginx_hands_lengths_over() {
    let test = "nginx_hands_lengths_over";
    let Some((host, clients, made)) = start(test, "attach-tls") else {
        return;
    };
    let tls = format!(
        "ssl_certificate {}; ssl_certificate_key {}; keepalive_requests 1000000;",
        made.certificate.display(),
        made.key.display()
    );
    let words = ("ssl http2", tls.as_str());
    let Some(_nginx) = nginx_with(&host, &host.namespace, ADDRESS, test, words) else {
        return;
    };
    let (attached, ready) = attach_by(host.inside(SOONER), "10mbit", &[]);
    assert!(ready.contains("under TLS before "), "{ready}");
    lengths_are_known(&host, &clients);
    // Several at once on one connection: one length for all of them.
    let files = ["large", "small", "large", "small", "large", "small"];
    let ask = || {
        let got = curl(&clients, &["--http2", "--parallel"], &files);
        assert_eq!(got.matches("2:200:200000").count(), 3, "{got}");
    };
    let (sized, wrong) = added(&host, ask);
    assert!(
        (1..=6).contains(&sized) && wrong == 0,
        "sized {sized}, wrong {wrong}: {}",
        top(&host)
    );
    attached.end(Signal::TERM).unwrap();
    let (attached, ready) = attach_by(host.inside(SOONER), "10mbit", &["--no-tls-lengths"]);
    assert!(ready.contains("not under TLS: --no-tls-lengths"), "{ready}");
    curl(&clients, &["--http1.1"], &["small", "large"]);
    assert_eq!(counted(&host).sized, 0);
    attached.end(Signal::TERM).unwrap();
}

/// Node has OpenSSL in its program, and names lengths in HTTP/2 by Huffman's code and by a table.
#[test]
fn node_hands_lengths_over() {
    let test = "node_hands_lengths_over";
    if program::find(&["node"]).is_none() {
        return skip(test, "needs the package nodejs");
    }
    let Some((host, clients, made)) = start(test, "attach-node") else {
        return;
    };
    let mut command: Command = host.namespace.command("node");
    command.args([SERVER, ADDRESS, &PORT.to_string()]);
    command.args([&made.certificate, &made.key]);
    let _node = OwnedChild::spawn(command.stdout(Stdio::null())).unwrap();
    until("it answers", || {
        let mut ask = clients.command("curl");
        ask.args(["--silent", "--insecure", "--output", "/dev/null"]);
        ask.arg(format!("https://{ADDRESS}:{PORT}/small"));
        ask.status().unwrap().success().then_some(())
    });
    let (attached, ready) = attach_by(host.inside(SOONER), "10mbit", &[]);
    assert!(ready.contains("under TLS before "), "{ready}");
    lengths_are_known(&host, &clients);
    // What says no length has none, and what follows has one again.
    let by_socket = || top(&host)["ordered_by_socket"].as_u64().unwrap();
    let before = by_socket();
    for flag in ["--http1.1", "--http2"] {
        let ask = || drop(curl(&clients, &[flag], &["streamed", "small"]));
        assert_eq!(added(&host, ask), (1, 0), "{flag}");
    }
    // Those go by what stands in their sockets.
    assert!(by_socket() >= before + 2, "{before}");
    // One of known length does not, though its head goes ahead of its body.
    let before = by_socket();
    let ask = || drop(curl(&clients, &["--http1.1"], &["ahead", "ahead"]));
    assert_eq!(added(&host, ask), (2, 0));
    assert_eq!(by_socket(), before);
    // One that never fills its socket sinks by what it has had.
    let sunk = || -> u64 {
        let bands = top(&host)["bands"].as_array().unwrap().clone();
        bands[4..]
            .iter()
            .map(|band| band["sent_bytes"].as_u64().unwrap())
            .sum()
    };
    let before = sunk();
    assert_eq!(
        curl(&clients, &["--http1.1"], &["trickle"]),
        "1.1:200:409600"
    );
    assert!(sunk() > before + 100_000, "{before}");
    attached.end(Signal::TERM).unwrap();
    let flags = ["--no-tls-lengths", "--no-socket-lengths"];
    let (attached, ready) = attach_by(host.inside(SOONER), "10mbit", &flags);
    assert!(
        ready.contains("not in sockets: --no-socket-lengths"),
        "{ready}"
    );
    curl(&clients, &["--http1.1"], &["streamed"]);
    let all = top(&host);
    assert_eq!(
        (&all["ordered_by_socket"], &all["sized_by_tls"]),
        (&0.into(), &0.into())
    );
    attached.end(Signal::TERM).unwrap();
}
