//! The order on an imagined processor that goes to the lowest level, and shares inside it.

use proptest::prelude::*;
use sooner_processor::{Bounds, Doing, Next, Order, Reading, Rule, RunWait, Settings};
use std::collections::BTreeMap;

const STEP_NS: u64 = 1_000_000;
const WAIT_MAX_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone)]
struct Imagined {
    run_ns: u64,
    left_ns: u64,
    since_ns: u64,
    requests: u64,
    begin_run_ns: u64,
    begin_at_ns: u64,
    level: u8,
    came_ns: u64,
}

/// One processor, so many workers.
struct World {
    order: Order,
    workers: Vec<Imagined>,
    waiting: Vec<(u64, u64)>,
    now_ns: u64,
    next: Next,
    sees_beginnings: bool,
    responses_ns: Vec<(u64, u64)>,
    longest_wait_ns: u64,
    looks: u64,
}

fn settings(rule: Rule, bounds: Bounds) -> Settings {
    Settings {
        rule,
        bounds,
        wait_max_ns: WAIT_MAX_NS,
    }
}

impl World {
    fn new(workers: usize, settings: Settings, sees_beginnings: bool) -> World {
        let idle = Imagined {
            run_ns: 0,
            left_ns: 0,
            since_ns: 0,
            requests: 0,
            begin_run_ns: 0,
            begin_at_ns: 0,
            level: 0,
            came_ns: 0,
        };
        World {
            order: Order::new(settings),
            workers: vec![idle; workers],
            waiting: Vec::new(),
            now_ns: 1,
            next: Next::At(0),
            sees_beginnings,
            responses_ns: Vec::new(),
            longest_wait_ns: 0,
            looks: 0,
        }
    }

    fn reading(&self, worker: &Imagined, runs: bool) -> Reading {
        let since_ns = worker.since_ns;
        Reading {
            doing: match (worker.left_ns > 0, runs, self.sees_beginnings) {
                (true, true, _) => Doing::Runs,
                (true, false, _) => Doing::Ready { since_ns },
                (false, _, true) => Doing::Idle { since_ns },
                (false, _, false) => Doing::Asleep { since_ns },
            },
            run_ns: worker.run_ns,
            sleeps: worker.requests,
            requests: if self.sees_beginnings {
                worker.requests
            } else {
                0
            },
            begin_run_ns: worker.begin_run_ns,
            begin_at_ns: worker.begin_at_ns,
            has_answered: false,
        }
    }

    /// Runs until `end_ns`; requests come as (time, size).
    fn run(&mut self, requests: &[(u64, u64)], end_ns: u64) {
        let mut coming = requests.iter().copied().peekable();
        let mut turn = 0;
        while self.now_ns < end_ns {
            while let Some(request) = coming.next_if(|request| request.0 <= self.now_ns) {
                self.waiting.push(request);
            }
            let mut is_told = false;
            for worker in &mut self.workers {
                if worker.left_ns == 0 && !self.waiting.is_empty() {
                    let (came_ns, size_ns) = self.waiting.remove(0);
                    worker.left_ns = size_ns;
                    worker.came_ns = came_ns;
                    worker.since_ns = self.now_ns;
                    worker.requests += 1;
                    worker.begin_run_ns = worker.run_ns;
                    worker.begin_at_ns = self.now_ns;
                    is_told = true;
                }
            }
            let active = |worker: &&Imagined| worker.left_ns > 0;
            let top = self
                .workers
                .iter()
                .filter(active)
                .map(|one| one.level)
                .min();
            let of_top: Vec<usize> = (0..self.workers.len())
                .filter(|at| self.workers[*at].left_ns > 0 && Some(self.workers[*at].level) == top)
                .collect();
            turn += 1;
            let runs = (!of_top.is_empty()).then(|| of_top[turn % of_top.len()]);
            if let Some(at) = runs {
                let worker = &mut self.workers[at];
                let had_ns = worker.left_ns.min(STEP_NS);
                worker.run_ns += had_ns;
                worker.left_ns -= had_ns;
                self.longest_wait_ns = self.longest_wait_ns.max(self.now_ns - worker.since_ns);
                worker.since_ns = self.now_ns + STEP_NS;
                if worker.left_ns == 0 {
                    // One that is not on top has fallen asleep.
                    is_told |= worker.level > 0;
                    let response_ns = self.now_ns + had_ns - worker.came_ns;
                    self.responses_ns.push((worker.begin_run_ns, response_ns));
                }
            }
            self.now_ns += STEP_NS;
            let is_due = match self.next {
                Next::At(at_ns) => at_ns <= self.now_ns,
                Next::WhenTold => false,
            };
            if is_due || is_told {
                self.look(runs);
            }
        }
    }

