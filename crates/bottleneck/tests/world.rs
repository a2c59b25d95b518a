//! The search on imagined links, whose rate only the test knows.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use sooner_bottleneck::{Decision, Limits, STEP_NS, Search, State, Totals, Why};

const MOST: f64 = 1e9;

/// A link with one queue, a sender that always has more, and clients at several distances.
struct World {
    search: Search,
    now_ns: u64,
    /// What the link carries, and what others put into it, bits a second.
    carries: f64,
    others: f64,
    /// What there is to send, bits a second.
    demand: f64,
    /// The most that waits, bits.
    room: f64,
    waits: f64,
    sent: f64,
    arrived: f64,
    lost: f64,
    /// Saved up, bits, and the most of that.
    saved: f64,
    saved_max: f64,
    jitter_ms: f64,
    /// By which all paths have become longer.
    farther_ms: f64,
    /// Whether light clients come.
    has_lights: bool,
    clients: u32,
    random: u64,
    decisions: Vec<Decision>,
}

impl World {
    fn of(carries: f64) -> World {
        let limits = Limits {
            most_bits_per_sec: MOST as u64,
            least_bits_per_sec: 100_000,
        };
        World {
            search: Search::new(limits),
            now_ns: 1_000_000_000,
            carries,
            others: 0.0,
            demand: MOST,
            room: carries * 0.12,
            waits: 0.0,
            sent: 0.0,
            arrived: 0.0,
            lost: 0.0,
            saved: 0.0,
            saved_max: 0.0,
            jitter_ms: 0.0,
            farther_ms: 0.0,
            has_lights: true,
            clients: 10,
            random: 1,
            decisions: Vec::new(),
        }
    }

    fn random(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) as f64 / (1_u64 << 31) as f64
    }

    /// TCP fills what there is, and not much more: what is lost it sends again later.
    fn milliseconds(&mut self, count: u32) {
        for _ in 0..count {
            let rate = self.search.rate_bits_per_sec() as f64;
            // Beyond a full queue TCP sends what arrives.
            let most = if self.waits >= self.room {
                1.05 * self.carries
            } else {
                2.0 * self.carries
            };
            let sent = rate.min(self.demand).min(most.max(0.0)) * 1e-3;
            self.sent += sent;
            let link = self.carries * 1e-3;
            self.saved =
                (self.saved + (link - sent - self.others * 1e-3).max(0.0)).min(self.saved_max);
            let through = link + std::mem::take(&mut self.saved);
            let all = self.waits + sent + self.others * 1e-3;
            let gone = all.min(through);
            self.saved = (through - link - (gone - link).max(0.0))
                .max(0.0)
                .min(self.saved_max);
            let left = all - gone;
            self.lost += (left - self.room).max(0.0);
            self.waits = left.min(self.room);
            let share = sent / (sent + self.others * 1e-3).max(1e-9);
            self.arrived += gone * share;
            self.now_ns += 1_000_000;
        }
    }

    fn step(&mut self) -> State {
        for _ in 0..4 {
            self.milliseconds(25);
            for _ in 0..3 {
                self.tell();
            }
        }
        self.now_ns = self.now_ns.next_multiple_of(STEP_NS);
        let bytes = |bits: f64| (bits / 8.0) as u64;
        let decision = self.search.step(Totals {
            at_ns: self.now_ns,
            sent_bytes: bytes(self.sent),
            measured_bytes: bytes(self.sent),
            measured_payload_bytes: bytes(self.sent / 1.05),
            delivered_payload_bytes: bytes(self.arrived / 1.05),
            resent_bytes: bytes(self.lost),
        });
        self.decisions.extend(decision);
        self.search.state()
    }

    /// One client's delay.
    fn tell(&mut self) {
        if self.clients == 0 {
            return;
        }
        let client = (self.random() * f64::from(self.clients)) as u32;
        let is_light = self.has_lights && self.random() < 0.5;
        // Light ones are others than those who load.
        let number = client + if is_light { 1000 } else { 0 };
        let distance_ms = self.farther_ms + 2.0 + f64::from(number * 7 % 80);
        let jitter_ms = self.jitter_ms * self.random();
        let ms = distance_ms + jitter_ms + self.waits / self.carries * 1e3;
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number));
        self.search
            .note_delay(address, self.now_ns, (ms * 1e6) as u64, is_light);
    }

    fn run(&mut self, seconds: f64) {
        for _ in 0..(seconds * 10.0) as u32 {
            self.step();
        }
    }

    /// Seconds until what is believed is true, within three in a hundred.
    fn until_found(&mut self, seconds: f64) -> f64 {
        let start_ns = self.now_ns;
        for _ in 0..(seconds * 10.0) as u32 {
            self.step();
            let found = self.search.carries_bits_per_sec().unwrap_or(0) as f64;
            if (found - self.carries).abs() < 0.03 * self.carries {
                return (self.now_ns - start_ns) as f64 / 1e9;
            }
        }
        let said: Vec<String> = self.decisions.iter().map(ToString::to_string).collect();
        panic!("not found: {}", said.join("\n"));
    }

    /// The states it went through.
    fn path(&self) -> String {
        let mut states: Vec<String> = self
            .decisions
            .iter()
            .map(|it| it.state.to_string())
            .collect();
        states.dedup();
        states.join(" ")
    }

    /// Seconds a link is seen to be loaded before anything is loaded.
    fn known(mut self) -> World {
        let demand = std::mem::replace(&mut self.demand, 0.2 * self.carries);
        self.run(2.0);
        self.demand = demand;
        self
    }
}

