//! `sooner emulate` between network namespaces, and what is left of it and of its check however
//! they end.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sooner_kernel::netns;
use sooner_testbed::namespace::Namespace;
use sooner_testbed::{ChildGuard, skip};

const SERVER: &str = "10.79.0.1";
/// Far enough for a packet that is not delayed to be told from one that is.
const RTT: Duration = Duration::from_millis(40);

/// Two namespaces; gone when dropped.
struct Hosts {
    router: Namespace,
    client: Namespace,
}

impl Hosts {
    /// `None`, after saying why, where the test cannot run.
    fn new(test: &str) -> Option<Hosts> {
        if !is_root(test) {
            return None;
        }
        let make = |side| {
            let name = format!("sooner-cli-{}-{test}-{side}", std::process::id());
            Namespace::make(&name).expect("install iproute2")
        };
        Some(Hosts {
            router: make("r"),
            client: make("c"),
        })
    }

    /// What the parent of an emulator does when it is ready.
    fn connect(&self, clients: &[&str]) {
        for (namespace, addresses, network) in [
            (&self.router, &[SERVER][..], "10.78.0.0/24"),
            (&self.client, clients, "10.79.0.0/24"),
        ] {
            for address in addresses {
                namespace.address("wan0", &format!("{address}/32")).unwrap();
            }
            namespace
                .ip(&format!("route add {network} dev wan0"))
                .unwrap();
        }
    }

    fn devices(&self) -> String {
        [&self.router, &self.client]
            .map(|namespace| namespace.ip("link").unwrap())
            .concat()
    }
}

fn is_root(test: &str) -> bool {
    skip::is_root(test, "to make network namespaces")
}

/// A socket on an address of a namespace, with a time to wait.
fn socket(namespace: &str, address: &str) -> UdpSocket {
    let open = || {
        netns::enter(namespace).unwrap();
        UdpSocket::bind((address, 0)).unwrap()
    };
    let socket = thread::scope(|scope| scope.spawn(open).join().unwrap());
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    socket
}

/// A running `sooner emulate` that said it is ready; killed when dropped.
struct Emulator {
    child: ChildGuard,
    output: BufReader<ChildStdout>,
}

