//! Backends by formula: throughput for every number of jobs inside, and the chance that completions
//! in a tenth of a second have.

use super::random::Random;
use super::{MAX, TICK_NS, Window};
use sooner_admission::start;
use sooner_theory::closed::{Station, throughputs, users_for_share};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// One to eight processors.
    Processors,
    /// One to eight disks.
    Disks,
    /// Processors and disks with the same to do.
    Balanced,
    /// The same, and jobs that lock each other out.
    Locks,
}

impl Family {
    pub const ALL: [Self; 4] = [Self::Processors, Self::Disks, Self::Balanced, Self::Locks];
}

#[derive(Clone, Debug)]
pub struct Curve {
    /// Jobs a second with 1, 2, ... inside.
    per_sec: Vec<f64>,
    /// Variability of what jobs take.
    c2: f64,
}

impl Curve {
    pub fn random(family: Family, c2: f64, random: &mut Random) -> Self {
        let count = |random: &mut Random| 1 + random.below(8);
        let stations = match family {
            Family::Processors => vec![
                Station::Servers {
                    demand: 1.0,
                    count: count(random),
                },
                // The log, of which there is little.
                Station::Queue {
                    demand: random.between(0.0, 0.1),
                },
            ],
            Family::Disks => {
                let demand = Station::Queue { demand: 1.0 };
                vec![demand; count(random)]
            }
            Family::Balanced => {
                let disks = count(random);
                let processors = count(random);
                let mut stations = vec![Station::Queue { demand: 1.0 }; disks];
                stations.push(Station::Servers {
                    demand: processors as f64,
                    count: processors,
                });
                stations
            }
            Family::Locks => vec![
                Station::Servers {
                    demand: 1.0,
                    count: count(random),
                },
                Station::Queue {
                    demand: random.between(0.1, 0.5),
                },
            ],
        };
        let scale = random.log_between(50.0, 5000.0);
        let mut per_sec = throughputs(&stations, MAX).unwrap();
        let last = per_sec[MAX - 1];
        per_sec.iter_mut().for_each(|rate| *rate *= scale / last);
        if family == Family::Locks {
            let (half, steepness) = (random.log_between(8.0, 60.0), random.between(1.0, 3.0));
            for (jobs, rate) in (1..).zip(&mut per_sec) {
                *rate /= 1.0 + (f64::from(jobs) / half).powf(steepness);
            }
        }
        Self { per_sec, c2 }
    }

    pub fn slowed(&self, factor: f64) -> Self {
        Self {
            per_sec: self.per_sec.iter().map(|rate| rate / factor).collect(),
            c2: self.c2,
        }
    }

    pub fn at(&self, jobs: usize) -> f64 {
        self.per_sec[jobs - 1]
    }

    pub fn best(&self) -> f64 {
        self.per_sec.iter().copied().fold(0.0, f64::max)
    }

    /// The fewest with all but `loss` of the best.
    pub fn enough(&self, loss: f64) -> usize {
        let enough = |rate: &f64| *rate >= (1.0 - loss) * self.best();
        1 + self.per_sec.iter().position(enough).unwrap()
    }

    /// What is seen in a tick with `limit` inside and `users` who ask again at once.
    pub fn tick(&self, limit: usize, users: usize, random: &mut Random) -> Window {
        let inside = limit.min(users);
        let rate = self.at(inside);
        let seconds = TICK_NS as f64 / 1e9;
        let mean = rate * seconds;
        // Many jobs of a variability C² take a time of which the share of chance is C² over their
        // number.
        let chance = (self.c2 * mean).sqrt() * random.normal();
        let completed = (mean + chance).round().max(0.0) as u64;
        let service_ns = inside as f64 / rate * 1e9;
        Window {
            duration_ns: TICK_NS,
            backlogged_ns: if users > limit { TICK_NS } else { 0 },
            inside_ns: inside as u128 * u128::from(TICK_NS),
            completed,
            service_sum_ns: (completed as f64 * service_ns) as u128,
            service_squares_ns2: completed as f64 * service_ns.powi(2) * (1.0 + self.c2),
        }
    }
}

/// Two stations with equally much to do, one of them of several processors (thesis 9.3.5).
#[test]
fn the_start_is_what_the_closed_network_says() {
    for processors in 1..=32 {
        let stations = [
            Station::Servers {
                demand: processors as f64,
                count: processors,
            },
            Station::Queue { demand: 1.0 },
        ];
        for loss in [0.013, 0.027, 0.07, 0.11, 0.3] {
            let found = users_for_share(&stations, 1.0 - loss).expect("a network with a queue");
            assert_eq!(Some(start(processors, loss)), found, "{processors} {loss}");
        }
    }
    assert_eq!(start(1, 0.05), 19, "two equal queues: m / (m + 1)");
    assert_eq!(start(0, 0.05), 19);
    assert!(start(8, 0.05) > 19 && start(1, 0.2) < 19);
}
