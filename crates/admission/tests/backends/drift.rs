//! Backends that are faster and slower by themselves, as shared machines are: by a fifth, within
//! seconds and minutes.

use super::curve::{Curve, Family};
use super::random::Random;
use super::{LOSS, is_step, limits};
use sooner_admission::Controller;

/// The speed's standard deviation, of itself.
const DEVIATION: f64 = 0.15;

/// A speed that goes away from 1 and comes back (Ornstein and Uhlenbeck 1930), in ticks.
struct Speed {
    logarithm: f64,
    /// What is left of it a tick later.
    left: f64,
}

impl Speed {
    fn new(random: &mut Random) -> Self {
        let ticks = random.log_between(50.0, 1200.0);
        Self {
            logarithm: DEVIATION * random.normal(),
            left: (-1.0 / ticks).exp(),
        }
    }

    fn next(&mut self, random: &mut Random) -> f64 {
        let news = DEVIATION * (1.0 - self.left * self.left).sqrt();
        self.logarithm = self.left * self.logarithm + news * random.normal();
        self.logarithm.exp()
    }
}

/// What was found in how many steps: of the most that can be had, and how many above the fewest
/// that are enough.
fn found(seed: u64, family: Family) -> (f64, isize) {
    let mut random = Random::new(seed * 977 + family as u64);
    let variability = random.log_between(1.0, 5.0);
    let curve = Curve::random(family, variability, &mut random);
    let mut speed = Speed::new(&mut random);
    let mut controller = Controller::new(limits([4, 8, 16, 40][random.below(4)]));
    let mut steps = 0;
    while !controller.is_settled() {
        let now = curve.slowed(1.0 / speed.next(&mut random));
        let window = now.tick(controller.limit(), 150, &mut random);
        steps += usize::from(is_step(&mut controller, &window));
    }
    assert!(steps <= 10, "{family:?} {seed}: {steps}");
    let limit = controller.limit();
    let above = limit as isize - curve.enough(LOSS) as isize;
    (curve.at(limit) / curve.best(), above)
}

#[test]
fn a_backend_that_is_faster_and_slower_by_itself_misleads_nobody() {
    for family in Family::ALL {
        let all: Vec<(f64, isize)> = (0..super::backends() as u64 / 2)
            .map(|seed| found(seed, family))
            .collect();
        let share = |is_so: &dyn Fn(&(f64, isize)) -> bool| {
            all.iter().filter(|one| is_so(one)).count() as f64 / all.len() as f64
        };
        let within = share(&|one| one.0 >= 1.0 - LOSS);
        let nearly = share(&|one| one.0 >= 1.0 - 1.4 * LOSS);
        let low = share(&|one| one.1 <= 2);
        println!(
            "{:<11} within 5 % {within:.3}, within 7 % {nearly:.3}, <=2 above {low:.3}",
            format!("{family:?}")
        );
        assert!(within >= 0.8 && nearly >= 0.9, "{family:?}");
    }
}
