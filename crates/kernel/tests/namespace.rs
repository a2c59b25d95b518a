//! Two network namespaces joined by a pair of devices, for tests that need root; gone when dropped.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use sooner_kernel::{capability, netns};
use sooner_testbed::namespace::Namespace;
use sooner_testbed::skip;

/// The sending side's address; it is on device `s0`.
pub const SENDER: &str = "10.77.0.1";
/// The receiving side's address; it is on device `r0`.
pub const RECEIVER: &str = "10.77.0.2";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The pair of namespaces.
pub struct Pair {
    pub sender: Namespace,
    pub receiver: Namespace,
}

impl Pair {
    /// Makes the pair; None, after saying why, where the test cannot run.
    pub fn new(test: &str) -> Option<Pair> {
        if !(rustix::process::geteuid().is_root()
            && capability::has_net_admin()
            && capability::has_sys_admin())
        {
            let reason =
                "needs root with CAP_NET_ADMIN and CAP_SYS_ADMIN to make network namespaces";
            skip(test, reason);
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let make = |side| {
            let name = format!("sooner-kernel-{}-{number}-{side}", std::process::id());
            Namespace::make(&name).unwrap()
        };
        let (sender, receiver) = (make("s"), make("r"));
        sender.join("s0", &receiver, "r0").unwrap();
        sender.address("s0", &format!("{SENDER}/24")).unwrap();
        receiver.address("r0", &format!("{RECEIVER}/24")).unwrap();
        Some(Pair { sender, receiver })
    }

    /// Runs `tc` on the sending side; what it prints.
    pub fn tc(&self, arguments: &str) -> String {
        self.sender.tc(arguments).unwrap()
    }

    /// Runs `ip` on the sending side.
    pub fn ip(&self, arguments: &str) {
        self.sender.ip(arguments).unwrap();
    }

    /// Runs `body` in a thread on the sending side.
    pub fn in_sender<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        inside(self.sender.name(), body)
    }

    /// Runs `body` in a thread on the receiving side.
    pub fn in_receiver<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        inside(self.receiver.name(), body)
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
