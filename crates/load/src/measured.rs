//! The part of a run that is reported, and what the verdict is made from.
//!
//! In an open run it is what was planned after the warm-up. A visit belongs to where it begins,
//! with all its requests: so a load that was planned in visits can be compared with what came of
//! it. Users have no plan: of theirs, what they requested after the warm-up is reported.

use crate::failure::Failure;
use crate::interarrivals::{self, Gap};
use crate::play::{Played, Record};
use crate::stopped::Stopped;
use crate::verdict::Evidence;
use sooner_stats::order::{mean, percentile};
use sooner_stats::{Interarrivals, Outcome, Sample};
use sooner_workload::{Plan, PlannedPhase, Process, Rate};
use std::collections::BTreeMap;

/// What was planned.
#[derive(Clone, Copy)]
pub struct Planned<'run> {
    /// The arrivals.
    pub plan: &'run Plan,
    /// How their gaps were made.
    pub process: Process,
}

/// The part of a run that is reported.
pub struct Measured<'run> {
    /// None in a closed system.
    planned: Option<Planned<'run>>,
    played: &'run Played,
    samples: &'run [Sample],
    warm_up_ns: u64,
    duration_ns: u64,
    /// What the link carries while it was measured.
    capacity_bytes: f64,
    /// What it carries in the whole run after the warm-up.
    planned_capacity_bytes: f64,
}

