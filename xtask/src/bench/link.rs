//! A server host and a client host with a limited link between them, in network namespaces of our own.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

/// The server's address on every link.
pub const SERVER_ADDRESS: &str = "10.77.0.1";
const CLIENT_ADDRESS: &str = "10.77.0.2";
/// The device of either host.
pub const DEVICE: &str = "v0";

/// What limits the link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shaper {
    /// HTB with a pfifo of 100 packets on the server's device, as an operator would set it up.
    Host,
    /// Nothing: the server's own bands do.
    Server,
}

/// Two namespaces and a veth pair; removed when dropped.
pub struct Link {
    server: String,
    client: String,
}

impl Link {
    /// Sets the link up; `name` distinguishes links that exist at the same time. Both hosts send by cubic and without super-packets: one
    /// packet of the link is one packet everywhere.
    pub fn up(name: &str, rate_mbit: u64, shaper: Shaper) -> anyhow::Result<Self> {
        let id = std::process::id();
        let link = Self {
            server: format!("sooner-bench-{id}-{name}-s"),
            client: format!("sooner-bench-{id}-{name}-c"),
        };
        let (server, client) = (&link.server, &link.client);
        ip(&["netns", "add", server]).context("network namespaces need root")?;
        ip(&["netns", "add", client])?;
        ip(&[
            "link", "add", DEVICE, "netns", server, "type", "veth", "peer", "name", DEVICE,
            "netns", client,
        ])?;
        link.host(server, SERVER_ADDRESS)?;
        link.host(client, CLIENT_ADDRESS)?;
        if shaper == Shaper::Host {
            link.shape(rate_mbit)?;
        }
        Ok(link)
    }

    fn host(&self, namespace: &str, address: &str) -> anyhow::Result<()> {
        let inside = |arguments: &[&str]| ip(&[&["-n", namespace], arguments].concat());
        inside(&["link", "set", "lo", "up"])?;
        inside(&["addr", "add", &format!("{address}/24"), "dev", DEVICE])?;
        inside(&["link", "set", DEVICE, "up"])?;
        inside(&[
            "route",
            "replace",
            "10.77.0.0/24",
            "dev",
            DEVICE,
            "congctl",
            "cubic",
        ])?;
        inside(&[
            "link",
            "set",
            "dev",
            DEVICE,
            "gso_max_segs",
            "1",
            "gso_max_size",
            "1514",
        ])?;
        Ok(())
    }

    fn shape(&self, rate_mbit: u64) -> anyhow::Result<()> {
        let rate = format!("{rate_mbit}mbit");
        let burst = if rate_mbit >= 100 { "15140" } else { "1600" };
        let tc = |arguments: &[&str]| command("tc", &[&["-n", &self.server], arguments].concat());
        tc(&[
            "qdisc", "add", "dev", DEVICE, "root", "handle", "1:", "htb", "default", "1",
        ])?;
        let class = [
            "htb", "rate", &rate, "burst", burst, "cburst", burst, "quantum", "1514",
        ];
        tc(&[
            &[
                "class", "add", "dev", DEVICE, "parent", "1:", "classid", "1:1",
            ],
            &class[..],
        ]
        .concat())?;
        tc(&[
            "qdisc", "add", "dev", DEVICE, "parent", "1:1", "handle", "10:", "pfifo", "limit",
            "100",
        ])
    }

    /// Both hosts hand super-packets to their devices again, as the kernel does of itself.
    pub fn allow_super_packets(&self) -> anyhow::Result<()> {
        for namespace in [&self.server, &self.client] {
            ip(&[
                "-n",
                namespace,
                "link",
                "set",
                "dev",
                DEVICE,
                "gso_max_segs",
                "65535",
                "gso_max_size",
                "65536",
            ])?;
        }
        Ok(())
    }

    /// Bytes the server's host has sent.
    pub fn sent_bytes(&self) -> anyhow::Result<f64> {
        let counter = format!("/sys/class/net/{DEVICE}/statistics/tx_bytes");
        let output = self.on_server("cat").arg(counter).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
    }

    /// A command that runs on the server's host.
    pub fn on_server(&self, program: &str) -> Command {
        inside(&self.server, program)
    }

    /// A command that runs on the client's host.
    pub fn on_client(&self, program: &str) -> Command {
        inside(&self.client, program)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for namespace in [&self.server, &self.client] {
            // What is not there any more needs no removing.
            let _ = ip(&["netns", "del", namespace]);
        }
    }
}

fn inside(namespace: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    command("ip", arguments)
}

fn command(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!(
            "{program} {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// A process of ours that is ended when dropped: asked first, then made to.
pub struct Running(pub Child);

impl Running {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        for _ in 0..100 {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
