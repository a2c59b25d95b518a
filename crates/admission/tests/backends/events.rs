//! A backend event by event: jobs of random demands, one after the other on a disk, then together
//! on some processors, a hundred users who ask again at once, and places for some of them inside.

use std::collections::VecDeque;

use super::random::Random;
use super::{LOSS, TICK_NS, Window, is_step, limits};
use sooner_admission::Controller;

struct Backend {
    processors: f64,
    /// Mean processor time and disk time of a job, ns.
    processor_ns: f64,
    disk_ns: f64,
    /// Of two kinds of jobs the rarer one is this many times as long.
    spread: f64,
    random: Random,
    /// Processor time that those on the processors still need, ns.
    running: Vec<f64>,
    /// Disk time of those at the disk, the first of them under way.
    disk: VecDeque<f64>,
    seen: Window,
}

impl Backend {
    fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            processors: (1 + random.below(4)) as f64,
            processor_ns: 1e6,
            disk_ns: random.between(0.05, 0.5) * 1e6,
            spread: random.between(1.0, 20.0),
            random,
            running: Vec::new(),
            disk: VecDeque::new(),
            seen: Window::default(),
        }
    }

    fn inside(&self) -> usize {
        self.running.len() + self.disk.len()
    }

    /// What a job needs: one in ten is of the long kind; mean 1.
    fn demand(&mut self) -> f64 {
        let short = 1.0 / (0.9 + 0.1 * self.spread);
        let scale = if self.random.unit() < 0.1 {
            short * self.spread
        } else {
            short
        };
        scale * self.random.exponential()
    }

    /// The most jobs a second that there can be.
    fn most_per_sec(&self) -> f64 {
        1e9 / (self.processor_ns / self.processors).max(self.disk_ns)
    }

    /// Runs for a tick with `limit` inside, others waiting all the time.
    fn tick(&mut self, limit: usize) -> Window {
        let mut left_ns = TICK_NS as f64;
        while left_ns > 0.0 {
            while self.inside() < limit {
                let disk_ns = self.disk_ns * self.random.exponential();
                self.disk.push_back(disk_ns);
            }
            let speed = (self.processors / self.running.len() as f64).min(1.0);
            let shortest = self.running.iter().copied().fold(f64::INFINITY, f64::min);
            let at_disk = self.disk.front().copied().unwrap_or(f64::INFINITY);
            let step_ns = (shortest / speed).min(at_disk).min(left_ns);
            left_ns -= step_ns;
            self.running
                .iter_mut()
                .for_each(|job| *job -= step_ns * speed);
            if let Some(first) = self.disk.front_mut() {
                *first -= step_ns;
            }
            let before = self.running.len();
            self.running.retain(|left_ns| *left_ns > 1e-3);
            self.seen.completed += (before - self.running.len()) as u64;
            if self.disk.front().is_some_and(|left_ns| *left_ns <= 1e-3) {
                self.disk.pop_front();
                let demand_ns = self.processor_ns * self.demand();
                self.running.push(demand_ns);
            }
        }
        let seen = std::mem::take(&mut self.seen);
        Window {
            duration_ns: TICK_NS,
            backlogged_ns: TICK_NS,
            ..seen
        }
    }
}

#[test]
fn jobs_one_by_one_are_let_in_as_few_as_are_enough() {
    for seed in 0..12 {
        let mut backend = Backend::random(seed);
        let mut controller = Controller::new(limits(12));
        let mut changes = 0;
        while !controller.is_settled() {
            let window = backend.tick(controller.limit());
            changes += usize::from(is_step(&mut controller, &window));
        }
        let limit = controller.limit();
        // Longer than it was measured before.
        let ticks: Vec<u64> = (0..600).map(|_| backend.tick(limit).completed).collect();
        let share = ticks.iter().sum::<u64>() as f64 / 60.0 / backend.most_per_sec();
        let is_enough = share >= 1.0 - 2.0 * LOSS;
        assert!(
            is_enough && changes <= 10,
            "{seed}: {share} at {limit}, {changes} changes"
        );
        let fewer = (limit / 2).max(1);
        let ticks: Vec<u64> = (0..600).map(|_| backend.tick(fewer).completed).collect();
        let fewer_share = ticks.iter().sum::<u64>() as f64 / 60.0 / backend.most_per_sec();
        assert!(
            limit <= 3 || fewer_share < share,
            "{seed}: half of {limit} are enough"
        );
    }
}
