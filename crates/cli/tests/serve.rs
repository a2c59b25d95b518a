//! `sooner serve` as a process: how it starts, refuses to start, and stops.

use crate::terminal::{OnTerminal, has_script};
use assert_cmd::Command as Checked;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use sooner_policy::PolicyName;
use sooner_testbed::ChildGuard;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What a start says on standard error when it fails; asserts one line and exit code 2.
fn refusal(args: &[&str]) -> String {
    let output = Checked::cargo_bin("sooner")
        .unwrap()
        .arg("serve")
        .args(args)
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(output.stdout.is_empty());
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

#[test]
fn bad_input_is_refused_in_one_line_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for (args, words) in [
        (&["/no/such/dir"][..], &["/no/such/dir", "existing"][..]),
        (&[file.to_str().unwrap()], &["not a directory"]),
        (
            &[dir, "--policy", "fastest"],
            &[
                "fastest", "srpt", "fair", "fcfs", "psjf", "las", "fsp", "swift", "fcf",
            ],
        ),
        (&[dir, "--uplink", "10mbt"], &["mbt", "mbit", "gbit"]),
        (&[dir, "--uplink", "0mbit"], &["0mbit"]),
        (
            &[dir, "--listen", "localhost"],
            &["localhost", "127.0.0.1:8080"],
        ),
        (&[dir, "--listen", "192.0.2.1:0"], &["192.0.2.1", "address"]),
        (
            &[
                dir,
                "--listen",
                "127.0.0.1:0",
                "--access-log",
                "/no/such/dir/log",
            ],
            &["/no/such/dir/log"],
        ),
        (
            &[dir, "--mechanism", "magic"],
            &["magic", "user-space", "bands", "both"],
        ),
        (
            &[dir, "--uplink", "1mbit", "--bands", "2"],
            &["--bands: ", "mechanism"],
        ),
        (
            &[
                dir,
                "--uplink",
                "1mbit",
                "--mechanism",
                "bands",
                "--share-by",
                "client",
            ],
            &["--share-by: ", "\"user-space\" or \"both\""],
        ),
        (&[dir, "--share-by", "client"], &["uplink.rate"]),
        (&[dir, "--ahead", "much"], &["`much`", "30kB", "20ms"]),
        (&[], &["DIR is missing", "--help"]),
    ] {
        let message = refusal(args);
        for word in words {
            assert!(message.contains(word), "{word} is not in {message}");
        }
    }
}

#[test]
fn a_port_in_use_is_named_with_a_way_to_find_by_whom() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let message = refusal(&[folder.path().to_str().unwrap(), "--listen", &address]);
    for word in [&address, "in use", "ss -ltnp", "another port"] {
        assert!(message.contains(word), "{word} is not in {message}");
    }
}

/// A started server.
struct Server {
    child: ChildGuard,
    folder: TempDir,
    ready_line: String,
    addresses: Vec<String>,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let program = assert_cmd::cargo::cargo_bin("sooner");
        Self::start_by(Command::new(program), args)
    }

    /// The same by `command`, which goes on as `sooner`.
    fn start_by(mut command: Command, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "hello").unwrap();
        let mut child = command
            .arg("serve")
            .arg(folder.path())
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready_line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap())
            .read_line(&mut ready_line)
            .unwrap();
        Self {
            child: ChildGuard(child),
            folder,
            addresses: addresses(&ready_line),
            ready_line,
        }
    }

    fn get(&self, address: &str) -> String {
        get(address)
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next line on standard error.
    fn says(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.child.stderr.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        line
    }

    /// Asks it to stop; gives the exit code and what it wrote to standard output.
    fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut output = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut output)
            .unwrap();
        (self.child.wait().unwrap().code(), output)
    }
}

/// The addresses in a ready line.
fn addresses(ready_line: &str) -> Vec<String> {
    let words = ready_line.split([' ', ';']);
    words
        .filter_map(|word| word.trim_end().strip_prefix("http://"))
        .map(str::to_owned)
        .collect()
}

fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /a.txt HTTP/1.0\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn says_when_it_is_ready_and_serves_on_every_address() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0"]);
    assert!(
        server
            .ready_line
            .contains(server.folder.path().to_str().unwrap()),
        "{}",
        server.ready_line
    );
    assert_eq!(server.addresses.len(), 2, "{}", server.ready_line);
    for address in &server.addresses {
        assert!(server.get(address).ends_with("\r\n\r\nhello"));
    }
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
}

#[test]
fn every_policy_serves_through_an_uplink_without_privilege() {
    for policy in PolicyName::ALL.map(PolicyName::as_str) {
        let args = [
            "--listen",
            "127.0.0.1:0",
            "--uplink",
            "10mbit",
            "--mechanism",
            "user-space",
            "--policy",
            policy,
        ];
        let server = Server::start(&args);
        assert!(
            server.ready_line.contains(policy) && server.ready_line.contains("10mbit"),
            "{}",
            server.ready_line
        );
        assert!(server.get(&server.addresses[0]).ends_with("\r\n\r\nhello"));
        assert_eq!(server.stop(Signal::INT).0, Some(0));
    }
}

