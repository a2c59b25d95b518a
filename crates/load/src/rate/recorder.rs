//! What a run keeps of its requests: histograms and counts, in the same memory however many come.

use crate::exchange::Served;
use crate::failure::Failure;
use crate::hgrm;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// Of a request that ended; times are CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// When it should have been sent.
    pub intended_ns: u64,
    /// When it ended.
    pub at_ns: u64,
    /// Whether it was due before the measured part.
    pub is_warm_up: bool,
    /// Whether it ended after the warm-up and before the sending did.
    pub is_in_time: bool,
}

/// One second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Second {
    /// The second, from 1.
    pub second: u64,
    /// Requests sent in it.
    pub sent: u64,
    /// Responses that came to their end in it and were no errors.
    pub answered: u64,
    /// Requests that failed in it.
    pub errors: u64,
    /// Requests under way at its end, with those that wait for a connection.
    pub in_flight: u64,
    /// Median response time of what ended in it, ms.
    pub p50_ms: Option<f64>,
    /// The same, 99th percentile.
    pub p99_ms: Option<f64>,
    /// The same, longest.
    pub max_ms: Option<f64>,
    /// 99th percentile of the send lag of what was sent in it, ms.
    pub send_lag_p99_ms: Option<f64>,
}

/// What a run keeps.
pub struct Recorder {
    /// Response times from the intended moment, ns, of answers and of what timed out.
    pub responses: Histogram<u64>,
    /// How late the generator sent, ns.
    pub lags: Histogram<u64>,
    /// How long requests waited for a connection to be free, ns; only of those that did.
    pub waits: Histogram<u64>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures in words, with how many there were.
    pub failures: BTreeMap<String, u64>,
    /// Requests sent in the measured part.
    pub sent: u64,
    /// Of those, sent while sending went on, and not from among what waited behind its end.
    pub sent_in_time: u64,
    /// Sent from the end of the warm-up to the end of the sending, those too that were due before.
    pub sent_meanwhile: u64,
    /// Of those of the measured part, answered without an error.
    pub answered: u64,
    /// Answers from the end of the warm-up to the end of the sending, those too to requests that
    /// were due before.
    pub answered_meanwhile: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Those for want of a descriptor.
    pub without_descriptor: u64,
    /// Those for want of a port.
    pub without_port: u64,
    second: Second,
    second_responses: Histogram<u64>,
    second_lags: Histogram<u64>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            responses: hgrm::histogram(),
            lags: hgrm::histogram(),
            waits: hgrm::histogram(),
            statuses: BTreeMap::new(),
            failures: BTreeMap::new(),
            sent: 0,
            sent_in_time: 0,
            sent_meanwhile: 0,
            answered: 0,
            answered_meanwhile: 0,
            errors: 0,
            without_descriptor: 0,
            without_port: 0,
            second: Second::default(),
            second_responses: hgrm::histogram(),
            second_lags: hgrm::histogram(),
        }
    }
}

impl Recorder {
    /// A request is sent, so late; `waited_ns` where it first waited for a connection, `is_warm_up`
    /// where it was due in the warm-up, `is_in_time` from its end to the end of the sending.
    pub fn sent(
        &mut self,
        lag_ns: u64,
        waited_ns: Option<u64>,
        is_warm_up: bool,
        is_in_time: bool,
    ) {
        self.second.sent += 1;
        self.second_lags.saturating_record(lag_ns);
        self.sent_meanwhile += u64::from(is_in_time);
        if is_warm_up {
            return;
        }
        self.sent += 1;
        self.sent_in_time += u64::from(is_in_time);
        self.lags.saturating_record(lag_ns);
        if let Some(waited_ns) = waited_ns {
            self.waits.saturating_record(waited_ns);
        }
    }

    /// A request ended. What timed out took at least as long as it was waited for, and so counts in
    /// the response times; other failures do not.
    pub fn ended(&mut self, ended: Ended, end: Result<Served, Failure>) {
        let end = end.and_then(Served::without_error);
        let took_ns = ended.at_ns.saturating_sub(ended.intended_ns);
        let is_timed = matches!(end, Ok(_) | Err(Failure::Late));
        if is_timed {
            self.second_responses.saturating_record(took_ns);
        }
        match end {
            Ok(_) => {
                self.second.answered += 1;
                self.answered_meanwhile += u64::from(ended.is_in_time);
            }
            Err(_) => self.second.errors += 1,
        }
        if ended.is_warm_up {
            return;
        }
        if is_timed {
            self.responses.saturating_record(took_ns);
        }
        match end {
            Ok(served) => {
                self.answered += 1;
                *self.statuses.entry(served.answer.status).or_insert(0) += 1;
            }
            Err(failure) => self.failed(failure),
        }
    }

    fn failed(&mut self, failure: Failure) {
        self.errors += 1;
        match failure {
            Failure::Status(status) => *self.statuses.entry(status).or_insert(0) += 1,
            Failure::Descriptors => self.without_descriptor += 1,
            Failure::Ports => self.without_port += 1,
            _ => {}
        }
        *self.failures.entry(words(failure)).or_insert(0) += 1;
    }

    /// Forgets everything but the second that goes on: the measured part begins.
    pub fn begin_again(&mut self) {
        let before = std::mem::take(self);
        self.second = before.second;
        self.second_responses = before.second_responses;
        self.second_lags = before.second_lags;
    }

