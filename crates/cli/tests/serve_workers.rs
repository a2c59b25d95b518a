//! `sooner serve --workers N` as a process: what the workers share, and that each of them is told
//! of a reload and of the end.

mod backend;
mod upstreams;

use rustix::process::{Pid, Signal, kill_process};
use sooner_testbed::ChildGuard;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WORKERS: usize = 3;
/// So many connections leave none of the workers without one, but for one run in ten million.
const CONNECTIONS: usize = 40;
const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    child: ChildGuard,
    folder: TempDir,
    address: String,
    admin: String,
}

impl Server {
    /// Serves FOLDER/www as `config` says.
    fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("www")).unwrap();
        let config = format!(
            "listen = [\"127.0.0.1:0\"]\nroot = \"www\"\nworkers = {WORKERS}\n\
             {config}\n[admin]\nlisten = \"127.0.0.1:0\"\n"
        );
        let file = folder.path().join("sooner.toml");
        fs::write(&file, config).unwrap();
        fs::write(folder.path().join("www/a"), "one").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
        command.args(["serve", "--config"]).arg(file);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = ChildGuard(command.spawn().unwrap());
        let mut said = BufReader::new(child.stderr.as_mut().unwrap());
        let mut line = String::new();
        while !line.starts_with("sooner: serving") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it has ended");
        }
        assert!(line.contains(&format!("; {WORKERS} workers")), "{line}");
        let mut addresses = line
            .split([' ', ';'])
            .filter_map(|word| word.trim_end().strip_prefix("http://"));
        let mut next = || addresses.next().unwrap().to_owned();
        Self {
            address: next(),
            admin: next(),
            child,
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A connection on which the response of `/large` has begun.
    fn begin_large(&self) -> TcpStream {
        let mut stream = self.connect();
        let request = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(request).unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
        stream
    }

    /// A figure of `/metrics`, over all labels.
    fn figure(&self, name: &str) -> f64 {
        let mut stream = TcpStream::connect(&self.admin).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let of = |line: &str| {
            let rest = line.strip_prefix(name)?;
            let rest = rest.starts_with([' ', '{']).then_some(rest)?;
            rest.split(' ').next_back()?.parse::<f64>().ok()
        };
        let all: Vec<f64> = text.lines().filter_map(of).collect();
        assert!(!all.is_empty(), "no {name} in {text}");
        all.iter().sum()
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

/// Asks for a file on a connection that stays; the body.
fn ask(stream: &mut TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    read_answer(stream)
}

/// The body of the next answer.
fn read_answer(stream: &mut TcpStream) -> String {
    let mut response = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        assert_ne!(response.read_line(&mut line).unwrap(), 0, "it has closed");
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    response.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn all_workers_answer_and_are_counted_together() {
    let server = Server::start("[log]\naccess = \"log\"");
    let mut all: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    for stream in &mut all {
        assert_eq!(ask(stream, "/a"), "one");
    }
    assert_eq!(server.figure("sooner_workers"), WORKERS as f64);
    assert_eq!(server.figure("sooner_connections"), CONNECTIONS as f64);
    // A response is counted when its connection has written it, which may be after it was read.
    until("all are counted", || {
        server.figure("sooner_requests_total") == CONNECTIONS as f64
    });
    drop(all);
    until("they have gone", || {
        server.figure("sooner_connections") == 0.0
    });
    let lines = || {
        fs::read_to_string(server.path("log"))
            .unwrap()
            .lines()
            .count()
    };
    until("the log has a line of each", || lines() == CONNECTIONS);
}

#[test]
fn a_reload_reaches_all_or_none() {
    let server = Server::start("");
    let mut all: Vec<_> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    let all_get = |all: &mut [TcpStream], expected: &str| {
        all.iter_mut().all(|stream| ask(stream, "/a") == expected)
    };
    assert!(all_get(&mut all, "one"));
    let file = server.path("sooner.toml");
    let first = fs::read_to_string(&file).unwrap();
    for (root, reloads, failed, expected) in [
        ("other", 2.0, 0.0, "two"),
        ("none", 2.0, 1.0, "two"),
        ("www", 3.0, 1.0, "one"),
    ] {
        if root == "other" {
            fs::create_dir(server.path(root)).unwrap();
            fs::write(server.path(root).join("a"), "two").unwrap();
        }
        let text = first.replace("root = \"www\"", &format!("root = \"{root}\""));
        fs::write(&file, text).unwrap();
        server.send(Signal::HUP);
        until("it was read", || {
            server.figure("sooner_config_loads_total") == reloads + failed
        });
        // The orders to take it may still be on their way.
        until(expected, || all_get(&mut all, expected));
    }
}

#[test]
fn one_bound_holds_for_the_connections_of_all() {
    let server = Server::start("[limits]\nconnections = 8\nhead_seconds = 300");
    let file = fs::File::create(server.path("www/large")).unwrap();
    file.set_len(64 << 20).unwrap();
    // Each is busy: its client does not read to the end.
    let busy: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut stream = server.connect();
            let request = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
            stream.write_all(request).unwrap();
            stream
        })
        .collect();
    until("there are as many as may be", || {
        server.figure("sooner_connections") >= 8.0
    });
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(server.figure("sooner_connections"), 8.0);
    drop(busy);
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, "/a"), "one");
}

