//! Each server on hosts of the test's own: it starts, serves a few requests, is counted, and leaves
//! nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::support::{FILLING, Scratch, may_make_hosts, processes_in, skip, sooner};
use sooner_kernel::netns;
use sooner_lab::counters::{Counter, CountersSummary, Sampler, SamplerOptions};
use sooner_lab::hosts::{Hosts, HostsSpec, Shaper};
use sooner_lab::peers::{PORT, Peer, PeerError, PeerOptions, TLS_PORT};
use sooner_testbed::certificate::Certificate;

const TEN_MEGABIT: u64 = 10_000_000;
const FILE_BYTES: usize = 100_000;

fn hosts_for(peer: &Peer, name: &str) -> Hosts {
    let mut spec = HostsSpec::new(name, TEN_MEGABIT);
    spec.shaper = peer.shaper();
    Hosts::up(&spec, Path::new("/nonexistent/sooner")).unwrap()
}

/// Sends requests one by one over one connection from the client's host; gives what comes until the
/// server closes or has sent `expected` bytes of the file for each.
fn ask(hosts: &Hosts, requests: usize, expected: usize) -> String {
    let body = || {
        netns::enter(hosts.client_namespace()).unwrap();
        let mut stream = TcpStream::connect((hosts.server_address(), PORT)).unwrap();
        let mut received = Vec::new();
        for _ in 0..requests {
            write!(stream, "GET /a/1.html HTTP/1.1\r\nHost: 10.77.0.1\r\n\r\n").unwrap();
            let mut buffer = [0; 16 * 1024];
            let mut left = expected;
            while left > 0 {
                let count = stream.read(&mut buffer).unwrap();
                if count == 0 {
                    break;
                }
                received.extend(&buffer[..count]);
                let filling = buffer[..count].iter().filter(|byte| **byte == FILLING);
                left = left.saturating_sub(filling.count());
            }
        }
        String::from_utf8_lossy(&received).into_owned()
    };
    thread::scope(|scope| scope.spawn(body).join()).unwrap()
}

/// A place to write rows to that can be read afterwards.
#[derive(Clone, Default)]
struct Rows(Arc<Mutex<Vec<u8>>>);

