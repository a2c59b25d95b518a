//! A server that cannot write to its standard error (a full disk, a pipe that is not read) serves
//! on, whatever it has to say.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use sooner_testbed::{ChildGuard, port};
use std::fs;
use std::fs::OpenOptions;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let mut answer = String::new();
    stream
        .write_all(b"GET /a HTTP/1.0\r\n\r\n")
        .and_then(|()| stream.read_to_string(&mut answer))
        .is_ok_and(|_| answer.ends_with("text"))
}

fn wait_until(is_so: impl Fn() -> bool) {
    let is_so = (0..1000).any(|_| {
        sleep(Duration::from_millis(20));
        is_so()
    });
    assert!(is_so, "it does not serve");
}

#[test]
fn a_server_that_cannot_complain_serves_on() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "text").unwrap();
    let port = port::free().unwrap().port();
    let config = folder.path().join("sooner.toml");
    let text = format!(
        "listen = [\"127.0.0.1:{port}\"]\nroot = \"{}\"\n",
        folder.path().display()
    );
    fs::write(&config, &text).unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut server = ChildGuard(
        Command::new(assert_cmd::cargo::cargo_bin("sooner"))
            .args(["serve", "--config"])
            .arg(&config)
            .stdin(Stdio::null())
            .stderr(full)
            .spawn()
            .unwrap(),
    );
    wait_until(|| answers(port));
    // A wrong file at a reload is worth a line.
    fs::write(&config, format!("{text}nonsense = 1\n")).unwrap();
    kill_process(Pid::from_child(&server.0), Signal::HUP).unwrap();
    sleep(Duration::from_millis(300));
    assert!(server.0.try_wait().unwrap().is_none(), "it has ended");
    assert!(answers(port));
}

/// A pipe with no room left for a byte.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(b"x").is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

/// A service manager's socket with no room left for a datagram.
fn full_socket(path: &Path) -> UnixDatagram {
    let manager = UnixDatagram::bind(path).unwrap();
    let filler = UnixDatagram::unbound().unwrap();
    filler.connect(path).unwrap();
    filler.set_nonblocking(true).unwrap();
    while filler.send(b"x").is_ok() {}
    manager
}

#[test]
fn full_pipes_and_a_busy_service_manager_stop_neither_requests_nor_signals() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "text").unwrap();
    let port = port::free().unwrap().port();
    let config = folder.path().join("sooner.toml");
    let text = format!(
        "listen = [\"127.0.0.1:{port}\"]\nroot = \"{}\"\n[admin]\nlisten = \"0.0.0.0:0\"\n",
        folder.path().display()
    );
    fs::write(&config, &text).unwrap();
    let (unread, full) = full_pipe();
    let socket = folder.path().join("notify");
    let manager = full_socket(&socket);
    let mut server = ChildGuard(
        Command::new(assert_cmd::cargo::cargo_bin("sooner"))
            .args(["serve", "--config"])
            .arg(&config)
            .env("NOTIFY_SOCKET", &socket)
            .stdin(Stdio::null())
            .stderr(full)
            .spawn()
            .unwrap(),
    );
    wait_until(|| answers(port));
    for text in ["nonsense = 1", &text] {
        fs::write(&config, text).unwrap();
        kill_process(Pid::from_child(&server.0), Signal::HUP).unwrap();
        assert!(answers(port));
    }
    kill_process(Pid::from_child(&server.0), Signal::TERM).unwrap();
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
    drop((unread, manager));
}

#[test]
fn full_pipes_do_not_stop_a_gate() {
    let port = port::free().unwrap().port();
    let (unread, full) = full_pipe();
    let listen = format!("127.0.0.1:{port}");
    let mut gate = ChildGuard(
        Command::new(assert_cmd::cargo::cargo_bin("sooner"))
            .args([
                "gate",
                "--backend",
                "postgresql://127.0.0.1:1",
                "--auth",
                "trust",
                "--limit",
                "1",
                "--listen",
                &listen,
            ])
            .stdin(Stdio::null())
            .stdout(full.try_clone().unwrap())
            .stderr(full)
            .spawn()
            .unwrap(),
    );
    wait_until(|| TcpStream::connect(&listen).is_ok());
    kill_process(Pid::from_child(&gate.0), Signal::TERM).unwrap();
    assert_eq!(gate.0.wait().unwrap().code(), Some(0));
    drop(unread);
}