#[test]
fn a_full_link_is_found_and_its_queue_drained() {
    for carries in [2e6, 10e6, 50e6, 200e6] {
        let mut world = World::of(carries).known();
        assert!(world.decisions.is_empty());
        let seconds = world.until_found(20.0);
        assert!(seconds <= 5.0, "{carries}: {seconds}");
        world.run(3.0);
        let (mut waited, mut sent) = (0, world.sent);
        for _ in 0..300 {
            world.step();
            // Four packets at least.
            waited += u32::from(world.waits / world.carries > (50_000.0 / carries).max(0.010));
        }
        sent = (world.sent - sent) / 30.0;
        assert!(sent > 0.94 * carries, "{carries}: {sent}");
        assert!(waited < 45, "{carries}: {waited} of 300 steps");
    }
}

#[test]
fn it_goes_through_these_states() {
    let mut world = World::of(10e6).known();
    world.run(4.0);
    assert_eq!(world.path(), "drain hold probe drain hold");
    let why: Vec<String> = world
        .decisions
        .iter()
        .map(|it| it.why.to_string())
        .collect();
    assert_eq!(why[0], "all clients wait: the link is full");
    assert!(
        why.contains(&"the link carries no more".to_owned()),
        "{why:?}"
    );
}

#[test]
fn it_follows_down_at_once_and_up_soon() {
    let mut world = World::of(50e6).known();
    world.run(20.0);
    world.carries = 25e6;
    assert!(world.until_found(10.0) <= 1.5);
    world.run(20.0);
    world.carries = 50e6;
    world.decisions.clear();
    let seconds = world.until_found(10.0);
    let said: Vec<String> = world.decisions.iter().map(ToString::to_string).collect();
    assert!(seconds <= 5.5, "{seconds}: {}", said.join("\n"));
}

#[test]
fn without_traffic_or_with_little_nothing_changes() {
    let mut world = World::of(10e6);
    world.demand = 4.5e6;
    world.run(60.0);
    world.demand = 0.0;
    world.run(60.0);
    assert_eq!(world.path(), "");
    assert_eq!(world.search.rate_bits_per_sec(), MOST as u64);
    let mut world = World::of(10e6).known();
    world.run(10.0);
    world.demand = 0.0;
    let found = world.search.carries_bits_per_sec();
    // A probe or a drain that is under way ends.
    world.run(2.0);
    let count = world.decisions.len();
    world.run(600.0);
    assert_eq!(world.decisions.len(), count);
    assert_eq!(world.search.carries_bits_per_sec(), found);
}

#[test]
fn a_queue_that_others_fill_is_left_to_them_until_they_go() {
    let mut world = World::of(20e6).known();
    // They fill the queue whatever we send.
    world.others = 18e6;
    world.demand = 8e6;
    let mut open = 0;
    for _ in 0..300 {
        open += u32::from(world.step() == State::Open);
    }
    assert!(
        world
            .decisions
            .iter()
            .any(|it| it.why.to_string().contains("others fill"))
    );
    assert!(open > 200, "{open} of 300: {}", world.path());
    world.others = 0.0;
    world.demand = MOST;
    // It looks again after 5 s, then after 10, or as soon as more gets through.
    let seconds = world.until_found(20.0);
    assert!(seconds <= 10.0, "{seconds}");
}

#[test]
fn what_was_saved_up_is_not_taken_for_the_links_rate_again_and_again() {
    let mut world = World::of(10e6).known();
    world.saved_max = 8e6;
    world.run(30.0);
    let mut waited = 0;
    for _ in 0..600 {
        world.step();
        waited += u32::from(world.waits / world.carries > 0.02);
    }
    assert!(waited < 60, "{waited} of 600 steps: {}", world.path());
}

#[test]
fn jitter_is_no_queue() {
    let mut world = World::of(10e6);
    world.jitter_ms = 20.0;
    world.demand = 4e6;
    world.run(30.0);
    let said: Vec<String> = world.decisions.iter().map(ToString::to_string).collect();
    assert_eq!(world.search.state(), State::Open, "{said:?}");
    assert!(world.decisions.len() < 8, "{said:?}");
    world.demand = MOST;
    assert!(world.until_found(20.0) <= 5.0);
}

