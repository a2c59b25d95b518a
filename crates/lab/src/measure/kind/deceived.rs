//! `deceived`: orders before a backend where estimates are wrong by chance or on purpose, by the
//! admission code of `sooner serve` in the time of a simulation. Nothing is timed, so no quiet
//! moment is waited for. Each turn has a seed of its own, and all ways of it the same requests.

mod play;
mod sums;
mod world;

use super::{Keys, Kind, figures, keys_of};
use crate::measure::bench::{Attempt, Bench};
use crate::measure::{Measure, Record};
use anyhow::{Context, Result};
use play::{Played, play};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_admission::Within;
use world::{Coming, Deceit, World};

const MS: f64 = 1e6;
const SECOND: f64 = 1e9;

/// `deceived`.
#[derive(Debug)]
pub struct Deceived {
    requests: usize,
    ways: Vec<Way>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeceivedKeys {
    requests: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    order: OrderName,
    /// Whether clients share who wait (`share_by = "client"`).
    #[serde(default)]
    shared: bool,
}

/// As `order` of an upstream has it, and the shortest first where all is known.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OrderName {
    Fifo,
    Shortest,
    Boost,
    Hrrn,
    Nudge,
    Auto,
    Perfect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    deceit: Deceit,
    /// Whether the adversary is one client.
    #[serde(default)]
    is_one: bool,
}

impl Deceived {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            requests: keys.own::<DeceivedKeys>()?.requests,
            ways: keys.ways()?,
            cases: keys.cases()?,
        }))
    }
}

impl Way {
    fn played(&self) -> play::Way {
        let within = match self.order {
            OrderName::Fifo => Some(Within::Fcfs),
            OrderName::Shortest => Some(Within::Expected),
            OrderName::Boost => Some(Within::Boost),
            OrderName::Hrrn => Some(Within::Hrrn),
            OrderName::Nudge => Some(Within::Nudge),
            OrderName::Auto => Some(Within::Auto),
            OrderName::Perfect => None,
        };
        play::Way {
            within,
            is_shared: self.shared,
        }
    }
}

impl Kind for Deceived {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        for case in &bench.cases(measure) {
            let keys = keys_of(measure.place_of_case(case), &self.cases)?;
            let places = case.text("places").parse().context("places: a number")?;
            let load = case.text("load").parse().context("load: a number")?;
            for turn in 0..bench.turns(measure) {
                bench.tell(&format!("{} {}, turn {turn}", measure.name, case.id));
                let world = World {
                    deceit: keys.deceit,
                    is_one: keys.is_one,
                    requests: self.requests / if bench.is_quick { 20 } else { 1 },
                    places,
                    load,
                    seed: u64::from(turn) + 1,
                };
                let requests = world.requests();
                for way in &measure.listed_ways() {
                    let order = keys_of(measure.place_of_way(way), &self.ways)?;
                    let played = play(&requests, places, order.played());
                    let found = of_run(&requests, &played).context("a run without requests")?;
                    let attempt = Attempt {
                        number: 1,
                        stolen_cpu_seconds: 0.0,
                    };
                    record.add(measure.row(case, way, turn, found, attempt))?;
                }
            }
        }
        Ok(())
    }
}

/// Means and tails of the honest and of all, and how far promises were used up.
fn of_run(requests: &[Coming], played: &Played) -> Option<Map<String, Value>> {
    let mut all = played.responses_ns.clone();
    let both = requests.iter().zip(&all);
    let honest = both.filter(|(coming, _)| coming.is_honest);
    let mut honest: Vec<u64> = honest.map(|(_, &ns)| ns).collect();
    let worst = &played.worst;
    Some(figures([
        ("honest_mean_ms", mean(&honest) / MS),
        ("mean_ms", mean(&all) / MS),
        ("honest_p99_ms", p99(&mut honest)? / MS),
        ("p99_ms", p99(&mut all)? / MS),
        ("honest_max_s", *honest.iter().max()? as f64 / SECOND),
        ("bound_expected", worst.expected),
        ("bound_settled", worst.settled),
        ("bound_truth", worst.truth),
        ("passed_s", worst.passed_ns as f64 / SECOND),
    ]))
}

fn mean(all: &[u64]) -> f64 {
    all.iter().map(|&ns| ns as f64).sum::<f64>() / all.len() as f64
}

fn p99(all: &mut [u64]) -> Option<f64> {
    let at = (99 * all.len()).div_ceil(100).checked_sub(1)?;
    Some(*all.select_nth_unstable(at).1 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(deceit: Deceit) -> World {
        World {
            deceit,
            is_one: false,
            requests: 4000,
            places: 2,
            load: 0.8,
            seed: 3,
        }
    }

    fn figure(requests: &[Coming], order: OrderName, shared: bool, name: &str) -> f64 {
        let way = Way { order, shared };
        let row = of_run(requests, &play(requests, 2, way.played())).expect("requests");
        row[name].as_f64().expect("a number")
    }

    #[test]
    fn first_come_first_served_is_as_each_finds_the_place_that_is_free_first() {
        let requests = world(Deceit::None).requests();
        let mut free = [0; 2];
        let mut sum = 0.0;
        for one in &requests {
            let first = usize::from(free[1] < free[0]);
            free[first] = free[first].max(one.at_ns) + one.service_ns;
            sum += (free[first] - one.at_ns) as f64;
        }
        let mean_ms = figure(&requests, OrderName::Fifo, false, "mean_ms");
        assert!((mean_ms / (sum / 4000.0 / MS) - 1.0).abs() < 1e-9);
        assert_eq!(
            figure(&requests, OrderName::Fifo, false, "bound_truth"),
            0.0
        );
        let shortest = figure(&requests, OrderName::Shortest, false, "mean_ms");
        let perfect = figure(&requests, OrderName::Perfect, false, "mean_ms");
        assert!(perfect < shortest && shortest < mean_ms);
    }

    #[test]
    fn promises_are_kept_whoever_deceives() {
        for deceit in [Deceit::Hundredfold, Deceit::Flood, Deceit::Poison] {
            let requests = world(deceit).requests();
            for order in [OrderName::Shortest, OrderName::Boost, OrderName::Auto] {
                for shared in [false, true] {
                    let of = |name| figure(&requests, order, shared, name);
                    let used = (of("bound_expected"), of("bound_settled"));
                    assert!(
                        used.0 <= 1.0 && used.1 <= 1.0,
                        "{deceit:?} {order:?}: {used:?}"
                    );
                }
            }
        }
    }
}
