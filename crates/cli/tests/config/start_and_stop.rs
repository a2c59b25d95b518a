//! How it starts and stops: flags, supervisors, users, signals.

use super::place::{ConfigFolder, Server, serving};
use rustix::process::{Signal, geteuid};
use sooner_testbed::skip;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

#[test]
fn flags_go_over_the_file() {
    let config = format!(
        "{}[uplink]\nrate = \"10mbit\"\npolicy = \"las\"\nmechanism = \"user-space\"\n",
        serving("one")
    );
    let place = ConfigFolder::new(&config);
    let as_written = place.start(&[]);
    assert!(
        as_written.ready_line.contains("las") && as_written.ready_line.contains("10mbit"),
        "{}",
        as_written.ready_line
    );
    let two = place.path("two");
    let flags = [
        "--policy",
        "fcfs",
        "--uplink",
        "20mbit",
        two.to_str().unwrap(),
    ];
    let overruled = place.start(&flags);
    assert!(
        overruled.ready_line.contains("fcfs") && overruled.ready_line.contains("20mbit"),
        "{}",
        overruled.ready_line
    );
    assert_eq!(
        (as_written.get(), overruled.get()),
        ("one".into(), "two".into())
    );
}

#[test]
fn a_supervisor_is_told_of_every_step() {
    let place = ConfigFolder::new(&serving("one"));
    let name = place.path("notify");
    let supervisor = UnixDatagram::bind(&name).unwrap();
    let next = || {
        let mut state = [0; 500];
        let length = supervisor.recv(&mut state).unwrap();
        String::from_utf8_lossy(&state[..length]).into_owned()
    };
    let server = place.start_under(&[], &[("NOTIFY_SOCKET", &name)]);
    let ready = next();
    let main_pid = format!("MAINPID={}\n", server.child.id());
    assert!(
        ready.starts_with("READY=1\n") && ready.contains(&main_pid),
        "{ready}"
    );
    server.send(Signal::HUP);
    let reloading = next();
    assert!(
        reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
        "{reloading}"
    );
    assert!(next().starts_with("READY=1\n"));
    assert_eq!(server.stop(), Some(0));
    assert!(next().starts_with("STOPPING=1"));
}

#[test]
fn a_second_signal_ends_at_once_and_the_first_lets_responses_end() {
    let place = ConfigFolder::new(&format!(
        "{}[limits]\ngrace_seconds = 1000\n",
        serving("one")
    ));
    fs::File::create(place.path("one/large"))
        .unwrap()
        .set_len(256 << 20)
        .unwrap();
    let mut server = place.start(&[]);
    let mut busy = TcpStream::connect(&server.address).unwrap();
    busy.write_all(b"GET /large HTTP/1.0\r\n\r\n").unwrap();
    busy.read_exact(&mut [0; 100]).unwrap();
    server.send(Signal::TERM);
    while TcpStream::connect(&server.address).is_ok() {
        std::thread::yield_now();
    }
    assert!(server.child.try_wait().unwrap().is_none());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn root_becomes_the_user_and_serves_on() {
    if !geteuid().is_root() {
        skip("root_becomes_the_user_and_serves_on", "needs root");
        return;
    }
    let place = ConfigFolder::new(&format!("{}user = \"nobody\"\n", serving("one")));
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(place.folder.path(), everybody).unwrap();
    let server = place.start(&[]);
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let ids = status
        .lines()
        .find(|line| line.starts_with("Uid:"))
        .unwrap();
    assert!(ids.split_whitespace().skip(1).all(|id| id != "0"), "{ids}");
    assert_eq!(server.get(), "one");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_service_manager_can_hold_the_address() {
    const ACTIVATE: &str = "systemd-socket-activate";
    if Command::new(ACTIVATE).arg("--version").output().is_err() {
        skip(
            "a_service_manager_can_hold_the_address",
            &format!("no {ACTIVATE} (systemd)"),
        );
        return;
    }
    let place = ConfigFolder::new("root = \"one\"\nlisten = [\"192.0.2.1:80\"]");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let child = Command::new(ACTIVATE)
        .args(["-l", &address])
        .arg(assert_cmd::cargo::cargo_bin("sooner"))
        .args(["serve", "--config"])
        .arg(place.file())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut server = Server::of(child, address);
    while TcpStream::connect(&server.address).is_err() {
        std::thread::yield_now();
    }
    assert_eq!(server.get(), "one");
    let ready = std::iter::repeat_with(|| server.says()).find(|line| line.contains("serving"));
    let url = format!("http://{}", server.address);
    assert!(ready.is_some_and(|line| line.contains(&url)));
    assert_eq!(server.stop(), Some(0));
}
