//! What a saturated server delivered: the figures of a closed loop and their verdict.

use super::waiting::Waiting;
use crate::exchange::Answer;
use crate::expectation::{self, Checked, Expectation, Measured};
use crate::failure::Failure;
use crate::rate::recorder::Recorder;
use crate::rate::report::Times;
use serde::Serialize;
use sooner_stats::order::{mean, percentile, squared_variation};
use sooner_stats::report::SCHEMA;
use sooner_stats::{ErrorKind, Group, TimeUnit, Verdict};
use std::collections::BTreeMap;
use std::time::Duration;

/// CPU share of one core above which a lone generator may be what limits the throughput.
const CPU_SHARE_MAX: f64 = 0.9;

/// The JSON document of closed loops, in the form of [`sooner_stats::Report`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClosedReport {
    /// Version of the form.
    pub schema: u32,
    /// Unit of every time.
    pub time_unit: TimeUnit,
    /// The runs, in the order in which they were made.
    pub runs: Vec<ClosedRun>,
}

/// What one closed loop measured in its window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClosedRun {
    /// Number of connections.
    pub connections: u32,
    /// VALID or INVALID.
    pub verdict: Verdict,
    /// Why, in one line.
    pub verdict_reason: String,
    /// What was expected, beside what came.
    pub expectations: Vec<Checked>,
    /// Length of the measured window in seconds.
    pub measured_s: f64,
    /// Responses finished in the window per second.
    pub requests_per_sec: f64,
    /// Body bits received in the window per second.
    pub goodput_bits_per_sec: f64,
    /// CPU time of the generator's thread / window.
    pub generator_cpu_share: f64,
    /// Requests that were sent again in the window, because they got no answer on a connection.
    pub resent: u64,
    /// Errors by kind; kinds that did not occur are absent.
    pub errors_by_kind: BTreeMap<ErrorKind, u64>,
    /// The requests that ended in the window; a closed loop has no slowdown and no ideals.
    pub all: Group,
    /// The same response times by percentile, to three digits; what timed out is among them.
    pub response: Times,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures in words.
    pub failures: BTreeMap<String, u64>,
}

impl ClosedRun {
    /// Whether the run may be believed and everything expected came.
    pub fn is_good(&self) -> bool {
        let is_met = self.expectations.iter().all(|checked| checked.is_met);
        self.verdict == Verdict::Valid && is_met
    }
}

impl ClosedReport {
    /// A report of closed loops.
    pub fn new(runs: Vec<ClosedRun>) -> ClosedReport {
        ClosedReport {
            schema: SCHEMA,
            time_unit: TimeUnit::Ms,
            runs,
        }
    }
}

/// How a window went by.
#[derive(Clone, Copy, Debug)]
pub struct Lasted {
    /// When it ended, CLOCK_MONOTONIC ns.
    pub end_ns: u64,
    /// Its length, ns.
    pub elapsed_ns: u64,
    /// Connections that wait without a byte at its end.
    pub waiting: Waiting,
    /// CPU time of the generator's thread / its length.
    pub cpu_share: f64,
    /// Body bytes that came in it, of whichever response.
    pub body_bytes: u64,
    /// Requests that were sent again in it.
    pub resent: u64,
    /// How long the whole run should have been, where a signal ended it.
    pub stopped_of: Option<Duration>,
}

/// What the connections have noted since the window began.
#[derive(Debug, Default)]
pub struct Window {
    responses_ns: Vec<u64>,
    first_bytes_ns: u64,
    failures: Vec<Failure>,
}

impl Window {
    /// Notes a response to a request sent at `start_ns`.
    pub fn note(&mut self, answer: &Answer, start_ns: u64) {
        self.responses_ns.push(answer.last_byte_ns - start_ns);
        self.first_bytes_ns += answer.first_byte_ns - start_ns;
    }

    /// Notes a failed request.
    pub fn note_failure(&mut self, failure: Failure) {
        self.failures.push(failure);
    }

