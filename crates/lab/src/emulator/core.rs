//! What happens to each packet, decided without I/O and without a clock: packets and times go in,
//! packets to send and the time to come back go out.
//!
//! A packet is lost by chance ([`super::loss`]), dropped at a bound, or held for half of its
//! client's round-trip time and then released. Packets of one client and direction leave in the
//! order they came, also where jitter holds one for longer. Memory is bounded in packets and
//! in bytes, over all clients: at a bound the arriving packet is dropped and counted, and a run in
//! which that happened did not measure the requested paths.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use thiserror::Error;

use super::lateness::Histogram;
use super::loss::Draws;
use super::packet;
use super::path::{Client, Path};
use super::report::Traffic;

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the server; its client is the destination.
    ToClient,
    /// From a client; its client is the source.
    ToServer,
}

impl Direction {
    /// Both, in the order in which arrays have them.
    pub const BOTH: [Direction; 2] = [Direction::ToClient, Direction::ToServer];

    /// Place in such an array.
    pub fn index(self) -> usize {
        match self {
            Direction::ToClient => 0,
            Direction::ToServer => 1,
        }
    }
}

/// How much may be held at once, over all clients and both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Packets.
    pub packets_max: usize,
    /// Bytes of packets; what they cost in memory is a little more.
    pub bytes_max: u64,
}

impl Default for Bounds {
    /// More than twice what a saturated 100 Mbit/s link puts into the longest round-trip time, in
    /// full packets and in acknowledgements.
    fn default() -> Bounds {
        Bounds {
            packets_max: 1 << 17,
            bytes_max: 256 << 20,
        }
    }
}

/// What became of a packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It will be released.
    Held,
    /// Lost by chance, as the path asks.
    Lost,
    /// Dropped because too much is held.
    AtBound,
    /// Dropped: from or to an address without a path.
    UnknownClient,
    /// Dropped: not one whole IPv4 packet.
    NotIpv4,
}

/// A packet that is due.
#[derive(Debug, PartialEq, Eq)]
pub struct Released {
    /// Which way it goes on.
    pub direction: Direction,
    /// The packet as it came.
    pub packet: Vec<u8>,
}

/// The list of clients names one of them twice.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("client {0} is given twice; give each address one path")]
pub struct ClientTwice(pub Ipv4Addr);

/// One client's path in one direction.
#[derive(Debug)]
struct Line {
    delay_ns: u64,
    jitter_ns: u64,
    /// When its last packet is released.
    last_release_ns: u64,
    draws: Draws,
    traffic: Traffic,
}

#[derive(Debug)]
struct Held {
    direction: Direction,
    client: Ipv4Addr,
    packet: Vec<u8>,
}

/// The paths of all clients and the packets on them.
#[derive(Debug)]
pub struct Emulator {
    lines: BTreeMap<(Ipv4Addr, Direction), Line>,
    /// By release time, then by arrival.
    held: BTreeMap<(u64, u64), Held>,
    held_bytes: u64,
    bounds: Bounds,
    arrivals: u64,
    now_ns: u64,
    lateness: Histogram,
    counts: Counts,
}

/// What is counted over all clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets from or to addresses without a path.
    pub unknown_client_packets: u64,
    /// Packets that were not whole IPv4 packets.
    pub not_ipv4_packets: u64,
    /// Most packets held at once.
    pub held_packets_max: usize,
    /// Most bytes held at once.
    pub held_bytes_max: u64,
}

