//! An imagined processor that goes to the lowest level, and shares inside it.

use sooner_processor::{Bounds, Doing, Ended, Next, Order, Reading, RequestKind, Rule, Settings};
use std::num::NonZeroU64;

pub const STEP_NS: u64 = 1_000_000;
pub const WAIT_MAX_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone)]
pub struct Imagined {
    run_ns: u64,
    left_ns: u64,
    since_ns: u64,
    requests: u64,
    begin_run_ns: u64,
    begin_at_ns: u64,
    level: u8,
    came_ns: u64,
    size_ns: u64,
}

/// One processor, so many workers.
pub struct World {
    pub order: Order,
    workers: Vec<Imagined>,
    waiting: Vec<(u64, u64)>,
    pub now_ns: u64,
    next: Next,
    sees_beginnings: bool,
    pub responses_ns: Vec<(u64, u64)>,
    pub longest_wait_ns: u64,
    pub looks: u64,
    /// What requests of a size have in common.
    pub kind_of: fn(u64) -> Option<RequestKind>,
    /// What their application says of them, ns; 0: nothing.
    pub said_ns_of: fn(u64) -> u64,
    ended: Vec<Ended>,
}

pub fn settings(rule: Rule, bounds: Bounds) -> Settings {
    Settings {
        rule,
        bounds,
        wait_max_ns: WAIT_MAX_NS,
        processors: 1.0,
        has_programs: false,
    }
}

impl World {
    pub fn new(workers: usize, settings: Settings, sees_beginnings: bool) -> World {
        let settings = Settings {
            has_programs: sees_beginnings,
            ..settings
        };
        let idle = Imagined {
            run_ns: 0,
            left_ns: 0,
            since_ns: 0,
            requests: 0,
            begin_run_ns: 0,
            begin_at_ns: 0,
            level: 0,
            came_ns: 0,
            size_ns: 0,
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
            kind_of: |_| None,
            said_ns_of: |_| 0,
            ended: Vec::new(),
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
            kind: (self.kind_of)(worker.size_ns),
            hands_on: false,
            said_ns: NonZeroU64::new((self.said_ns_of)(worker.size_ns)),
        }
    }

    /// Runs until `end_ns`; requests come as (time, size).
    pub fn run(&mut self, requests: &[(u64, u64)], end_ns: u64) {
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
                    worker.size_ns = size_ns;
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
                    self.ended.push(Ended {
                        kind: (self.kind_of)(worker.size_ns),
                        began_ns: worker.begin_at_ns,
                        used_ns: worker.run_ns - worker.begin_run_ns,
                    });
                    // One that is not on top has fallen asleep.
                    is_told |= worker.level > 0;
                    let response_ns = self.now_ns + had_ns - worker.came_ns;
                    self.responses_ns.push((worker.size_ns, response_ns));
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

    pub fn look(&mut self, runs: Option<usize>) {
        self.looks += 1;
        for ended in self.ended.drain(..).filter(|_| self.sees_beginnings) {
            self.order.finish(&ended);
        }
        self.order.begin_look();
        for at in 0..self.workers.len() {
            let reading = self.reading(&self.workers[at], runs == Some(at));
            if let Some(level) = self.order.look(at as u32, &reading, self.now_ns) {
                self.workers[at].level = level;
            }
        }
        self.next = self.order.end_look(self.now_ns);
    }

    pub fn mean_ms(&self) -> f64 {
        let sum: u64 = self.responses_ns.iter().map(|response| response.1).sum();
        sum as f64 / self.responses_ns.len() as f64 / 1e6
    }

    pub fn levels(&self) -> String {
        let levels = self.workers.iter().map(|worker| worker.level.to_string());
        levels.collect()
    }
}

pub fn fixed() -> Bounds {
    Bounds::fixed([6_000_000, 60_000_000])
}

/// A bounded Pareto law from 2 ms to 1 s; load 0.8, arrivals and sizes at random.
pub fn mix() -> Vec<(u64, u64)> {
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

/// A kind by its number.
pub fn kind(number: u64) -> Option<RequestKind> {
    NonZeroU64::new(number).map(RequestKind)
}
