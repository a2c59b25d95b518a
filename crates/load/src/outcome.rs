//! From what happened to what is reported: samples, ideals for the very same arrivals, verdict.

use crate::failure::Failure;
use crate::ideal;
use crate::play::{Played, Record};
use crate::probe::Costs;
use crate::verdict::Evidence;
use sooner_stats::order::{mean, percentile};
use sooner_stats::{FIRST_ERRORS, Outcome, RequestError, Sample};
use sooner_workload::{Arrival, Plan, PlannedPhase, Process, Rate};
use std::collections::BTreeMap;

/// One sample an arrival, in order of time, warm-up included. Arrivals count from the moment they
/// were sent, for the measurement and for both ideals.
pub fn samples(plan: &Plan, played: &Played, costs: &Costs, rate: Rate) -> Vec<Sample> {
    let pairs = plan.arrivals.iter().zip(&played.records);
    let mut samples: Vec<Sample> = pairs
        .map(|(arrival, record)| sample(arrival, record, costs, played.start_ns))
        .collect();
    let works: Vec<ideal::Work> = samples
        .iter()
        .map(|sample| ideal::Work {
            arrival_ns: sample.arrival_ns,
            work_bytes: sample.work_bytes,
        })
        .collect();
    for (sample, ideal) in samples
        .iter_mut()
        .zip(ideal::responses(&works, rate.bits_per_sec()))
    {
        sample.ideal_srpt_ns = ideal.srpt_ns;
        sample.ideal_ps_ns = ideal.ps_ns;
    }
    samples
}

/// The work is what the response really was; where none came, what it would have been on the connection
/// that was taken or opened for it.
fn sample(arrival: &Arrival, record: &Record, costs: &Costs, start_ns: u64) -> Sample {
    let served = record.end.and_then(Result::ok);
    let new_connection = served.map_or(record.new_connection, |served| served.new_connection);
    let head_bytes = served.and_then(|served| served.answer.head_bytes);
    let work_bytes = costs.wire.work_bytes(
        arrival.size_bytes,
        head_bytes.map_or(costs.head_bytes, u64::from),
        new_connection,
    );
    let since_sent = |time_ns: u64| time_ns - record.sent_ns;
    Sample {
        arrival_ns: record.sent_ns - start_ns,
        size_bytes: arrival.size_bytes,
        work_bytes,
        response_ns: served.map(|served| since_sent(served.answer.last_byte_ns)),
        first_byte_ns: served.map(|served| since_sent(served.answer.first_byte_ns)),
        longest_silence_ns: served.map(|served| served.answer.longest_silence_ns),
        send_lag_ns: record.sent_ns - record.intended_ns,
        outcome: match record.end {
            Some(Ok(_)) => Outcome::Ok,
            Some(Err(failure)) => Outcome::Error(failure.kind()),
            None => Outcome::Incomplete,
        },
        ideal_srpt_ns: 0,
        ideal_ps_ns: 0,
    }
}

/// The part of a run that is reported.
pub struct Measured<'run> {
    plan: &'run Plan,
    played: &'run Played,
    samples: &'run [Sample],
    first: usize,
    capacity_bytes: f64,
}

