//! What the servers do with so many inside: departures a second, and how long a request takes then.
//! From that how many are enough: beyond it more inside means longer times and no more departures.
//!
//! Departures are counted by how many are inside, over the time with so many. By Little's law a
//! request that always has n inside takes n over that rate.
//!
//! Where the counts could be those of k servers that share (departures grow up to k inside and
//! not beyond, it is taken for that: then nothing in what follows is chance. Otherwise the rates
//! are fitted as they are.

use super::inside::States;
use super::plateau::{self, Counted};
use serde::Serialize;

/// Fewest departures from which a rate is told: at most so many, and this part of all.
const LEAVES_MIN: u64 = 30;
const LEAVES_ENOUGH: u64 = 400;
const LEAVES_PART: u64 = 30;
/// So many standard errors are chance.
const ERRORS: f64 = 3.0;
/// Departures come in clumps where times vary; more than so much variance is not believed.
const C2_MAX: f64 = 25.0;
/// Nor is a difference of rates below this.
const NEAR: f64 = 0.05;
/// Servers that are tried.
const SERVERS_MAX: usize = 10_000;
/// Of the most departures so many are enough.
const ENOUGH: f64 = 0.95;
/// The log must show so many times that inside, or more inside could mean more departures.
const BEYOND: f64 = 1.5;

/// So many inside, and what they were given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Requests inside, in the mean over this level's time.
    pub inside: f64,
    /// Share of the time with so many.
    pub time_share: f64,
    /// Departures.
    pub leaves: u64,
    /// Departures a second.
    pub per_sec: f64,
    /// How long a request takes that always has so many inside, ms.
    pub mean_ms: f64,
}

/// The levels, and what follows from them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// By how many are inside.
    pub levels: Vec<Level>,
    /// The most departures a second, over the levels between which no difference is sure.
    pub most_per_sec: f64,
    /// So many servers that share would do the same, or so many take requests one after the other;
    /// `null` where none would.
    pub servers: Option<usize>,
    /// Fewest inside that give 95 % of that; `null` where the log does not show enough inside to
    /// say.
    pub enough: Option<usize>,
    /// Departures a second with the most inside.
    pub last_per_sec: f64,
    /// Inside and departures a second.
    #[serde(skip)]
    fitted: Vec<(f64, f64)>,
}

impl Curve {
    /// Of these states, where times have this squared coefficient of variation; none of too few
    /// departures.
    pub fn of(states: &States, c2: f64) -> Option<Self> {
        let levels = levels(states);
        levels.first()?;
        let counted = levels.iter().map(|level| Counted {
            events: level.leaves as f64,
            time: level.leaves as f64 / level.per_sec,
        });
        let errors = ERRORS * c2.clamp(1.0, C2_MAX).sqrt();
        let servers = servers(&levels, errors);
        let (rates, most_per_sec) = match servers {
            Some((servers, each_per_sec)) => (
                levels
                    .iter()
                    .map(|level| each_per_sec * level.inside.min(servers as f64))
                    .collect(),
                each_per_sec * servers as f64,
            ),
            None => plateau::fit(&counted.collect::<Vec<_>>(), errors),
        };
        let inside = levels.iter().map(|level| level.inside);
        let fitted: Vec<(f64, f64)> = inside.zip(rates).collect();
        let mut curve = Self {
            last_per_sec: fitted.last().map_or(0.0, |point| point.1),
            levels,
            most_per_sec,
            servers: servers.map(|servers| servers.0),
            enough: None,
            fitted,
        };
        curve.enough = curve.found_enough();
        Some(curve)
    }

    /// The same where so many servers take requests one after the other.
    pub fn in_turn(&mut self, servers: usize) {
        let busy = |inside: f64| inside.min(servers as f64);
        let seconds = |level: &Level| level.leaves as f64 / level.per_sec;
        let leaves: f64 = self.levels.iter().map(|level| level.leaves as f64).sum();
        let times = self.levels.iter();
        let busy_s: f64 = times.map(|level| busy(level.inside) * seconds(level)).sum();
        let each_per_sec = leaves / busy_s;
        for (inside, per_sec) in &mut self.fitted {
            *per_sec = each_per_sec * busy(*inside);
        }
        self.most_per_sec = each_per_sec * servers as f64;
        self.last_per_sec = self.fitted.last().map_or(0.0, |point| point.1);
        self.servers = Some(servers);
        let most_inside = self.fitted.last().map_or(0.0, |point| point.0);
        self.enough = (most_inside >= BEYOND * servers as f64).then_some(servers);
    }

    fn found_enough(&self) -> Option<usize> {
        let most_inside = self.fitted.last()?.0;
        let first = self.fitted.first()?.0.floor().max(1.0) as usize;
        let enough_per_sec = ENOUGH * self.most_per_sec;
        let enough = (first..=most_inside.ceil() as usize)
            .find(|inside| self.per_sec(*inside as f64) >= enough_per_sec)?;
        (most_inside >= BEYOND * enough as f64).then_some(enough)
    }

