//! Closed networks of one class with a product form: throughput, response and queue lengths for a
//! number of users.
//!
//! What mean value analysis gives (Reiser and Lavenberg 1980), for stations of any speed that
//! depends on their queue. Computed by Buzen's convolution (1973) in logarithms, because the
//! recursion for such stations takes differences of almost equal numbers near saturation, and a sum
//! of positive numbers does not.

use crate::TheoryError;

/// Users at most: the work grows with their square.
pub const USERS_MAX: usize = 5_000;

/// A place where jobs are served, or think.
#[derive(Clone, Debug, PartialEq)]
pub enum Station {
    /// One server; the demand is visits times service time.
    Queue {
        /// Work that a job brings.
        demand: f64,
    },
    /// So many equal servers with one queue.
    Servers {
        /// Work that a job brings.
        demand: f64,
        /// How many.
        count: usize,
    },
    /// No job waits for another: think time.
    Delay {
        /// How long.
        time: f64,
    },
    /// A speed for each number of jobs, from 1 on, none less than the one before; the last one goes
    /// on.
    LoadDependent {
        /// Work that a job brings.
        demand: f64,
        /// Work a unit of time.
        speeds: Vec<f64>,
    },
}

/// A closed network with some number of users in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// Users.
    pub users: usize,
    /// Jobs a unit of time.
    pub throughput: f64,
    /// Time from leaving the delays to coming back to them.
    pub mean_response: f64,
    /// Jobs at each station, in the order in which they were given.
    pub mean_jobs: Vec<f64>,
}

impl Station {
    fn is_delay(&self) -> bool {
        matches!(self, Self::Delay { .. })
    }

    /// The most work it does a unit of time, over a job's demand; infinite for delays.
    fn jobs_per_time_max(&self) -> f64 {
        match self {
            Self::Queue { demand } => 1.0 / demand,
            Self::Servers { demand, count } => *count as f64 / demand,
            Self::Delay { .. } => f64::INFINITY,
            Self::LoadDependent { demand, speeds } => {
                speeds.last().map_or(f64::INFINITY, |speed| speed / demand)
            }
        }
    }

    fn problem(&self) -> Option<String> {
        let is_time = |time: f64| time.is_finite() && time >= 0.0;
        match self {
            Self::Queue { demand } | Self::Servers { demand, .. } if !is_time(*demand) => {
                Some(format!("demand {demand} is out of range; give 0 or above"))
            }
            Self::Servers { count: 0, .. } => Some("0 servers: at least one".into()),
            Self::Delay { time } if !is_time(*time) => {
                Some(format!("time {time} is out of range; give 0 or above"))
            }
            Self::LoadDependent { demand, speeds } => {
                let are_speeds = speeds.iter().all(|speed| speed.is_finite() && *speed > 0.0);
                (!is_time(*demand) || speeds.is_empty() || !are_speeds || !speeds.is_sorted())
                    .then(|| "speeds: at least one, all above 0 and none less than the one before, and a demand of 0 or above".into())
            }
            _ => None,
        }
    }

    /// ln of the weight of 0, 1, ... `users` jobs at this station.
    fn log_weights(&self, users: usize) -> Vec<f64> {
        let step = |jobs: usize| -> f64 {
            match self {
                Self::Queue { demand } => demand.ln(),
                Self::Servers { demand, count } => (demand / jobs.min(*count) as f64).ln(),
                Self::Delay { time } => (time / jobs as f64).ln(),
                Self::LoadDependent { demand, speeds } => {
                    (demand / speeds[(jobs - 1).min(speeds.len() - 1)]).ln()
                }
            }
        };
        let mut so_far = 0.0;
        let rest = (1..=users).map(|jobs| {
            so_far += step(jobs);
            so_far
        });
        std::iter::once(0.0).chain(rest).collect()
    }
}

