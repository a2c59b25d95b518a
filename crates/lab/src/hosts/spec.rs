//! What a caller requests of hosts and links, and whether that makes sense.

use std::net::Ipv4Addr;

use super::error::HostsError;

/// Clients that fit: one address each, of the last byte of 10.78.0.0/24.
const CLIENTS_MAX: usize = 254;
/// Longest name: it becomes part of the names of namespaces and of a file.
const NAME_CHARACTERS_MAX: usize = 16;
/// Segments below this are refused by the kernel (`TCP_MIN_MSS` rounded up).
const MSS_BYTES_MIN: u32 = 88;
/// What Ethernet's 1500 bytes leave to a segment.
const MSS_BYTES_MAX: u32 = 1460;

/// Linux has no longer timeouts than two minutes (`TCP_RTO_MAX`).
const INITIAL_RTO_MS_MAX: u64 = 120_001;

/// What limits the link out of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaper {
    /// A rate and one first-in-first-out queue on the server's device, as an operator would set it
    /// up.
    Host,
    /// Nothing on the host: the server brings its own bands.
    Server,
}

/// One client and what lies between it and the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClientSpec {
    /// Round trip added on the way, half of it in each direction, ms.
    pub rtt_ms: f64,
    /// Share of the packets that is lost in each direction, below 1.
    pub loss: f64,
    /// By how much longer a packet to the client may be on its way, ms.
    pub jitter_ms: f64,
}

/// A link that is limited by the router, so that the server's host cannot see its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bottleneck {
    /// What is not sent is saved up, to so many bytes, and may be sent at any speed; none: nothing
    /// is.
    pub saved_bytes: Option<u64>,
    /// The rate of every client's own link behind it; none: they have no limit.
    pub client_bits_per_sec: Option<u64>,
}

impl ClientSpec {
    /// Whether nothing is to be emulated for this client.
    pub fn is_direct(&self) -> bool {
        self.rtt_ms == 0.0 && self.loss == 0.0 && self.jitter_ms == 0.0
    }
}

/// Hosts and links of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct HostsSpec {
    /// Distinguishes hosts that are up at the same time in one process: letters, digits and `-`.
    pub name: String,
    /// Rate of the link out of the server.
    pub rate_bits_per_sec: u64,
    /// Who limits that link.
    pub shaper: Shaper,
    /// The router limits the link, and neither the host nor the server does; none: no router does.
    pub bottleneck: Option<Bottleneck>,
    /// What netem does to packets to the clients, in the words of `tc`, instead of an emulator;
    /// none: nothing.
    pub netem: Option<String>,
    /// Packets the host's queue has room for.
    pub queue_packets: u32,
    /// Congestion control of both sides; none: what the kernel does by itself.
    pub congestion_control: Option<String>,
    /// Whether TCP may hand the devices packets of up to 64 KB; without them one packet is one
    /// frame everywhere.
    pub super_packets: bool,
    /// Largest segment in both directions, bytes, TCP's options included; none: 1460.
    pub mss_bytes: Option<u32>,
    /// The clients, at least one.
    pub clients: Vec<ClientSpec>,
    /// `net.ipv4.tcp_syncookies` of the server.
    pub syn_cookies: Option<bool>,
    /// `net.ipv4.tcp_max_syn_backlog` of the server.
    pub syn_backlog: Option<u32>,
    /// `net.core.somaxconn` of the server, the upper limit of every accept queue.
    pub somaxconn: Option<u32>,
    /// Initial window of the server, segments; none: the kernel's 10.
    pub initial_window_segments: Option<u32>,
    /// First retransmission timeout of SYN and SYN-ACK; none: the kernel's 1 s.
    pub initial_rto_ms: Option<u64>,
    /// The largest send buffer of the server, bytes (`net.ipv4.tcp_wmem`); none: the kernel's.
    pub send_buffer_bytes: Option<u32>,
    /// Seed of the losses.
    pub seed: u64,
}

impl HostsSpec {
    /// One client directly at a shaped link, everything else as this kernel does it, without
    /// super-packets.
    pub fn new(name: &str, rate_bits_per_sec: u64) -> HostsSpec {
        HostsSpec {
            name: name.into(),
            rate_bits_per_sec,
            shaper: Shaper::Host,
            bottleneck: None,
            netem: None,
            queue_packets: 100,
            congestion_control: None,
            super_packets: false,
            mss_bytes: None,
            clients: vec![ClientSpec::default()],
            syn_cookies: None,
            syn_backlog: None,
            somaxconn: None,
            initial_window_segments: None,
            initial_rto_ms: None,
            send_buffer_bytes: None,
            seed: 1,
        }
    }