    /// The window's figures.
    pub fn into_run(
        mut self,
        connections: u32,
        lasted: Lasted,
        recorder: &Recorder,
        expectations: &[Expectation],
    ) -> ClosedRun {
        let Lasted {
            elapsed_ns,
            cpu_share,
            body_bytes,
            resent,
            stopped_of,
            ..
        } = lasted;
        let seconds = elapsed_ns as f64 / 1e9;
        let (verdict, verdict_reason) = match stopped_of {
            None => {
                let judges_errors = expectation::judge_errors(expectations);
                self.judge(connections, &lasted, judges_errors)
            }
            Some(duration) => (Verdict::Invalid, self.stopped(seconds, duration)),
        };
        let mut errors_by_kind = BTreeMap::new();
        for failure in &self.failures {
            *errors_by_kind.entry(failure.kind()).or_insert(0) += 1;
        }
        let requests_per_sec = self.responses_ns.len() as f64 / seconds;
        let measured = Measured {
            responses: &recorder.responses,
            answered: recorder.answered,
            errors: recorder.errors,
            answered_per_sec: requests_per_sec,
        };
        ClosedRun {
            connections,
            verdict,
            verdict_reason,
            expectations: expectation::check(expectations, &measured),
            measured_s: seconds,
            requests_per_sec,
            goodput_bits_per_sec: body_bytes as f64 * 8.0 / seconds,
            generator_cpu_share: cpu_share,
            resent,
            errors_by_kind,
            all: self.group(),
            response: Times::of(&recorder.responses),
            statuses: recorder.statuses.clone(),
            failures: recorder.failures.clone(),
        }
    }

    fn group(&mut self) -> Group {
        self.responses_ns.sort_unstable();
        let ms = |ns: u64| ns as f64 / 1e6;
        let at = |per_mille| percentile(&self.responses_ns, per_mille).map(ms);
        let (completed, errors) = (self.responses_ns.len() as u64, self.failures.len() as u64);
        Group {
            n: completed + errors,
            completed,
            errors,
            mean_response_ms: mean(self.responses_ns.iter().map(|&ns| ms(ns))),
            p50_response_ms: at(500),
            p95_response_ms: at(950),
            p99_response_ms: at(990),
            p99_9_response_ms: at(999),
            max_response_ms: at(1000),
            response_c2: squared_variation(&self.responses_ns),
            mean_first_byte_ms: (completed > 0).then(|| ms(self.first_bytes_ns) / completed as f64),
            ..Group::default()
        }
    }

    /// What is said of more failures than there may be.
    fn failed(&self) -> Option<String> {
        let failed = self.failures.len();
        let first = self.failures.first()?;
        (failed * 100 > failed + self.responses_ns.len())
            .then(|| format!("{failed} requests failed, the first: {first}"))
    }

    fn stopped(&self, seconds: f64, duration: Duration) -> String {
        let planned_s = duration.as_secs_f64();
        let failed = self.failed().map(|failed| format!("; {failed}"));
        format!(
            "stopped: the figures are of {seconds:.1} s of a run of {planned_s:.1} s{}",
            failed.unwrap_or_default()
        )
    }

