//! An uplink with a rate that is found: what the sockets say goes into the search, and what that decides
//! into the scheduler, and onto the device where there are bands.
//!
//! TCP's smoothed round trip contains what waits in this host's own queue. That is a packet or two
//! here: a connection that waits longer waits for its turn, before anything is written.

use crate::shared_link::SharedLink;
use sooner_bottleneck::{Decision, Journal, Limits, STEP_NS, Search, State, Totals, Waits};
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::socket::{self, TcpInfo};
use sooner_link::FlowId;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};

/// Below this there is nothing to search, bits a second.
const LEAST_BITS_PER_SEC: u64 = 100_000;
/// Connections that are looked at, each by another descriptor.
const LOOKS_MAX: usize = 500;
/// Looks without a change after which a connection no longer sends.
const IDLE_LOOKS_MAX: u32 = 20;
/// A connection with no more than so much under way has no queue of its own.
const LIGHT_BYTES: u64 = 6_000;

/// Hears of decisions that are worth a line in a log.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// The search of one uplink.
pub(crate) struct AutoRate {
    state: Mutex<Searched>,
    tell: Option<Tell>,
}

struct Searched {
    search: Search,
    journal: Journal,
    /// Connections that send, or did so a moment ago.
    active: BTreeMap<FlowId, Active>,
    /// Behind which the next look goes on.
    looked: FlowId,
    /// Payload that was sent, arrived and was sent again, bytes.
    sent_bytes: u64,
    delivered_bytes: u64,
    resent_bytes: u64,
}

/// A connection that is looked at ten times a second.
struct Active {
    /// Another descriptor of its socket, which goes before the socket is closed.
    socket: OwnedFd,
    client: IpAddr,
    counted: Counted,
    /// Looks in which nothing had changed.
    idle: u32,
}

/// What is believed of the link, for those who watch.
#[derive(Clone, Debug)]
pub struct Found {
    /// What is believed.
    pub state: State,
    /// What may leave, bits a second.
    pub rate_bits_per_sec: u64,
    /// What the link is believed to carry; none: not known.
    pub carries_bits_per_sec: Option<u64>,
    /// What clients wait for beyond this host.
    pub waits: Waits,
    /// How often the rate was changed.
    pub decided: u64,
    /// The last decision.
    pub last: Option<Decision>,
}

/// What one connection had counted when it was last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    sent_bytes: u64,
    delivered_bytes: u64,
    resent_bytes: u64,
    acked_bytes: u64,
}

impl AutoRate {
    pub(crate) fn new(most_bits_per_sec: u64, tell: Option<Tell>) -> Self {
        let limits = Limits {
            most_bits_per_sec: most_bits_per_sec.max(LEAST_BITS_PER_SEC),
            least_bits_per_sec: LEAST_BITS_PER_SEC,
        };
        Self {
            state: Mutex::new(Searched {
                search: Search::of_smoothed_delays(limits),
                journal: Journal::default(),
                active: BTreeMap::new(),
                looked: 0,
                sent_bytes: 0,
                delivered_bytes: 0,
                resent_bytes: 0,
            }),
            tell,
        }
    }

    /// A connection came: the round trip of its handshake, which no queue of its own made longer.
    pub(crate) fn came(&self, client: IpAddr, socket: &TcpStream) {
        if let Ok(info) = socket::tcp_info(socket) {
            self.lock().note_delay(client, &info, true);
        }
    }

    /// A connection sends: it is looked at until it no longer does.
    pub(crate) fn sends(&self, flow: FlowId, client: IpAddr, socket: &TcpStream) {
        let mut state = self.lock();
        if let Some(active) = state.active.get_mut(&flow) {
            active.idle = 0;
            return;
        }
        if state.active.len() >= LOOKS_MAX {
            // They say enough.
            return;
        }
        let (Ok(info), Ok(own)) = (
            socket::tcp_info(socket),
            socket.as_fd().try_clone_to_owned(),
        ) else {
            // Descriptors are short: others say enough.
            return;
        };
        let active = Active {
            socket: own,
            client,
            counted: Counted::of(&info, 0),
            idle: 0,
        };
        state.active.insert(flow, active);
    }

    /// A connection is about to be closed.
    pub(crate) fn goes(&self, flow: FlowId) {
        let mut state = self.lock();
        state.look_at(flow);
        let gone = state.active.remove(&flow);
        // What is still under way arrives behind us.
        state.delivered_bytes += gone.map_or(0, |gone| gone.counted.under_way_bytes());
    }

    pub(crate) fn found(&self) -> Found {
        let state = self.lock();
        let search = &state.search;
        Found {
            state: search.state(),
            rate_bits_per_sec: search.rate_bits_per_sec(),
            carries_bits_per_sec: search.carries_bits_per_sec(),
            waits: search.waits(),
            decided: state.journal.count(),
            last: state.journal.last().next_back().copied(),
        }
    }

