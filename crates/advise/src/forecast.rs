//! The kept hours, simulated: as they were, and with so much more traffic that the busiest hour
//! comes to a given load.

use crate::queue::QueueFigures;
use crate::survey::{Survey, Surveyor};
use serde::Serialize;
use sooner_report::number::{bits_per_sec, significant};
use sooner_simulator::{Policy, given};
use sooner_stats::order::percentile;

/// Loads of the busiest hour that are forecast.
const LOADS: [f64; 4] = [0.7, 0.8, 0.9, 0.95];
/// Growth beyond which nothing is forecast: it would be another site.
const GROWTH_MAX: f64 = 1000.0;
/// Groups of equally many requests by size.
const GROUPS: usize = 100;
/// Turns in which those of one priority share, in ns of the link.
const TURN_NS: u64 = 1_000_000;
/// Most turns that are played: where there is more work, turns are longer.
const TURNS_MAX: u64 = 20_000_000;
/// Load of the busiest hour from which nothing is forecast: the rate is mistyped, or not of the
/// link that carried this.
const LOAD_MAX: f64 = 100.0;
/// Fewer requests may come at once, and are no load of an hour.
const LOAD_REQUESTS_MIN: u64 = 100;
/// Time for one response of mean size from which the rate is certainly mistyped, s.
const MEAN_SIZE_MAX_S: f64 = 600.0;

/// What is to be expected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// What the log is like.
    pub survey: Survey,
    /// The uplink as it was, and with growing traffic; empty where none is given.
    pub scenarios: Vec<Scenario>,
    /// The queue before the servers; `null` where the log has no time taken that can be believed.
    pub queue: Option<QueueFigures>,
}

/// One amount of traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// Times the observed traffic.
    pub growth: f64,
    /// Load of the busiest hour.
    pub busiest_hour_load: f64,
    /// Under each order.
    pub outcomes: Vec<Outcome>,
}

/// What an order gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// `fair`, `srpt`, `las`, `fsp` or `two-priorities`.
    pub policy: String,
    /// Mean response time, ms.
    pub mean_response_ms: f64,
    /// 99 % are not longer, ms.
    pub p99_response_ms: f64,
    /// Mean of response time over the time the response would take alone.
    pub mean_slowdown: f64,
    /// Mean response time of the smaller half, ms.
    pub smallest_half_mean_ms: f64,
    /// Of the largest 1 %.
    pub largest_1_percent_mean_ms: f64,
    /// Mean response time in each of a hundred groups by size, ms.
    pub by_size_mean_ms: Vec<f64>,
    /// Share of the requests in groups that wait more than 5 % longer than under FAIR.
    pub share_that_waits_longer: f64,
    /// The most that a group waits longer, as a factor.
    pub longest_over_fair: f64,
}

/// Why there is no forecast.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoForecast {
    /// The log has no requests.
    #[error("no line is a request in a known format")]
    Empty,
    /// It asks for far more than the uplink carries.
    #[error(
        "--uplink: the busiest hour of this log asks for {asked}, {times} times what an uplink of {uplink} carries; give what the server's link carries, such as 100mbit"
    )]
    Uplink {
        /// What the busiest hour asks for.
        asked: String,
        /// Over the uplink.
        times: String,
        /// The uplink.
        uplink: String,
    },
}

/// Ends a survey, and simulates what it kept.
pub fn forecast(surveyor: Surveyor) -> Result<Forecast, NoForecast> {
    let (survey, queue, kept) = surveyor.finish().ok_or(NoForecast::Empty)?;
    let Some(link) = &survey.link else {
        return Ok(Forecast {
            survey,
            scenarios: Vec::new(),
            queue,
        });
    };
    let (rate, busiest) = (link.uplink_bits_per_sec, link.busiest_hour_load);
    let mean_size_s = busiest * survey.span_s.min(3600.0) / survey.requests as f64;
    if busiest > LOAD_MAX && (survey.requests >= LOAD_REQUESTS_MIN || mean_size_s > MEAN_SIZE_MAX_S)
    {
        return Err(NoForecast::Uplink {
            asked: bits_per_sec(busiest * rate as f64),
            times: significant(busiest),
            uplink: bits_per_sec(rate as f64),
        });
    }
    let jobs = kept.jobs(rate);
    let mut growths = vec![1.0];
    growths.extend(
        LOADS
            .iter()
            .map(|load| load / busiest.max(1e-12))
            .filter(|growth| (1.05..=GROWTH_MAX).contains(growth)),
    );
    let scenarios = growths
        .into_iter()
        .map(|growth| Scenario {
            growth,
            busiest_hour_load: busiest * growth,
            outcomes: outcomes(&jobs, growth),
        })
        .collect();
    Ok(Forecast {
        survey,
        scenarios,
        queue,
    })
}