    fn judge(&self, connections: u32, lasted: &Lasted, judges_errors: bool) -> (Verdict, String) {
        let cpu_share = lasted.cpu_share;
        let invalid = |reason: String| (Verdict::Invalid, reason);
        if let Some(failed) = self.failed().filter(|_| !judges_errors) {
            return invalid(failed);
        }
        // Downloads may be longer than the run.
        if self.responses_ns.is_empty() && lasted.body_bytes == 0 {
            return invalid(format!(
                "no request was answered, {connections} connections wait"
            ));
        }
        let waiting = lasted.waiting;
        if waiting.connections > 0 {
            return invalid(format!(
                "{} of {connections} connections still wait, one for {:.1} s without a byte: they \
                 are in no figure; give a longer --for, or a --timeout to count them as errors",
                waiting.connections,
                waiting.silent_ns as f64 / 1e9
            ));
        }
        if cpu_share > CPU_SHARE_MAX {
            return invalid(format!(
                "the generator used {:.0} % of a core: it may be what limits the throughput",
                cpu_share * 100.0
            ));
        }
        (Verdict::Valid, "the generator had time to spare".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn run_of(window: Window, connections: u32, lasted: Lasted) -> ClosedRun {
        window.into_run(connections, lasted, &Recorder::default(), &[])
    }

    fn lasted(elapsed_ns: u64, cpu_share: f64, body_bytes: u64) -> Lasted {
        Lasted {
            end_ns: elapsed_ns,
            elapsed_ns,
            waiting: Waiting::default(),
            cpu_share,
            body_bytes,
            resent: 0,
            stopped_of: None,
        }
    }

    #[test]
    fn a_run_that_was_stopped_tells_of_what_there_is() {
        let stopped = Lasted {
            stopped_of: Some(Duration::from_secs(60)),
            ..lasted(SECOND_NS, 0.5, 250_000)
        };
        let run = run_of(window(100, 0), 4, stopped);
        assert_eq!((run.verdict, run.all.completed), (Verdict::Invalid, 100));
        assert_eq!(
            run.verdict_reason,
            "stopped: the figures are of 1.0 s of a run of 60.0 s"
        );
    }

    #[test]
    fn answers_without_a_body_and_downloads_without_an_end_are_measured() {
        let verdict = |window: Window, body_bytes| {
            run_of(window, 1, lasted(SECOND_NS, 0.5, body_bytes)).verdict
        };
        assert_eq!(verdict(window(10, 0), 0), Verdict::Valid);
        assert_eq!(verdict(window(0, 0), 1000), Verdict::Valid);
    }

    fn window(responses: u64, failures: usize) -> Window {
        let mut window = Window::default();
        for n in 1..=responses {
            let (first_byte_ns, last_byte_ns) = (n * 500_000, n * 1_000_000);
            let (head_bytes, body_bytes) = (Some(100), 1000);
            let keep_alive = true;
            let answer = Answer {
                status: 200,
                first_byte_ns,
                last_byte_ns,
                longest_silence_ns: first_byte_ns,
                head_bytes,
                body_bytes,
                keep_alive,
            };
            window.note(&answer, 0);
        }
        (0..failures).for_each(|_| window.note_failure(Failure::Status(503)));
        window
    }

    #[test]
    fn figures_are_of_the_window() {
        let run = run_of(window(100, 1), 4, lasted(2 * SECOND_NS, 0.5, 250_000));
        assert_eq!(
            (run.requests_per_sec, run.goodput_bits_per_sec),
            (50.0, 1e6)
        );
        assert_eq!(
            (run.all.n, run.all.completed, run.all.errors),
            (101, 100, 1)
        );
        assert_eq!(
            (run.all.p50_response_ms, run.all.max_response_ms),
            (Some(50.0), Some(100.0))
        );
        assert_eq!(
            (run.all.mean_response_ms, run.all.mean_first_byte_ms),
            (Some(50.5), Some(25.25))
        );
        assert_eq!(run.verdict, Verdict::Valid);
    }

    #[test]
    fn what_may_not_be_believed_says_why() {
        let reason = |window: Window, cpu_share, body_bytes| {
            let run = run_of(window, 1, lasted(SECOND_NS, cpu_share, body_bytes));
            assert_eq!(run.verdict, Verdict::Invalid);
            run.verdict_reason
        };
        assert!(
            reason(window(100, 2), 0.5, 1).contains("2 requests failed, the first: status 503")
        );
        assert!(reason(window(100, 0), 0.95, 1).contains("95 % of a core"));
        assert!(reason(window(0, 0), 0.5, 0).contains("no request was answered"));
    }

    #[test]
    fn the_json_has_the_form_of_every_report() {
        let run = run_of(window(1, 0), 1, lasted(SECOND_NS, 0.5, 1));
        let json = serde_json::to_value(ClosedReport::new(vec![run])).unwrap();
        assert_eq!(
            (&json["schema"], &json["time_unit"]),
            (&1.into(), &"ms".into())
        );
        assert_eq!(json["runs"][0]["all"]["completed"], 1);
    }
}