#[test]
fn without_light_clients_all_vote() {
    let mut world = World::of(10e6);
    world.has_lights = false;
    world = world.known();
    assert!(world.until_found(10.0) <= 5.0);
}

#[test]
fn a_link_that_was_full_from_the_start_is_found_by_a_trial() {
    for (carries, has_lights) in [(10e6, true), (10e6, false), (50e6, true), (50e6, false)] {
        let mut world = World::of(carries);
        world.has_lights = has_lights;
        let seconds = world.until_found(20.0);
        assert!(seconds <= 5.0, "{carries} {has_lights}: {seconds}");
        world.run(5.0);
        assert_ne!(world.search.state(), State::Open, "{}", world.path());
    }
}

#[test]
fn a_trial_in_which_the_traffic_ends_says_nothing() {
    let mut world = World::of(10e6);
    while world.step() != State::Trial {}
    let traffic = (world.demand, world.clients);
    (world.demand, world.clients) = (0.0, 0);
    world.run(10.0);
    let last = world.decisions.last().expect("the trial has ended");
    assert_eq!((last.state, last.why), (State::Open, Why::Unheard));
    assert_eq!(world.search.rate_bits_per_sec(), MOST as u64);
    (world.demand, world.clients) = traffic;
    let seconds = world.until_found(10.0);
    assert!(seconds <= 5.0, "{seconds}");
}

#[test]
fn a_trial_in_which_one_of_several_is_heard_says_nothing() {
    let mut world = World::of(10e6);
    world.has_lights = false;
    while world.step() != State::Trial {}
    let clients = std::mem::replace(&mut world.clients, 1);
    while world.step() == State::Trial {}
    assert_eq!(world.decisions.last().unwrap().why, Why::Unheard);
    world.clients = clients;
    let seconds = world.until_found(20.0);
    assert!(
        seconds <= 13.0,
        "{seconds}: tried again after as long as the first time"
    );
}

#[test]
fn paths_that_became_longer_are_learned() {
    for farther_ms in [4.0, 15.0] {
        let mut world = World::of(10e6).known();
        world.run(20.0);
        world.farther_ms = farther_ms;
        world.run(60.0);
        world.carries = 20e6;
        let seconds = world.until_found(20.0);
        assert!(seconds <= 6.0, "{farther_ms}: {seconds}");
    }
}

#[test]
fn a_process_that_was_stopped_for_a_while_cuts_nothing() {
    let mut world = World::of(10e6).known();
    world.run(20.0);
    let before = world.search.carries_bits_per_sec();
    for _ in 0..5 {
        // TCP goes on at the rate of before.
        world.milliseconds(4_000);
        world.step();
        world.run(3.0);
    }
    let found = world.search.carries_bits_per_sec().unwrap() as f64;
    let before = before.unwrap() as f64;
    assert!((found - before).abs() < 0.05 * before, "{found} {before}");
}

#[test]
fn a_client_that_comes_without_a_queue_frees_what_one_alone_was_held_to() {
    let mut world = World::of(4e6);
    (world.has_lights, world.clients) = (false, 1);
    world = world.known();
    assert!(world.until_found(10.0) <= 5.0);
    let near = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9));
    for _ in 0..30 {
        world.search.note_delay(near, world.now_ns, 3_000_000, true);
        world.step();
    }
    let freed = world
        .decisions
        .iter()
        .any(|it| it.why.to_string().contains("another client"));
    assert!(freed, "{}", world.path());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is told, rates stay within their limits and memory within bounds.
    #[test]
    fn any_world_keeps_the_limits(
        steps in proptest::collection::vec((0_u64..200_000_000, 0_u64..50_000_000, 0_u32..3000, 0_u32..6000, any::<bool>()), 1..200)
    ) {
        let limits = Limits { most_bits_per_sec: 500_000_000, least_bits_per_sec: 100_000 };
        let mut search = Search::new(limits);
        let mut totals = Totals::default();
        for (after_ns, bytes, delay_ms, client, is_light) in steps {
            totals.at_ns += after_ns;
            totals.sent_bytes += bytes;
            totals.measured_bytes += bytes;
            totals.measured_payload_bytes += bytes;
            totals.delivered_payload_bytes += bytes / 2;
            for more in 0..20 {
                let address = IpAddr::V4(Ipv4Addr::from_bits(client * 7 + more));
                search.note_delay(address, totals.at_ns, u64::from(delay_ms) * 1_000_000, is_light);
            }
            search.step(totals);
            let rate = search.rate_bits_per_sec();
            prop_assert!((100_000..=500_000_000).contains(&rate), "{rate}");
        }
    }
}
