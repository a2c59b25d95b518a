//! What becomes of the limit where classes have targets. What a class is expected to take inside is
//! a mean of the recent past, scaled where the limit changes, as the gate's is.

use super::curve::{Curve, Family};
use super::random::Random;
use super::{TICK_NS, limits};
use sooner_admission::{Change, Controller, Need, Why};

const MINUTE: usize = 60_000_000_000 / TICK_NS as usize;

struct Play {
    curve: Curve,
    random: Random,
    controller: Controller,
    expected_ns: f64,
    changes: Vec<Change>,
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let curve = Curve::random(Family::Balanced, 2.0, &mut random);
        let mut play = Self {
            expected_ns: 0.0,
            controller: Controller::new(limits(32)),
            curve,
            random,
            changes: Vec::new(),
        };
        play.expected_ns = play.inside_ns(32);
        play
    }

    fn inside_ns(&self, limit: usize) -> f64 {
        limit as f64 / self.curve.at(limit) * 1e9
    }

    /// So many ticks; the throughput in them, of the most that can be had, and how many were above
    /// `most`.
    fn run(&mut self, ticks: usize, target_ns: Option<f64>, most: usize) -> (f64, usize) {
        let (mut share, mut above) = (0.0, 0);
        for _ in 0..ticks {
            let limit = self.controller.limit();
            share += self.curve.at(limit) / self.curve.best() / ticks as f64;
            above += usize::from(limit > most);
            self.expected_ns += 0.2 * (self.inside_ns(limit) - self.expected_ns);
            let need = |inside_ns: f64, target_ns: f64| Need {
                class: 3,
                inside_ns: Some(inside_ns as u64),
                target_ns: target_ns as u64,
            };
            // Another one asks for next to nothing.
            let needs =
                target_ns.map(|target_ns| [need(self.expected_ns, target_ns), need(1.0, 1e9)]);
            let window = self.curve.tick(limit, 150, &mut self.random);
            let needs = needs.as_ref().map_or(&[][..], |needs| needs);
            if let Some(change) = self.controller.observe(&window, needs) {
                self.expected_ns *= change.limit as f64 / limit as f64;
                if change.why != Why::Turn {
                    self.changes.push(change);
                }
            }
        }
        (share, above)
    }
}

/// The time inside grows in proportion to the jobs inside, so a target for it gives a highest limit
/// (thesis 10.3.5), in ten changes.
#[test]
fn targets_leave_room_inside() {
    for seed in 0..40 {
        let mut play = Play::new(seed);
        // What five jobs inside take.
        let target_ns = Some(play.inside_ns(5));
        play.run(MINUTE, target_ns, 5);
        let (_, above) = play.run(9 * MINUTE, target_ns, 5);
        let limit = play.controller.limit();
        assert!((1..=5).contains(&limit), "{seed}: {limit}");
        assert!(
            above <= 540,
            "{seed}: {above} ticks above what targets allow"
        );
        assert!(play.changes.len() <= 16, "{seed}: {:?}", play.changes);
        // Those that do few jobs a second are still looking.
        let is_found = |change: &Change| matches!(change.why, Why::Found(_));
        let until_found = play.changes.iter().position(is_found);
        let steps = until_found.unwrap_or(play.changes.len());
        assert!(steps <= 10, "{seed}: {:?}", play.changes);
    }
}

/// Where even one job inside takes twice the target, throughput is not given away for it.
#[test]
fn a_target_that_no_limit_keeps_is_given_up() {
    for seed in 0..40 {
        let mut play = Play::new(seed);
        let target_ns = Some(play.inside_ns(1) / 2.0);
        play.run(10 * MINUTE, target_ns, 100);
        let (share, _) = play.run(20 * MINUTE, target_ns, 100);
        assert!(share >= 0.9, "{seed}: {share}, {:?}", play.changes);
        let told = |change: &&Change| matches!(change.why, Why::OutOfReach(3, _));
        assert_eq!(play.changes.iter().filter(told).count(), 1, "{seed}");
    }
}

/// What a class needed that comes no more is no reason for anything.
#[test]
fn who_comes_no_more_needs_no_room() {
    for seed in 0..40 {
        let mut play = Play::new(seed);
        let target_ns = play.inside_ns(1) * 1.3;
        play.run(10 * MINUTE, Some(target_ns), 100);
        let held_down = play.controller.limit();
        assert!(
            play.inside_ns(held_down) <= 1.1 * target_ns,
            "{seed}: {held_down}"
        );
        play.run(5 * MINUTE, None, 100);
        let (share, _) = play.run(10 * MINUTE, None, 100);
        assert!(share >= 0.9, "{seed}: {share}, {:?}", play.changes);
    }
}
