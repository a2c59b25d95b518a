//! The controller before thousands of random backends: does it find the fewest jobs inside that are
//! enough, in how many steps, and what becomes of it when the load or the backend changes.
//!
//! Backends by formula (closed networks solved exactly, and such that lose throughput to locks
//! beyond some number of jobs) with the chance that so many completions have; and, fewer, backends
//! event by event. `SOONER_BACKENDS` says how many of the former a family has.

mod batching;
mod batching_limits;
mod curve;
mod drift;
mod events;
mod random;
mod room;

use curve::{Curve, Family};
use random::Random;
use sooner_admission::{Controller, ControllerLimits, Why, Window};

const LOSS: f64 = 0.05;
const MAX: usize = 100;
const TICK_NS: u64 = 100_000_000;

fn limits(start: usize) -> ControllerLimits {
    ControllerLimits {
        min: 1,
        max: MAX,
        start,
        throughput_loss: LOSS,
    }
}

/// Whether that makes another limit known: turns of two that are compared are none.
fn is_step(controller: &mut Controller, window: &Window) -> bool {
    let change = controller.observe(window, &[]);
    change.is_some_and(|change| change.why != Why::Turn)
}

/// What one backend made of it.
struct Verdict {
    changes: usize,
    /// Of the most that can be had.
    share: f64,
    /// Above the fewest that are enough.
    above: isize,
    later_changes: usize,
    ticks: usize,
}

/// Runs until it has settled, then for as long again as 10 minutes of ticks.
fn judge(controller: &mut Controller, curve: &Curve, random: &mut Random, users: usize) -> Verdict {
    let (changes, ticks) = settle(controller, curve, random, users);
    let limit = controller.limit();
    let mut later_changes = 0;
    for _ in 0..6000 {
        let window = curve.tick(controller.limit(), users, random);
        later_changes += usize::from(is_step(controller, &window));
    }
    let best = curve.best();
    let enough = curve.enough(LOSS);
    Verdict {
        changes,
        share: curve.at(limit) / best,
        above: limit as isize - enough as isize,
        later_changes,
        ticks,
    }
}

/// Ticks until it has settled; how often the limit changed, and how long it took.
fn settle(
    controller: &mut Controller,
    curve: &Curve,
    random: &mut Random,
    users: usize,
) -> (usize, usize) {
    let mut changes = 0;
    for tick in 0..20_000 {
        if controller.is_settled() {
            return (changes, tick);
        }
        let window = curve.tick(controller.limit(), users, random);
        changes += usize::from(is_step(controller, &window));
    }
    panic!("never settles: {curve:?} at {}", controller.limit());
}

fn backends() -> usize {
    let said = std::env::var("SOONER_BACKENDS").ok();
    said.and_then(|text| text.parse().ok()).unwrap_or(500)
}

fn share_of(verdicts: &[Verdict], is_so: impl Fn(&Verdict) -> bool) -> f64 {
    verdicts.iter().filter(|one| is_so(one)).count() as f64 / verdicts.len() as f64
}

/// Backends with jobs that vary by 1 to 5, as TPC-C's do, and by 5 to 50, as hardly any do: what is
/// measured is more chance there.
const VARIABILITIES: [(f64, f64); 2] = [(1.0, 5.0), (5.0, 50.0)];

fn verdicts(family: Family, (least, most): (f64, f64)) -> Vec<Verdict> {
    let one = |seed: u64| {
        let mut random = Random::new(seed * 977 + family as u64);
        let curve = Curve::random(family, random.log_between(least, most), &mut random);
        let start = [4, 8, 16, 40][random.below(4)];
        let mut controller = Controller::new(limits(start));
        judge(&mut controller, &curve, &mut random, 150)
    };
    (0..backends() as u64).map(one).collect()
}

#[test]
fn the_fewest_that_are_enough_are_found_in_ten_steps() {
    println!(
        "family      C2      steps<=10  within 5 %  within 7 %  <=2 above  steps  seconds  changes in 10 min after"
    );
    for family in Family::ALL {
        for (at, variability) in VARIABILITIES.into_iter().enumerate() {
            let verdicts = verdicts(family, variability);
            let few = share_of(&verdicts, |one| one.changes <= 10);
            let within = share_of(&verdicts, |one| one.share >= 1.0 - LOSS);
            let nearly = share_of(&verdicts, |one| one.share >= 1.0 - 1.4 * LOSS);
            let low = share_of(&verdicts, |one| one.above <= 2);
            let mean = |of: fn(&Verdict) -> usize| {
                verdicts.iter().map(of).sum::<usize>() as f64 / verdicts.len() as f64
            };
            println!(
                "{:<11} {:<7} {few:>9.3} {within:>11.3} {nearly:>11.3} {low:>10.3} {:>6.1} {:>8.0} {:>8.2}",
                format!("{family:?}"),
                format!("{}-{}", variability.0, variability.1),
                mean(|one| one.changes),
                mean(|one| one.ticks) / 10.0,
                mean(|one| one.later_changes),
            );
            assert_eq!(few, 1.0, "{family:?}");
            let least = [(0.88, 0.95), (0.7, 0.8)][at];
            assert!(within >= least.0, "{family:?}: {within}");
            assert!(nearly >= least.1, "{family:?}: {nearly}");
            // On the flat curves of many disks 2 more or less are nothing.
            let is_steep = matches!(family, Family::Processors | Family::Locks);
            assert!(!is_steep || low >= [0.8, 0.6][at], "{family:?}: {low}");
            assert!(mean(|one| one.later_changes) <= 6.0, "{family:?}");
        }
    }
}