fn outcomes(jobs: &[given::Job], growth: f64) -> Vec<Outcome> {
    let sooner: Vec<given::Job> = jobs
        .iter()
        .map(|(at, size)| ((*at as f64 / growth) as u64, *size))
        .collect();
    let mut by_size: Vec<u32> = (0..jobs.len() as u32).collect();
    by_size.sort_by_key(|job| jobs[*job as usize].1);
    let cut = by_size
        .get(by_size.len().saturating_sub(1) / 2)
        .map_or(0, |job| jobs[*job as usize].1);
    let work_ns = jobs
        .iter()
        .fold(0_u64, |sum, job| sum.saturating_add(job.1));
    let turn_ns = TURN_NS.max(work_ns / TURNS_MAX);
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (name, policy) in [
        ("fair", Some(Policy::FAIR)),
        ("srpt", Some(Policy::SRPT)),
        ("las", Some(Policy::LAS)),
        ("fsp", Some(Policy::FSP)),
        ("two-priorities", None),
    ] {
        let responses = match policy {
            Some(policy) => given::responses(policy, &sooner),
            None => given::two_priorities(&sooner, cut, turn_ns),
        };
        let fair = outcomes.first().map(|fair| fair.by_size_mean_ms.clone());
        outcomes.push(outcome(name, jobs, &by_size, responses, fair.as_deref()));
    }
    outcomes
}

fn outcome(
    policy: &str,
    jobs: &[given::Job],
    by_size: &[u32],
    mut responses: Vec<u64>,
    fair: Option<&[f64]>,
) -> Outcome {
    let ms = |ns: f64| ns / 1e6;
    let mean = |of: &[u32]| -> f64 {
        let sum: f64 = of.iter().map(|job| responses[*job as usize] as f64).sum();
        ms(sum / of.len().max(1) as f64)
    };
    let n = by_size.len();
    let part = |group: usize| &by_size[group * n / GROUPS..(group + 1) * n / GROUPS];
    let groups: Vec<f64> = (0..GROUPS).map(|group| mean(part(group))).collect();
    let over: Vec<f64> = match fair {
        Some(fair) => groups
            .iter()
            .zip(fair)
            .map(|(ours, fair)| ours / fair.max(1e-9))
            .collect(),
        None => vec![1.0; GROUPS],
    };
    let slowdown = jobs
        .iter()
        .zip(&responses)
        .map(|(job, response)| *response as f64 / job.1.max(1) as f64);
    let outcome = Outcome {
        policy: policy.into(),
        mean_response_ms: mean(by_size),
        p99_response_ms: 0.0,
        mean_slowdown: slowdown.sum::<f64>() / n.max(1) as f64,
        smallest_half_mean_ms: mean(&by_size[..n / 2]),
        largest_1_percent_mean_ms: mean(&by_size[n - (n / 100).max(1).min(n)..]),
        by_size_mean_ms: groups,
        share_that_waits_longer: over.iter().filter(|factor| **factor > 1.05).count() as f64
            / GROUPS as f64,
        longest_over_fair: over.iter().copied().fold(0.0, f64::max),
    };
    responses.sort_unstable();
    let p99 = percentile(&responses, 990).unwrap_or(0);
    Outcome {
        p99_response_ms: ms(p99 as f64),
        ..outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_the_percentile_is_not_the_last() {
        let jobs: Vec<given::Job> = (0..100).map(|at| (at, 1_000_000)).collect();
        let by_size: Vec<u32> = (0..100).collect();
        let responses = (1..=100).map(|ms| ms * 1_000_000).collect();
        let outcome = outcome("fair", &jobs, &by_size, responses, None);
        assert_eq!(outcome.p99_response_ms, 99.0);
    }

    #[test]
    fn of_two_the_smaller_half_is_one() {
        let jobs = [(0, 1_000_000_000), (0, 3_000_000_000)];
        let all = outcomes(&jobs, 1.0);
        let halves = all.iter().find(|own| own.policy == "two-priorities");
        let smaller_ms = halves.map(|own| own.smallest_half_mean_ms);
        assert_eq!(smaller_ms, Some(1000.0));
    }
}
