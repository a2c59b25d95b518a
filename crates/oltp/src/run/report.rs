//! A run in figures: of all transactions, of each class, of each kind.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Measured, Outcome, WIND_DOWN};

/// Parts of a run; their means tell how sure the mean is.
const BATCHES: usize = 20;
/// Student's t for 95 % and one degree of freedom less than batches.
const T_95: f64 = 2.093;
/// A generator that is later than this, s, and than this share of the mean response time has
/// measured itself; `sooner load rate` judges by the same.
const LAG_SECONDS_MAX: f64 = 0.001;
const LAG_SHARE_MAX: f64 = 0.05;
/// More than this share of what was wanted must not have waited for a session of the generator's.
const WAITED_SHARE_MAX: f64 = 0.01;

/// A run. Times in ms.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Of these fields.
    pub schema: u32,
    /// Always `ms`.
    pub time_unit: &'static str,
    /// `VALID`, or `INVALID`.
    pub verdict: &'static str,
    /// Why it is not valid; empty where it is.
    pub verdict_reason: String,
    /// How long it was measured, s.
    pub measured_seconds: f64,
    /// Transactions that ended well, a second.
    pub throughput_per_sec: f64,
    /// The generator's own lateness at the worst in a hundred, us; only in open systems.
    pub send_lag_p99_us: f64,
    /// Transactions that were wanted and had not ended when the run was over.
    pub incompletes: u64,
    /// Of these, those that were never begun; of a visit, its first.
    pub not_begun: u64,
    /// What failed, by SQLSTATE.
    pub errors: BTreeMap<String, u64>,
    /// All.
    pub all: Group,
    /// By class, as they were named.
    pub classes: Vec<Group>,
    /// By kind.
    pub kinds: Vec<Group>,
}

/// Some of the transactions. Times in ms.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// What they are called.
    pub name: String,
    /// How many ended well.
    pub n: u64,
    /// Of these taken back on purpose.
    pub rolled_back: u64,
    /// Times that one had to be tried again.
    pub retries: u64,
    /// Mean response time.
    pub mean_response_ms: f64,
    /// The same with the incompletes, each for as long as it had waited when the run was over; of
    /// all only, because what was not begun is of no class or kind.
    pub mean_response_at_least_ms: Option<f64>,
    /// Half the width of the 95 % interval around it, from the means of 20 parts of the run; none
    /// where one of them has no transaction.
    pub mean_response_half_width_ms: Option<f64>,
    /// Percentiles.
    pub p50_response_ms: f64,
    /// 80 of a hundred took at most this long.
    pub p80_response_ms: f64,
    /// 95 of a hundred.
    pub p95_response_ms: f64,
    /// 99 of a hundred.
    pub p99_response_ms: f64,
    /// The longest.
    pub max_response_ms: f64,
    /// The squared coefficient of variation.
    pub response_c2: f64,
}

impl Report {
    /// Of what was measured of these classes and kinds.
    pub fn new(measured: &Measured, classes: &[&str], kinds: &[&str]) -> Self {
        // A run that was stopped in its warm-up has measured nothing.
        let seconds = measured.duration.as_secs_f64().max(1e-9);
        let group =
            |name: &str, is_in: &dyn Fn(&Outcome) -> bool| Group::new(name, measured, is_in);
        let by_class = classes.iter().enumerate();
        let by_class = by_class.map(|(at, name)| group(name, &|one| one.class == at));
        let by_kind = kinds.iter().enumerate();
        let by_kind = by_kind.map(|(at, name)| group(name, &|one| one.kind == at));
        let reason = reason(measured);
        Self {
            schema: 1,
            time_unit: "ms",
            verdict: if reason.is_empty() {
                "VALID"
            } else {
                "INVALID"
            },
            verdict_reason: reason,
            measured_seconds: seconds,
            throughput_per_sec: measured.outcomes.len() as f64 / seconds,
            send_lag_p99_us: measured.lag_p99_seconds * 1e6,
            incompletes: measured.incompletes,
            not_begun: measured.not_begun,
            errors: measured.errors.clone(),
            all: Group {
                mean_response_at_least_ms: mean_at_least_ms(measured),
                ..group("all", &|_| true)
            },
            classes: by_class.collect(),
            kinds: by_kind.collect(),
        }
    }
}