    fn look(&mut self, runs: Option<usize>) {
        self.looks += 1;
        self.order.begin_look();
        for at in 0..self.workers.len() {
            let reading = self.reading(&self.workers[at], runs == Some(at));
            if let Some(level) = self.order.look(at as u32, &reading, self.now_ns) {
                self.workers[at].level = level;
            }
        }
        self.next = self.order.end_look(self.now_ns);
    }

    fn mean_ms(&self) -> f64 {
        let sum: u64 = self.responses_ns.iter().map(|response| response.1).sum();
        sum as f64 / self.responses_ns.len() as f64 / 1e6
    }

    fn levels(&self) -> String {
        let levels = self.workers.iter().map(|worker| worker.level.to_string());
        levels.collect()
    }
}

fn fixed() -> Bounds {
    Bounds::fixed([6_000_000, 60_000_000])
}

/// A bounded Pareto law from 2 ms to 1 s; load 0.8, arrivals and sizes at random.
fn mix() -> Vec<(u64, u64)> {
    let mut state = 7_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((state >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
    };
    let mut at_ns = 0.0;
    let request = |_| {
        at_ns -= 14e6 * random().ln();
        let size_ms = 2.0 * random().max(1e-3).powf(-1.0 / 1.1);
        (at_ns as u64, 1_000_000 * size_ms.round() as u64)
    };
    (0..2000).map(request).collect()
}

#[test]
fn a_worker_falls_with_what_it_uses_and_is_on_top_when_it_is_idle() {
    let mut world = World::new(3, settings(Rule::Used, fixed()), true);
    let ms = 1_000_000;
    let mut seen = Vec::new();
    // Two long ones, then a short one.
    let requests = [(ms, 200 * ms), (2 * ms, 200 * ms), (150 * ms, 3 * ms)];
    let mut left = requests.to_vec();
    for end_ms in [5, 20, 80, 149, 153, 160, 300, 500] {
        let end_ns = end_ms * ms;
        let now: Vec<_> = left.extract_if(.., |request| request.0 < end_ns).collect();
        world.run(&now, end_ns);
        seen.push(world.levels());
    }
    assert_eq!(seen.join(" "), "000 110 110 220 220 220 220 000");
    let short_ns = world.responses_ns[0].1;
    assert!(short_ns <= 5 * ms, "{short_ns}");
}

#[test]
fn short_requests_overtake_and_long_ones_still_end() {
    let end_ns = 60_000_000_000;
    let mut equal = World::new(
        50,
        settings(Rule::Used, Bounds::fixed([u64::MAX - 1, u64::MAX])),
        true,
    );
    equal.run(&mix(), end_ns);
    let mut by_levels = World::new(50, settings(Rule::Used, fixed()), true);
    by_levels.run(&mix(), end_ns);
    assert_eq!(by_levels.responses_ns.len(), 2000, "{}", by_levels.now_ns);
    let (equal, ordered) = (equal.mean_ms(), by_levels.mean_ms());
    assert!(ordered < 0.8 * equal, "{ordered} of {equal}");
    // What the shadow says of the same requests.
    let means = by_levels
        .order
        .shadow()
        .means(1.0, fixed().bounds_ns())
        .unwrap();
    let near = |found_ns: f64, ms: f64| (found_ns / 1e6 / ms - 1.0).abs() < 0.15;
    assert!(near(means.equal_ns, equal), "{means:?} {equal}");
    assert!(near(means.levels_ns, ordered), "{means:?} {ordered}");
}

/// Nine texts of 6 ms at once, and behind each an image of 30 ms, a round a second.
fn pages(round: u64) -> Vec<(u64, u64)> {
    let texts = (0..9).map(|_| (round * 1_000_000_000, 6_000_000));
    let images = (0..9).map(|at| (round * 1_000_000_000 + 10_000_000 * (at + 1), 30_000_000));
    texts.chain(images).collect()
}

#[test]
fn bounds_are_learned_and_given_up_where_requests_are_alike() {
    let mut world = World::new(20, settings(Rule::Used, Bounds::default()), true);
    let requests: Vec<(u64, u64)> = (0..20).flat_map(pages).collect();
    world.run(&requests, 20_000_000_000);
    let [first, second] = world.order.bounds().bounds_ns();
    assert!(
        (6_500_000..30_000_000).contains(&first),
        "{first}, {second}"
    );
    // All alike: none falls.
    let alike: Vec<(u64, u64)> = (0..8000)
        .map(|at| (20_000_000_000 + at * 20_000_000, 15_000_000 + at % 3))
        .collect();
    world.run(&alike, 190_000_000_000);
    assert_eq!(world.order.bounds().level(1_000_000_000), 0);
}

#[test]
fn nothing_looks_while_one_works_alone() {
    let mut world = World::new(4, settings(Rule::Used, fixed()), true);
    world.run(&[(1, 2_000_000_000)], 3_000_000_000);
    assert_eq!(world.responses_ns.len(), 1);
    assert!(world.looks <= 4, "{} looks", world.looks);
}

#[test]
fn six_workers_are_ordered_where_beginnings_are_seen_and_left_alone_where_not() {
    let end_ns = 60_000_000_000;
    let run = |sees: bool, bounds: Bounds| {
        let mut world = World::new(6, settings(Rule::Used, bounds), sees);
        world.run(&mix(), end_ns);
        (world.mean_ms(), world.order.requests())
    };
    let none = Bounds::fixed([u64::MAX - 1, u64::MAX]);
    let (equal, _) = run(true, none);
    let (seen, requests) = run(true, fixed());
    let (unseen, _) = run(false, fixed());
    assert!(requests >= 1994, "{requests}");
    assert!(seen < 0.9 * equal, "{seen} of {equal}");
    assert!(unseen < 1.1 * equal, "{unseen} of {equal}");
}

#[test]
fn the_papers_rule_does_not_see_what_a_request_computes() {
    let rule = Rule::RunWait(RunWait::new(Some(3), Some(10_000_000)));
    let mut world = World::new(50, settings(rule, fixed()), true);
    world.run(&mix(), 30_000_000_000);
    let (levels, _) = world.order.standing();
    assert_eq!(levels[2], 0);
    assert!(world.order.requests() > 500);
}

#[test]
fn a_worker_that_is_gone_is_forgotten() {
    let mut world = World::new(2, settings(Rule::Used, fixed()), true);
    world.run(&[(1, 300_000_000), (1, 300_000_000)], 200_000_000);
    assert_eq!(world.levels(), "22");
    world.order.forget(0);
    let mut known = BTreeMap::new();
    known.insert(1, world.order.standing().0[2]);
    assert_eq!(known[&1], 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn none_waits_longer_than_the_bound_and_every_turn_before_it(
        requests in proptest::collection::vec((0_u64..8_000, 1_u64..900), 1..60),
        workers in 2_usize..12,
        sees in any::<bool>(),
    ) {
        let mut requests: Vec<(u64, u64)> =
            requests.into_iter().map(|(at, size)| (at * 1_000_000, size * 1_000_000)).collect();
        requests.sort_unstable();
        let mut world = World::new(workers, settings(Rule::Used, fixed()), sees);
        world.run(&requests, 70_000_000_000);
        prop_assert_eq!(world.responses_ns.len(), requests.len());
        // Each of the others may have a turn of 10 ms, and those on the top level theirs.
        let others_ns = workers as u64 * 20_000_000;
        prop_assert!(world.longest_wait_ns <= WAIT_MAX_NS + others_ns,
            "{} ms", world.longest_wait_ns / 1_000_000);
    }
}
