//! A load that alternates between more than can be done and less: response times by size under
//! sharing and under SRPT, approximately (the question of the 2006 paper, 6.3; its derivation is
//! not printed there, and this one is a fluid limit and what a steady queue adds to it).
//!
//! Fluid: jobs come as a flow, and what chance does to the queue is left out, so that it is exact
//! for phases that are long. Sharing in overload, from empty: the jobs present grow in proportion
//! to time, n = z t with λ(1 - E[exp(-zS)]) = z, and one that came at s has had ln(t/s)/z (Puha,
//! Stolyar and Williams 2006 prove the limit). Counted in the service that each job has had since
//! the overload ended, the jobs present then follow a renewal equation. SRPT: sizes with a load
//! that stays below 1 never notice the overload; the others wait until all that is smaller is done.
//! Steady: to the time of a unit of service sharing adds the job itself in overload, and 1 / (1 -
//! load) after it; SRPT the formula of M/G/1 for those who do not wait.

use crate::TheoryError;
use crate::mg1::{Below, Moments, Node};
use crate::quadrature::points;
use sooner_workload::{Distribution, Phase};

/// Parts into which means over time and residences are cut.
const PARTS: u32 = 24;
/// Parts of an integral over sizes that is even on a logarithmic scale.
const PARTS_OF_SIZES: u32 = 64;
/// Steps of the renewal equation, even on a logarithmic scale but for the first.
const STEPS: u32 = 600;
/// The first step, and the least size that is told from 0: at most this part of the largest, and
/// that of the mean.
const LEAST_OF_LARGEST: f64 = 1e-7;
const LEAST_OF_MEAN: f64 = 1e-3;
/// Halvings of a root.
const HALVINGS: u32 = 100;
/// Sizes above which a smaller share of the jobs lies are not looked at.
const SHARE_MIN: f64 = 1e-13;

/// Overload and what follows it, over and over.
#[derive(Clone, Debug)]
pub struct Alternating {
    below: Below,
    largest: f64,
    low: Flow,
    high: Flow,
    /// Jobs present under sharing for each unit of time in overload, z.
    growth: f64,
    draining: Draining,
    /// The size at which the load of all up to it is 1 in overload.
    cut: f64,
}

/// A phase.
#[derive(Clone, Copy, Debug)]
struct Flow {
    load: f64,
    duration: f64,
    /// Jobs a unit of time.
    rate: f64,
}

/// What is approximated of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Processor sharing.
    Fair,
    /// Shortest remaining first.
    Srpt,
}

impl Policy {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Fair, Self::Srpt];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Srpt => "srpt",
        }
    }
}

impl Alternating {
    /// Sizes under `phases`: one with a load below 1, one with a load of more than 1, and all of it
    /// done before the next overload.
    pub fn new(sizes: &Distribution, phases: &[Phase]) -> Result<Self, TheoryError> {
        let mean = sizes.mean();
        if !(mean.is_finite() && mean > 0.0) {
            return Err(TheoryError::Mean);
        }
        let flow = |phase: &Phase| Flow {
            load: phase.load,
            duration: phase.duration_s,
            rate: phase.load / mean,
        };
        let (low, high) = match phases {
            [a, b] if a.load < 1.0 && b.load > 1.0 => (flow(a), flow(b)),
            [a, b] if b.load < 1.0 && a.load > 1.0 => (flow(b), flow(a)),
            _ => return Err(TheoryError::NoOverload),
        };
        let surplus = (high.load - 1.0) * high.duration;
        let spare = (1.0 - low.load) * low.duration;
        if surplus >= spare {
            let length = high.duration + low.duration;
            return Err(TheoryError::Load(1.0 + (surplus - spare) / length));
        }
        let (below, largest) = (Below::of(sizes), sizes.upper_quantile(SHARE_MIN));
        let growth = growth(&below, (least(mean, largest), largest), high);
        Ok(Self {
            draining: Draining::new(&below, (least(mean, largest), largest), low, high, growth),
            cut: cut(&below, largest, high),
            below,
            largest,
            low,
            high,
            growth,
        })
    }