    /// Whether nothing has happened since the last second ended.
    pub fn is_quiet(&self) -> bool {
        let Second {
            sent,
            answered,
            errors,
            ..
        } = self.second;
        sent + answered + errors == 0
    }

    /// The figures of the second that ends now; the next one begins.
    pub fn take_second(&mut self, in_flight: u64) -> Second {
        let at = |times: &Histogram<u64>, share: f64| {
            (!times.is_empty()).then(|| times.value_at_quantile(share) as f64 / 1e6)
        };
        let second = Second {
            second: self.second.second + 1,
            in_flight,
            p50_ms: at(&self.second_responses, 0.5),
            p99_ms: at(&self.second_responses, 0.99),
            max_ms: at(&self.second_responses, 1.0),
            send_lag_p99_ms: at(&self.second_lags, 0.99),
            ..self.second
        };
        self.second = Second {
            second: second.second,
            ..Second::default()
        };
        self.second_responses.reset();
        self.second_lags.reset();
        second
    }

    /// The commonest failure, with how many there were.
    pub fn commonest_failure(&self) -> Option<&str> {
        let most = self.failures.iter().max_by_key(|(_, count)| **count);
        most.map(|(words, _)| words.as_str())
    }
}

/// A failure in words; any status that is no error would have been right.
fn words(failure: Failure) -> String {
    match failure {
        Failure::Status(status) => format!("status {status}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Arrivals;

    fn served(status: u16) -> Result<Served, Failure> {
        Ok(Served {
            answer: Arrivals::asked(0).answer(status, None, 5, true),
            new_connection: false,
        })
    }

    fn ended(ms: u64) -> Ended {
        Ended {
            intended_ns: 1_000_000,
            at_ns: (1 + ms) * 1_000_000,
            is_warm_up: false,
            is_in_time: true,
        }
    }

    #[test]
    fn answers_and_what_timed_out_count_in_the_times_and_other_failures_do_not() {
        let mut recorder = Recorder::default();
        recorder.ended(ended(5), served(200));
        recorder.ended(ended(6), served(302));
        recorder.ended(ended(7), served(503));
        recorder.ended(ended(30_000), Err(Failure::Late));
        recorder.ended(ended(1), Err(Failure::Refused));
        assert_eq!((recorder.answered, recorder.errors), (2, 3));
        assert_eq!(recorder.responses.len(), 3);
        assert!(recorder.responses.max() >= 30_000_000_000);
        assert_eq!(
            recorder.statuses.into_iter().collect::<Vec<_>>(),
            [(200, 1), (302, 1), (503, 1)]
        );
        let failures: Vec<_> = recorder.failures.keys().map(String::as_str).collect();
        assert_eq!(
            failures,
            [
                "connection refused",
                "no whole response within the timeout",
                "status 503"
            ]
        );
    }

    #[test]
    fn a_backlog_of_the_warm_up_is_in_the_rates_and_in_nothing_else() {
        let mut recorder = Recorder::default();
        let of_warm_up = |is_in_time| Ended {
            is_warm_up: true,
            is_in_time,
            ..ended(5)
        };
        recorder.sent(9, None, true, false);
        recorder.sent(9, Some(3), true, true);
        for is_in_time in [false, true, true] {
            recorder.ended(of_warm_up(is_in_time), served(200));
        }
        recorder.ended(of_warm_up(true), served(503));
        assert_eq!(
            (recorder.sent_meanwhile, recorder.answered_meanwhile),
            (1, 2)
        );
        assert_eq!((recorder.sent, recorder.sent_in_time), (0, 0));
        assert_eq!((recorder.answered, recorder.errors), (0, 0));
        assert!(recorder.responses.is_empty() && recorder.waits.is_empty());
    }

    #[test]
    fn what_begins_again_keeps_the_second_that_goes_on() {
        let mut recorder = Recorder::default();
        for status in [200, 503] {
            recorder.sent(9, Some(3), false, true);
            recorder.ended(ended(5), served(status));
        }
        recorder.begin_again();
        assert_eq!(
            (recorder.answered, recorder.errors, recorder.sent),
            (0, 0, 0)
        );
        assert!(recorder.responses.is_empty() && recorder.failures.is_empty());
        let second = recorder.take_second(0);
        assert_eq!((second.sent, second.answered, second.errors), (2, 1, 1));
        assert!(second.p50_ms.is_some() && second.send_lag_p99_ms.is_some());
    }

    #[test]
    fn the_warm_up_is_in_its_seconds_alone() {
        let mut recorder = Recorder::default();
        recorder.sent(9, None, true, true);
        recorder.ended(
            Ended {
                is_warm_up: true,
                ..ended(5)
            },
            served(200),
        );
        recorder.sent(9, Some(3), false, false);
        let second = recorder.take_second(4);
        assert_eq!((second.second, second.sent, second.answered), (1, 2, 1));
        assert_eq!(
            (second.in_flight, recorder.sent, recorder.answered),
            (4, 1, 0)
        );
        assert_eq!((recorder.waits.len(), recorder.lags.len()), (1, 1));
        assert_eq!(recorder.sent_in_time, 0);
        let next = recorder.take_second(0);
        assert_eq!((next.second, next.sent, next.p50_ms), (2, 0, None));
    }
}
