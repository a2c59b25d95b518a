//! What a run at a rate reports, and whether it may be believed.

use super::recorder::Recorder;
use crate::expectation::{self, Checked, Expectation, Measured};
use crate::stopped::Stopped;
use hdrhistogram::Histogram;
use serde::Serialize;
use sooner_stats::report::SCHEMA;
use sooner_stats::{TimeUnit, Verdict};
use std::collections::BTreeMap;

/// Percentiles that are shown.
pub const PERCENTILES: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];
/// Send lag at the 99th percentile that is always accepted, ns.
const LAG_MIN_NS: u64 = 1_000_000;
/// The same as a share of the mean response time: lag is part of every response time here.
const LAG_SHARE: f64 = 0.05;
/// Share of the requests that may be missing at the end.
const UNSENT_SHARE: f64 = 0.01;
/// Share of failed requests above which the others met an unusually empty server.
const ERROR_SHARE: f64 = 0.01;
/// CPU share of one core above which the generator has no room for bursts.
const CPU_SHARE_MAX: f64 = 0.9;

/// The JSON document of runs at a rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateReport {
    /// Version of the form.
    pub schema: u32,
    /// Unit of every time.
    pub time_unit: TimeUnit,
    /// The run.
    pub runs: Vec<RateRun>,
}

/// Response times or lags, ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// How many.
    pub n: u64,
    /// Mean.
    pub mean_ms: Option<f64>,
    /// Shortest.
    pub min_ms: Option<f64>,
    /// By percentile, as `p99.9`.
    pub percentiles_ms: BTreeMap<String, f64>,
    /// Longest.
    pub max_ms: Option<f64>,
}

/// What a run at a rate measured, warm-up left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateRun {
    /// VALID or INVALID.
    pub verdict: Verdict,
    /// Why, in one line.
    pub verdict_reason: String,
    /// What was expected, beside what came.
    pub expectations: Vec<Checked>,
    /// How gaps were made: `poisson`, `constant` or `log`.
    pub arrivals: &'static str,
    /// Length of the measured part, s.
    pub measured_s: f64,
    /// Requests that were to be sent in it.
    pub asked: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Answers without an error.
    pub answered: u64,
    /// Requests that failed: status 400 and above too.
    pub errors: u64,
    /// The rate that the user asked for, in the mean of the measured part.
    pub asked_per_sec: f64,
    /// Requests that came to be sent a second, as drawn.
    pub offered_per_sec: f64,
    /// Requests sent a second from the end of the warm-up to the end of the sending, whenever they
    /// were due.
    pub sent_per_sec: f64,
    /// Answers a second in the same time, whenever their requests were due.
    pub answered_per_sec: f64,
    /// Body bits received a second, in the whole run.
    pub goodput_bits_per_sec: f64,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures in words.
    pub failures: BTreeMap<String, u64>,
    /// Response times from the intended moment to the last byte.
    pub response: Times,
    /// How late the generator sent; waits for a connection that is free are not in it.
    pub send_lag: Times,
    /// Those waits, of the requests that had one.
    pub connection_wait: Times,
    /// Connections opened, in the whole run.
    pub connections_opened: u64,
    /// Requests that were sent again, because they got no answer on a connection, in the whole run.
    pub resent: u64,
    /// Requests under way at a time, at most.
    pub in_flight_max: u64,
    /// CPU time of the generator's thread / elapsed time.
    pub generator_cpu_share: f64,
    /// What there is to say of what was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// How a run went by.
#[derive(Clone, Copy, Debug)]
pub struct Lasted {
    /// How gaps were made.
    pub arrivals: &'static str,
    /// Length of the measured part, s; less where a signal ended it.
    pub measured_s: f64,
    /// Requests that were to be sent in it.
    pub asked: u64,
    /// The mean rate that the user asked for in it; none of a log.
    pub asked_per_sec: Option<f64>,
    /// Where a signal ended it.
    pub stopped: Option<Stopped>,
    /// CPU time of the generator's thread / elapsed time.
    pub cpu_share: f64,
    /// Body bytes received, and in which time, s.
    pub received: (u64, f64),
    /// Requests under way at a time, at most.
    pub in_flight_max: u64,
    /// Connections opened.
    pub connections_opened: u64,
    /// Requests that were sent again.
    pub resent: u64,
    /// Most connections to a server.
    pub connections: u32,
    /// Of those that were to be sent, requests that failed before, and may do so again.
    pub errors_known: u64,
}

impl RateReport {
    /// A report of one run.
    pub fn new(run: RateRun) -> Self {
        Self {
            schema: SCHEMA,
            time_unit: TimeUnit::Ms,
            runs: vec![run],
        }
    }
}

impl Times {
    /// Of times in ns.
    pub fn of(times: &Histogram<u64>) -> Self {
        if times.is_empty() {
            return Self::default();
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        let at = |percent: f64| ms(times.value_at_quantile(percent / 100.0));
        Self {
            n: times.len(),
            mean_ms: Some(times.mean() / 1e6),
            min_ms: Some(ms(times.min())),
            percentiles_ms: PERCENTILES
                .iter()
                .map(|percent| (format!("p{percent}"), at(*percent)))
                .collect(),
            max_ms: Some(ms(times.max())),
        }
    }

    /// A percentile that is shown.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        self.percentiles_ms.get(&format!("p{percent}")).copied()
    }
}

