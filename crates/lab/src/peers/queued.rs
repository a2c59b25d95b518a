//! What an operator would put before the device by hand, without Sooner: queues of the kernel, and
//! bands chosen by a firewall's count of a connection's bytes.

use std::fmt;
use std::io;
use std::process::Command;

use sooner_kernel::netns;

use crate::hosts::{Hosts, SERVER_DEVICE};

/// A packet's queue before the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// CAKE at the rate, as its manual says.
    Cake,
    /// CAKE with one tin, and flows told apart by their ends alone.
    CakeFlows,
    /// HTB at the rate, with fq_codel below.
    FqCodel,
    /// HTB at the rate, with fq below.
    Fq,
    /// HTB at the rate with four bands, which nftables chooses by what a connection has had.
    Nftables,
}

/// A frame and a little, as for the link that others limit.
const BURST: &str = "burst 1600 cburst 1600 quantum 1514";
/// Any will do.
const RATE_OF_TRIAL: u64 = 10_000_000;
/// What a connection has had, bytes, before it falls to the next band.
const BANDS_BYTES: [u64; 3] = [8_000, 32_000, 128_000];

impl Queue {
    /// All of them.
    pub const ALL: [Queue; 5] = [
        Queue::Cake,
        Queue::CakeFlows,
        Queue::FqCodel,
        Queue::Fq,
        Queue::Nftables,
    ];

    /// Its name behind the server's `+`.
    pub fn name(self) -> &'static str {
        match self {
            Queue::Cake => "cake",
            Queue::CakeFlows => "cake besteffort flows",
            Queue::FqCodel => "fq_codel",
            Queue::Fq => "fq",
            Queue::Nftables => "nftables",
        }
    }

    /// The commands that put it there, a line each.
    pub fn commands(self, rate_bits_per_sec: u64) -> Vec<String> {
        let root = format!("tc qdisc add dev {SERVER_DEVICE} root handle 1:");
        let class = |minor: u64, below: &str, rest: &str| {
            format!(
                "tc class add dev {SERVER_DEVICE} parent {below} classid 1:{minor:x} htb {rest} {BURST}"
            )
        };
        let limited = |below: &str| {
            vec![
                format!("{root} htb default 1"),
                class(1, "1:", &format!("rate {rate_bits_per_sec}bit")),
                format!("tc qdisc add dev {SERVER_DEVICE} parent 1:1 handle 10: {below}"),
            ]
        };
        match self {
            Queue::Cake => vec![format!("{root} cake bandwidth {rate_bits_per_sec}bit")],
            Queue::CakeFlows => vec![format!(
                "{root} cake bandwidth {rate_bits_per_sec}bit besteffort flows"
            )],
            Queue::FqCodel => limited("fq_codel"),
            Queue::Fq => limited("fq"),
            Queue::Nftables => {
                let mut commands = vec![
                    format!("{root} htb default 1"),
                    class(0xff, "1:", &format!("rate {rate_bits_per_sec}bit")),
                ];
                let share = rate_bits_per_sec / 64;
                commands.extend((1..=4_u64).map(|band| {
                    let rest = format!(
                        "rate {share}bit ceil {rate_bits_per_sec}bit prio {}",
                        band - 1
                    );
                    class(band, "1:ff", &rest)
                }));
                commands.push("sysctl -qw net.netfilter.nf_conntrack_acct=1".into());
                commands.push("nft add table inet bands".into());
                commands.push(
                    "nft add chain inet bands out { type filter hook postrouting priority 0 ; }"
                        .into(),
                );
                commands.extend((2..=4_u64).zip(BANDS_BYTES).map(|(band, bytes)| {
                    format!(
                        "nft add rule inet bands out oifname {SERVER_DEVICE} ct reply bytes > {bytes} meta priority set 1:{band:x}"
                    )
                }));
                commands
            }
        }
    }

    /// Puts it before the server's device; it goes with the namespace.
    pub fn put_up(self, hosts: &Hosts, rate_bits_per_sec: u64) -> io::Result<()> {
        self.carry_out(rate_bits_per_sec, |program| hosts.on_server(program))
    }

    /// What this kernel lacks for it, found by a trial in a namespace that goes with it; none also
    /// where a trial is not possible.
    pub fn lacks(self) -> Option<String> {
        let tried = netns::in_new(|| {
            let made = Command::new("ip")
                .args(["link", "add", SERVER_DEVICE, "type", "veth"])
                .output()?;
            Ok(made.status.success().then(|| {
                self.carry_out(RATE_OF_TRIAL, |program| Command::new(program))
                    .err()
            }))
        });
        let refusal = tried.ok().flatten().flatten()?;
        Some(format!("this kernel cannot do {self} ({refusal})"))
    }

    fn carry_out(
        self,
        rate_bits_per_sec: u64,
        command: impl Fn(&str) -> Command,
    ) -> io::Result<()> {
        for line in self.commands(rate_bits_per_sec) {
            let mut words = line.split(' ');
            let mut command = command(words.next().unwrap_or_default());
            let output = command.args(words).output()?;
            if !output.status.success() {
                let message = String::from_utf8_lossy(&output.stderr);
                let message = message.lines().next().unwrap_or_default().trim();
                return Err(io::Error::other(format!("`{line}`: {message}")));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_of_an_expert_choose_bands_by_bytes() {
        let commands = Queue::Nftables.commands(10_000_000);
        assert_eq!(commands.len(), 12);
        assert!(commands[2].contains("classid 1:1 htb rate 156250bit ceil 10000000bit prio 0"));
        assert!(commands[11].ends_with("ct reply bytes > 128000 meta priority set 1:4"));
        assert_eq!(Queue::Cake.commands(1000).len(), 1);
    }
}
