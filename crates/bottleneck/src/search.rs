//! The search itself: a state, the rate that is asked for, and what changes them.

mod burst;
mod credit;
mod hold;
mod open;

use std::net::IpAddr;

use crate::addresses::{Addresses, Asked, Waits};
use crate::decision::{Decision, State, Why};
use crate::rates::{Rates, Totals};
use credit::Credit;

/// How often [`Search::step`] is called.
pub const STEP_NS: u64 = 100_000_000;

/// What the rate is kept below what the link carries: the queue stands here then.
const BELOW: f64 = 0.97;
/// With so much of the rate sent, more would be sent if it could.
const DEMAND: f64 = 0.92;
/// A queue is one from so many ms on, or so many packets of a full frame.
const QUEUE_MS: f64 = 5.0;
const QUEUE_PACKETS: f64 = 3.0;
const FRAME_BITS: f64 = 1514.0 * 8.0;
/// Below this share of the threshold nothing waits.
const EMPTY: f64 = 0.6;
/// What waits beyond drains within so many ms, and costs at most this share of the rate meanwhile.
const DRAIN_MS: f64 = 250.0;
const DRAIN_SHARE_MAX: f64 = 0.5;

/// A step that comes so long after the last says nothing.
const LATE_NS: u64 = 5 * STEP_NS;
/// What arrives is what the link carries where so much of the rate is sent, or where it is level.
const USED: f64 = 0.85;
/// What is sent counts for what drains, down to this share of what the link carries.
const SENT_LEAST: f64 = 0.4;
/// A wait of which no more than this share is left is over.
const LEFT: f64 = 0.5;
/// What arrives is what is sent within this share, and what the threshold is of these ms: jitter
/// makes what arrives in a while seem less or more.
const OWN: f64 = 0.01;
const OWN_MS: f64 = 500.0;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Between which rates is searched, bits a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The most: what the device carries, or what the operator says.
    pub most_bits_per_sec: u64,
    /// The least that is ever asked for.
    pub least_bits_per_sec: u64,
}

#[derive(Debug)]
enum Phase {
    Open,
    Trial {
        until_ns: u64,
        /// What arrives from then on answers.
        heard_from_ns: u64,
        asked: Asked,
    },
    Drain {
        until_ns: u64,
        waited_ms: f64,
    },
    Hold {
        quiet_until_ns: u64,
    },
    Burst(burst::Burst),
    Probe {
        until_ns: u64,
        /// Packets that left before say nothing of this step.
        judged_from_ns: u64,
        step: usize,
        /// What the link was believed to carry before.
        before: f64,
    },
}

/// Finds the rate.
#[derive(Debug)]
pub struct Search {
    limits: Limits,
    /// Delays are means of a while, in which a short burst is hardly seen.
    are_smoothed: bool,
    addresses: Addresses,
    rates: Rates,
    phase: Phase,
    rate: f64,
    capacity: Option<f64>,
    waits: Waits,
    /// Steps in which clients waited; those of them in which light ones said so.
    full_steps: u32,
    full_steps_by_lights: u32,
    demand_steps: u32,
    /// What clients seem to wait for where nothing waits (jitter), ms: its mean and deviation.
    noise_ms: (f64, f64),
    level: open::Level,
    open: open::Open,
    hold: hold::Hold,
    credit: Credit,
    /// Drains in a row that did not help.
    in_vain: u32,
    /// When the last step was.
    stepped_ns: Option<u64>,
}

/// What one step sees.
#[derive(Debug, Clone, Copy)]
struct Seen {
    now_ns: u64,
    waits: Waits,
    /// Clients wait from here on, ms.
    threshold_ms: f64,
    is_full: bool,
    sent: f64,
    /// What arrives is as much as it was, and so the most.
    is_level: bool,
}

impl Seen {
    /// What arrives is what is sent within this share.
    fn own_share(&self) -> f64 {
        OWN + self.threshold_ms / OWN_MS
    }
}

impl Search {
    /// Begins without a limit.
    pub fn new(limits: Limits) -> Search {
        assert!(limits.least_bits_per_sec <= limits.most_bits_per_sec);
        Search {
            limits,
            are_smoothed: false,
            addresses: Addresses::default(),
            rates: Rates::default(),
            phase: Phase::Open,
            rate: limits.most_bits_per_sec as f64,
            capacity: None,
            waits: Waits::default(),
            full_steps: 0,
            full_steps_by_lights: 0,
            demand_steps: 0,
            noise_ms: (0.0, 0.0),
            level: open::Level::default(),
            open: open::Open::default(),
            hold: hold::Hold::default(),
            credit: Credit::default(),
            in_vain: 0,
            stepped_ns: None,
        }
    }