/// The network with `users` users; fails without users, with too many, or with a station that
/// cannot be.
pub fn solve(stations: &[Station], users: usize) -> Result<Closed, TheoryError> {
    check(stations, users)?;
    let weights: Vec<Vec<f64>> = stations.iter().map(|one| one.log_weights(users)).collect();
    let all = convolve_all(&weights, users);
    let throughput = (all[users - 1] - all[users]).exp();
    let mean_jobs = mean_jobs(&weights, users, &all);
    let here = stations.iter().zip(&mean_jobs);
    let served = here.filter(|(station, _)| !station.is_delay());
    let served: f64 = served.map(|(_, jobs)| jobs).sum();
    Ok(Closed {
        users,
        throughput,
        mean_response: served / throughput,
        mean_jobs,
    })
}

/// Throughput with 1, 2, ... `users` users, a number each.
pub fn throughputs(stations: &[Station], users: usize) -> Result<Vec<f64>, TheoryError> {
    check(stations, users)?;
    let weights: Vec<Vec<f64>> = stations.iter().map(|one| one.log_weights(users)).collect();
    let all = convolve_all(&weights, users);
    Ok(all
        .windows(2)
        .map(|pair| (pair[0] - pair[1]).exp())
        .collect())
}

/// The fewest users with `share` of the throughput that no number of users exceeds (thesis 9.3,
/// Figure 9.7); none where even the most that can be computed do not reach it.
pub fn users_for_share(stations: &[Station], share: f64) -> Result<Option<usize>, TheoryError> {
    let best = stations
        .iter()
        .map(Station::jobs_per_time_max)
        .fold(f64::INFINITY, f64::min);
    if best == f64::INFINITY {
        return Err(TheoryError::Station(
            "no job waits anywhere, so there is no highest throughput".into(),
        ));
    }
    let mut users = 64;
    loop {
        let found = throughputs(stations, users)?;
        if let Some(at) = found.iter().position(|one| *one >= share * best) {
            return Ok(Some(at + 1));
        }
        if users == USERS_MAX {
            return Ok(None);
        }
        users = (2 * users).min(USERS_MAX);
    }
}

fn check(stations: &[Station], users: usize) -> Result<(), TheoryError> {
    if users == 0 || users > USERS_MAX {
        return Err(TheoryError::Users(users));
    }
    if let Some(problem) = stations.iter().find_map(Station::problem) {
        return Err(TheoryError::Station(problem));
    }
    let is_any_work = stations.iter().any(|one| one.log_weights(1)[1].is_finite());
    if !is_any_work {
        return Err(TheoryError::Station(
            "no station has a demand above 0; give at least one".into(),
        ));
    }
    Ok(())
}

/// ln of the normalising constants for 0, 1, ... `users` users.
fn convolve_all(weights: &[Vec<f64>], users: usize) -> Vec<f64> {
    let all = weights.iter();
    all.fold(no_station(users), |so_far, one| convolve(&so_far, one))
}

/// Of a network without any station: no user can be in it.
fn no_station(users: usize) -> Vec<f64> {
    let mut empty = vec![f64::NEG_INFINITY; users + 1];
    empty[0] = 0.0;
    empty
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len()).map(|n| convolved_at(a, b, n)).collect()
}

fn convolved_at(a: &[f64], b: &[f64], n: usize) -> f64 {
    let terms = (0..=n).map(|j| a[n - j] + b[j]);
    let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + terms.map(|term| (term - largest).exp()).sum::<f64>().ln()
}

/// At each station, with as many users as `all` is for: its own weights against those of all before
/// and behind it.
fn mean_jobs(weights: &[Vec<f64>], users: usize, all: &[f64]) -> Vec<f64> {
    let mut behind = vec![no_station(users)];
    for one in weights.iter().skip(1).rev() {
        behind.push(convolve(&behind[behind.len() - 1], one));
    }
    let mut before = no_station(users);
    let mut jobs = Vec::new();
    for (one, behind) in weights.iter().zip(behind.iter().rev()) {
        let others = convolve(&before, behind);
        let share = |count: usize| (one[count] + others[users - count] - all[users]).exp();
        jobs.push((1..=users).map(|count| count as f64 * share(count)).sum());
        before = convolve(&before, one);
    }
    jobs
}
