//! A host with one device, in a network namespace, for tests that need root; gone when dropped.

use std::process::Command;

use sooner_testbed::namespace::Namespace;
use sooner_testbed::skip::is_root;
use tempfile::TempDir;

pub const DEVICE: &str = "s0";
pub const ADDRESS: &str = "10.78.0.1";

/// A host with one device, in a network namespace; gone when dropped.
pub struct Host {
    pub namespace: Namespace,
    pub root: TempDir,
}

impl Host {
    /// `None`, after saying why, where the test cannot run.
    pub fn new(test: &str) -> Option<Self> {
        if !is_root(test, "to make a network namespace") {
            return None;
        }
        let name = format!("sooner-cli-{}-{test}", std::process::id());
        let namespace = Namespace::make(&name).unwrap();
        namespace.ip("link add s0 type veth peer name s1").unwrap();
        namespace.address(DEVICE, &format!("{ADDRESS}/24")).unwrap();
        namespace.ip("link set s1 up").unwrap();
        let root = tempfile::tempdir().unwrap();
        Some(Self { namespace, root })
    }

    pub fn inside(&self, program: &str) -> Command {
        self.namespace.command(program)
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
