//! An imagined link with one queue, a sender, and clients at several distances.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sooner_bottleneck::{Decision, Limits, STEP_NS, Search, State, Totals};

pub const MOST: f64 = 1e9;
pub const LIMITS: Limits = Limits {
    most_bits_per_sec: MOST as u64,
    least_bits_per_sec: 100_000,
};
/// So many milliseconds are remembered.
const KEPT_MS: usize = 4_000;
/// What has arrived is known so much later.
const ACKNOWLEDGED_MS: usize = 30;

/// A sender that always has more, or so much as there is demand for.
pub struct World {
    pub search: Search,
    pub now_ns: u64,
    /// What the link carries, and what others put into it, bits a second.
    pub carries: f64,
    pub others: f64,
    /// What there is to send, bits a second.
    pub demand: f64,
    /// The most that waits, bits.
    pub room: f64,
    pub waits: f64,
    pub sent: f64,
    pub lost: f64,
    /// Saved up, bits, and the most of that.
    pub saved: f64,
    pub saved_max: f64,
    /// By so much acknowledgements come later than they might, and never before earlier ones.
    pub jitter_ms: f64,
    /// By which all paths have become longer.
    pub farther_ms: f64,
    /// Acknowledgements a second of those who load, and of light clients.
    pub told_a_second: f64,
    pub lights_told_a_second: f64,
    pub clients: u32,
    /// The lowest share of the room that TCP leaves full, and seconds until it is full again.
    pub saw: Option<(f64, f64)>,
    /// A window that is no larger keeps so much under way that no more than this share waits.
    pub window: f64,
    /// Clients' addresses are of IPv6, all in one network of 64 bits.
    pub is_in_one_network: bool,
    pub decisions: Vec<Decision>,
    falls: bool,
    arrived: f64,
    arrived_by_ms: VecDeque<f64>,
    waited_ms: VecDeque<f64>,
    random: u64,
}

impl World {
    pub fn of(carries: f64) -> World {
        World {
            search: Search::new(LIMITS),
            now_ns: 1_000_000_000,
            carries,
            others: 0.0,
            demand: MOST,
            room: carries * 0.12,
            waits: 0.0,
            sent: 0.0,
            lost: 0.0,
            saved: 0.0,
            saved_max: 0.0,
            jitter_ms: 0.0,
            farther_ms: 0.0,
            told_a_second: 60.0,
            lights_told_a_second: 60.0,
            clients: 10,
            saw: None,
            window: 1.0,
            is_in_one_network: false,
            decisions: Vec::new(),
            falls: false,
            arrived: 0.0,
            arrived_by_ms: VecDeque::new(),
            waited_ms: VecDeque::new(),
            random: 1,
        }
    }