/// Why a run says nothing; empty where it does.
fn reason(measured: &Measured) -> String {
    let ended = measured.outcomes.len() as f64;
    let failed: u64 = measured.errors.values().sum();
    let unended = measured.unended;
    if let Some(planned) = measured.stopped_of {
        if measured.duration >= planned {
            return format!("stopped while {unended} transactions had not ended");
        }
        return format!(
            "stopped after {:.1} of {:.1} s",
            measured.duration.as_secs_f64(),
            planned.as_secs_f64()
        );
    }
    if measured.lost_users > 0 {
        return format!("{} users lost their connections", measured.lost_users);
    }
    if unended > 0 {
        let seconds = WIND_DOWN.as_secs();
        return format!("{unended} transactions had not ended {seconds} s after the run");
    }
    if ended == 0.0 {
        return "no transaction ended well".into();
    }
    if failed > 0 {
        return format!("{failed} transactions failed");
    }
    let responses = measured.outcomes.iter();
    let mean_seconds = responses.map(|one| one.response.as_secs_f64()).sum::<f64>() / ended;
    if measured.lag_p99_seconds > LAG_SECONDS_MAX.max(LAG_SHARE_MAX * mean_seconds) {
        let ms = measured.lag_p99_seconds * 1e3;
        return format!("the generator was up to {ms:.1} ms late");
    }
    if measured.waited_for_session as f64 > WAITED_SHARE_MAX * ended {
        let waited = measured.waited_for_session;
        return match measured.not_begun {
            0 => format!("{waited} waited for a session: raise --sessions"),
            left => format!(
                "{waited} waited for a session, {left} were not begun: the system was overloaded; if it was not, raise --sessions"
            ),
        };
    }
    String::new()
}

fn mean_at_least_ms(measured: &Measured) -> Option<f64> {
    let count = measured.outcomes.len() as u64 + measured.incompletes;
    let ended = measured.outcomes.iter();
    let ended_seconds: f64 = ended.map(|one| one.response.as_secs_f64()).sum();
    let seconds = ended_seconds + measured.incompletes_waited.as_secs_f64();
    (count > 0).then(|| seconds * 1e3 / count as f64)
}

impl Group {
    fn new(name: &str, measured: &Measured, is_in: &dyn Fn(&Outcome) -> bool) -> Self {
        let own: Vec<&Outcome> = measured.outcomes.iter().filter(|one| is_in(one)).collect();
        let ms = |one: &Outcome| one.response.as_secs_f64() * 1e3;
        let mut sorted: Vec<f64> = own.iter().map(|one| ms(one)).collect();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        // The sum of nothing is -0.
        let mean = 0.0 + sorted.iter().sum::<f64>() / count.max(1.0);
        let squares = 0.0 + sorted.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        let at = |share: f64| {
            let at = (share * count).ceil() as usize;
            sorted.get(at.max(1) - 1).copied().unwrap_or(0.0)
        };
        Self {
            name: name.to_owned(),
            n: sorted.len() as u64,
            rolled_back: own.iter().filter(|one| one.is_rolled_back).count() as u64,
            retries: own.iter().map(|one| u64::from(one.retries)).sum(),
            mean_response_ms: mean,
            mean_response_at_least_ms: None,
            mean_response_half_width_ms: half_width(&own, measured.duration.as_secs_f64()),
            p50_response_ms: at(0.5),
            p80_response_ms: at(0.8),
            p95_response_ms: at(0.95),
            p99_response_ms: at(0.99),
            max_response_ms: at(1.0),
            response_c2: squares / count.max(1.0) / mean.powi(2).max(f64::MIN_POSITIVE),
        }
    }
}

