//! Hosts and links in namespaces of the test's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use super::support::{has_emulator, may_make_hosts, processes_in, skip, sooner};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use sooner_kernel::{netns, tcp_table};
use sooner_lab::counters::Connections;
use sooner_lab::hosts::{self, ClientSpec, Hosts, HostsError, HostsSpec, Shaper};

const TEN_MEGABIT: u64 = 10_000_000;
/// Not started by hosts that are directly connected.
const NO_PROGRAM: &str = "/nonexistent/sooner";

fn up(spec: &HostsSpec) -> Hosts {
    Hosts::up(spec, Path::new(NO_PROGRAM)).unwrap()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into()
}

fn namespaces_of(pid: u32) -> Vec<String> {
    let list = output(Command::new("ip").args(["netns", "list"]));
    let prefix = format!("sooner-lab-{pid}-");
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| name.starts_with(&prefix))
        .map(String::from)
        .collect()
}

/// Opens a connection from the first client and gives what `ss` says of the server's end after 10
/// kB have gone over it.
fn connection_on_server(hosts: &Hosts) -> String {
    let address = (hosts.server_address(), 9000);
    let listener = hosts.in_server(|| TcpListener::bind(address)).unwrap();
    let client = thread::scope(|scope| {
        let client = || {
            netns::enter(hosts.client_namespace()).unwrap();
            TcpStream::connect(address).unwrap()
        };
        scope.spawn(client).join().unwrap()
    });
    let (mut server, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip(), hosts.client_addresses()[0]);
    server.write_all(&[0; 10_000]).unwrap();
    let mut received = [0; 10_000];
    (&client).read_exact(&mut received).unwrap();
    output(
        hosts
            .on_server("ss")
            .args(["-Htin", "state", "established"]),
    )
}

#[test]
fn the_servers_link_is_limited_by_htb_or_by_the_server() {
    if !may_make_hosts("the_servers_link_is_limited_by_htb_or_by_the_server") {
        return;
    }
    let mut spec = HostsSpec::new("shape-h", TEN_MEGABIT);
    let hosts = up(&spec);
    let queues = output(hosts.on_server("tc").args(["qdisc", "show", "dev", "v0"]));
    assert!(
        queues.contains("htb 1:") && queues.contains("limit 100p"),
        "{queues}"
    );
    assert!(hosts.remarks().is_empty());
    let before = hosts.sent_bytes().unwrap();
    connection_on_server(&hosts);
    assert!(hosts.sent_bytes().unwrap() > before + 10_000);
    spec.name = "shape-s".into();
    spec.shaper = Shaper::Server;
    let other = up(&spec);
    let queues = output(other.on_server("tc").args(["qdisc", "show", "dev", "v0"]));
    assert!(!queues.contains("htb"), "{queues}");
}

#[test]
fn tcp_is_as_it_was_asked_for() {
    if !may_make_hosts("tcp_is_as_it_was_asked_for") {
        return;
    }
    let mut spec = HostsSpec::new("tcp", TEN_MEGABIT);
    spec.congestion_control = Some("reno".into());
    spec.mss_bytes = Some(536);
    spec.initial_window_segments = Some(3);
    spec.syn_cookies = Some(false);
    spec.syn_backlog = Some(64);
    spec.somaxconn = Some(77);
    let hosts = up(&spec);
    let connection = connection_on_server(&hosts);
    // 536 less the 12 bytes of timestamps, in what it sends and in what it is sent
    for part in ["reno", " mss:524", "advmss:524"] {
        assert!(connection.contains(part), "{part}: {connection}");
    }
    let parameter = |name: &str| {
        output(hosts.on_server("cat").arg(format!("/proc/sys/net/{name}")))
            .trim()
            .to_string()
    };
    assert_eq!(parameter("ipv4/tcp_syncookies"), "0");
    assert_eq!(parameter("ipv4/tcp_max_syn_backlog"), "64");
    assert_eq!(parameter("core/somaxconn"), "77");
    let route = output(hosts.on_server("ip").args(["route", "show"]));
    assert!(route.contains("initcwnd 3"), "{route}");
}

