//! `sooner attach` under real traffic: nginx as it comes, and clients that lose nothing whatever
//! happens to the attachment, the device and the server.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::host::{ADDRESS, DEVICE, Host};
use rustix::process::Signal;
use serde_json::Value;
use sooner_kernel::netns;
use sooner_testbed::namespace::Namespace;
use sooner_testbed::{ChildGuard, OwnedChild, nginx, skip};

pub const PORT: u16 = 8080;
pub const SOONER: &str = env!("CARGO_BIN_EXE_sooner");
const LARGE_BYTES: usize = 200_000;
/// How long anything may take here before a test gives it up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Clients behind the other end of the host's device.
pub fn clients(host: &Host) -> Namespace {
    let clients = beside(host, "clients");
    host.printed("ip", &["link", "set", "s1", "netns", clients.name()]);
    clients.address("s1", "10.78.0.2/24").unwrap();
    clients
}

/// Another host of the same test.
fn beside(host: &Host, what: &str) -> Namespace {
    Namespace::make(&format!("{}-{what}", host.namespace.name())).unwrap()
}

/// nginx with the files `small` (1 KB) and `large` (200 KB); None, after saying why, where it is
/// not installed.
fn nginx(host: &Host, namespace: &Namespace, address: &str, test: &str) -> Option<OwnedChild> {
    nginx_with(host, namespace, address, test, ("", ""))
}

