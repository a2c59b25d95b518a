//! A host with one device, in a network namespace, for tests that need root; gone when dropped.
#![allow(dead_code, reason = "not every test binary looks at everything")]

use std::io::{Read, Write};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub const DEVICE: &str = "s0";
pub const ADDRESS: &str = "10.78.0.1";

/// A host with one device, in a network namespace; gone when dropped.
pub struct Host {
    pub namespace: String,
    pub root: TempDir,
}

impl Host {
    /// `None`, after saying why, where the test cannot run.
    pub fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            let reason = "needs root to make a network namespace";
            let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
            return None;
        }
        let host = Self {
            namespace: format!("sooner-cli-{}-{test}", std::process::id()),
            root: tempfile::tempdir().unwrap(),
        };
        let name = &host.namespace;
        ip(&["netns", "add", name]);
        ip(&["-n", name, "link", "set", "lo", "up"]);
        let pair = ["type", "veth", "peer", "name", "s1"];
        ip(&[&["-n", name, "link", "add", DEVICE], &pair[..]].concat());
        ip(&[
            "-n",
            name,
            "addr",
            "add",
            &format!("{ADDRESS}/24"),
            "dev",
            DEVICE,
        ]);
        ip(&["-n", name, "link", "set", DEVICE, "up"]);
        ip(&["-n", name, "link", "set", "s1", "up"]);
        Some(host)
    }

    pub fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        command
    }

    pub fn printed(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.inside(program).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn qdiscs(&self) -> String {
        self.printed("tc", &["qdisc", "show", "dev", DEVICE])
    }

    /// The limits on super-packets, which bands change and restore.
    pub fn link(&self) -> String {
        let shown = self.printed("ip", &["-d", "link", "show", "dev", DEVICE]);
        let words: Vec<&str> = shown.split_whitespace().collect();
        let gso = words
            .windows(2)
            .filter(|pair| pair[0].starts_with("gso_max"));
        gso.map(|pair| pair.join(" ")).collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A failed test is failed already.
        let delete = ["netns", "del", &self.namespace];
        drop(Command::new("ip").args(delete).status());
    }
}

fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status().unwrap();
    assert!(status.success(), "ip {arguments:?}");
}

/// A program that does not outlive its test.
pub struct Running(pub Child);

impl Running {
    pub fn end(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its end; what it said on standard output.
    pub fn output(mut self) -> Vec<u8> {
        let mut said = Vec::new();
        let mut stdout = self.0.stdout.take().unwrap();
        stdout.read_to_end(&mut said).unwrap();
        self.0.wait().unwrap();
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