impl Write for Rows {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Rows {
    fn read(&self) -> Vec<Counter> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn sampler(hosts: &Hosts, pid: u32, rows: &Rows) -> Sampler {
    let options = SamplerOptions {
        namespace: hosts.server_namespace().into(),
        device: hosts.server_device().into(),
        port: PORT,
        pid,
        every: Duration::from_millis(50),
    };
    Sampler::start(options, rows.clone()).unwrap()
}

/// Starts the peer, asks for a file twice, counts, ends it, and looks whether something is left.
fn serves_and_ends(name: &str, tag: &str) {
    if !may_make_hosts(tag) {
        return;
    }
    let peer: Peer = name.parse().unwrap();
    if let Some(package) = peer.missing() {
        return skip(tag, &format!("needs the package {package}"));
    }
    let program = match &peer {
        Peer::Sooner { .. } => match sooner(tag) {
            Some(program) => program,
            None => return,
        },
        _ => "/nonexistent/sooner".into(),
    };
    let (hosts, scratch) = (hosts_for(&peer, tag), Scratch::with_file(FILE_BYTES));
    let mut options = PeerOptions::new(&program, &scratch.path());
    options.backlog = 512;
    options.workers = Some(20);
    let running = peer
        .start(&hosts, &scratch.root(), TEN_MEGABIT, &options)
        .unwrap();
    let rows = Rows::default();
    let counting = sampler(&hosts, running.id(), &rows);
    let answers = ask(&hosts, 2, FILE_BYTES);
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 2, "{name}");
    assert_eq!(
        answers.matches(char::from(FILLING)).count(),
        2 * FILE_BYTES,
        "{name}"
    );
    let summary = counting.stop().unwrap();
    check_counts(&rows.read(), &summary);
    drop(running);
    assert_eq!(processes_in(hosts.server_namespace()), "", "{name}");
    let config = peer.config_text(&scratch.root(), TEN_MEGABIT, &options);
    assert!(config.contains("10.77.0.1"), "{config}");
}

fn check_counts(rows: &[Counter], summary: &CountersSummary) {
    assert_eq!(rows.len() as u64, summary.samples);
    let mut again = CountersSummary::of(rows);
    assert!((again.cpu_s - summary.cpu_s).abs() < 1e-6);
    // A number may come back from text with another last bit.
    again.cpu_s = summary.cpu_s;
    assert!((again.cpu_wait_s - summary.cpu_wait_s).abs() < 1e-6);
    again.cpu_wait_s = summary.cpu_wait_s;
    assert_eq!(&again, summary);
    // 200 kB at 10 Mbit/s take 160 ms, so a row was written meanwhile; the connection that found
    // the server answering may not have been quite over
    let open = summary.max_open_connections;
    assert!((1..=2).contains(&open), "{rows:?}");
    assert!(summary.max_resident_bytes > 0);
    assert!(summary.tcp.sent_segments > 100);
    let sent: u64 = rows.last().map_or(0, |row| {
        let leaves = row.queues.iter().filter(|queue| queue.is_leaf);
        leaves.map(|queue| queue.sent_bytes).sum()
    });
    assert!(sent > 2 * FILE_BYTES as u64, "{rows:?}");
    if let Some(limit) = summary.accept_queue_limit {
        assert_eq!(limit % 512, 0, "{limit}");
    }
    assert_eq!(
        (summary.tcp.listen_drops, summary.first_listen_drop_s),
        (0, None)
    );
}

#[test]
fn nginx_serves_and_ends() {
    serves_and_ends("nginx", "nginx");
}

#[test]
fn apache_event_serves_and_ends() {
    serves_and_ends("apache-event", "apache-event");
}

#[test]
fn apache_prefork_serves_and_ends() {
    serves_and_ends("apache-prefork", "apache-prefork");
}

#[test]
fn caddy_serves_and_ends() {
    serves_and_ends("caddy", "caddy");
}

#[test]
fn node_serves_and_ends() {
    serves_and_ends("node", "node");
}

#[test]
fn sooner_in_user_space_serves_and_ends() {
    serves_and_ends("sooner srpt user-space", "user-space");
}

#[test]
fn sooner_with_bands_serves_and_ends() {
    serves_and_ends("sooner srpt both", "both");
}

#[test]
fn connections_end_after_one_request_where_that_is_asked_for() {
    let test = "connections_end_after_one_request_where_that_is_asked_for";
    if !may_make_hosts(test) {
        return;
    }
    for name in ["nginx", "apache-event", "caddy", "node"] {
        let peer: Peer = name.parse().unwrap();
        if let Some(package) = peer.missing() {
            skip(test, &format!("{name} needs the package {package}"));
            continue;
        }
        let (hosts, scratch) = (hosts_for(&peer, "close"), Scratch::with_file(1000));
        let mut options = PeerOptions::new(Path::new("/nonexistent/sooner"), &scratch.path());
        options.keep_alive = false;
        options.workers = Some(4);
        let _running = peer
            .start(&hosts, &scratch.root(), TEN_MEGABIT, &options)
            .unwrap();
        let answer = ask(&hosts, 1, usize::MAX);
        assert!(
            answer.to_lowercase().contains("connection: close"),
            "{name}: {answer}"
        );
    }
}

#[test]
fn all_speak_tls_where_that_is_asked_for() {
    let test = "all_speak_tls_where_that_is_asked_for";
    if !may_make_hosts(test) {
        return;
    }
    let Some(program) = sooner(test) else { return };
    for name in [
        "nginx",
        "apache-event",
        "apache-prefork",
        "caddy",
        "node",
        "sooner srpt both",
    ] {
        let peer: Peer = name.parse().unwrap();
        if let Some(package) = peer.missing() {
            skip(test, &format!("{name} needs the package {package}"));
            continue;
        }
        let (hosts, scratch) = (hosts_for(&peer, "tls"), Scratch::with_file(FILE_BYTES));
        let mut options = PeerOptions::new(&program, &scratch.path());
        options.tls = Some(Certificate::make(&scratch.path(), &["10.77.0.1"]).unwrap());
        options.workers = Some(4);
        let _running = peer
            .start(&hosts, &scratch.root(), TEN_MEGABIT, &options)
            .unwrap();
        let url = format!("https://{}:{TLS_PORT}/a/1.html", hosts.server_address());
        let words = ["--silent", "--insecure", "--max-time", "20", &url];
        let answer = hosts.on_client("curl").args(words).output().unwrap();
        assert_eq!(
            answer.stdout,
            [FILLING].repeat(FILE_BYTES),
            "{name}: {answer:?}"
        );
    }
}

#[test]
fn nginx_refuses_what_is_beyond_its_limit() {
    let test = "nginx_refuses_what_is_beyond_its_limit";
    if !may_make_hosts(test) {
        return;
    }
    let peer: Peer = "nginx --limit-conn 1".parse().unwrap();
    if let Some(package) = peer.missing() {
        return skip(test, &format!("needs the package {package}"));
    }
    // More than any socket buffer holds, so that the first is under way as long as the client does
    // not read it.
    let (hosts, scratch) = (hosts_for(&peer, "limit"), Scratch::with_file(20_000_000));
    let options = PeerOptions::new(Path::new("/nonexistent/sooner"), &scratch.path());
    let _running = peer
        .start(&hosts, &scratch.root(), TEN_MEGABIT, &options)
        .unwrap();
    let ask_two = || {
        netns::enter(hosts.client_namespace()).unwrap();
        let mut first = first_bytes_of_answer(&hosts);
        let second = first_bytes_of_answer(&hosts);
        let mut more = [0; 1000];
        assert_ne!(first.0.read(&mut more).unwrap(), 0);
        (first.1, second.1)
    };
    let (first, second) = thread::scope(|scope| scope.spawn(ask_two).join()).unwrap();
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    assert!(second.starts_with("HTTP/1.1 503"), "{second}");
}

/// A request on a connection of its own, and how its answer begins.
fn first_bytes_of_answer(hosts: &Hosts) -> (TcpStream, String) {
    let mut stream = TcpStream::connect((hosts.server_address(), PORT)).unwrap();
    write!(stream, "GET /a/1.html HTTP/1.1\r\nHost: 10.77.0.1\r\n\r\n").unwrap();
    let mut bytes = [0; 12];
    stream.read_exact(&mut bytes).unwrap();
    (stream, String::from_utf8_lossy(&bytes).into_owned())
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let test = "a_server_that_cannot_start_says_why";
    if !may_make_hosts(test) {
        return;
    }
    let Some(program) = sooner(test) else { return };
    let peer: Peer = "sooner magic user-space".parse().unwrap();
    let (hosts, scratch) = (hosts_for(&peer, "why"), Scratch::with_file(10));
    let options = PeerOptions::new(&program, &scratch.path());
    let error = peer
        .start(&hosts, &scratch.root(), TEN_MEGABIT, &options)
        .unwrap_err();
    assert!(
        matches!(&error, PeerError::Start { what, .. } if what.contains("magic")),
        "{error}"
    );
    assert_eq!(processes_in(hosts.server_namespace()), "");
}

#[test]
fn bands_and_hosts_that_limit_are_not_put_together() {
    if !may_make_hosts("bands_and_hosts_that_limit_are_not_put_together") {
        return;
    }
    let peer: Peer = "sooner srpt both".parse().unwrap();
    assert_eq!(peer.shaper(), Shaper::Server);
    let hosts = hosts_for(&"nginx".parse().unwrap(), "mixed");
    let scratch = Scratch::with_file(10);
    let options = PeerOptions::new(Path::new("/nonexistent/sooner"), &scratch.path());
    let error = peer
        .start(&hosts, &scratch.root(), TEN_MEGABIT, &options)
        .unwrap_err();
    assert!(
        error.to_string().contains("leave it to the server"),
        "{error}"
    );
}

#[test]
fn files_that_nobody_may_read_are_said_to_be_so() {
    use std::os::unix::fs::PermissionsExt;
    let test = "files_that_nobody_may_read_are_said_to_be_so";
    if !may_make_hosts(test) {
        return;
    }
    let peer: Peer = "nginx".parse().unwrap();
    if let Some(package) = peer.missing() {
        return skip(test, &format!("needs the package {package}"));
    }
    let (hosts, scratch) = (hosts_for(&peer, "closed"), Scratch::with_file(10));
    let only_root = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(scratch.root(), only_root).unwrap();
    let options = PeerOptions::new(Path::new("/nonexistent/sooner"), &scratch.path());
    let error = peer
        .start(&hosts, &scratch.root(), TEN_MEGABIT, &options)
        .unwrap_err();
    assert!(
        error.to_string().contains("everybody must be able to read"),
        "{error}"
    );
}
