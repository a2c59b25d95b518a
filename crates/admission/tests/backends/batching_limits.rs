//! The limits that are found for backends that batch.

use super::batching::{Arrivals, Backend, Law, Spec, Variant};
use super::random::Random;
use super::{LOSS, MAX, backends, is_step, limits};
use sooner_admission::Controller;

const ALWAYS: Arrivals = Arrivals::Closed {
    users: 10_000,
    think_ns: 0.0,
};
/// Where few jobs come none waits, and nothing can be found out.
const LONGEST_TICKS: usize = 36_000;

/// Tokens a second with so many inside, while others wait.
fn tokens_per_sec(spec: &Spec, limit: usize, steps: f64) -> f64 {
    let mut backend = Backend::new(spec.clone(), ALWAYS, 1);
    backend.run(0.2 * steps * spec.full_ns(), limit);
    let (made, began_ns) = (backend.made(), backend.now_ns());
    backend.run(steps * spec.full_ns(), limit);
    (backend.made() - made) as f64 * 1e9 / (backend.now_ns() - began_ns)
}

/// The most that any limit gives. Only where tokens are computed anew can more be too many.
fn best(spec: &Spec, variant: Variant) -> f64 {
    let tried = match variant {
        Variant::Memory => 9,
        _ => 1,
    };
    let all = (0..tried).map(|at| (MAX as f64 * 0.65_f64.powi(at)) as usize);
    all.map(|limit| tokens_per_sec(spec, limit, 4000.0))
        .fold(0.0, f64::max)
}

struct Verdict {
    changes: usize,
    later_changes: usize,
    ticks: usize,
    /// Of what the best fixed limit gives.
    share: f64,
    /// The same for the limit it began with.
    start_share: f64,
}

fn judge(variant: Variant, seed: u64) -> Verdict {
    let mut random = Random::new(seed * 977 + variant as u64);
    let law = match seed.is_multiple_of(2) {
        true => Law::Light(1 + random.below(2)),
        false => Law::Heavy(random.log_between(2.0, 20.0)),
    };
    let spec = Spec::random(variant, law, &mut random);
    let best = best(&spec, variant);
    // What can be had of that: no more than comes.
    let (arrivals, most) = match random.below(3) {
        0 => {
            let load = random.between(0.5, 1.5);
            let per_sec = load * best / spec.steps_mean();
            (Arrivals::Open { per_sec }, load.min(1.0) * best)
        }
        kind => {
            let think_ns = kind.saturating_sub(1) as f64 * spec.alone_ns();
            let users = 150 + 150 * (kind - 1);
            (Arrivals::Closed { users, think_ns }, best)
        }
    };
    let mut backend = Backend::new(spec.clone(), arrivals, seed);
    let start = [4, 8, 16, 40][random.below(4)];
    let mut controller = Controller::new(limits(start));
    let (mut ticks, mut changes, mut later_changes) = (0, 0, 0);
    while ticks < LONGEST_TICKS && !controller.is_settled() {
        let window = backend.tick(controller.limit());
        changes += usize::from(is_step(&mut controller, &window));
        ticks += 1;
    }
    let limit = controller.limit();
    for _ in 0..6000 {
        let window = backend.tick(controller.limit());
        later_changes += usize::from(is_step(&mut controller, &window));
    }
    let share = |limit| tokens_per_sec(&spec, limit, 4000.0).min(most) / most;
    Verdict {
        changes,
        later_changes,
        ticks,
        share: share(limit),
        start_share: share(start),
    }
}

/// Half of them have jobs with a C2 of 0.5 to 1, half one of 2 to 20, and most do less than 20 jobs
/// a second. What falls short is chance: of so few jobs a loss of 5 % cannot be told within the
/// minutes that a comparison may take, and least where memory is short, because there too many cost
/// as much as too few. Of 200 of each 0.91, 0.93 and 0.86 were within 5 %, 0.97, 0.96 and 0.92
/// within 7 %; they settled after half an hour.
#[test]
fn batches_are_as_large_as_is_enough() {
    println!(
        "variant  steps<=10  within 5 %  within 7 %  start within 5 %  steps  seconds  changes in 10 min after"
    );
    for (variant, least) in [
        (Variant::Steps, (0.85, 0.9)),
        (Variant::Prompts, (0.85, 0.9)),
        (Variant::Memory, (0.8, 0.85)),
    ] {
        let total = backends() as u64 / 10;
        let verdicts: Vec<Verdict> = (0..total).map(|seed| judge(variant, seed)).collect();
        let share = |is_so: &dyn Fn(&Verdict) -> bool| {
            verdicts.iter().filter(|one| is_so(one)).count() as f64 / verdicts.len() as f64
        };
        let few = share(&|one| one.changes <= 10);
        let within = share(&|one| one.share >= 1.0 - LOSS);
        let nearly = share(&|one| one.share >= 1.0 - 1.4 * LOSS);
        let stays = share(&|one| one.start_share >= 1.0 - LOSS);
        let mean = |of: fn(&Verdict) -> usize| {
            verdicts.iter().map(of).sum::<usize>() as f64 / verdicts.len() as f64
        };
        println!(
            "{:<8} {few:>9.3} {within:>11.3} {nearly:>11.3} {stays:>17.3} {:>6.1} {:>8.0} {:>8.2}",
            format!("{variant:?}"),
            mean(|one| one.changes),
            mean(|one| one.ticks) / 10.0,
            mean(|one| one.later_changes),
        );
        assert_eq!(few, 1.0, "{variant:?}");
        assert!(within >= least.0, "{variant:?}: {within}");
        assert!(nearly >= least.1, "{variant:?}: {nearly}");
        assert!(stays <= 0.7, "{variant:?}: where it began does as well");
        assert!(mean(|one| one.later_changes) <= 6.0, "{variant:?}");
    }
}

/// Without prompts a full batch gives the number of its jobs for the time of its step.
#[test]
fn throughput_is_the_batch_over_its_step() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let spec = Spec::random(Variant::Steps, Law::Heavy(5.0), &mut random);
        for limit in [1, 5, 30, 100] {
            let found = tokens_per_sec(&spec, limit, 1000.0) / spec.tokens_per_sec(limit);
            assert!((found - 1.0).abs() < 0.01, "{limit} of {spec:?}: {found}");
        }
    }
}