impl<'run> Measured<'run> {
    /// Leaves out what was planned before `warm_up_ns`; the run lasts `duration_ns`.
    pub fn new(
        planned: Option<Planned<'run>>,
        played: &'run Played,
        samples: &'run [Sample],
        warm_up_ns: u64,
        duration_ns: u64,
        rate: Rate,
    ) -> Measured<'run> {
        let seconds = measured_ns(played, warm_up_ns, duration_ns) as f64 / 1e9;
        Measured {
            planned,
            played,
            samples,
            warm_up_ns,
            duration_ns,
            capacity_bytes: rate.bytes_per_sec() * seconds,
            planned_capacity_bytes: rate.bytes_per_sec() * (duration_ns - warm_up_ns) as f64 / 1e9,
        }
    }

    /// Where a signal stopped the run.
    fn stopped(&self) -> Option<Stopped> {
        let stopped_ns = self.played.stopped_ns?;
        let is_unanswered = |sample: &&Sample| sample.outcome == Outcome::Incomplete;
        Some(if stopped_ns < self.duration_ns {
            Stopped::Sending {
                after_s: stopped_ns as f64 / 1e9,
                planned_s: self.duration_ns as f64 / 1e9,
            }
        } else {
            Stopped::Waiting {
                unanswered: self.samples.iter().filter(is_unanswered).count() as u64,
            }
        })
    }

    /// For each sample of the run, whether it is in the measured part.
    pub fn flags(&self) -> Vec<bool> {
        let records = self.played.records.iter();
        let is_measured = |record: &Record| record.arrival.at_ns >= self.warm_up_ns;
        records.map(is_measured).collect()
    }

    /// The samples of the measured part.
    pub fn samples(&self) -> Vec<Sample> {
        self.pairs().map(|(_, sample)| *sample).collect()
    }

    /// What happened in the measured part, in the order of sending.
    pub fn records(&self) -> impl Iterator<Item = &'run Record> {
        self.pairs().map(|(record, _)| record)
    }

    fn pairs(&self) -> impl Iterator<Item = (&'run Record, &'run Sample)> {
        let pairs = self.played.records.iter().zip(self.samples);
        let warm_up_ns = self.warm_up_ns;
        pairs.filter(move |(record, _)| record.arrival.at_ns >= warm_up_ns)
    }

    /// Planned work of the measured part / what the link carries in it; none where nothing was
    /// planned.
    pub fn offered_load(&self) -> Option<f64> {
        let bytes = planned_bytes(self.planned?.plan, self.warm_up_ns);
        Some(bytes as f64 / self.planned_capacity_bytes)
    }

    /// Work of the requests of the measured part / what the link carries in it.
    pub fn realised_load(&self) -> f64 {
        let works = self.pairs().map(|(_, sample)| sample.work_bytes);
        works.sum::<u64>() as f64 / self.capacity_bytes
    }

    /// How far the gaps between arrivals that wait for no response were from the requested law.
    pub fn interarrivals(&self) -> Option<Interarrivals> {
        let Planned { plan, process } = self.planned?;
        interarrivals::test(&self.gaps(plan), process)
    }

    fn gaps(&self, plan: &Plan) -> Vec<Gap> {
        let phase_of = |record: &Record| {
            let starts_before =
                |phase: &PlannedPhase| phase.start_s * 1e9 <= record.arrival.at_ns as f64;
            plan.phases.partition_point(starts_before).saturating_sub(1)
        };
        let begins: Vec<&Record> = self
            .records()
            .filter(|record| record.arrival.think_ns.is_none())
            .collect();
        let mut gaps = Vec::with_capacity(begins.len());
        for pair in begins.windows(2) {
            let phase = phase_of(pair[1]);
            if phase == phase_of(pair[0]) {
                let PlannedPhase {
                    duration_s, visits, ..
                } = plan.phases[phase];
                let relative = |gap_ns: u64| gap_ns as f64 * visits as f64 / (duration_s * 1e9);
                gaps.push(Gap {
                    planned: relative(pair[1].arrival.at_ns - pair[0].arrival.at_ns),
                    sent: relative(pair[1].sent_ns - pair[0].sent_ns),
                });
            }
        }
        gaps
    }

    /// Planned requests that were never sent, because the response before them in their visit did
    /// not come in time; with their share of what the link carries.
    fn unsent(&self) -> (u64, f64) {
        let Some(Planned { plan, .. }) = self.planned else {
            return (0, 0.0);
        };
        let planned = plan.arrivals.iter();
        let planned = planned.filter(|arrival| arrival.at_ns >= self.warm_up_ns);
        let sum = |(count, bytes), work_bytes| (count + 1, bytes + work_bytes);
        let (planned, planned_bytes) = planned
            .map(|arrival| arrival.work_bytes)
            .fold((0u64, 0u64), sum);
        let (sent, sent_bytes) = self
            .records()
            .map(|record| record.arrival.work_bytes)
            .fold((0u64, 0u64), sum);
        let bytes = planned_bytes.saturating_sub(sent_bytes);
        (
            planned.saturating_sub(sent),
            bytes as f64 / self.capacity_bytes,
        )
    }

    /// What the verdict is made from; refusals that are expected (status 503) are no failures.
    pub fn evidence(&self, expects_refusals: bool) -> Evidence {
        let is_failure =
            move |failure: &Failure| !(expects_refusals && *failure == Failure::Status(503));
        let failures = || {
            self.records()
                .filter_map(Record::failure)
                .filter(is_failure)
        };
        let count = |wanted| failures().filter(|failure| *failure == wanted).count() as u64;
        let samples = || self.pairs().map(|(_, sample)| sample);
        let with = |outcome| samples().filter(move |sample| sample.outcome == outcome);
        let mut lags: Vec<u64> = samples().map(|sample| sample.send_lag_ns).collect();
        lags.sort_unstable();
        let ideal = mean(samples().map(|sample| sample.ideal_srpt_ns as f64));
        let (unsent, unsent_load) = self.unsent();
        Evidence {
            requests: lags.len() as u64,
            errors: failures().count() as u64,
            completed: with(Outcome::Ok).count() as u64,
            stopped: self.stopped(),
            commonest_failure: commonest(failures()),
            without_descriptor: count(Failure::Descriptors),
            without_port: count(Failure::Ports),
            send_lag_p99_ns: percentile(&lags, 990).unwrap_or(0),
            mean_ideal_srpt_ns: ideal.unwrap_or(0.0) as u64,
            chosen_load: None,
            offered_load: self.offered_load(),
            realised_load: self.realised_load(),
            unsent,
            unsent_load,
            is_exhausted: self.played.is_exhausted,
            cpu_share: self.played.cpu_share,
            interarrivals: self.interarrivals(),
            body_bytes: with(Outcome::Ok).map(|sample| sample.size_bytes).sum(),
            incompletes: with(Outcome::Incomplete).count() as u64,
            silent_ns: self.played.silent_ns,
        }
    }
}

/// Work of what is planned from `warm_up_ns` on.
pub fn planned_bytes(plan: &Plan, warm_up_ns: u64) -> u64 {
    let arrivals = plan.arrivals.iter();
    let measured = arrivals.filter(|arrival| arrival.at_ns >= warm_up_ns);
    measured.map(|arrival| arrival.work_bytes).sum()
}

/// How long was measured of a run that should last `duration_ns`: less where it was stopped. Never
/// 0.
pub fn measured_ns(played: &Played, warm_up_ns: u64, duration_ns: u64) -> u64 {
    let end_ns = played.stopped_ns.unwrap_or(duration_ns).min(duration_ns);
    end_ns.saturating_sub(warm_up_ns).max(1)
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