    /// Looks at what was counted: `own_bytes` by this process, `all_bytes` by the device; gives what
    /// is decided, and what the link is believed to carry.
    fn step(&self, own_bytes: u64, all_bytes: u64) -> (Option<Decision>, Option<u64>) {
        let mut state = self.lock();
        state.look();
        let totals = Totals {
            at_ns: monotonic_ns(),
            sent_bytes: all_bytes,
            measured_bytes: own_bytes,
            measured_payload_bytes: state.sent_bytes,
            delivered_payload_bytes: state.delivered_bytes,
            resent_bytes: state.resent_bytes,
        };
        let decision = state.search.step(totals);
        let is_news = decision.is_some_and(|decision| state.journal.note(decision));
        let carries = state.search.carries_bits_per_sec();
        drop(state);
        if let (Some(decision), Some(tell), true) = (&decision, &self.tell, is_news) {
            tell(&format!("uplink {decision}"));
        }
        (decision, carries)
    }

    fn lock(&self) -> MutexGuard<'_, Searched> {
        // What was noted is noted; the search goes on with the next step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn under_way_bytes(&self) -> u64 {
        let sent = self.sent_bytes.saturating_sub(self.resent_bytes);
        sent.saturating_sub(self.delivered_bytes)
    }

    fn of(info: &TcpInfo, delivered_before: u64) -> Counted {
        let segment = info.bytes_sent / u64::from(info.data_segments_sent.max(1));
        // TCP knows what has arrived although something before it was lost; it counts the SYN too.
        let by_segments = u64::from(info.delivered_segments.saturating_sub(1)) * segment;
        let delivered = by_segments.max(info.bytes_acked).min(info.bytes_sent);
        Counted {
            sent_bytes: info.bytes_sent,
            delivered_bytes: delivered.max(delivered_before),
            resent_bytes: info.bytes_retransmitted,
            acked_bytes: info.bytes_acked,
        }
    }
}

impl Searched {
    /// Looks at those that send, in turns where they are many.
    fn look(&mut self) {
        let behind = (Bound::Excluded(self.looked), Bound::Unbounded);
        let next = self.active.range(behind).chain(self.active.iter());
        let count = self.active.len().min(LOOKS_MAX);
        let flows: Vec<FlowId> = next.map(|(flow, _)| *flow).take(count).collect();
        self.looked = flows.last().copied().unwrap_or_default();
        for flow in flows {
            self.look_at(flow);
        }
        self.active
            .retain(|_, active| active.idle <= IDLE_LOOKS_MAX);
    }

    fn look_at(&mut self, flow: FlowId) {
        let Some(active) = self.active.get_mut(&flow) else {
            return;
        };
        let Ok(info) = socket::tcp_info(&active.socket) else {
            return;
        };
        let now = Counted::of(&info, active.counted.delivered_bytes);
        let before = std::mem::replace(&mut active.counted, now);
        active.idle = if now == before { active.idle + 1 } else { 0 };
        let client = active.client;
        self.sent_bytes += now.sent_bytes.saturating_sub(before.sent_bytes);
        self.delivered_bytes += now.delivered_bytes - before.delivered_bytes;
        self.resent_bytes += now.resent_bytes.saturating_sub(before.resent_bytes);
        // Without new acknowledgements the round trip is the old one, and after a few it is mostly
        // that still: TCP smooths it, and clients take their time to acknowledge lone packets. On a
        // short path little is under way, however much is sent.
        let under_way = u64::from(info.unacked_segments) * u64::from(info.mss_bytes);
        let acked = now.acked_bytes.saturating_sub(before.acked_bytes);
        if acked > LIGHT_BYTES || (acked > 0 && under_way > LIGHT_BYTES) {
            self.note_delay(client, &info, false);
        }
    }

    fn note_delay(&mut self, client: IpAddr, info: &TcpInfo, is_light: bool) {
        let delay_ns = u64::from(info.rtt_us) * 1000;
        if delay_ns > 0 {
            self.search
                .note_delay(client, monotonic_ns(), delay_ns, is_light);
        }
    }
}

/// Looks ten times a second; runs until the uplink is dropped.
pub(crate) async fn run(shared: Weak<SharedLink>) {
    let mut steps = interval(Duration::from_nanos(STEP_NS));
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        steps.tick().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let Some(auto) = &shared.auto_rate else {
            return;
        };
        let sent_wire_bytes = shared.lock().link.sent_wire_bytes();
        // Bands limit all that leaves the device; turns only what is ours.
        let all_bytes = shared.device_bytes().unwrap_or(sent_wire_bytes);
        let (decision, carries_bits_per_sec) = auto.step(sent_wire_bytes, all_bytes);
        if let Some(decision) = decision {
            shared.set_rate(decision.rate_bits_per_sec);
        }
        if let Some(observer) = shared.observer.get() {
            observer.rate_changed(carries_bits_per_sec);
        }
    }
}
