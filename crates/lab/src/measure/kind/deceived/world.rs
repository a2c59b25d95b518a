//! Who asks for what, and when: honest clients with requests of six kinds, and what makes the
//! times of these kinds wrong. Pure: the same seed gives the same requests.
//!
//! Time is drawn in gaps of honest requests, and then stretched so that the load is what was asked
//! for, whatever was drawn.

use serde::Deserialize;
use sooner_workload::{Distribution, Rng};

const MS: f64 = 1e6;
/// Mean times of the honest kinds, ms, and how many in a hundred are of each.
const KINDS: [(f64, f64); 6] = [
    (1.0, 30.0),
    (3.0, 25.0),
    (10.0, 20.0),
    (30.0, 15.0),
    (100.0, 7.0),
    (300.0, 3.0),
];
const HONEST_CLIENTS: u64 = 50;
/// Clients of the adversary, where they are many, come after those.
const ADVERSARIES: u64 = 50;
/// Times within a kind, over its mean: heavy in the tail.
const WITHIN: &str = "lognormal:mu=-0.5,sigma=1";
/// A short request of the adversary takes so long, and a long one, ms.
const BAIT_MS: f64 = 1.0;
const SWITCH_MS: f64 = 1000.0;
/// A request that makes a kind of 1 ms look long, ms.
const POISON_MS: f64 = 100.0;
/// The share of all work that is the adversary's, one third: half of the honest.
const WORK: f64 = 0.5;
/// Kinds of the adversary begin here; each fresh one is one more.
const KINDS_FROM: u64 = 100;
/// From one change of all kinds to the next, in honest requests.
const REGIME: f64 = 2000.0;

/// What makes estimates wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deceit {
    /// Nothing but chance.
    None,
    /// One request in twenty takes a hundred times as long, and looks like the others.
    Hundredfold,
    /// Now and then short kinds become long and long ones short.
    Regimes,
    /// Short requests of a kind, then a dozen long ones of it at once, again and again.
    Bait,
    /// The same with a hundred at once.
    Flood,
    /// The same with a kind of its own for each.
    Fresh,
    /// Long requests of a kind that is short in the hands of others.
    Poison,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coming {
    pub at_ns: u64,
    /// Those of one kind look alike.
    pub kind: u64,
    pub client: u64,
    pub service_ns: u64,
    pub is_honest: bool,
}

/// What there is to draw.
#[derive(Clone, Copy, Debug)]
pub struct World {
    pub deceit: Deceit,
    /// Whether the adversary is one client, and not many.
    pub is_one: bool,
    /// How many requests come.
    pub requests: usize,
    pub places: usize,
    pub load: f64,
    pub seed: u64,
}

struct Drawn {
    at: f64,
    kind: u64,
    client: u64,
    ms: f64,
    is_honest: bool,
}

impl World {
    /// All requests, in the order in which they come.
    pub fn requests(&self) -> Vec<Coming> {
        let mut drawn = self.honest();
        drawn.extend(self.adversary(drawn.last().map_or(0.0, |last| last.at)));
        drawn.sort_by(|one, other| one.at.total_cmp(&other.at));
        drawn.truncate(self.requests);
        let work_ms: f64 = drawn.iter().map(|one| one.ms).sum();
        let span = drawn.last().map_or(1.0, |last| last.at);
        let ms_per_gap = work_ms / (span * self.load * self.places as f64);
        let coming = |one: Drawn| Coming {
            at_ns: (one.at * ms_per_gap * MS) as u64,
            kind: one.kind,
            client: one.client,
            service_ns: (one.ms * MS).max(1.0) as u64,
            is_honest: one.is_honest,
        };
        drawn.into_iter().map(coming).collect()
    }

    fn honest(&self) -> Vec<Drawn> {
        let (mut when, mut what) = (Rng::new(self.seed, 1), Rng::new(self.seed, 2));
        let (mut who, mut wrong) = (Rng::new(self.seed, 3), Rng::new(self.seed, 4));
        let within: Distribution = WITHIN.parse().expect("a law");
        let mut at = 0.0;
        let one = |_| {
            at += when.exponential();
            let kind = drawn_kind(what.uniform());
            let mut ms = KINDS[kind].0 * within.quantile(what.uniform());
            if self.deceit == Deceit::Hundredfold && wrong.uniform() < 0.05 {
                ms *= 100.0;
            }
            let is_reversed = self.deceit == Deceit::Regimes && (at / REGIME) as u64 % 2 == 1;
            let name = if is_reversed {
                KINDS.len() - 1 - kind
            } else {
                kind
            };
            Drawn {
                at,
                kind: name as u64,
                client: who.below(HONEST_CLIENTS),
                ms,
                is_honest: true,
            }
        };
        (0..self.requests).map(one).collect()
    }