/// Asks this binary, run again, to listen until it is killed.
const LISTEN: &str = "SOONER_LAB_TEST_LISTEN";

/// Not a test: a server that is in the hosts' control group.
#[test]
fn helper_that_listens() {
    if std::env::var_os(LISTEN).is_none() {
        return;
    }
    let _listener = TcpListener::bind("10.77.0.1:9000").unwrap();
    println!("\nlistening");
    thread::sleep(std::time::Duration::from_secs(120));
}

#[test]
fn the_first_timeout_is_the_one_asked_for_on_both_sides() {
    let test = "the_first_timeout_is_the_one_asked_for_on_both_sides";
    if !may_make_hosts(test) {
        return;
    }
    let mut spec = HostsSpec::new("rto", TEN_MEGABIT);
    spec.initial_rto_ms = Some(30_000);
    let hosts = match Hosts::up(&spec, Path::new(NO_PROGRAM)) {
        Err(HostsError::InitialRto { source, .. }) => return skip(test, &source.to_string()),
        hosts => hosts.unwrap(),
    };
    // Frames to an address that no host has on the link are lost without a word.
    let lost = "lladdr 02:00:00:00:00:09 nud permanent dev";
    let connect = "timeout 60 bash -c 'echo > /dev/tcp/10.77.0.1/9000' & sleep 0.3; ss -Htino state syn-sent; kill %1";
    let unanswered = format!("ip neigh replace 10.77.0.1 {lost} wan0; {connect}");
    let sent = output(hosts.on_client("bash").args(["-c", &unanswered]));
    assert!(sent.contains("rto:30000"), "{sent}");
    output(
        hosts
            .on_client("ip")
            .args(["neigh", "flush", "dev", "wan0", "nud", "permanent"]),
    );
    let mut listener = hosts
        .on_server(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "on_hosts::hosts::helper_that_listens",
            "--nocapture",
        ])
        .env(LISTEN, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(listener.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line == "listening"));
    output(
        hosts
            .on_server("bash")
            .args(["-c", &format!("ip neigh replace 10.78.0.1 {lost} v0")]),
    );
    output(hosts.on_client("bash").args(["-c", connect]));
    let answered = output(hosts.on_server("ss").args(["-Hnto", "state", "syn-recv"]));
    // `timer:(on,29sec,0)`: tens of seconds until the SYN-ACK is sent again, where it would have
    // been one
    assert!(answered.contains("sec,0)"), "{answered}");
    let sockets = hosts.in_server(|| tcp_table::with_port(9000)).unwrap();
    assert_eq!(Connections::of(sockets).syn_received, 1);
    listener.kill().unwrap();
    listener.wait().unwrap();
    let id = std::process::id();
    let group = sooner_kernel::initial_timeout::groups().unwrap().unwrap();
    let group = group.join(format!("sooner-lab-{id}-rto"));
    assert!(group.exists());
    drop(hosts);
    assert!(!group.exists());
}

#[test]
fn a_congestion_control_that_is_not_there_is_refused_with_those_that_are() {
    if !may_make_hosts("a_congestion_control_that_is_not_there_is_refused_with_those_that_are") {
        return;
    }
    let mut spec = HostsSpec::new("cc", TEN_MEGABIT);
    spec.congestion_control = Some("magic".into());
    let error = Hosts::up(&spec, Path::new(NO_PROGRAM)).unwrap_err();
    assert!(
        matches!(&error, HostsError::CongestionControl { available, .. } if available.contains("reno")),
        "{error}"
    );
    let left = namespaces_of(std::process::id());
    assert!(!left.iter().any(|name| name.contains("-cc-")), "{left:?}");
}

#[test]
fn what_runs_on_hosts_goes_with_them() {
    if !may_make_hosts("what_runs_on_hosts_goes_with_them") {
        return;
    }
    let hosts = up(&HostsSpec::new("gone", TEN_MEGABIT));
    let mut sleeper = hosts.on_client("sleep").arg("1000").spawn().unwrap();
    // `ip netns exec` becomes the program once it has entered the namespace
    while processes_in(hosts.client_namespace()).is_empty() {
        thread::yield_now();
    }
    drop(hosts);
    assert!(!sleeper.wait().unwrap().success());
    let left = namespaces_of(std::process::id());
    assert!(!left.iter().any(|name| name.contains("-gone-")), "{left:?}");
    let id = std::process::id();
    assert!(!Path::new(&format!("/run/sooner/lab-{id}-gone")).exists());
}

