//! What the operator requested.

use std::net::SocketAddr;

/// Which servers' responses are ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Servers {
    /// The processes that listen on these ports.
    Ports(Vec<u16>),
    /// This process, by the ports it listens on.
    Process(u32),
    /// The processes of this control group, by the ports they listen on.
    Group(String),
    /// Servers behind this host, which routes their packets: these ports, whichever server has
    /// them.
    Behind(Vec<u16>),
}

/// The link out of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uplink {
    /// Its rate, bits a second.
    Rate(u64),
    /// Its rate is found while traffic flows.
    Auto {
        /// The most that is let through, bits a second; none: what the device carries.
        most_bits_per_sec: Option<u64>,
    },
}

/// Who limits what leaves to the uplink's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shaping {
    /// We: HTB at the rate.
    Ours,
    /// Something else, behind the bands; the bands only order.
    NotOurs,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachConfig {
    /// The device's name.
    pub device: String,
    /// The link out of it.
    pub uplink: Uplink,
    /// Which servers' responses.
    pub servers: Servers,
    /// Ports that were named beside a process or control group, as those here are not its own;
    /// none: those that it listens on.
    pub ports_beside: Vec<u16>,
    /// Who limits the rate.
    pub shaping: Shaping,
    /// What the lower bands keep together, thousandths of the link.
    pub lower_share_per_mille: u16,
    /// Whether nothing is ordered nor limited: packets are only looked at.
    pub observes: bool,
    /// Whether a configured qdisc may be replaced, for good.
    pub replace_qdisc: bool,
    /// Flows that are remembered at most.
    pub flows_max: u32,
    /// Whether lengths of responses under TLS are read where the server hands them to its library.
    pub reads_tls: bool,
    /// Whether what stands in sockets counts, where that can be seen.
    pub reads_sockets: bool,
    /// Whether programs hang in a qdisc `clsact` even where the kernel has something better.
    pub uses_clsact: bool,
    /// Where metrics and a live page are; none: nowhere.
    pub admin: Option<SocketAddr>,
}

impl AttachConfig {
    /// For these servers, with the defaults for all else.
    pub fn new(device: &str, uplink: Uplink, servers: Servers) -> AttachConfig {
        AttachConfig {
            device: device.into(),
            uplink,
            servers,
            ports_beside: Vec::new(),
            shaping: Shaping::Ours,
            lower_share_per_mille: 50,
            observes: false,
            replace_qdisc: false,
            flows_max: 65_536,
            reads_tls: true,
            reads_sockets: true,
            uses_clsact: false,
            admin: None,
        }
    }
}