#[test]
fn the_access_log_goes_to_standard_output() {
    let server = Server::start(&[
        "--listen",
        "127.0.0.1:0",
        "--access-log",
        "-",
        "--uplink",
        "10mbit",
        "--mechanism",
        "user-space",
    ]);
    server.get(&server.addresses[0]);
    let (code, output) = server.stop(Signal::TERM);
    assert_eq!(code, Some(0));
    let line: serde_json::Value = serde_json::from_str(output.trim_end()).unwrap();
    assert_eq!(
        (&line["status"], &line["size_bytes"], &line["policy"]),
        (&200.into(), &5.into(), &"srpt".into())
    );
}

#[test]
fn without_descriptors_it_waits_and_does_not_die() {
    let mut server = Server::start(&["--listen", "127.0.0.1:0"]);
    let few = Rlimit {
        current: Some(32),
        maximum: Some(32),
    };
    prlimit(Some(Pid::from_child(&server.child)), Resource::Nofile, few).unwrap();
    let idle: Vec<_> = (0..64)
        .map(|_| TcpStream::connect(&server.addresses[0]).unwrap())
        .collect();
    let mut complaint = String::new();
    BufReader::new(server.child.stderr.as_mut().unwrap())
        .read_line(&mut complaint)
        .unwrap();
    assert!(complaint.contains("ulimit -n"), "{complaint}");
    drop(idle);
    assert!(server.get(&server.addresses[0]).ends_with("\r\n\r\nhello"));
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
}

#[test]
fn a_second_signal_does_not_wait() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--grace", "1000"]);
    std::fs::File::create(server.folder.path().join("large"))
        .unwrap()
        .set_len(256 << 20)
        .unwrap();
    let mut busy = TcpStream::connect(&server.addresses[0]).unwrap();
    busy.write_all(b"GET /large HTTP/1.0\r\n\r\n").unwrap();
    busy.read_exact(&mut [0; 100]).unwrap();
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    // The server has seen the first signal when it accepts no client any more.
    while TcpStream::connect(&server.addresses[0]).is_ok() {
        std::thread::yield_now();
    }
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
}

/// POSIX on nohup: what is ignored at the start stays so.
#[test]
fn what_was_started_to_outlive_its_terminal_does() {
    if !has_script("what_was_started_to_outlive_its_terminal_does") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "hello").unwrap();
    let dir = folder.path().to_str().unwrap();
    for (before, words) in [
        ("", "SIGTERM and SIGHUP stop"),
        ("trap '' HUP;", "SIGTERM stops"),
    ] {
        let arguments = ["serve", dir, "--listen", "127.0.0.1:0"];
        let mut server = OnTerminal::start(Command::new("script"), before, &arguments);
        let address = addresses(&server.until("serving"))[0].clone();
        if !before.is_empty() {
            server.signal(Signal::HUP);
        }
        server.signal(Signal::USR2);
        let said = server.until("SIGUSR2");
        let said = said.trim_end();
        assert!(
            said.ends_with(&format!("means nothing here: {words}")),
            "{said}"
        );
        assert!(get(&address).ends_with("hello"));
        server.close();
        if !before.is_empty() {
            assert!(get(&address).ends_with("hello"));
            server.signal(Signal::TERM);
        }
        server.wait_for_end();
    }
}

#[test]
fn without_a_terminal_that_could_close_it_goes_on() {
    let mut command = Command::new("setsid");
    command.arg(assert_cmd::cargo::cargo_bin("sooner"));
    let mut server = Server::start_by(command, &["--listen", "127.0.0.1:0"]);
    server.send(Signal::HUP);
    server.send(Signal::USR2);
    let said = server.says();
    assert!(
        said.ends_with("means nothing here: SIGTERM stops\n"),
        "{said}"
    );
    assert!(server.get(&server.addresses[0]).ends_with("hello"));
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
}

#[test]
fn a_certificate_on_the_command_line_is_read_again() {
    let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let certificate = file("c.pem", &made.cert.pem());
    let key = file("k.pem", &made.signing_key.serialize_pem());
    let mut server = Server::start(&[
        "--listen",
        "127.0.0.1:0",
        "--listen-tls",
        "127.0.0.1:0",
        "--certificate",
        &certificate,
        "--key",
        &key,
    ]);
    std::fs::write(&certificate, "no certificate").unwrap();
    server.send(Signal::HUP);
    let said = server.says();
    assert!(
        said.contains("--certificate: ") && said.contains("the old configuration stays"),
        "{said}"
    );
    server.send(Signal::USR2);
    let said = server.says();
    assert!(
        said.ends_with("SIGTERM stops, SIGHUP reads the configuration again\n"),
        "{said}"
    );
    assert!(server.get(&server.addresses[0]).ends_with("hello"));
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
}