    /// Jobs present when the overload ends.
    pub fn present_at_end(&self, policy: Policy) -> f64 {
        match policy {
            Policy::Fair => self.growth * self.high.duration,
            Policy::Srpt => {
                let up_to = self.below.at_most(self.cut);
                // Of equal jobs at the cut some are done and the others left.
                let surplus = (self.high.rate * up_to.first - 1.0).max(0.0) / self.cut;
                (self.high.rate * up_to.above + surplus) * self.high.duration
            }
        }
    }

    /// Time from the end of the overload until what it left is done, whatever the order.
    pub fn recovery(&self) -> f64 {
        (self.high.load - 1.0) * self.high.duration / (1.0 - self.low.load)
    }

    /// Mean response time of all jobs.
    pub fn mean_response(&self, policy: Policy) -> f64 {
        let nodes = self.below.nodes();
        let of_node = |node: &Node| node.share * self.response(policy, node.size);
        nodes.iter().map(of_node).sum()
    }

    /// Mean response time of jobs of `size`.
    pub fn response(&self, policy: Policy, size: f64) -> f64 {
        let (high, low) = match policy {
            Policy::Fair => (self.fair_high(size), self.fair_low(size)),
            Policy::Srpt => (self.srpt_high(size), self.srpt_low(size)),
        };
        let of_high = self.high.rate * self.high.duration;
        let of_low = self.low.rate * self.low.duration;
        (of_high * high + of_low * low) / (of_high + of_low)
    }

    fn fair_high(&self, size: f64) -> f64 {
        let end = self.high.duration;
        let came_at = |s: f64| {
            let served = (end / s).ln() / self.growth;
            if served >= size {
                return s * (self.growth * size).exp_m1() + size;
            }
            let left = size - served;
            end - s + served + self.draining.time(left) + left / (1.0 - self.low.load)
        };
        over(0.0, end, PARTS, came_at) / end
    }

    fn fair_low(&self, size: f64) -> f64 {
        let came_after = |t: f64| {
            let before = self.draining.served(t);
            self.draining.time(before + size) - t
        };
        let waiting = over(0.0, self.draining.end(), PARTS, came_after) / self.low.duration;
        waiting + size / (1.0 - self.low.load)
    }

    /// Load of all that is at most `size`, and of what is less: of equal jobs the older goes first.
    fn loads(&self, flow: Flow, size: f64) -> (f64, f64) {
        let load = |moments: Moments| flow.rate * moments.first;
        (
            load(self.below.at_most(size)),
            load(self.below.less_than(size)),
        )
    }

    fn srpt_high(&self, size: f64) -> f64 {
        let end = self.high.duration;
        let (up_to, less) = self.loads(self.high, size);
        let less_after = self.loads(self.low, size).1;
        let after = self.steady(self.low, size);
        let steady = (up_to < 1.0).then(|| self.steady(self.high, size));
        let came_at = |s: f64| {
            let ahead = (up_to - 1.0) * s;
            let ahead_at_end = ahead + (less - 1.0) * (end - s);
            let waiting = end - s + ahead_at_end.max(0.0) / (1.0 - less_after);
            let inside = match (steady, ahead_at_end < 0.0) {
                (Some(steady), _) => steady,
                (None, true) => (ahead + size) / (1.0 - less),
                (None, false) => f64::INFINITY,
            };
            (waiting + after).min(inside)
        };
        over(0.0, end, PARTS, came_at) / end
    }

    fn srpt_low(&self, size: f64) -> f64 {
        let (up_to, less) = self.loads(self.low, size);
        let surplus = (self.loads(self.high, size).0 - 1.0).max(0.0) * self.high.duration;
        // The longest wait, and how long after the overload the last has one.
        let (longest, last) = (surplus / (1.0 - less), surplus / (1.0 - up_to));
        longest * last / 2.0 / self.low.duration + self.steady(self.low, size)
    }

    /// Mean response time of a job of `size` under SRPT in a steady queue of Poisson arrivals
    /// (Schrage and Miller 1966), where the load up to its size is below 1.
    fn steady(&self, flow: Flow, size: f64) -> f64 {
        let free = |x: f64| 1.0 - flow.rate * self.below.at_most(x).first;
        // x = size u^3: finer where sizes are small.
        let slow = |u: f64| 3.0 * u * u * size / free(size * u * u * u);
        let residence = over(0.0, 1.0, PARTS, slow);
        let up_to = self.below.at_most(size);
        let second = up_to.second + size * (size * up_to.above);
        residence + flow.rate * second / 2.0 / free(size).powi(2)
    }

