//! A link that is limited beyond the server's host, where that host cannot see it: by the router.

use super::Hosts;
use super::error::HostsError;
use super::plumbing::{ROUTER_ADDRESS, WAN_DEVICE};
use super::spec::Bottleneck;
use super::tools::tc_in;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

/// The class of the whole link, and the first of the clients' own links.
const LINK: &str = "1:1";
const FIRST_CLIENT_MINOR: u32 = 0x10;
/// The queue before a client's own link, packets.
const CLIENT_QUEUE_PACKETS: u32 = 100;
/// A full frame, and what HTB may send at once at least.
const FRAME_BYTES: u64 = 1514;
const BURST_BYTES_MIN: u64 = 1600;

/// Limits the router's device towards the clients.
pub fn limit(
    router: &str,
    bottleneck: &Bottleneck,
    rate_bits_per_sec: u64,
    queue_packets: u32,
    clients: &[Ipv4Addr],
) -> Result<(), HostsError> {
    let device = WAN_DEVICE;
    if let Some(saved_bytes) = bottleneck.saved_bytes {
        // What a provider's policer saves up leaves at any speed.
        let limit = u64::from(queue_packets) * FRAME_BYTES;
        return tc_in(
            router,
            &format!(
                "qdisc add dev {device} root handle 1: tbf rate {rate_bits_per_sec}bit burst {saved_bytes} limit {limit}"
            ),
        );
    }
    tc_in(
        router,
        &format!("qdisc add dev {device} root handle 1: htb default 1"),
    )?;
    tc_in(
        router,
        &format!(
            "class add dev {device} parent 1: {}",
            link(rate_bits_per_sec)
        ),
    )?;
    let Some(client_rate) = bottleneck.client_bits_per_sec else {
        let queue =
            format!("qdisc add dev {device} parent {LINK} handle 10: pfifo limit {queue_packets}");
        return tc_in(router, &queue);
    };
    for (minor, client) in (FIRST_CLIENT_MINOR..).zip(clients) {
        let burst = burst_bytes(client_rate);
        let class = format!(
            "class add dev {device} parent {LINK} classid 1:{minor:x} htb rate {client_rate}bit ceil {client_rate}bit burst {burst} cburst {burst} quantum {FRAME_BYTES}"
        );
        tc_in(router, &class)?;
        let queue =
            format!("qdisc add dev {device} parent 1:{minor:x} pfifo limit {CLIENT_QUEUE_PACKETS}");
        tc_in(router, &queue)?;
        let filter = format!(
            "filter add dev {device} parent 1: protocol ip prio 1 u32 match ip dst {client}/32 flowid 1:{minor:x}"
        );
        tc_in(router, &filter)?;
    }
    Ok(())
}

fn link(rate_bits_per_sec: u64) -> String {
    let burst = burst_bytes(rate_bits_per_sec);
    format!(
        "classid {LINK} htb rate {rate_bits_per_sec}bit burst {burst} cburst {burst} quantum {FRAME_BYTES}"
    )
}

/// A millisecond, and a frame at least.
fn burst_bytes(rate_bits_per_sec: u64) -> u64 {
    (rate_bits_per_sec / 8000).max(BURST_BYTES_MIN)
}

impl Hosts {
    /// A command that gives the link of the router another rate; none where it has no such link.
    pub fn change_of_rate(&self, rate_bits_per_sec: u64) -> Option<Command> {
        let router = self.namespaces.router.as_ref()?;
        self.spec.bottleneck.as_ref()?;
        let mut command = Command::new("tc");
        command.args([
            "-n", router, "class", "change", "dev", WAN_DEVICE, "parent", "1:",
        ]);
        command.args(link(rate_bits_per_sec).split(' '));
        Some(command)
    }

    /// A command that runs on the router, which stands for any other host before the same link; none
    /// where there is no router.
    pub fn on_router(&self, program: impl AsRef<Path>) -> Option<Command> {
        let router = self.namespaces.router.as_ref()?;
        Some(self.on(router, program.as_ref()))
    }

    /// The router's address, as clients see it.
    pub fn router_address(&self) -> Ipv4Addr {
        ROUTER_ADDRESS
    }
}