    /// Whether a router stands between server and clients.
    pub fn has_router(&self) -> bool {
        self.netem.is_some() || self.has_emulator()
    }

    /// Whether there is an emulated network behind the router.
    pub fn has_emulator(&self) -> bool {
        self.bottleneck.is_some() || !self.clients.iter().all(ClientSpec::is_direct)
    }

    /// The clients' addresses, in their order.
    pub fn client_addresses(&self) -> Vec<Ipv4Addr> {
        (1..=254_u8)
            .take(self.clients.len())
            .map(|last| Ipv4Addr::new(10, 78, 0, last))
            .collect()
    }

    /// Refuses what cannot be set up, before anything is.
    pub(super) fn check(&self) -> Result<(), HostsError> {
        let refuse = |what: String| Err(HostsError::Spec(what));
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.name.is_empty()
            || self.name.len() > NAME_CHARACTERS_MAX
            || !self.name.chars().all(letters)
        {
            return refuse(format!(
                "name `{}`: 1 to {NAME_CHARACTERS_MAX} letters, digits and `-` are possible",
                self.name
            ));
        }
        if self.rate_bits_per_sec < 8_000 {
            let rate = self.rate_bits_per_sec;
            return refuse(format!(
                "rate of {rate} bit/s: at least 8 kbit/s are possible"
            ));
        }
        if self.netem.is_some() && self.has_emulator() {
            return refuse("netem and an emulated network: one of them is possible".into());
        }
        if self.queue_packets == 0 {
            return refuse("queue of 0 packets: at least 1 is needed".into());
        }
        if self.clients.is_empty() || self.clients.len() > CLIENTS_MAX {
            let count = self.clients.len();
            return refuse(format!("{count} clients: 1 to {CLIENTS_MAX} are possible"));
        }
        for client in &self.clients {
            if !(0.0..=10_000.0).contains(&client.rtt_ms) || !(0.0..1.0).contains(&client.loss) {
                return refuse(format!(
                    "client with rtt_ms {} and loss {}: a round trip of 0 to 10000 ms and a share below 1 are possible",
                    client.rtt_ms, client.loss
                ));
            }
        }
        if let Some(ms @ (0 | INITIAL_RTO_MS_MAX..)) = self.initial_rto_ms {
            return refuse(format!(
                "initial_rto_ms of {ms}: 1 to {} are possible",
                INITIAL_RTO_MS_MAX - 1
            ));
        }
        match self.mss_bytes {
            Some(mss) if !(MSS_BYTES_MIN..=MSS_BYTES_MAX).contains(&mss) => refuse(format!(
                "mss of {mss} bytes: {MSS_BYTES_MIN} to {MSS_BYTES_MAX} are possible"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut HostsSpec)) -> String {
        let mut spec = HostsSpec::new("t", 10_000_000);
        change(&mut spec);
        spec.check().unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        assert!(HostsSpec::new("a-1", 10_000_000).check().is_ok());
        assert!(refusal(|spec| spec.name = "../x".into()).contains("`../x`"));
        assert!(refusal(|spec| spec.name.clear()).contains("1 to 16 letters"));
        assert!(refusal(|spec| spec.rate_bits_per_sec = 0).contains("at least 8 kbit/s"));
        assert!(refusal(|spec| spec.queue_packets = 0).contains("at least 1"));
        assert!(
            refusal(|spec| {
                spec.netem = Some("delay 1ms".into());
                spec.clients[0].rtt_ms = 1.0;
            })
            .contains("one of them")
        );
        assert!(refusal(|spec| spec.clients.clear()).contains("1 to 254"));
        assert!(refusal(|spec| spec.mss_bytes = Some(9000)).contains("88 to 1460"));
        assert!(refusal(|spec| spec.initial_rto_ms = Some(0)).contains("1 to 120000"));
        assert!(refusal(|spec| spec.clients[0].loss = 1.0).contains("a share below 1"));
        assert!(refusal(|spec| spec.clients[0].rtt_ms = f64::NAN).contains("0 to 10000 ms"));
    }

    #[test]
    fn one_distant_client_puts_all_behind_the_router() {
        let mut spec = HostsSpec::new("t", 10_000_000);
        assert!(!spec.has_router());
        spec.clients.push(ClientSpec {
            rtt_ms: 0.0,
            loss: 0.01,
            ..ClientSpec::default()
        });
        assert!(spec.has_router());
        let addresses = spec.client_addresses();
        assert_eq!(
            addresses,
            [Ipv4Addr::new(10, 78, 0, 1), Ipv4Addr::new(10, 78, 0, 2)]
        );
    }
}