    /// The largest size that is looked at.
    pub fn largest(&self) -> f64 {
        self.largest
    }
}

/// ∫ f from `low` to `high`, cut into `parts`.
fn over(low: f64, high: f64, parts: u32, f: impl Fn(f64) -> f64) -> f64 {
    let step = (high - low) / f64::from(parts);
    let part = |index: u32| {
        let start = low + f64::from(index) * step;
        let weighed = points(start, start + step).map(|(at, weight)| weight * f(at));
        weighed.iter().sum::<f64>()
    };
    (0..parts).map(part).sum()
}

/// The least size that is told from 0.
fn least(mean: f64, largest: f64) -> f64 {
    (LEAST_OF_LARGEST * largest).min(LEAST_OF_MEAN * mean)
}

/// ∫ P(S > from + y) exp(-growth y) dy, all of it, for sizes from `least` to `largest`.
fn above_after(below: &Below, (least, largest): (f64, f64), from: f64, growth: f64) -> f64 {
    let of_logarithm = |log: f64| {
        let y = log.exp();
        y * below.at_most(from + y).above * (-growth * y).exp()
    };
    let most = largest.max(2.0 * least);
    least * below.at_most(from).above + over(least.ln(), most.ln(), PARTS_OF_SIZES, of_logarithm)
}

/// The z above 0 with λ(1 - E\[exp(-zS)\]) = z, that is with λ ∫ P(S > y) exp(-zy) dy = 1.
fn growth(below: &Below, sizes: (f64, f64), high: Flow) -> f64 {
    let (mut least, mut most) = (0.0, high.rate);
    for _ in 0..HALVINGS {
        let z = f64::midpoint(least, most);
        if high.rate * above_after(below, sizes, 0.0, z) > 1.0 {
            least = z;
        } else {
            most = z;
        }
    }
    f64::midpoint(least, most)
}

/// The size up to which the load is 1.
fn cut(below: &Below, largest: f64, high: Flow) -> f64 {
    let (mut least, mut most) = (0.0, largest);
    for _ in 0..HALVINGS {
        let size = f64::midpoint(least, most);
        if high.rate * below.at_most(size).first < 1.0 {
            least = size;
        } else {
            most = size;
        }
    }
    most
}

/// Sharing after the overload: q(S) jobs are present when each has had S since then, so that time
/// passes at the rate q(S) in S.
#[derive(Clone, Debug)]
struct Draining {
    /// S, rising.
    service: Vec<f64>,
    /// The time after the overload at each, rising.
    time: Vec<f64>,
}

impl Draining {
    /// Solves q(S) = n(S) + λ ∫ P(X > S - y) q(y) dy, n being those left of the overload, step by
    /// step; q is taken to be even within a step, the kernel is exact.
    fn new(below: &Below, sizes: (f64, f64), low: Flow, high: Flow, growth: f64) -> Self {
        let (least, largest) = sizes;
        // When each has had so much, no job of the overload is left, and those after it are few.
        let mean = low.load / low.rate;
        let whole = 2.0 * largest + 20.0 * mean / (1.0 - low.load);
        let ratio = (whole / least).powf(1.0 / f64::from(STEPS - 1));
        let end_of = |step: u32| least * ratio.powf(f64::from(step - 1));
        // ∫ P(X > x) up to x.
        let under = |x: f64| {
            let moments = below.at_most(x);
            moments.first + x * moments.above
        };
        let mut solved = Self {
            service: vec![0.0],
            time: vec![0.0],
        };
        // Mean of q within each step.
        let mut jobs: Vec<f64> = Vec::new();
        for step in 1..=STEPS {
            let (start, end) = (solved.service[step as usize - 1], end_of(step));
            let middle = f64::midpoint(start, end);
            let ends = solved.service.windows(2).zip(&jobs);
            let earlier =
                ends.map(|(ends, q)| q * (under(middle - ends[0]) - under(middle - ends[1])));
            let surviving = growth * above_after(below, sizes, middle, growth);
            let left = high.rate * high.duration * surviving;
            let own = low.rate * under(middle - start);
            let mean = (left + low.rate * earlier.sum::<f64>()) / (1.0 - own);
            let before = solved.time[step as usize - 1];
            jobs.push(mean);
            solved.service.push(end);
            solved.time.push(before + mean * (end - start));
        }
        solved
    }

