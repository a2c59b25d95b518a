//! Closed networks of one class with a product form: throughput, response and queue lengths for a number of users.
//!
//! What mean value analysis gives (Reiser and Lavenberg 1980), for stations of any speed that depends on their queue. Computed by Buzen's
//! convolution (1973) in logarithms, because the recursion for such stations takes differences of almost equal numbers near saturation, and a
//! sum of positive numbers does not.

use crate::TheoryError;

/// Work of this many users is a second's work at most.
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
    /// Nobody waits for anybody: think time.
    Delay {
        /// How long.
        time: f64,
    },
    /// A speed for each number of jobs, from 1 on; the last one goes on.
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
                Some(format!("demand {demand}: 0 or above"))
            }
            Self::Servers { count: 0, .. } => Some("0 servers: at least one".into()),
            Self::Delay { time } if !is_time(*time) => Some(format!("time {time}: 0 or above")),
            Self::LoadDependent { demand, speeds } => {
                let are_speeds = speeds.iter().all(|speed| speed.is_finite() && *speed > 0.0);
                (!is_time(*demand) || speeds.is_empty() || !are_speeds)
                    .then(|| "speeds: at least one, all above 0, and a demand of 0 or above".into())
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

/// The network with `users` users; fails without users, with too many, or with a station that cannot be.
pub fn solve(stations: &[Station], users: usize) -> Result<Closed, TheoryError> {
    check(stations, users)?;
    let weights: Vec<Vec<f64>> = stations.iter().map(|one| one.log_weights(users)).collect();
    let all = convolve_all(&weights, users);
    let throughput = (all[users - 1] - all[users]).exp();
    let mean_jobs = (0..stations.len()).map(|at| mean_jobs(&weights, at, &all));
    let mean_jobs: Vec<f64> = mean_jobs.collect();
    let thinking: f64 = stations
        .iter()
        .zip(&mean_jobs)
        .filter(|(station, _)| station.is_delay())
        .map(|(_, jobs)| jobs)
        .sum();
    Ok(Closed {
        users,
        throughput,
        mean_response: (users as f64 - thinking) / throughput,
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

/// The fewest users with `share` of the throughput that no number of users exceeds (thesis 9.3, Figure 9.7); none where even the most that
/// can be computed do not reach it.
pub fn users_for_share(stations: &[Station], share: f64) -> Result<Option<usize>, TheoryError> {
    let best = stations
        .iter()
        .map(Station::jobs_per_time_max)
        .fold(f64::INFINITY, f64::min);
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
            "nowhere has a job anything to do".into(),
        ));
    }
    Ok(())
}

/// ln of the normalising constants for 0, 1, ... `users` users.
fn convolve_all(weights: &[Vec<f64>], users: usize) -> Vec<f64> {
    let mut nobody = vec![f64::NEG_INFINITY; users + 1];
    nobody[0] = 0.0;
    weights
        .iter()
        .fold(nobody, |so_far, one| convolve(&so_far, one))
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let sum_at = |n: usize| {
        let terms = (0..=n).map(|j| a[n - j] + b[j]);
        let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return largest;
        }
        largest + terms.map(|term| (term - largest).exp()).sum::<f64>().ln()
    };
    (0..a.len()).map(sum_at).collect()
}

/// At one of the stations, with as many users as `all` is for.
fn mean_jobs(weights: &[Vec<f64>], at: usize, all: &[f64]) -> f64 {
    let users = all.len() - 1;
    let others: Vec<Vec<f64>> = weights
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != at)
        .map(|(_, one)| one.clone())
        .collect();
    let others = convolve_all(&others, users);
    let share = |jobs: usize| (weights[at][jobs] + others[users - jobs] - all[users]).exp();
    (1..=users).map(|jobs| jobs as f64 * share(jobs)).sum()
}
