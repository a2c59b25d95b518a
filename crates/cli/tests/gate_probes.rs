//! Checks of whether a port is open, as HAProxy and Kubernetes make them: of these the gate says
//! nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sooner_testbed::{ChildGuard, port};
use tempfile::TempDir;

#[test]
fn checks_of_the_port_leave_no_line_in_the_log() {
    let folder = TempDir::new().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("own.pem"), made.cert.pem()).unwrap();
    fs::write(path("own.key"), made.signing_key.serialize_pem()).unwrap();
    let tls = "[[tls]]\ncertificate = \"own.pem\"\nkey = \"own.key\"\n";
    let database = "[[database]]\nname = \"*\"\nserver = \"postgresql:///?host=/nowhere\"\n";
    for tls in ["", tls] {
        let address = port::free().unwrap();
        let config = format!("listen = [\"{address}\"]\nauth = \"trust\"\n{database}{tls}");
        fs::write(path("gate.toml"), config).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_sooner"))
            .args(["gate", "--config"])
            .arg(path("gate.toml"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = ChildGuard(child.unwrap());
        let mut ready = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut ready).unwrap();
        assert!(ready.starts_with("ready: "), "{ready}");
        for is_reset in [true, false, true, false] {
            let stream = TcpStream::connect(address).unwrap();
            if is_reset {
                let linger = Some(Duration::ZERO);
                rustix::net::sockopt::set_socket_linger(&stream, linger).unwrap();
                // The gate waits for its first byte by now.
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        std::thread::sleep(Duration::from_millis(200));
        let id = Pid::from_raw(child.id() as i32).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let lines: Vec<String> = said.lines().map(Result::unwrap).collect();
        let of_clients = lines.iter().filter(|line| line.contains(": a client"));
        assert_eq!(of_clients.collect::<Vec<_>>(), [""; 0], "{tls}");
    }
}