impl<'run> Measured<'run> {
    /// Leaves out the arrivals planned before `warm_up_ns`; the run lasts `duration_ns`.
    pub fn new(
        plan: &'run Plan,
        played: &'run Played,
        samples: &'run [Sample],
        warm_up_ns: u64,
        duration_ns: u64,
        rate: Rate,
    ) -> Measured<'run> {
        let first = plan
            .arrivals
            .partition_point(|arrival| arrival.at_ns < warm_up_ns);
        let seconds = (duration_ns - warm_up_ns) as f64 / 1e9;
        Measured {
            plan,
            played,
            samples,
            first,
            capacity_bytes: rate.bytes_per_sec() * seconds,
        }
    }

    /// The samples of the measured part.
    pub fn samples(&self) -> &'run [Sample] {
        &self.samples[self.first..]
    }

    /// Planned work of the measured part / what the link carries in it.
    pub fn offered_load(&self) -> f64 {
        let works = self.plan.arrivals[self.first..]
            .iter()
            .map(|arrival| arrival.work_bytes);
        works.sum::<u64>() as f64 / self.capacity_bytes
    }

    /// What the verdict is made from.
    pub fn evidence(&self, process: Process) -> Evidence {
        let samples = self.samples();
        let failures = || self.records().iter().filter_map(|record| record.end?.err());
        let count = |wanted| failures().filter(|failure| *failure == wanted).count() as u64;
        let mut lags: Vec<u64> = samples.iter().map(|sample| sample.send_lag_ns).collect();
        lags.sort_unstable();
        let ideal = mean(samples.iter().map(|sample| sample.ideal_srpt_ns as f64));
        let work: u64 = samples.iter().map(|sample| sample.work_bytes).sum();
        let completed = samples
            .iter()
            .filter(|sample| sample.outcome == Outcome::Ok);
        let incomplete = samples
            .iter()
            .filter(|sample| sample.outcome == Outcome::Incomplete);
        Evidence {
            requests: samples.len() as u64,
            errors: failures().count() as u64,
            commonest_failure: commonest(failures()),
            without_descriptor: count(Failure::Descriptors),
            without_port: count(Failure::Ports),
            send_lag_p99_ns: percentile(&lags, 990).unwrap_or(0),
            mean_ideal_srpt_ns: ideal.unwrap_or(0.0) as u64,
            offered_load: self.offered_load(),
            realised_load: work as f64 / self.capacity_bytes,
            cpu_share: self.played.cpu_share,
            relative_gaps: match process {
                Process::Poisson => self.relative_gaps(),
                Process::Trace => Vec::new(),
            },
            body_bytes: completed.map(|sample| sample.size_bytes).sum(),
            incompletes: incomplete.count() as u64,
        }
    }

    /// What failed first, in the order of sending.
    pub fn first_errors(&self) -> Vec<RequestError> {
        let errors = self.samples().iter().zip(self.records());
        errors
            .filter_map(|(sample, record)| {
                let failure = record.end?.err()?;
                let failed_ns = record.failed_ns.unwrap_or(record.sent_ns);
                Some(RequestError {
                    sent_s: sample.arrival_ns as f64 / 1e9,
                    after_ms: failed_ns.saturating_sub(record.sent_ns) as f64 / 1e6,
                    size_bytes: sample.size_bytes,
                    what: failure.to_string(),
                })
            })
            .take(FIRST_ERRORS)
            .collect()
    }

    fn records(&self) -> &'run [Record] {
        &self.played.records[self.first..]
    }

    /// Gaps between requests sent in the same phase, each divided by the phase's mean gap.
    fn relative_gaps(&self) -> Vec<f64> {
        let arrivals = &self.plan.arrivals[self.first..];
        let phase_of = |arrival: &Arrival| {
            let starts_before = |phase: &PlannedPhase| phase.start_s * 1e9 <= arrival.at_ns as f64;
            self.plan
                .phases
                .partition_point(starts_before)
                .saturating_sub(1)
        };
        let mut gaps = Vec::with_capacity(arrivals.len());
        for (pair, records) in arrivals.windows(2).zip(self.records().windows(2)) {
            let phase = phase_of(&pair[1]);
            if phase == phase_of(&pair[0]) {
                let PlannedPhase {
                    duration_s,
                    requests,
                    ..
                } = self.plan.phases[phase];
                let mean_gap_ns = duration_s * 1e9 / requests as f64;
                gaps.push((records[1].sent_ns - records[0].sent_ns) as f64 / mean_gap_ns);
            }
        }
        gaps
    }
}

/// The most frequent failure in words.
fn commonest(failures: impl Iterator<Item = Failure>) -> Option<String> {
    let mut counts = BTreeMap::new();
    for failure in failures {
        *counts.entry(failure.to_string()).or_insert(0u64) += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .map(|(words, _)| words)
}