    fn random(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) as f64 / (1_u64 << 31) as f64
    }

    /// What TCP sends at most: it fills what there is, and not much more; what is lost it sends
    /// again later.
    fn pushes(&mut self) -> f64 {
        let room = self.window * self.room;
        let Some((low, seconds)) = self.saw else {
            let beyond = if self.window < 1.0 { 1.0 } else { 1.05 };
            let is_full = self.waits >= room;
            return if is_full { beyond } else { 2.0 } * self.carries;
        };
        self.falls = self.waits >= room || (self.falls && self.waits > low * room);
        match self.falls {
            true => 0.5 * self.carries,
            false if self.waits < low * room => 2.0 * self.carries,
            false => self.carries + (1.0 - low) * room / seconds,
        }
    }

    fn millisecond(&mut self) {
        let rate = self.search.rate_bits_per_sec() as f64;
        let sent = rate.min(self.demand).min(self.pushes()) * 1e-3;
        self.sent += sent;
        let link = self.carries * 1e-3;
        let others = self.others * 1e-3;
        self.saved = (self.saved + (link - sent - others).max(0.0)).min(self.saved_max);
        let through = link + std::mem::take(&mut self.saved);
        let all = self.waits + sent + others;
        let gone = all.min(through);
        self.saved = (through - link - (gone - link).max(0.0)).clamp(0.0, self.saved_max);
        let left = all - gone;
        self.lost += (left - self.room).max(0.0);
        self.waits = left.min(self.room);
        self.arrived += gone * sent / (sent + others).max(1e-9);
        keep(&mut self.arrived_by_ms, self.arrived);
        keep(&mut self.waited_ms, self.waits / self.carries * 1e3);
        self.now_ns += 1_000_000;
    }

    /// So many, in which the search is not asked.
    pub fn milliseconds(&mut self, count: u32) {
        for _ in 0..count {
            self.millisecond();
        }
    }

    pub fn step(&mut self) -> State {
        for _ in 0..100 {
            self.millisecond();
            if self.random() < self.told_a_second / 1e3 {
                self.tell(false);
            }
            if self.random() < self.lights_told_a_second / 1e3 {
                self.tell(true);
            }
        }
        self.now_ns = self.now_ns.next_multiple_of(STEP_NS);
        let bytes = |bits: f64| (bits / 8.0) as u64;
        let known = self.arrived_by_ms.len().checked_sub(ACKNOWLEDGED_MS);
        let arrived = known.and_then(|at| self.arrived_by_ms.get(at));
        let decision = self.search.step(Totals {
            at_ns: self.now_ns,
            sent_bytes: bytes(self.sent),
            measured_bytes: bytes(self.sent),
            measured_payload_bytes: bytes(self.sent / 1.05),
            delivered_payload_bytes: bytes(arrived.copied().unwrap_or(0.0) / 1.05),
            resent_bytes: bytes(self.lost),
        });
        self.decisions.extend(decision);
        self.search.state()
    }

    /// One client's delay.
    fn tell(&mut self, is_light: bool) {
        if self.clients == 0 {
            return;
        }
        let client = (self.random() * f64::from(self.clients)) as u32;
        // Light ones are others than those who load.
        let number = client + if is_light { 1000 } else { 0 };
        // Of many packets none overtakes another: the latest holds all up.
        let draws = if is_light { 1 } else { 4 };
        let jitter = (0..draws).map(|_| self.random()).fold(0.0, f64::max);
        let distance_ms = self.farther_ms + 2.0 + f64::from(number * 7 % 80);
        let ms = self.delay_ms(distance_ms + self.jitter_ms * jitter);
        let address = match self.is_in_one_network {
            false => IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number)),
            true => IpAddr::V6(Ipv6Addr::from_bits((0xfd00 << 112) + u128::from(number))),
        };
        self.search
            .note_delay(address, self.now_ns, (ms * 1e6) as u64, is_light);
    }

    /// Of a packet that is acknowledged now: what waited when it left counts.
    fn delay_ms(&self, distance_ms: f64) -> f64 {
        let before = self.waited_ms.iter().rev().enumerate();
        let mut since = before.skip(distance_ms as usize);
        let left = since.find(|(ago_ms, waited_ms)| *ago_ms as f64 >= distance_ms + *waited_ms);
        left.map_or(distance_ms, |(_, waited_ms)| distance_ms + waited_ms)
    }

    pub fn run(&mut self, seconds: f64) {
        for _ in 0..(seconds * 10.0) as u32 {
            self.step();
        }
    }

    /// Seconds until what is believed is true, within three in a hundred, and not only tried.
    pub fn until_found(&mut self, seconds: f64) -> f64 {
        let start_ns = self.now_ns;
        for _ in 0..(seconds * 10.0) as u32 {
            let state = self.step();
            let found = self.search.carries_bits_per_sec().unwrap_or(0) as f64;
            if state != State::Trial && (found - self.carries).abs() < 0.03 * self.carries {
                return (self.now_ns - start_ns) as f64 / 1e9;
            }
        }
        panic!("not found: {}", self.said());
    }

    /// What was decided, in words.
    pub fn said(&self) -> String {
        let at_s = |it: &Decision| (it.at_ns as f64 / 1e9) - 1.0;
        let said = self
            .decisions
            .iter()
            .map(|it| format!("{:.1} {it}", at_s(it)));
        said.collect::<Vec<_>>().join("\n")
    }

    /// The states it went through.
    pub fn path(&self) -> String {
        let states = self.decisions.iter().map(|it| it.state.to_string());
        let mut states: Vec<String> = states.collect();
        states.dedup();
        states.join(" ")
    }

    /// Seconds a link is seen to be loaded before anything is loaded.
    pub fn known(mut self) -> World {
        let demand = std::mem::replace(&mut self.demand, 0.2 * self.carries);
        self.run(2.0);
        self.demand = demand;
        self
    }

    /// What waits beyond over so many seconds, ms: the mean, and at the 95th percentile; and what
    /// share of the link is used.
    pub fn looked_at(&mut self, seconds: u32) -> (f64, f64, f64) {
        let (mut waited_ms, sent) = (Vec::new(), self.sent);
        for _ in 0..seconds * 10 {
            self.step();
            waited_ms.extend(self.waited_ms.iter().rev().take(100));
        }
        waited_ms.sort_by(f64::total_cmp);
        let mean_ms = waited_ms.iter().sum::<f64>() / waited_ms.len() as f64;
        let used = (self.sent - sent) / f64::from(seconds) / self.carries;
        (mean_ms, waited_ms[waited_ms.len() * 95 / 100], used)
    }
}

fn keep(values: &mut VecDeque<f64>, value: f64) {
    if values.len() == KEPT_MS {
        values.pop_front();
    }
    values.push_back(value);
}