/// From the means of equal parts of the run (batch means).
fn half_width(own: &[&Outcome], seconds: f64) -> Option<f64> {
    let mut sums = [(0.0, 0.0); BATCHES];
    for one in own {
        let at = (one.ended.as_secs_f64() / seconds * BATCHES as f64) as usize;
        let (sum, count) = &mut sums[at.min(BATCHES - 1)];
        *sum += one.response.as_secs_f64() * 1e3;
        *count += 1.0;
    }
    if sums.iter().any(|(_, count)| *count == 0.0) {
        return None;
    }
    let means = sums.map(|(sum, count)| sum / count);
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let squares: f64 = means.iter().map(|one| (one - mean).powi(2)).sum();
    Some(T_95 * (squares / (BATCHES - 1) as f64 / BATCHES as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn measured(responses_ms: &[u64]) -> Measured {
        let count = responses_ms.len() as u64;
        let outcome = |(at, ms): (u64, &u64)| Outcome {
            class: (at % 2) as usize,
            kind: 0,
            ended: Duration::from_millis(10_000 * at / count),
            response: Duration::from_millis(*ms),
            retries: u32::from(at == 0),
            is_rolled_back: false,
        };
        Measured {
            outcomes: (0..).zip(responses_ms).map(outcome).collect(),
            duration: Duration::from_secs(10),
            ..Measured::default()
        }
    }

    #[test]
    fn classes_are_told_apart() {
        let all: Vec<u64> = (0..200).map(|at| 10 + at % 2 * 20).collect();
        let report = Report::new(&measured(&all), &["fast", "slow"], &["only"]);
        assert_eq!((report.verdict, report.throughput_per_sec), ("VALID", 20.0));
        assert_eq!(report.classes[0].mean_response_ms, 10.0);
        assert_eq!(report.classes[1].p95_response_ms, 30.0);
        assert_eq!((report.all.n, report.all.retries), (200, 1));
        assert!((report.all.response_c2 - 0.25).abs() < 1e-9);
        assert_eq!(report.classes[0].mean_response_half_width_ms, Some(0.0));
        let few = Report::new(&measured(&[10; 9]), &["fast"], &["only"]);
        assert_eq!(few.all.mean_response_half_width_ms, None);
        assert_eq!(report.kinds[0].p50_response_ms, 10.0);
    }

    #[test]
    fn what_failed_and_what_was_late_is_no_measurement() {
        let mut run = measured(&[1, 2, 3]);
        run.errors.insert("40P01".into(), 2);
        let reason = |run: &Measured| Report::new(run, &["all"], &["only"]).verdict_reason;
        assert_eq!(reason(&run), "2 transactions failed");
        run.lost_users = 1;
        assert_eq!(reason(&run), "1 users lost their connections");
        run.lost_users = 0;
        run.errors.clear();
        run.lag_p99_seconds = 0.02;
        assert!(reason(&run).contains("20.0 ms late"));
        let mut long = measured(&[300, 500]);
        long.lag_p99_seconds = 0.02;
        assert_eq!(reason(&long), "", "a twentieth of what was measured");
        long.lag_p99_seconds = 0.021;
        assert!(reason(&long).contains("21.0 ms late"));
        run.lag_p99_seconds = 0.001;
        assert_eq!(reason(&run), "");
        run.lag_p99_seconds = 0.0;
        run.waited_for_session = 2;
        assert!(reason(&run).contains("--sessions"));
        run.not_begun = 5;
        assert!(reason(&run).contains("5 were not begun: the system was overloaded"));
        assert_eq!(reason(&Measured::default()), "no transaction ended well");
        run.stopped_of = Some(Duration::from_secs(60));
        assert_eq!(reason(&run), "stopped after 10.0 of 60.0 s");
        run.unended = 3;
        assert_eq!(reason(&run), "stopped after 10.0 of 60.0 s");
        run.stopped_of = Some(run.duration);
        assert_eq!(reason(&run), "stopped while 3 transactions had not ended");
        run.stopped_of = None;
        assert_eq!(
            reason(&run),
            "3 transactions had not ended 60 s after the run"
        );
        run.stopped_of = Some(Duration::from_secs(60));
        let none = Report::new(
            &Measured {
                stopped_of: run.stopped_of,
                ..Measured::default()
            },
            &["all"],
            &["only"],
        );
        assert_eq!((none.verdict, none.throughput_per_sec), ("INVALID", 0.0));
    }

    #[test]
    fn those_that_had_not_ended_count_for_as_long_as_they_had_waited() {
        let mut run = measured(&[1000, 3000]);
        let at_least_ms = |run: &Measured| {
            let report = Report::new(run, &["all"], &["only"]);
            assert_eq!(report.kinds[0].mean_response_at_least_ms, None);
            report.all.mean_response_at_least_ms
        };
        assert_eq!(at_least_ms(&run), Some(2000.0));
        run.incompletes = 2;
        run.incompletes_waited = Duration::from_secs(12);
        assert_eq!(at_least_ms(&run), Some(4000.0));
        assert_eq!(at_least_ms(&Measured::default()), None);
    }
}
