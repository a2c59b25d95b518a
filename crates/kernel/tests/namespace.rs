//! Two network namespaces joined by a pair of devices, for tests that need root; gone when dropped.

use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use sooner_kernel::{capability, netns};

/// The sending side's address; it is on device `s0`.
pub const SENDER: &str = "10.77.0.1";
/// The receiving side's address; it is on device `r0`.
pub const RECEIVER: &str = "10.77.0.2";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The pair of namespaces.
pub struct Pair {
    pub sender: String,
    pub receiver: String,
}

impl Pair {
    /// Makes the pair; None, after saying why, where the test cannot run.
    pub fn new(test: &str) -> Option<Pair> {
        if !(rustix::process::geteuid().is_root()
            && capability::has_net_admin()
            && capability::has_sys_admin())
        {
            // Written past the test harness, which would keep it to itself.
            let reason =
                "needs root with CAP_NET_ADMIN and CAP_SYS_ADMIN to make network namespaces";
            let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |side| format!("sooner-kernel-{}-{number}-{side}", std::process::id());
        let pair = Pair {
            sender: name("s"),
            receiver: name("r"),
        };
        for namespace in [&pair.sender, &pair.receiver] {
            ip(&["netns", "add", namespace]);
            ip(&["-n", namespace, "link", "set", "lo", "up"]);
        }
        ip(&[
            "-n",
            &pair.sender,
            "link",
            "add",
            "s0",
            "type",
            "veth",
            "peer",
            "name",
            "r0",
            "netns",
            &pair.receiver,
        ]);
        for (namespace, device, address) in [
            (&pair.sender, "s0", SENDER),
            (&pair.receiver, "r0", RECEIVER),
        ] {
            ip(&[
                "-n",
                namespace,
                "addr",
                "add",
                &format!("{address}/24"),
                "dev",
                device,
            ]);
            ip(&["-n", namespace, "link", "set", device, "up"]);
        }
        Some(pair)
    }

    /// Runs `tc` on the sending side.
    pub fn tc(&self, arguments: &str) {
        run(Command::new("tc")
            .args(["-n", &self.sender])
            .args(arguments.split(' ')));
    }

    /// Runs `ip` on the sending side.
    pub fn ip(&self, arguments: &str) {
        run(Command::new("ip")
            .args(["-n", &self.sender])
            .args(arguments.split(' ')));
    }

    /// Runs `body` in a thread on the sending side.
    pub fn in_sender<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        inside(&self.sender, body)
    }

    /// Runs `body` in a thread on the receiving side.
    pub fn in_receiver<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        inside(&self.receiver, body)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for namespace in [&self.sender, &self.receiver] {
            let _ = Command::new("ip")
                .args(["netns", "del", namespace])
                .status();
        }
    }
}

fn inside<T: Send>(namespace: &str, body: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        netns::enter(namespace).expect("root may enter a namespace");
        body()
    };
    thread::scope(|scope| scope.spawn(enter).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn ip(arguments: &[&str]) {
    run(Command::new("ip").args(arguments));
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; install iproute2"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
