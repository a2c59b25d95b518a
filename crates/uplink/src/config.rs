//! What an uplink is told at start, and why it may refuse.

use crate::auto_rate::Tell;
use sooner_kernel::bands::BandsError;
use sooner_link::{Ahead, StreamRule};
use sooner_policy::order::BandMeasure;
use sooner_policy::{BAND_COUNT, PolicyName};
use std::net::IpAddr;

/// Where the bytes are put in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mechanism {
    /// The best that this process may use: both, else user space.
    #[default]
    Auto,
    /// Grants to write, exact and without privilege.
    UserSpace,
    /// The kernel's priority bands; needs CAP_NET_ADMIN.
    Bands,
    /// Grants above, bands below.
    Both,
}

/// How to order one uplink.
#[derive(Clone)]
pub struct UplinkConfig {
    /// The rate of the link; where it is found, the most that is let through.
    pub rate_bits_per_sec: u64,
    /// Whether the rate is found while traffic flows.
    pub is_auto: bool,
    /// Hears what becomes of the link and its bands, a line each.
    pub tell: Option<Tell>,
    /// Who goes first.
    pub policy: PolicyName,
    /// Whether of the clients the one goes first that received the least of late, and `policy`
    /// orders the responses of one. Not with [`Mechanism::Bands`], which know no clients.
    pub by_client: bool,
    /// Where the order is made.
    pub mechanism: Mechanism,
    /// The device towards the link; `None`: the one that carries a listener's address.
    pub device: Option<String>,
    /// How many bands, where the order is made in bands: 2 to 8.
    pub bands: u8,
    /// How much may lie in the kernel ahead of the link, where writes wait for turns; `None`: one
    /// grant where a device leads out, else nothing.
    pub ahead: Option<Ahead>,
    /// Addresses that the server listens on.
    pub listen: Vec<IpAddr>,
    /// Whether a configured queueing discipline may be replaced.
    pub replace_qdisc: bool,
    /// Whether the starvation guard is on.
    pub guard: bool,
    /// The order among the streams of one connection.
    pub streams: StreamRule,
}

impl UplinkConfig {
    /// Whether what lies in the bands of the kernel is in the order: not where responses of one
    /// band share it, and not by client.
    pub(crate) fn has_order_in_bands(&self) -> bool {
        let measure = self.policy.bands();
        !self.by_client && !matches!(measure, BandMeasure::Nothing | BandMeasure::Attained)
    }

    /// `policy` at `rate_bits_per_sec` with everything else as by default.
    pub fn new(rate_bits_per_sec: u64, policy: PolicyName) -> Self {
        Self {
            rate_bits_per_sec,
            is_auto: false,
            tell: None,
            policy,
            by_client: false,
            mechanism: Mechanism::Auto,
            device: None,
            bands: BAND_COUNT as u8,
            ahead: None,
            listen: Vec::new(),
            replace_qdisc: false,
            guard: true,
            streams: StreamRule::Standard,
        }
    }
}

/// Why an uplink could not be set up; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum UplinkError {
    /// The named device does not exist.
    #[error("--uplink-device: {0}")]
    NoSuchDevice(#[source] std::io::Error),
    /// Bands alone were to order by client.
    #[error("bands cannot order clients; choose turns in user space, or both")]
    BandsByClient,
    /// Bands were requested, but nothing says where.
    #[error(
        "bands need a device: no listener's address belongs to one that leaves this machine; \
         name it with --uplink-device"
    )]
    NoDevice,
    /// The bands could not be set up.
    #[error(transparent)]
    Bands(#[from] BandsError),
    /// The operating system refused something else.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}
