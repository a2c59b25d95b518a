//! A server whose standard error cannot be written (a full disk) goes on serving, whatever it would have said.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

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

#[test]
fn a_server_that_cannot_complain_serves_on() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "text").unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let config = folder.path().join("sooner.toml");
    let text = format!(
        "listen = [\"127.0.0.1:{port}\"]\nroot = \"{}\"\n",
        folder.path().display()
    );
    fs::write(&config, &text).unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut server = Running(
        Command::new(assert_cmd::cargo::cargo_bin("sooner"))
            .args(["serve", "--config"])
            .arg(&config)
            .stdin(Stdio::null())
            .stderr(full)
            .spawn()
            .unwrap(),
    );
    let has_started = (0..200).any(|_| {
        sleep(Duration::from_millis(20));
        answers(port)
    });
    assert!(has_started, "it does not serve");
    // A wrong file at a reload is worth a line.
    fs::write(&config, format!("{text}nonsense = 1\n")).unwrap();
    kill_process(Pid::from_child(&server.0), Signal::HUP).unwrap();
    sleep(Duration::from_millis(300));
    assert!(server.0.try_wait().unwrap().is_none(), "it has ended");
    assert!(answers(port));
}