impl Emulator {
    fn start(hosts: &Hosts, arguments: &[&str]) -> Emulator {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("sooner"))
            .args([
                "emulate",
                "--json",
                "--router-namespace",
                hosts.router.name(),
            ])
            .args(["--client-namespace", hosts.client.name()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Emulator {
            child: ChildGuard(child),
            output,
        }
    }

    /// Its report, after it was told to end.
    fn report(mut self) -> serde_json::Value {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&text).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

/// Whether a datagram comes through from one to the other, and how long that took.
fn passes(from: &UdpSocket, to: &UdpSocket) -> Option<Duration> {
    let start = Instant::now();
    from.send_to(b"through", to.local_addr().unwrap()).unwrap();
    let mut received = [0; 16];
    match to.recv(&mut received) {
        Ok(length) => {
            assert_eq!(&received[..length], b"through");
            Some(start.elapsed())
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            None
        }
    }
}

#[test]
fn packets_pass_late_or_lost_and_are_reported() {
    let Some(hosts) = Hosts::new("packets_pass_late_or_lost_and_are_reported") else {
        return;
    };
    let (near, cut, unlisted) = ("10.78.0.1", "10.78.0.2", "10.78.0.3");
    let clients = [
        "--client",
        "10.78.0.1,rtt_ms=40",
        "--client",
        "10.78.0.2,loss=1",
    ];
    let emulator = Emulator::start(&hosts, &clients);
    hosts.connect(&[near, cut, unlisted]);
    let server = socket(hosts.router.name(), SERVER);
    let client = socket(hosts.client.name(), near);
    for _ in 0..5 {
        assert!(passes(&client, &server).unwrap() >= RTT / 2, "early");
        assert!(passes(&server, &client).unwrap() >= RTT / 2, "early");
    }
    for address in [cut, unlisted] {
        assert_eq!(
            passes(&server, &socket(hosts.client.name(), address)),
            None,
            "{address}"
        );
    }
    emulator.signal(Signal::TERM);
    let report = emulator.report();
    for direction in ["to_client", "to_server"] {
        let traffic = &report["clients"][0][direction];
        assert_eq!(
            (&traffic["packets"], &traffic["bytes"]),
            (&5.into(), &175.into())
        );
        assert_eq!(traffic["released_packets"], 5);
    }
    assert_eq!(report["clients"][1]["to_client"]["lost_packets"], 1);
    assert_eq!(report["unknown_client_packets"], 1);
    assert_eq!(report["device_to_client"]["unread_packets"], 0);
    assert!(!hosts.devices().contains("wan0"), "the devices are gone");
}

#[test]
fn it_ends_with_its_parents_pipe_and_leaves_nothing_when_killed() {
    let Some(hosts) = Hosts::new("it_ends_with_its_parents_pipe_and_leaves_nothing_when_killed")
    else {
        return;
    };
    let arguments = [
        "--client",
        "10.78.0.1",
        "--end-with-stdin",
        "--device",
        "far0",
    ];
    let mut emulator = Emulator::start(&hosts, &arguments);
    assert_eq!(hosts.devices().matches("far0").count(), 2);
    drop(emulator.child.stdin.take());
    assert_eq!(emulator.report()["clients"][0]["address"], "10.78.0.1");
    let emulator = Emulator::start(&hosts, &arguments);
    emulator.signal(Signal::KILL);
    drop(emulator);
    assert!(!hosts.devices().contains("far0"));
}

#[test]
fn a_device_that_is_removed_ends_it_with_an_error() {
    let Some(hosts) = Hosts::new("a_device_that_is_removed_ends_it_with_an_error") else {
        return;
    };
    let mut emulator = Emulator::start(&hosts, &["--client", "10.78.0.1"]);
    hosts.client.ip("link del wan0").unwrap();
    assert_eq!(emulator.child.wait().unwrap().code(), Some(1));
    assert!(!hosts.devices().contains("wan0"));
}

/// A `sooner emulate-check` that has made its namespaces; killed when dropped.
struct Check(Child);

impl Check {
    fn start() -> Check {
        let program = assert_cmd::cargo::cargo_bin("sooner");
        let mut child = Command::new(program)
            .args(["emulate-check", "--quick"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while namespaces_of(&child).len() < 2 {
            assert!(child.try_wait().unwrap().is_none(), "it ended early");
            thread::sleep(Duration::from_millis(5));
        }
        Check(child)
    }

    fn end(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn namespaces_of(check: &Child) -> Vec<&'static str> {
    let exists = |side: &&str| {
        Path::new("/run/netns")
            .join(format!("sooner-emu-{}-{side}", check.id()))
            .exists()
    };
    ["r", "c"].into_iter().filter(exists).collect()
}

#[test]
fn a_check_removes_its_namespaces_and_those_of_a_killed_one() {
    if !is_root("a_check_removes_its_namespaces_and_those_of_a_killed_one") {
        return;
    }
    let mut killed = Check::start();
    killed.end(Signal::KILL);
    assert_eq!(namespaces_of(&killed.0), ["r", "c"], "a kill leaves them");
    let mut interrupted = Check::start();
    assert!(
        namespaces_of(&killed.0).is_empty(),
        "the next one removes them"
    );
    interrupted.end(Signal::INT);
    assert!(namespaces_of(&interrupted.0).is_empty(), "Ctrl-C too");
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    for (arguments, said) in [
        (
            &["--client", "10.0.0.2,rtt=5"][..],
            "neither rtt_ms=NUMBER, loss=NUMBER nor jitter_ms=NUMBER",
        ),
        (&[], "--client"),
        (
            &["--client", "10.0.0.2", "--client", "10.0.0.2"],
            "is given twice",
        ),
    ] {
        let output = Command::new(assert_cmd::cargo::cargo_bin("sooner"))
            .args([
                "emulate",
                "--router-namespace",
                "none-r",
                "--client-namespace",
                "none-c",
            ])
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let needs_root = !rustix::process::geteuid().is_root() && text.contains("needs root");
        assert!(text.contains(said) || needs_root, "{text}");
        assert_eq!(
            (text.lines().count(), output.status.code()),
            (1, Some(2)),
            "{text}"
        );
        assert!(output.stdout.is_empty());
    }
    let _ = fs::metadata("/run/netns/none-r").unwrap_err();
}