#[test]
fn an_uplink_is_shared_by_all() {
    let server = Server::start("[uplink]\nrate = \"16mbit\"\nmechanism = \"user-space\"");
    let bytes = 200_000;
    fs::write(server.path("www/large"), vec![b'x'; bytes]).unwrap();
    let begin = Instant::now();
    let clients = (0..8).map(|_| {
        let mut stream = server.connect();
        std::thread::spawn(move || ask(&mut stream, "/large").len())
    });
    let clients: Vec<_> = clients.collect();
    for client in clients {
        assert_eq!(client.join().unwrap(), bytes);
    }
    // 1.6 MB take 0.8 s on this link, whichever workers send them.
    let least = Duration::from_millis(700);
    assert!(begin.elapsed() > least, "{:?}", begin.elapsed());
}

#[test]
fn each_lets_what_goes_on_end() {
    let mut server = Server::start("[uplink]\nrate = \"40mbit\"\nmechanism = \"user-space\"");
    let bytes = 100_000;
    fs::write(server.path("www/large"), vec![b'x'; bytes]).unwrap();
    let clients: Vec<_> = (0..CONNECTIONS).map(|_| server.begin_large()).collect();
    server.send(Signal::TERM);
    for mut stream in clients {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.len() > bytes, "{}", rest.len());
    }
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_second_signal_ends_all_at_once() {
    let mut server = Server::start("[limits]\ngrace_seconds = 1000");
    let file = fs::File::create(server.path("www/large")).unwrap();
    file.set_len(256 << 20).unwrap();
    let _busy: Vec<_> = (0..CONNECTIONS).map(|_| server.begin_large()).collect();
    server.send(Signal::TERM);
    until("it takes no more", || {
        TcpStream::connect(&server.address).is_err()
    });
    server.send(Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// What a worker cannot read that has become another user, the start tells.
#[test]
fn what_cannot_be_had_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let refused = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
        let output = command.arg("serve").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(message.lines().count(), 1, "{message}");
        message
    };
    for (workers, words) in [
        ("0", "from 1 on, or \"auto\""),
        ("many", "from 1 on, or \"auto\""),
        ("1000", "at most 256"),
    ] {
        let message = refused(&[dir, "--workers", workers]);
        assert!(message.contains(words), "{message}");
    }
}

/// One queue that systemd holds, and all take from.
#[test]
fn a_socket_that_is_passed_is_shared() {
    if !has("systemd-socket-activate") {
        eprintln!("skipped: a_socket_that_is_passed_is_shared: no systemd-socket-activate");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "one").unwrap();
    let address = sooner_testbed::port::free().unwrap().to_string();
    let mut command = Command::new("systemd-socket-activate");
    command.args(["-l", &address, env!("CARGO_BIN_EXE_sooner"), "serve"]);
    command.arg(folder.path()).args(["--workers", "3"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = ChildGuard(command.spawn().unwrap());
    until("it listens", || TcpStream::connect(&address).is_ok());
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let address = address.clone();
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                ask(&mut stream, "/a")
            })
        })
        .collect();
    for client in clients {
        assert_eq!(client.join().unwrap(), "one");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn has(program: &str) -> bool {
    let mut asked = Command::new(program);
    asked.arg("--version").stdout(Stdio::null());
    asked.status().is_ok()
}