/// A backend that becomes another one: with other processors, disks, locks, and another speed.
#[test]
fn what_was_found_is_looked_for_again_when_the_backend_changes() {
    let mut all = 0.0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let family = |at: u64| Family::ALL[at as usize % 4];
        let before = Curve::random(family(seed), 2.0, &mut random);
        let mut controller = Controller::new(limits(16));
        settle(&mut controller, &before, &mut random, 150);
        let after = Curve::random(family(seed / 4), 2.0, &mut random);
        let mut share = 0.0;
        // An hour, of which the second half counts; what is tried now and then costs something as
        // well.
        for tick in 0..36_000 {
            let limit = controller.limit();
            let window = after.tick(limit, 150, &mut random);
            if tick >= 18_000 {
                share += after.at(limit) / after.best() / 18_000.0;
            }
            controller.observe(&window, &[]);
        }
        // Some do ten jobs a second, of which little is known.
        assert!(share >= 0.7, "{share} at {}: {after:?}", controller.limit());
        all += share / 60.0;
    }
    assert!(all >= 0.94, "{all}");
}

/// What is right for a backend is right when it is two or five times as slow.
#[test]
fn another_speed_is_no_reason_for_another_limit() {
    for (seed, factor) in (0..40).zip([2.0, 5.0].into_iter().cycle()) {
        let mut random = Random::new(seed);
        let curve = Curve::random(Family::ALL[seed as usize % 4], 2.0, &mut random);
        let mut controller = Controller::new(limits(16));
        settle(&mut controller, &curve, &mut random, 150);
        let found = controller.limit();
        let slow = curve.slowed(factor);
        let mut is_settled = 0;
        for _ in 0..6000 {
            let window = slow.tick(controller.limit(), 150, &mut random);
            controller.observe(&window, &[]);
            is_settled += usize::from(controller.is_settled());
        }
        assert!(is_settled >= 3000, "{seed}: looks for it all the time");
        let share = curve.at(controller.limit()) / curve.at(found);
        assert!(share >= 0.9, "{seed}: {found}, then {}", controller.limit());
    }
}

/// More users, or fewer, are no reason to look anew. While no job waits, there is no reason to do
/// anything.
#[test]
fn load_alone_changes_nothing() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let curve = Curve::random(Family::ALL[seed as usize % 4], 2.0, &mut random);
        let mut controller = Controller::new(limits(8));
        let idle = curve.tick(8, 3, &mut random);
        for _ in 0..3000 {
            assert_eq!(controller.observe(&idle, &[]), None);
        }
        settle(&mut controller, &curve, &mut random, 300);
        let found = controller.limit();
        for users in [101, 300, found.min(2), 150] {
            for _ in 0..500 {
                let window = curve.tick(controller.limit(), users, &mut random);
                controller.observe(&window, &[]);
            }
        }
        assert!(controller.limit().abs_diff(found) <= 1 + found / 3);
    }
}

/// What the tests call good is not good of itself: a limit that stays where it is, and one that
/// follows the times inside.
#[test]
fn a_controller_that_does_not_look_for_throughput_is_found_out() {
    let mut stays = 0;
    let mut follows = 0;
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let curve = Curve::random(Family::ALL[seed as usize % 4], 2.0, &mut random);
        let is_good = |limit: usize| {
            let is_enough = curve.at(limit) >= (1.0 - 1.4 * LOSS) * curve.best();
            is_enough && limit <= curve.enough(LOSS) + 2
        };
        stays += usize::from(is_good(20));
        // As Netflix's gradient does: more while jobs take no more than twice what they take alone.
        let alone = 1.0 / curve.at(1);
        let limit = (1..=MAX).take_while(|jobs| *jobs as f64 / curve.at(*jobs) < 2.0 * alone);
        follows += usize::from(is_good(limit.last().unwrap_or(1)));
    }
    assert!(stays < 50 && follows < 50, "{stays} {follows}");
}

/// The limits that are tried, one after the other, without any chance.
fn tried(start: usize, rate: impl Fn(usize) -> u64) -> String {
    let mut controller = Controller::new(limits(start));
    let mut tried = vec![start.to_string()];
    while !controller.is_settled() {
        let limit = controller.limit();
        let window = Window {
            duration_ns: TICK_NS,
            backlogged_ns: TICK_NS,
            completed: rate(limit),
            ..Window::default()
        };
        match controller.observe(&window, &[]) {
            Some(change) if matches!(change.why, Why::Tries(..) | Why::Found(_)) => {
                tried.push(change.limit.to_string());
            }
            _ => {}
        }
    }
    // What was found may be what was tried last.
    tried.dedup();
    tried.join(" ")
}

#[test]
fn it_halves_and_doubles_and_looks_between() {
    // Enough from 5 on.
    assert_eq!(tried(16, |limit| 200 * limit.min(5) as u64), "16 8 4 6 5");
    // From 40 on.
    assert_eq!(
        tried(8, |limit| 25 * limit.min(40) as u64),
        "8 4 16 32 64 100 45 38 41"
    );
    // From 1 on.
    assert_eq!(tried(8, |_| 1000), "8 4 2 1");
    // The most at 6, half at 20.
    let locks = |limit: usize| (3000.0 * limit as f64 / (36.0 + (limit * limit) as f64)) as u64;
    assert_eq!(tried(16, locks), "16 8 4 6 5");
}