impl RateRun {
    /// The figures of what was recorded, with the verdict.
    pub fn new(recorder: &Recorder, lasted: &Lasted, expectations: &[Expectation]) -> Self {
        let seconds = lasted.measured_s.max(1e-9);
        let per_sec = |count: u64| count as f64 / seconds;
        let (bytes, received_s) = lasted.received;
        let mut run = Self {
            verdict: Verdict::Valid,
            verdict_reason: "the generator kept to its schedule".into(),
            expectations: Vec::new(),
            arrivals: lasted.arrivals,
            measured_s: lasted.measured_s,
            asked: lasted.asked,
            sent: recorder.sent,
            answered: recorder.answered,
            errors: recorder.errors,
            asked_per_sec: lasted.asked_per_sec.unwrap_or(per_sec(lasted.asked)),
            offered_per_sec: per_sec(lasted.asked),
            sent_per_sec: per_sec(recorder.sent_meanwhile),
            answered_per_sec: per_sec(recorder.answered_meanwhile),
            goodput_bits_per_sec: bytes as f64 * 8.0 / received_s.max(1e-9),
            statuses: recorder.statuses.clone(),
            failures: recorder.failures.clone(),
            response: Times::of(&recorder.responses),
            send_lag: Times::of(&recorder.lags),
            connection_wait: Times::of(&recorder.waits),
            connections_opened: lasted.connections_opened,
            resent: lasted.resent,
            in_flight_max: lasted.in_flight_max,
            generator_cpu_share: lasted.cpu_share,
            remarks: known(lasted.errors_known).into_iter().collect(),
        };
        let judges_errors = expectation::judge_errors(expectations);
        if let Some(reason) = run.doubt(recorder, lasted, judges_errors) {
            (run.verdict, run.verdict_reason) = (Verdict::Invalid, reason);
        }
        let measured = Measured {
            responses: &recorder.responses,
            answered: run.answered,
            errors: run.errors,
            answered_per_sec: run.answered_per_sec,
        };
        run.expectations = expectation::check(expectations, &measured);
        run
    }

    /// Whether the run may be believed and everything expected came.
    pub fn is_good(&self) -> bool {
        let is_met = self.expectations.iter().all(|checked| checked.is_met);
        self.verdict == Verdict::Valid && is_met
    }

    /// Why the run may not be believed; the first reason counts.
    fn doubt(&self, recorder: &Recorder, lasted: &Lasted, judges_errors: bool) -> Option<String> {
        let rest = || {
            self.nothing_sent()
                .or_else(|| without(recorder))
                .or_else(|| self.failed(recorder, lasted, judges_errors))
        };
        if let Some(stopped) = lasted.stopped {
            return Some(match rest() {
                Some(reason) => format!("{stopped}; {reason}"),
                None => format!("{stopped}: the figures are of what had ended by then"),
            });
        }
        rest()
            .or_else(|| self.busy(lasted))
            .or_else(|| self.late())
            .or_else(|| self.unsent(recorder, lasted))
    }

    fn nothing_sent(&self) -> Option<String> {
        (self.sent == 0).then(|| "no request was sent in the measured part".into())
    }

    fn failed(&self, recorder: &Recorder, lasted: &Lasted, judges_errors: bool) -> Option<String> {
        let ended = self.answered + self.errors;
        let errors = self.errors.saturating_sub(lasted.errors_known);
        let is_much = errors as f64 > ended as f64 * ERROR_SHARE;
        (is_much && !judges_errors).then(|| {
            format!(
                "{} of {ended} requests failed, mostly: {}",
                self.errors,
                recorder.commonest_failure().unwrap_or("of several kinds")
            )
        })
    }

    fn busy(&self, lasted: &Lasted) -> Option<String> {
        (lasted.cpu_share > CPU_SHARE_MAX).then(|| {
            format!(
                "the generator used {:.0} % of a core: the generator may be the slow part; lower the rate",
                lasted.cpu_share * 100.0
            )
        })
    }

    fn late(&self) -> Option<String> {
        let lag_ms = self.send_lag.percentile(99.0)?;
        let share_ms = self.response.mean_ms.unwrap_or(0.0) * LAG_SHARE;
        let limit_ms = share_ms.max(LAG_MIN_NS as f64 / 1e6);
        (lag_ms > limit_ms).then(|| {
            format!(
                "one request in a hundred was sent {lag_ms:.2} ms late or more; up to \
                 {limit_ms:.2} ms are accepted: the generator lacks processor time"
            )
        })
    }

    fn unsent(&self, recorder: &Recorder, lasted: &Lasted) -> Option<String> {
        let missing = self.asked.saturating_sub(recorder.sent_in_time);
        let is_much = missing as f64 > self.asked as f64 * UNSENT_SHARE;
        is_much.then(|| {
            format!(
                "{} of {} requests were sent in time: all {} connections were busy; give a larger \
                 -c or a lower rate",
                recorder.sent_in_time, self.asked, lasted.connections
            )
        })
    }
}

/// What is said of requests that failed before.
fn known(errors: u64) -> Option<String> {
    (errors > 0).then(|| {
        format!("{errors} of the requests had status 400 or above in the log, and may get it again")
    })
}

/// What this host lacked.
fn without(recorder: &Recorder) -> Option<String> {
    match (recorder.without_descriptor, recorder.without_port) {
        (0, 0) => None,
        (0, ports) => Some(format!(
            "{ports} requests found no local port: keep connections alive, or widen \
             net.ipv4.ip_local_port_range"
        )),
        (descriptors, _) => Some(format!(
            "{descriptors} requests found no file descriptor: raise ulimit -n, or give a smaller -c"
        )),
    }
}