    /// Those of the adversary until then.
    fn adversary(&self, until: f64) -> Vec<Drawn> {
        let (at_once, kind) = match self.deceit {
            Deceit::None | Deceit::Hundredfold | Deceit::Regimes => return Vec::new(),
            Deceit::Poison => return self.poison(until),
            Deceit::Bait | Deceit::Fresh => (12, KINDS_FROM),
            Deceit::Flood => (100, KINDS_FROM),
        };
        let mut random = Rng::new(self.seed, 5);
        // One bait for five honest requests, and what is left of the work at once.
        let bait_ms_per_gap = BAIT_MS / 5.0;
        let switch_ms_per_gap = WORK * mean_ms() - bait_ms_per_gap;
        let cycle = f64::from(at_once) * SWITCH_MS / switch_ms_per_gap;
        let mut drawn = Vec::new();
        let mut begin = 0.0;
        while begin < until {
            let mut at = begin + 5.0 * random.exponential();
            while at < begin + cycle {
                drawn.push((at, BAIT_MS));
                at += 5.0 * random.exponential();
            }
            let burst = begin + cycle / 2.0;
            drawn.extend((0..at_once).map(|_| (burst, SWITCH_MS)));
            begin += cycle;
        }
        let is_fresh = self.deceit == Deceit::Fresh;
        let one = |(number, (at, ms)): (usize, (f64, f64))| Drawn {
            at,
            kind: kind + if is_fresh { number as u64 } else { 0 },
            client: self.client(number as u64),
            ms,
            is_honest: false,
        };
        drawn.into_iter().enumerate().map(one).collect()
    }

    fn poison(&self, until: f64) -> Vec<Drawn> {
        let mut random = Rng::new(self.seed, 5);
        let gap = POISON_MS / (WORK * mean_ms());
        let mut at = 0.0;
        let mut drawn = Vec::new();
        while at < until {
            at += gap * random.exponential();
            drawn.push(Drawn {
                at,
                kind: 0,
                client: self.client(drawn.len() as u64),
                ms: POISON_MS,
                is_honest: false,
            });
        }
        drawn
    }

    fn client(&self, number: u64) -> u64 {
        let many = HONEST_CLIENTS + number % ADVERSARIES;
        if self.is_one { HONEST_CLIENTS } else { many }
    }
}

fn drawn_kind(part: f64) -> usize {
    let mut left = 100.0 * part;
    for (kind, (_, share)) in KINDS.iter().enumerate() {
        left -= share;
        if left < 0.0 {
            return kind;
        }
    }
    KINDS.len() - 1
}

/// Of an honest request.
fn mean_ms() -> f64 {
    KINDS.iter().map(|(ms, share)| ms * share / 100.0).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Deceit; 7] = [
        Deceit::None,
        Deceit::Hundredfold,
        Deceit::Regimes,
        Deceit::Bait,
        Deceit::Flood,
        Deceit::Fresh,
        Deceit::Poison,
    ];

    fn world(deceit: Deceit) -> World {
        World {
            deceit,
            is_one: false,
            requests: 20_000,
            places: 4,
            load: 0.7,
            seed: 1,
        }
    }

    fn work_ns(all: &[Coming], of: impl Fn(&Coming) -> bool) -> f64 {
        let of = all.iter().filter(|one| of(one));
        of.map(|one| one.service_ns as f64).sum()
    }

    #[test]
    fn the_load_is_as_said_and_a_third_of_it_the_adversarys() {
        for deceit in ALL {
            let all = world(deceit).requests();
            assert_eq!((all.len(), &all), (20_000, &world(deceit).requests()));
            let span_ns = all.last().expect("a request").at_ns as f64;
            let load = work_ns(&all, |_| true) / span_ns / 4.0;
            assert!((load - 0.7).abs() < 1e-3, "{deceit:?}: {load}");
            let share = work_ns(&all, |one| !one.is_honest) / work_ns(&all, |_| true);
            let has_adversary = ALL[3..].contains(&deceit);
            let right = if has_adversary {
                0.27..0.40
            } else {
                0.0..0.001
            };
            assert!(right.contains(&share), "{deceit:?}: {share}");
        }
    }

    #[test]
    fn each_deceit_makes_kinds_wrong_in_its_way() {
        let mean = |all: &[Coming], of: &dyn Fn(&Coming) -> bool| {
            let count = all.iter().filter(|one| of(one)).count();
            work_ns(all, of) / count as f64 / MS
        };
        let regimes = world(Deceit::Regimes).requests();
        // About as many honest requests have come when half a regime is over.
        let first = mean(&regimes[..1800], &|one| one.kind == 0);
        let second = mean(&regimes[2200..3800], &|one| one.kind == 0);
        assert!(first < 2.0 && second > 150.0, "{first} {second}");
        let poisoned = mean(&world(Deceit::Poison).requests(), &|one| one.kind == 0);
        assert!((20.0..40.0).contains(&poisoned), "{poisoned}");
        let bait = world(Deceit::Bait).requests();
        let long = |one: &&Coming| one.kind == KINDS_FROM && one.service_ns > 10_000_000;
        let bursts = bait.iter().filter(long).count();
        assert!(bursts >= 36 && bursts % 12 == 0, "{bursts}");
        let fresh = world(Deceit::Fresh).requests();
        let mut kinds: Vec<u64> = fresh
            .iter()
            .filter(|one| !one.is_honest)
            .map(|one| one.kind)
            .collect();
        kinds.sort_unstable();
        assert!(kinds.windows(2).all(|two| two[0] != two[1]));
    }
}