/// The same with words behind its `listen` and more in its server.
pub fn nginx_with(
    host: &Host,
    namespace: &Namespace,
    address: &str,
    test: &str,
    (listen, more): (&str, &str),
) -> Option<OwnedChild> {
    if !nginx::has_modules(&[]) {
        skip(test, "needs the package nginx");
        return None;
    }
    let at = host.root.path().join(address);
    fs::create_dir_all(&at).unwrap();
    // Its worker is another user.
    fs::set_permissions(host.root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at.join("small"), vec![b'#'; 1_000]).unwrap();
    fs::write(at.join("large"), vec![b'#'; LARGE_BYTES]).unwrap();
    let http = format!(
        "access_log off; sendfile on; keepalive_requests 1000000;
         server {{ listen {address}:{PORT} backlog=4096 {listen}; root {}; {more} }}\n",
        at.display()
    );
    nginx::write_config(&at, 16384, &http).unwrap();
    let mut command = namespace.command("nginx");
    nginx::tell(&mut command, &at);
    let running = OwnedChild::spawn(&mut command).unwrap();
    let namespace = namespace.name();
    let listens = || netns::inside(namespace, || TcpStream::connect((address, PORT)));
    for _ in 0..100 {
        if listens().is_ok() {
            return Some(running);
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("nginx does not answer");
}

/// Attaches, and waits until it says so.
fn attach(host: &Host, rate: &str, more: &[&str]) -> ChildGuard {
    attach_by(host.inside(SOONER), rate, more).0
}

/// The same by a command that becomes `sooner`; and what it said.
pub fn attach_by(mut command: Command, rate: &str, more: &[&str]) -> (ChildGuard, String) {
    command.args(["attach", "web", "--dev", DEVICE, "--uplink", rate]);
    command.args(["--port", &PORT.to_string()]).args(more);
    let mut running = ChildGuard(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut ready = String::new();
    let stdout = running.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("ready:"), "{ready}");
    (running, ready)
}

/// Waits until it is so.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn top(host: &Host) -> Value {
    let words = ["attach", "top", "--json", "--dev", DEVICE];
    let output = host.inside(SOONER).args(words).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Clients that download again and again on connections of their own.
fn downloads(clients: &Namespace, file: &str, connections: u32, seconds: u32) -> ChildGuard {
    let mut command = clients.command(SOONER);
    command.args(["load", "closed", "--json", "--url", file, "--connections"]);
    command.args([&connections.to_string(), "--for", &seconds.to_string()]);
    ChildGuard(command.stdout(Stdio::piped()).spawn().unwrap())
}

/// Asks for a file over a connection of its own; the bytes that came, head included.
fn ask(clients: &str, address: &str, file: &str) -> usize {
    let asking = || {
        let mut stream = TcpStream::connect((address, PORT))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "GET /{file} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)
    };
    netns::inside(clients, asking).unwrap()
}

/// Bytes that have left the host.
fn sent_bytes(host: &Host) -> u64 {
    let path = format!("/sys/class/net/{DEVICE}/statistics/tx_bytes");
    host.printed("cat", &[&path]).trim().parse().unwrap()
}

/// Waits until so many more downloads' worth of bytes has left.
fn downloads_go_on(host: &Host, count: u64, when: &str) {
    let enough = sent_bytes(host) + count * LARGE_BYTES as u64;
    until(when, || (sent_bytes(host) >= enough).then_some(()));
}

#[test]
fn a_thousand_downloads_outlive_whatever_happens_to_it() {
    let test = "a_thousand_downloads_outlive_whatever_happens_to_it";
    let Some(host) = Host::new("attach-thousand") else {
        return;
    };
    let clients = clients(&host);
    let Some(_nginx) = nginx(&host, &host.namespace, ADDRESS, test) else {
        return;
    };
    let before = (host.qdiscs(), host.link());
    let file = format!("http://{ADDRESS}:{PORT}/large");
    // The first fifth is not counted: nothing happens in it.
    let mut downloads = downloads(&clients, &file, 1000, 40);
    thread::sleep(Duration::from_secs(9));
    let running = attach(&host, "200mbit", &[]);
    downloads_go_on(&host, 100, "downloads with an attachment");
    host.printed("ip", &["link", "set", DEVICE, "down"]);
    thread::sleep(Duration::from_millis(500));
    host.printed("ip", &["link", "set", DEVICE, "up"]);
    downloads_go_on(&host, 100, "downloads after the device was down");
    let seen = top(&host);
    assert!(seen["responses"].as_u64().unwrap() > 0, "{seen}");
    running.end(Signal::TERM).unwrap();
    assert_eq!((host.qdiscs(), host.link()), before);
    downloads_go_on(&host, 100, "downloads after it ended");
    attach(&host, "200mbit", &["--clsact"])
        .end(Signal::KILL)
        .unwrap();
    downloads_go_on(&host, 100, "downloads with what a kill left");
    let removed = host.inside(SOONER).args(["attach", "remove"]).output();
    assert!(removed.unwrap().status.success());
    assert_eq!((host.qdiscs(), host.link()), before);
    downloads_go_on(&host, 100, "downloads after that was removed");
    let running = attach(&host, "300mbit", &[]);
    downloads_go_on(&host, 100, "downloads with another attachment");
    let is_running = downloads.0.try_wait().unwrap().is_none();
    assert!(is_running, "the downloads ended before the test did");
    let report: Value = serde_json::from_slice(&downloads.output().unwrap()).unwrap();
    let run = &report["runs"][0];
    let log = host.root.path().join(ADDRESS).join("error.log");
    let log = fs::read_to_string(log).unwrap_or_default();
    assert_eq!(run["all"]["errors"], 0, "{}: {log}", run["errors_by_kind"]);
    assert!(run["all"]["n"].as_u64().unwrap() > 1000, "{run}");
    running.end(Signal::TERM).unwrap();
    assert_eq!((host.qdiscs(), host.link()), before);
}

#[test]
fn a_server_that_starts_again_is_ordered_again() {
    let test = "a_server_that_starts_again_is_ordered_again";
    let Some(host) = Host::new("attach-restart") else {
        return;
    };
    let clients = clients(&host);
    let Some(first) = nginx(&host, &host.namespace, ADDRESS, test) else {
        return;
    };
    let attached = attach(&host, "10mbit", &[]);
    let asked = |count: u64| {
        (0..3).for_each(|_| assert!(ask(clients.name(), ADDRESS, "small") > 1000));
        until("the responses are seen", || {
            (top(&host)["sized_responses"] == count).then_some(())
        });
    };
    asked(3);
    drop(first);
    let second = nginx(&host, &host.namespace, ADDRESS, test);
    asked(6);
    attached.end(Signal::TERM).unwrap();
    drop(second);
}

/// Its verdict is that a packet was seen enough, as that of a network plugin.
#[test]
fn a_program_of_others_hides_nothing() {
    let test = "a_program_of_others_hides_nothing";
    let Some(host) = Host::new("attach-others") else {
        return;
    };
    let clients = clients(&host);
    let Some(_nginx) = nginx(&host, &host.namespace, ADDRESS, test) else {
        return;
    };
    host.printed("tc", &["qdisc", "add", "dev", DEVICE, "clsact"]);
    let all = "1,6 0 0 4294967295";
    for direction in ["egress", "ingress"] {
        let filter = ["filter", "add", "dev", DEVICE, direction, "prio", "1"];
        let program = ["bpf", "bytecode", all, "classid", "1:1"];
        host.printed("tc", &[&filter[..], &program].concat());
    }
    let standing = || {
        let filters = ["filter", "show", "dev", DEVICE, "egress"];
        (host.qdiscs(), host.link(), host.printed("tc", &filters))
    };
    let before = standing();
    for way in [&[][..], &["--clsact"]] {
        let attached = attach(&host, "10mbit", way);
        ask(clients.name(), ADDRESS, "small");
        until("the response is seen", || {
            (top(&host)["sized_responses"] == 1).then_some(())
        });
        attached.end(Signal::TERM).unwrap();
        assert_eq!(standing(), before);
    }
}

#[test]
fn two_capabilities_suffice() {
    let test = "two_capabilities_suffice";
    let Some(host) = Host::new("attach-capabilities") else {
        return;
    };
    let clients = clients(&host);
    let Some(_nginx) = nginx(&host, &host.namespace, ADDRESS, test) else {
        return;
    };
    let mut command = host.inside("setpriv");
    command.args(["--bounding-set=-all,+net_admin,+bpf", "--inh-caps=-all"]);
    command.arg(SOONER);
    let (running, ready) = attach_by(command, "10mbit", &[]);
    assert!(ready.contains("lengths of plain HTTP read"), "{ready}");
    assert!(
        ready.contains("not under TLS: that needs CAP_PERFMON"),
        "{ready}"
    );
    ask(clients.name(), ADDRESS, "small");
    assert_eq!(top(&host)["sized_responses"], 1);
    running.end(Signal::TERM).unwrap();
}

#[test]
fn on_a_router_two_servers_share_one_order() {
    let test = "on_a_router_two_servers_share_one_order";
    let Some(host) = Host::new("attach-router") else {
        return;
    };
    let clients = clients(&host);
    clients
        .ip(&format!("route add default via {ADDRESS}"))
        .unwrap();
    let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    host.printed("sh", &["-c", forward]);
    let mut servers = Vec::new();
    let addresses = ["10.79.1.2", "10.79.2.2"];
    for (number, address) in (1..).zip(addresses) {
        let server = beside(&host, &format!("server{number}"));
        let (here, via) = (format!("r{number}"), format!("10.79.{number}.1"));
        host.namespace.join(&here, &server, "e0").unwrap();
        host.namespace.address(&here, &format!("{via}/24")).unwrap();
        server.address("e0", &format!("{address}/24")).unwrap();
        server.ip(&format!("route add default via {via}")).unwrap();
        let Some(nginx) = nginx(&host, &server, address, test) else {
            return;
        };
        servers.push((nginx, server));
    }
    let attached = attach(&host, "10mbit", &["--forward"]);
    let file = format!("http://{}:{PORT}/large", addresses[0]);
    let _downloads = downloads(&clients, &file, 20, 60);
    downloads_go_on(&host, 3, "downloads through the router");
    (0..20).for_each(|_| assert!(ask(clients.name(), addresses[1], "small") > 1000));
    let of_small = |class: &&Value| {
        class["up_to_bytes"]
            .as_u64()
            .is_some_and(|top| top >= 1_200)
    };
    // What ended is taken ten times a second.
    let small = until("all small responses are seen to end", || {
        let seen = top(&host);
        let small = seen["sizes"].as_array()?.iter().find(of_small)?.clone();
        (small["compared_responses"] == 20).then_some(small)
    });
    // One server's small responses do not wait behind the other's large ones, as they would on a
    // link shared equally.
    let mean_ms = |field: &str| small[field].as_f64().unwrap();
    let (ours, fair) = (
        mean_ms("compared_mean_response_ms"),
        mean_ms("fair_mean_response_ms"),
    );
    assert!(ours < fair, "{ours} ms, shared equally {fair} ms");
    attached.end(Signal::TERM).unwrap();
}