impl Emulator {
    /// Paths without packets; the same seed loses the same packets of a client.
    pub fn new(clients: &[Client], seed: u64, bounds: Bounds) -> Result<Emulator, ClientTwice> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = clients.iter().find(|client| !seen.insert(client.address)) {
            return Err(ClientTwice(twice.address));
        }
        let lines = clients.iter().flat_map(|client| {
            Direction::BOTH.map(|direction| {
                let line = Line {
                    delay_ns: delay_ns(client.path, direction),
                    jitter_ns: match direction {
                        Direction::ToClient => client.path.jitter_ns,
                        Direction::ToServer => 0,
                    },
                    last_release_ns: 0,
                    draws: Draws::new(seed, client.address, direction, client.path.loss_ppm),
                    traffic: Traffic::default(),
                };
                ((client.address, direction), line)
            })
        });
        Ok(Emulator {
            lines: lines.collect(),
            held: BTreeMap::new(),
            held_bytes: 0,
            bounds,
            arrivals: 0,
            now_ns: 0,
            lateness: Histogram::default(),
            counts: Counts::default(),
        })
    }

    /// A packet came at `now_ns`; an earlier time than the last one counts as the last one.
    pub fn arrive(&mut self, direction: Direction, packet: &[u8], now_ns: u64) -> Fate {
        self.now_ns = self.now_ns.max(now_ns);
        let Some(ends) = packet::ends(packet) else {
            self.counts.not_ipv4_packets += 1;
            return Fate::NotIpv4;
        };
        let client = match direction {
            Direction::ToClient => ends.destination,
            Direction::ToServer => ends.source,
        };
        let Some(line) = self.lines.get_mut(&(client, direction)) else {
            self.counts.unknown_client_packets += 1;
            return Fate::UnknownClient;
        };
        let bytes = packet.len() as u64;
        line.traffic.packets += 1;
        line.traffic.bytes += bytes;
        if line.draws.next_is_lost() {
            line.traffic.lost_packets += 1;
            return Fate::Lost;
        }
        let fits = self.held.len() < self.bounds.packets_max
            && self.held_bytes + bytes <= self.bounds.bytes_max;
        if !fits {
            line.traffic.bound_packets += 1;
            return Fate::AtBound;
        }
        let held_ns = line.delay_ns + line.draws.next_jitter_ns(line.jitter_ns);
        // None overtakes another.
        let release_ns = self
            .now_ns
            .saturating_add(held_ns)
            .max(line.last_release_ns);
        line.last_release_ns = release_ns;
        self.hold(release_ns, direction, client, packet);
        Fate::Held
    }

    fn hold(&mut self, release_ns: u64, direction: Direction, client: Ipv4Addr, packet: &[u8]) {
        let held = Held {
            direction,
            client,
            packet: packet.to_vec(),
        };
        self.held.insert((release_ns, self.arrivals), held);
        self.arrivals += 1;
        self.held_bytes += packet.len() as u64;
        let counts = &mut self.counts;
        counts.held_packets_max = counts.held_packets_max.max(self.held.len());
        counts.held_bytes_max = counts.held_bytes_max.max(self.held_bytes);
    }

    /// When the next packet is to be released; `None` while none is held.
    pub fn wake_at_ns(&self) -> Option<u64> {
        self.held
            .first_key_value()
            .map(|((release_ns, _), _)| *release_ns)
    }

    /// The next packet that is due by `now_ns`; to be called until there is none. How late that is,
    /// is counted.
    pub fn release(&mut self, now_ns: u64) -> Option<Released> {
        let first = self.held.first_entry()?;
        let (release_ns, _) = *first.key();
        let late_ns = now_ns.checked_sub(release_ns)?;
        let held = first.remove();
        let bytes = held.packet.len() as u64;
        self.held_bytes -= bytes;
        self.lateness.record(late_ns);
        if let Some(line) = self.lines.get_mut(&(held.client, held.direction)) {
            line.traffic.released_packets += 1;
            line.traffic.released_bytes += bytes;
        }
        Some(Released {
            direction: held.direction,
            packet: held.packet,
        })
    }

    /// What a client's packets of one direction met so far; nothing for an address without a path.
    pub fn traffic(&self, client: Ipv4Addr, direction: Direction) -> Traffic {
        let line = self.lines.get(&(client, direction));
        line.map(|line| line.traffic).unwrap_or_default()
    }

    /// What was counted over all clients so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Packets held now.
    pub fn held_packets(&self) -> usize {
        self.held.len()
    }

    /// How late packets were released so far.
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }
}

/// Half of the round-trip time; the two directions together are exactly all of it.
fn delay_ns(path: Path, direction: Direction) -> u64 {
    match direction {
        Direction::ToClient => path.rtt_ns / 2,
        Direction::ToServer => path.rtt_ns - path.rtt_ns / 2,
    }
}