    /// The time after the overload at which each has had `service`.
    fn time(&self, service: f64) -> f64 {
        between(&self.service, &self.time, service)
    }

    /// What each has had at `time` after the overload.
    fn served(&self, time: f64) -> f64 {
        between(&self.time, &self.service, time)
    }

    /// The time at which no job of the overload is left.
    fn end(&self) -> f64 {
        self.time.last().copied().unwrap_or_default()
    }
}

/// The y of x on straight lines; the last one beyond.
fn between(xs: &[f64], ys: &[f64], x: f64) -> f64 {
    let place = xs.partition_point(|known| *known <= x);
    match place {
        0 => ys[0],
        place if place == xs.len() => ys[place - 1],
        place => {
            let share = (x - xs[place - 1]) / (xs[place] - xs[place - 1]);
            ys[place - 1] + share * (ys[place] - ys[place - 1])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sizes: &str, schedule: &str) -> Alternating {
        let schedule: sooner_workload::Schedule = schedule.parse().expect("a schedule");
        Alternating::new(&sizes.parse().expect("a law"), schedule.phases()).expect("a system")
    }

    #[test]
    fn what_is_left_is_done_in_the_time_that_its_work_takes() {
        for sizes in [
            "exp:mean=1",
            "h2:mean=1,c2=16",
            "bpareto:k=1,p=1e6,alpha=1.1",
            "det:mean=3",
            "surge",
            "pareto:k=1,alpha=1.5",
        ] {
            let system = of(sizes, "0.4,1.3,10000,5000");
            let found = system.draining.end() / system.recovery();
            assert!((found - 1.0).abs() < 0.02, "{sizes}: {found}");
        }
    }

    #[test]
    fn exponential_sizes_have_a_growth_in_closed_form() {
        // λ z / (1 + z) = z gives z = λ - 1.
        let system = of("exp:mean=1", "0.4,1.3,10000,5000");
        assert!(
            (system.growth / 0.3 - 1.0).abs() < 1e-3,
            "{}",
            system.growth
        );
        assert!((system.present_at_end(Policy::Fair) / 1500.0 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn equal_sizes_wait_for_nobody_that_came_later_under_srpt() {
        // All of size 3: in order each waits for those before it, and sharing makes all end late.
        let system = of("det:mean=3", "0.4,1.3,10000,5000");
        let ratio = system.mean_response(Policy::Fair) / system.mean_response(Policy::Srpt);
        assert!((1.2..2.5).contains(&ratio), "{ratio}");
        // The surplus, 0.3 of the time for 5000, in jobs of 3.
        let left = system.present_at_end(Policy::Srpt);
        assert!((left / 500.0 - 1.0).abs() < 1e-6, "{left}");
    }

    #[test]
    fn the_smallest_never_notice_an_overload_under_srpt() {
        let system = of("bpareto:k=1,p=1e4,alpha=1.1", "0.4,1.3,82000,41000");
        let small = system.response(Policy::Srpt, 2.0);
        assert!(small < 10.0, "{small}");
        let fair = system.response(Policy::Fair, 2.0);
        assert!(fair > 5.0 * small, "{fair} over {small}");
        let largest = system.largest();
        let ratio = system.response(Policy::Srpt, largest) / system.response(Policy::Fair, largest);
        assert!((0.8..1.25).contains(&ratio), "{ratio}");
    }

    #[test]
    fn what_is_no_alternating_overload_is_refused() {
        let refused = |schedule: &str| {
            let schedule: sooner_workload::Schedule = schedule.parse().expect("a schedule");
            let sizes = "exp:mean=1".parse().expect("a law");
            Alternating::new(&sizes, schedule.phases())
                .expect_err("refused")
                .to_string()
        };
        assert!(refused("0.8").contains("one phase above 1 and one below"));
        assert!(refused("0.5,0.9,10,10").contains("one phase above 1 and one below"));
        assert!(refused("0.9,1.3,10,10").contains("load 1.1"));
    }
}