    /// Departures a second with so many inside: straight between levels, and below the first as
    /// many less as fewer are inside.
    pub fn per_sec(&self, inside: f64) -> f64 {
        let after = self.fitted.partition_point(|point| point.0 < inside);
        match (
            after.checked_sub(1).map(|place| self.fitted[place]),
            self.fitted.get(after),
        ) {
            (None, Some(first)) => first.1 * inside / first.0,
            (Some(last), None) => last.1,
            (Some(low), Some(high)) => {
                low.1 + (high.1 - low.1) * (inside - low.0) / (high.0 - low.0)
            }
            (None, None) => 0.0,
        }
    }

    /// How many times as long as alone a request takes with 0, 1, 2 and so on inside, up to `most`;
    /// it never falls.
    pub fn stretch(&self, most: usize) -> Vec<f64> {
        let alone = self.fitted.first().map_or(1.0, |first| first.0 / first.1);
        let mut longest = 1.0_f64;
        let mut stretch = vec![1.0];
        for inside in 1..=most {
            let inside = inside as f64;
            longest = longest.max(inside / self.per_sec(inside) / alone);
            stretch.push(longest);
        }
        stretch
    }
}

/// The number of servers that share by which the departures are likeliest, and what each does a
/// second; none where that is off by more than chance.
fn servers(levels: &[Level], errors: f64) -> Option<(usize, f64)> {
    let most = levels.last()?.inside.ceil() as usize;
    let seconds = |level: &Level| level.leaves as f64 / level.per_sec;
    let of = |servers: usize| {
        let busy = |level: &Level| level.inside.min(servers as f64);
        let leaves: f64 = levels.iter().map(|level| level.leaves as f64).sum();
        let busy_s: f64 = levels
            .iter()
            .map(|level| busy(level) * seconds(level))
            .sum();
        let each = leaves / busy_s;
        let likelihood = |level: &Level| level.leaves as f64 * (each * busy(level)).ln();
        // The sum of expected departures is the same for all.
        (levels.iter().map(likelihood).sum::<f64>(), servers, each)
    };
    let all = (1..=most.min(SERVERS_MAX)).map(of);
    let (_, servers, each) = all.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let is_near = levels.iter().all(|level| {
        let off = level.per_sec / (each * level.inside.min(servers as f64)) - 1.0;
        off.abs() <= (errors / (level.leaves as f64).sqrt()).max(NEAR)
    });
    is_near.then_some((servers, each))
}

/// Numbers inside are put together until each level has enough departures.
fn levels(states: &States) -> Vec<Level> {
    let all_leaves: u64 = states.leaves.iter().sum();
    let all_ns: u64 = states.time_ns.iter().sum();
    let least = (all_leaves / LEAVES_PART).clamp(LEAVES_MIN, LEAVES_ENOUGH);
    let mut levels = Vec::new();
    let (mut ns, mut leaves, mut inside_ns) = (0_u64, 0_u64, 0.0);
    let states = states
        .time_ns
        .iter()
        .zip(&states.leaves)
        .enumerate()
        .skip(1);
    for (inside, (more_ns, more_leaves)) in states {
        ns += more_ns;
        leaves += more_leaves;
        inside_ns += inside as f64 * *more_ns as f64;
        if leaves >= least && ns > 0 {
            let (mean, seconds) = (inside_ns / ns as f64, ns as f64 / 1e9);
            let per_sec = leaves as f64 / seconds;
            levels.push(Level {
                inside: mean,
                time_share: ns as f64 / all_ns as f64,
                leaves,
                per_sec,
                mean_ms: mean / per_sec * 1e3,
            });
            (ns, leaves, inside_ns) = (0, 0, 0.0);
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many departures a second with 1, 2, 3 and so on inside, each for 1000 s.
    fn of(per_sec: &[u64]) -> Curve {
        let time_ns = vec![1_000_000_000_000; per_sec.len() + 1];
        let leaves = [0].iter().chain(per_sec).map(|rate| rate * 1000).collect();
        Curve::of(&States { time_ns, leaves }, 1.0).expect("departures")
    }

    #[test]
    fn enough_are_where_departures_stop_growing() {
        let one = of(&[100, 101, 99, 100]);
        assert_eq!((one.enough, one.servers), (Some(1), Some(1)));
        let four = of(&[50, 100, 150, 200, 201, 199, 200, 200]);
        assert_eq!((four.enough, four.servers), (Some(4), Some(4)));
        assert_eq!(four.stretch(8)[..5], [1.0; 5]);
        assert!((four.stretch(8)[8] - 2.0).abs() < 0.01);
        let thrashing = of(&[100, 190, 200, 150, 100, 50]);
        assert_eq!((thrashing.enough, thrashing.servers), (Some(2), None));
        assert_eq!(thrashing.last_per_sec, 50.0);
    }

    #[test]
    fn what_still_grows_has_not_had_enough() {
        assert_eq!(of(&[10, 20, 30, 40, 50, 60]).enough, None);
        assert_eq!(of(&[10]).enough, None);
        assert_eq!(of(&[10, 20, 29, 30]).enough, None);
        assert_eq!(Curve::of(&States::default(), 1.0), None);
    }

    #[test]
    fn rates_between_levels_are_straight() {
        let curve = of(&[100, 150]);
        assert_eq!(curve.per_sec(1.5), 125.0);
        assert_eq!(curve.per_sec(0.5), 50.0);
        assert_eq!(curve.per_sec(9.0), 150.0);
    }
}