/// Asks this binary, run again, to hold hosts until it is killed.
const HOLD: &str = "SOONER_LAB_TEST_HOLD";

/// Not a test: the owner that gets killed.
#[test]
fn helper_that_holds_hosts() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let hosts = up(&HostsSpec::new("held", TEN_MEGABIT));
    let mut sleeper = hosts.on_server("sleep").arg("1000").spawn().unwrap();
    while processes_in(hosts.server_namespace()).is_empty() {
        thread::yield_now();
    }
    println!("\nholding");
    sleeper.wait().unwrap();
}

fn owner() -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "on_hosts::hosts::helper_that_holds_hosts",
            "--nocapture",
        ])
        .env(HOLD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap() == "holding"));
    child
}

#[test]
fn hosts_of_a_killed_process_are_removed_and_those_of_a_living_one_are_not() {
    if !may_make_hosts("hosts_of_a_killed_process_are_removed_and_those_of_a_living_one_are_not") {
        return;
    }
    let living = up(&HostsSpec::new("living", TEN_MEGABIT));
    let mut killed = owner();
    let pid = killed.id();
    hosts::clean().unwrap();
    assert_eq!(namespaces_of(pid).len(), 2);
    let sleeper = processes_in(&format!("sooner-lab-{pid}-held-s"));
    assert!(!sleeper.is_empty());
    killed.kill().unwrap();
    killed.wait().unwrap();
    hosts::clean().unwrap();
    // Another test's start may have been faster; either way they are gone now.
    while !namespaces_of(pid).is_empty() {
        thread::yield_now();
    }
    assert!(!Path::new(&format!("/proc/{sleeper}/exe")).exists());
    assert!(!Path::new(&format!("/run/sooner/lab-{pid}-held")).exists());
    assert!(living.sent_bytes().is_ok());
}

#[test]
fn two_clients_are_reached_through_an_emulated_network() {
    let test = "two_clients_are_reached_through_an_emulated_network";
    if !may_make_hosts(test) {
        return;
    }
    let Some(program) = sooner(test).filter(|program| has_emulator(test, program)) else {
        return;
    };
    let mut spec = HostsSpec::new("wan", TEN_MEGABIT);
    spec.clients = vec![
        ClientSpec {
            rtt_ms: 40.0,
            loss: 0.0,
            ..ClientSpec::default()
        },
        ClientSpec::default(),
    ];
    let hosts = Hosts::up(&spec, &program).unwrap();
    assert!(connection_on_server(&hosts).contains("10.78.0.1"));
    let _listener = hosts
        .in_server(|| TcpListener::bind((hosts.server_address(), 9001)))
        .unwrap();
    let connects_ms: Vec<f64> = hosts
        .client_addresses()
        .into_iter()
        .map(|from| connect_ms(&hosts, from))
        .collect();
    assert!(
        connects_ms[0] >= 40.0 && connects_ms[1] < connects_ms[0],
        "{connects_ms:?}"
    );
    if let Some(counters) = hosts.down() {
        assert!(counters.contains('{'), "{counters}");
    }
}

/// The least of three times to connect from this client address, ms.
fn connect_ms(hosts: &Hosts, from: Ipv4Addr) -> f64 {
    let to = SocketAddr::from((hosts.server_address(), 9001));
    let body = || {
        netns::enter(hosts.client_namespace()).unwrap();
        let times = (0..3).map(|_| {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            bind(&socket, &SocketAddr::from((from, 0))).unwrap();
            let start = Instant::now();
            connect(&socket, &to).unwrap();
            start.elapsed().as_secs_f64() * 1e3
        });
        times.fold(f64::INFINITY, f64::min)
    };
    thread::scope(|scope| scope.spawn(body).join()).unwrap()
}