    /// The same where the delays that are told are TCP's smoothed ones.
    pub fn of_smoothed_delays(limits: Limits) -> Search {
        let mut search = Search::new(limits);
        search.are_smoothed = true;
        search
    }

    /// A packet has been acknowledged at `at_ns` of the monotonic clock, `delay_ns` after it left;
    /// `is_light`: its connection had next to nothing under way.
    pub fn note_delay(&mut self, client: IpAddr, at_ns: u64, delay_ns: u64, is_light: bool) {
        self.addresses.note(client, at_ns, delay_ns, is_light);
    }

    /// What may leave, bits a second.
    pub fn rate_bits_per_sec(&self) -> u64 {
        self.rate as u64
    }

    /// What the link is believed to carry; none: not known.
    pub fn carries_bits_per_sec(&self) -> Option<u64> {
        self.capacity.map(|capacity| capacity as u64)
    }

    /// What is believed.
    pub fn state(&self) -> State {
        match self.phase {
            Phase::Open => State::Open,
            Phase::Trial { .. } => State::Trial,
            Phase::Drain { .. } => State::Drain,
            Phase::Hold { .. } => State::Hold,
            Phase::Burst(_) | Phase::Probe { .. } => State::Probe,
        }
    }

    /// What clients wait for.
    pub fn waits(&self) -> Waits {
        self.waits
    }

    /// What has arrived in a second, over the last half, bits.
    pub fn delivered_bits_per_sec(&self) -> u64 {
        self.rates.delivered(SECOND / 2) as u64
    }

    /// Looks, every [`STEP_NS`]; a decision where something changes.
    pub fn step(&mut self, totals: Totals) -> Option<Decision> {
        let now_ns = totals.at_ns;
        self.rates.note(totals);
        let is_late = self
            .stepped_ns
            .replace(now_ns)
            .is_some_and(|before_ns| now_ns > before_ns + LATE_NS);
        if is_late {
            // What was measured meanwhile is of no one time.
            (self.full_steps, self.full_steps_by_lights) = (0, 0);
            self.demand_steps = 0;
            return None;
        }
        let since_ns = match self.phase {
            Phase::Probe { judged_from_ns, .. } => judged_from_ns,
            _ => 0,
        };
        self.waits = self.addresses.waits(now_ns, since_ns);
        let seen = self.see(now_ns);
        let why = match self.phase {
            Phase::Open => self.step_open(&seen),
            Phase::Trial { until_ns, .. } if now_ns >= until_ns => self.end_trial(&seen),
            Phase::Drain {
                until_ns,
                waited_ms,
            } if now_ns >= until_ns => Some(self.end_drain(&seen, waited_ms)),
            Phase::Hold { quiet_until_ns } => self.step_hold(&seen, quiet_until_ns),
            Phase::Burst(burst) => self.step_burst(&seen, burst),
            Phase::Probe { .. } => self.step_probe(&seen),
            Phase::Trial { .. } | Phase::Drain { .. } => None,
        };
        assert!(self.rate >= self.limits.least_bits_per_sec as f64);
        assert!(self.rate <= self.limits.most_bits_per_sec as f64);
        why.map(|why| Decision {
            at_ns: now_ns,
            state: self.state(),
            rate_bits_per_sec: self.rate_bits_per_sec(),
            carries_bits_per_sec: self.carries_bits_per_sec(),
            waits_ms: seen.waits.common_ms,
            why,
        })
    }

    /// What was decided is not done: the link stays without a limit, and is looked at again later.
    pub fn decline(&mut self, now_ns: u64) {
        self.let_go();
        self.open.leave_alone(now_ns);
    }

    fn see(&mut self, now_ns: u64) -> Seen {
        let waits = self.waits;
        let of = self
            .capacity
            .unwrap_or_else(|| self.rates.delivered(SECOND / 2));
        let packets_ms = QUEUE_PACKETS * FRAME_BITS / of.max(1e5) * 1e3;
        let (mean_ms, deviation_ms) = self.noise_ms;
        let noise_ms = mean_ms + 4.0 * deviation_ms;
        let threshold_ms = QUEUE_MS.max(packets_ms).max(noise_ms);
        let sent = self.rates.sent(3 * STEP_NS);
        let seen = Seen {
            now_ns,
            waits,
            threshold_ms,
            is_full: waits.clients > 0 && waits.common_ms > threshold_ms,
            sent,
            is_level: self.level.note(self.rates.delivered(5 * STEP_NS)),
        };
        let wants_more = sent >= DEMAND * self.rate;
        self.demand_steps = if wants_more { self.demand_steps + 1 } else { 0 };
        seen
    }

    /// What clients seem to wait for now is no queue; it counts by so much.
    fn note_noise(&mut self, weight: f64, waits_ms: f64) {
        let (mean_ms, deviation_ms) = &mut self.noise_ms;
        *mean_ms += weight * (waits_ms - *mean_ms);
        *deviation_ms += weight * ((waits_ms - *mean_ms).abs() - *deviation_ms);
    }

    /// Lets through so much, and drains what waits beyond first.
    fn cut(&mut self, seen: &Seen, capacity: f64) {
        let capacity = self.bounded(capacity);
        self.capacity = Some(capacity);
        let drain = (seen.waits.common_ms / DRAIN_MS).clamp(0.0, DRAIN_SHARE_MAX);
        // TCP may send less than it might, at the rate at which acknowledgements come back: less
        // than that drains.
        let sent = seen.sent.clamp(SENT_LEAST * capacity, capacity);
        self.rate = self.bounded(sent * (BELOW - drain));
        // A round trip, so that what is seen at the end was sent at this rate.
        let round_trip_ns = self.round_trip_ns();
        self.phase = Phase::Drain {
            until_ns: seen.now_ns + 400 * MS + round_trip_ns,
            waited_ms: seen.waits.common_ms,
        };
        (self.full_steps, self.full_steps_by_lights) = (0, 0);
    }

    fn hold(&mut self, now_ns: u64) {
        let capacity = self.capacity.unwrap_or(self.rate);
        self.rate = self.bounded(BELOW * capacity);
        self.phase = Phase::Hold {
            quiet_until_ns: now_ns + 200 * MS,
        };
        (self.full_steps, self.full_steps_by_lights) = (0, 0);
        self.hold.plan_probe(now_ns);
    }

    fn let_go(&mut self) {
        self.phase = Phase::Open;
        self.capacity = None;
        self.rate = self.limits.most_bits_per_sec as f64;
        (self.full_steps, self.full_steps_by_lights) = (0, 0);
    }

    fn end_drain(&mut self, seen: &Seen, waited_ms: f64) -> Why {
        let helped = seen.waits.common_ms <= 0.6 * waited_ms;
        self.in_vain = if seen.is_full && !helped {
            self.in_vain + 1
        } else {
            0
        };
        if self.in_vain >= open::IN_VAIN_MAX {
            self.in_vain = 0;
            // Much less was sent than the link carried: jitter, or others.
            // Or all paths became longer.
            self.addresses.forget();
            self.note_noise(0.05, seen.waits.common_ms.min(4.0 * QUEUE_MS));
            self.let_go();
            self.open.leave_alone(seen.now_ns);
            return Why::OthersFill;
        }
        // What is left of much is no reason: it drains, or is jitter, and what arrived while the
        // queue became empty is not what the link carries.
        if seen.is_full && seen.waits.common_ms > LEFT * waited_ms {
            let capacity = self.capacity.unwrap_or(self.rate);
            let (arrived, sent) = (
                self.rates.delivered(4 * STEP_NS),
                self.rates.sent(4 * STEP_NS),
            );
            // As much arrives as is sent: that is our own rate, and says nothing of the link. What
            // clients seem to wait for may be jitter.
            let is_own = (arrived - sent).abs() < seen.own_share() * sent;
            if is_own && !helped {
                self.note_noise(0.2, seen.waits.common_ms.min(4.0 * QUEUE_MS));
            }
            self.cut(
                seen,
                if is_own {
                    capacity
                } else {
                    capacity.min(arrived)
                },
            );
            return Why::StillFull;
        }
        self.hold(seen.now_ns);
        Why::Drained
    }

    /// A packet's way and back, as it is now, and a step of reserve at least.
    fn round_trip_ns(&self) -> u64 {
        (self.addresses.typical_ms() as u64 * MS).clamp(STEP_NS, 2 * SECOND)
    }

    fn bounded(&self, rate: f64) -> f64 {
        let (least, most) = (
            self.limits.least_bits_per_sec,
            self.limits.most_bits_per_sec,
        );
        rate.clamp(least as f64, most as f64)
    }
}
