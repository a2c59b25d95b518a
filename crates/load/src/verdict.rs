//! May this run be believed? A run is VALID only if the generator did what it was asked to.
//!
//! Every rule has its limit here, with its reason; the first rule that is broken is the verdict's
//! one line. Nothing here judges the server by its speed.

use crate::replay::ASKED_TOLERANCE;
use crate::stopped::Stopped;
use sooner_stats::{GapLaw, Interarrivals, Verdict};
use sooner_workload::arrivals::MAX_REQUESTS;

/// Send lag that never invalidates, in ns: less than one full packet takes at 10 Mbit/s.
const SEND_LAG_MIN_NS: u64 = 1_000_000;
/// Send lag accepted as a share of the mean ideal response: only one arrival in a hundred is
/// displaced by more, and response times count from the real arrival anyway.
const SEND_LAG_SHARE: f64 = 0.05;
/// Largest accepted distance between realised and offered load.
const LOAD_TOLERANCE: f64 = 0.01;
/// CPU share of one core above which a single-threaded generator has no room for bursts.
const CPU_SHARE_MAX: f64 = 0.9;
/// Share of failed requests above which the others met an unusually empty server.
const ERROR_SHARE_MAX: f64 = 0.01;
/// Silence of everything after which what is unfinished was lost by the server's host, and not
/// delayed by a slow link, ns: longer than any response may be silent that its server still keeps
/// (10 s under our starvation guard).
const LOST_AFTER_NS: u64 = 30_000_000_000;

/// What a run knows about itself, over its measured part.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Requests sent or tried.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that were answered to the last byte.
    pub completed: u64,
    /// Where a signal ended the run; none where it came to its end.
    pub stopped: Option<Stopped>,
    /// The most frequent failure in words, if any.
    pub commonest_failure: Option<String>,
    /// Requests that failed because this process had no descriptor.
    pub without_descriptor: u64,
    /// Requests that failed because this host had no port.
    pub without_port: u64,
    /// 99th percentile of the send lag in ns.
    pub send_lag_p99_ns: u64,
    /// Mean response time of the same arrivals under ideal SRPT, in ns.
    pub mean_ideal_srpt_ns: u64,
    /// Load of the requests that were chosen for the measured part, and the load that was asked
    /// for; none in a closed system.
    pub chosen_load: Option<(f64, f64)>,
    /// Planned load; none in a closed system.
    pub offered_load: Option<f64>,
    /// Load of the requests really sent.
    pub realised_load: f64,
    /// Requests of visits that were never sent, because a response before them did not come in
    /// time.
    pub unsent: u64,
    /// The load they would have been.
    pub unsent_load: f64,
    /// Whether users found nothing left to ask for, and went.
    pub is_exhausted: bool,
    /// The generator thread's CPU time / elapsed time.
    pub cpu_share: f64,
    /// The gaps between arrivals against the requested law; none where there is none, or too few
    /// gaps.
    pub interarrivals: Option<Interarrivals>,
    /// Body bytes received.
    pub body_bytes: u64,
    /// Requests still under way when the drain ended.
    pub incompletes: u64,
    /// How long nothing of any body had come by then, ns.
    pub silent_ns: u64,
}

/// The verdict and its reason in one line.
pub fn judge(evidence: &Evidence) -> (Verdict, String) {
    if let Some(stopped) = evidence.stopped {
        let failed = [descriptors, ports, errors];
        let reason = match failed.iter().find_map(|rule| rule(evidence)) {
            Some(reason) => format!("{stopped}; {reason}"),
            None => format!("{stopped}: the figures are of what had ended by then"),
        };
        return (Verdict::Invalid, reason);
    }
    let rules: [fn(&Evidence) -> Option<String>; 14] = [
        anything_sent,
        descriptors,
        ports,
        errors,
        anything_completed,
        chosen,
        cpu,
        send_lag,
        users,
        visits,
        load,
        gaps,
        lost,
        drain,
    ];
    match rules.iter().find_map(|rule| rule(evidence)) {
        Some(reason) => (Verdict::Invalid, reason),
        None => (Verdict::Valid, valid(evidence)),
    }
}

/// What is said of a run that may be believed.
fn valid(evidence: &Evidence) -> String {
    let lost = evidence.incompletes;
    let silent_s = evidence.silent_ns / 1_000_000_000;
    if is_lost(evidence) {
        format!(
            "the generator kept to its schedule; {lost} requests were never answered: nothing arrived for {silent_s} s"
        )
    } else {
        "the generator kept to its schedule".into()
    }
}

/// The longest send lag at the 99th percentile that a valid run may have, in ns.
pub fn send_lag_max_ns(mean_ideal_srpt_ns: u64) -> u64 {
    SEND_LAG_MIN_NS.max((mean_ideal_srpt_ns as f64 * SEND_LAG_SHARE) as u64)
}

fn anything_sent(evidence: &Evidence) -> Option<String> {
    (evidence.requests == 0).then(|| "no request in the measured part: give a longer --for".into())
}

fn anything_completed(evidence: &Evidence) -> Option<String> {
    (evidence.completed == 0).then(|| {
        format!(
            "none of {} requests was answered to its end",
            evidence.requests
        )
    })
}

fn descriptors(evidence: &Evidence) -> Option<String> {
    let failed = evidence.without_descriptor;
    (failed > 0).then(|| format!("{failed} requests found no file descriptor: raise ulimit -n"))
}

fn ports(evidence: &Evidence) -> Option<String> {
    let failed = evidence.without_port;
    (failed > 0).then(|| {
        format!(
            "{failed} requests found no local port: widen net.ipv4.ip_local_port_range or use \
             --requests-per-connection"
        )
    })
}

fn errors(evidence: &Evidence) -> Option<String> {
    let share = evidence.errors as f64 / evidence.requests as f64;
    let words = evidence
        .commonest_failure
        .as_deref()
        .unwrap_or("of several kinds");
    (share > ERROR_SHARE_MAX).then(|| {
        format!(
            "{} of {} requests failed, mostly: {words}",
            evidence.errors, evidence.requests
        )
    })
}

fn cpu(evidence: &Evidence) -> Option<String> {
    let percent = evidence.cpu_share * 100.0;
    (evidence.cpu_share > CPU_SHARE_MAX).then(|| {
        format!(
            "the generator used {percent:.0} % of a core: it was the bottleneck, not the server"
        )
    })
}

fn send_lag(evidence: &Evidence) -> Option<String> {
    let limit_ns = send_lag_max_ns(evidence.mean_ideal_srpt_ns);
    (evidence.send_lag_p99_ns > limit_ns).then(|| {
        format!(
            "send lag p99 {:.2} ms, limit {:.2} ms: the generator was held up, give it a core or CAP_SYS_NICE",
            evidence.send_lag_p99_ns as f64 / 1e6,
            limit_ns as f64 / 1e6
        )
    })
}

fn users(evidence: &Evidence) -> Option<String> {
    evidence.is_exhausted.then(|| {
        format!(
            "users left, because a run has at most {MAX_REQUESTS} requests: give a shorter --for"
        )
    })
}

/// In overload visits are expected to take longer than the run waits.
fn visits(evidence: &Evidence) -> Option<String> {
    let is_overload = evidence.offered_load.is_some_and(|offered| offered > 1.0);
    (evidence.unsent > 0 && !is_overload).then(|| {
        format!(
            "{} requests of visits were not sent before the end of the drain: give a longer --drain",
            evidence.unsent
        )
    })
}

fn chosen(evidence: &Evidence) -> Option<String> {
    let (chosen, asked) = evidence.chosen_load?;
    ((chosen / asked - 1.0).abs() > ASKED_TOLERANCE).then(|| {
        format!(
            "the requests measured are a load of {chosen:.3}, not the {asked:.3} requested: none \
             of this trace fit better; give a longer --for or another --warm-up"
        )
    })
}

fn load(evidence: &Evidence) -> Option<String> {
    let offered = evidence.offered_load?;
    let realised = evidence.realised_load + evidence.unsent_load;
    ((realised / offered - 1.0).abs() > LOAD_TOLERANCE)
        .then(|| format!("realised load {realised:.3} is not the offered {offered:.3}"))
}

fn gaps(evidence: &Evidence) -> Option<String> {
    let Interarrivals {
        law,
        distance,
        limit,
        ..
    } = evidence.interarrivals?;
    let words = match law {
        GapLaw::Exponential => "exponential",
        GapLaw::Trace => "those of the trace",
    };
    (distance > limit).then(|| {
        format!("the gaps sent are not {words} (distance {distance:.3}, limit {limit:.3})")
    })
}

/// Of what its host lost, a server may lose as much as may fail: else the figures are those of the
/// survivors.
fn lost(evidence: &Evidence) -> Option<String> {
    let share = evidence.incompletes as f64 / evidence.requests as f64;
    (is_lost(evidence) && share > ERROR_SHARE_MAX).then(|| {
        format!(
            "{} of {} requests were never answered: the figures are of the others",
            evidence.incompletes, evidence.requests
        )
    })
}

/// Whether what is unfinished is not on its way any more.
fn is_lost(evidence: &Evidence) -> bool {
    let load = evidence.offered_load.unwrap_or(evidence.realised_load);
    evidence.incompletes > 0 && load <= 1.0 && evidence.silent_ns >= LOST_AFTER_NS
}

fn drain(evidence: &Evidence) -> Option<String> {
    if evidence.body_bytes == 0 {
        return Some("not one body byte was received".into());
    }
    let load = evidence.offered_load.unwrap_or(evidence.realised_load);
    let unfinished = evidence.incompletes > 0 && load <= 1.0 && !is_lost(evidence);
    unfinished.then(|| {
        format!(
            "{} requests unfinished at the end of the drain though the load is {load:.2}: \
             the server or the link is slower than --uplink says",
            evidence.incompletes
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Evidence {
        Evidence {
            requests: 1000,
            errors: 0,
            completed: 1000,
            stopped: None,
            commonest_failure: None,
            without_descriptor: 0,
            without_port: 0,
            send_lag_p99_ns: 80_000,
            mean_ideal_srpt_ns: 40_000_000,
            chosen_load: Some((0.803, 0.8)),
            offered_load: Some(0.8),
            realised_load: 0.801,
            unsent: 0,
            unsent_load: 0.0,
            is_exhausted: false,
            cpu_share: 0.1,
            interarrivals: None,
            body_bytes: 1,
            incompletes: 0,
            silent_ns: 0,
        }
    }

    fn gaps_off(law: GapLaw) -> Interarrivals {
        Interarrivals {
            law,
            gaps: 100,
            distance: 0.2,
            limit: 0.1,
        }
    }

    fn reason(change: impl FnOnce(&mut Evidence)) -> String {
        let mut evidence = sound();
        change(&mut evidence);
        match judge(&evidence) {
            (Verdict::Valid, _) => "VALID".into(),
            (Verdict::Invalid, reason) => reason,
        }
    }

    #[test]
    fn a_sound_run_is_valid() {
        assert_eq!(reason(|_| ()), "VALID");
        assert_eq!(reason(|run| run.errors = 10), "VALID");
        assert_eq!(reason(|run| run.send_lag_p99_ns = 1_900_000), "VALID");
    }

    #[test]
    fn each_rule_alone_makes_a_run_invalid() {
        type Break = fn(&mut Evidence);
        let broken: [(Break, &str); 15] = [
            (|run| run.completed = 0, "none of 1000 requests"),
            (|run| run.requests = 0, "no request"),
            (|run| run.without_descriptor = 1, "descriptor"),
            (|run| run.without_port = 1, "local port"),
            (|run| run.errors = 11, "11 of 1000"),
            (|run| run.cpu_share = 0.91, "91 % of a core"),
            (
                |run| run.send_lag_p99_ns = 2_100_000,
                "send lag p99 2.10 ms, limit 2.00 ms",
            ),
            (|run| run.realised_load = 0.809, "realised load 0.809"),
            (|run| run.realised_load = 0.791, "realised load 0.791"),
            (
                |run| run.interarrivals = Some(gaps_off(GapLaw::Exponential)),
                "not exponential (distance 0.200, limit 0.100)",
            ),
            (
                |run| run.interarrivals = Some(gaps_off(GapLaw::Trace)),
                "not those of the trace",
            ),
            (|run| run.is_exhausted = true, "shorter --for"),
            (|run| run.unsent = 1, "1 requests of visits"),
            (|run| run.body_bytes = 0, "not one body byte"),
            (|run| run.incompletes = 1, "1 requests unfinished"),
        ];
        for (breaks, words) in broken {
            let reason = reason(breaks);
            assert!(reason.contains(words), "{reason} should say {words}");
        }
    }

    #[test]
    fn a_run_that_was_stopped_is_invalid_and_says_what_failed() {
        let stopped = |run: &mut Evidence| {
            run.stopped = Some(Stopped::Sending {
                after_s: 3.21,
                planned_s: 60.0,
            });
        };
        assert_eq!(
            reason(stopped),
            "stopped after 3.2 of 60.0 s: the figures are of what had ended by then"
        );
        let failed = reason(|run| {
            stopped(run);
            run.errors = 1000;
            run.commonest_failure = Some("connection refused".into());
        });
        assert_eq!(
            failed,
            "stopped after 3.2 of 60.0 s; 1000 of 1000 requests failed, mostly: connection refused"
        );
        let early = reason(|run| {
            stopped(run);
            run.requests = 0;
        });
        assert!(early.starts_with("stopped after 3.2 of 60.0 s:"), "{early}");
    }

    #[test]
    fn nothing_that_ends_is_not_valid_in_overload_either() {
        let stuck = |run: &mut Evidence| {
            run.offered_load = Some(1.2);
            run.realised_load = 1.2;
            (run.completed, run.incompletes) = (0, 1000);
        };
        assert!(reason(stuck).contains("none of 1000 requests"));
    }

    #[test]
    fn unfinished_requests_are_expected_in_overload() {
        let overload = |run: &mut Evidence| {
            run.offered_load = Some(1.2);
            run.realised_load = 1.2;
            run.incompletes = 100;
        };
        assert_eq!(reason(overload), "VALID");
        let visits = |run: &mut Evidence| {
            run.offered_load = Some(1.2);
            run.realised_load = 1.0;
            run.unsent = 50;
            run.unsent_load = 0.2;
        };
        assert_eq!(reason(visits), "VALID");
    }

    #[test]
    fn what_a_host_lost_is_told_from_what_a_slow_link_delays() {
        let after = |seconds: u64| {
            let mut run = sound();
            run.incompletes = 7;
            run.silent_ns = seconds * 1_000_000_000;
            judge(&run)
        };
        assert_eq!(after(29).0, Verdict::Invalid);
        let mut hung = sound();
        (hung.incompletes, hung.silent_ns) = (11, 60_000_000_000);
        assert!(
            judge(&hung)
                .1
                .contains("11 of 1000 requests were never answered")
        );
        assert_eq!(judge(&hung).0, Verdict::Invalid);
        let (verdict, reason) = after(31);
        assert_eq!(verdict, Verdict::Valid);
        assert!(
            reason.contains("7 requests were never answered"),
            "{reason}"
        );
    }

    #[test]
    fn another_load_than_the_requested_one_is_not_valid() {
        let chosen = |chosen| reason(move |run| run.chosen_load = Some((chosen, 0.8)));
        assert_eq!(chosen(0.78), "VALID");
        assert!(chosen(0.585).contains("a load of 0.585, not the 0.800 requested"));
    }

    #[test]
    fn users_are_asked_for_no_load() {
        let closed = |run: &mut Evidence| {
            run.offered_load = None;
            run.realised_load = 0.3;
        };
        assert_eq!(reason(closed), "VALID");
    }

    #[test]
    fn the_first_cause_is_the_reason() {
        let starved = |run: &mut Evidence| {
            run.without_descriptor = 900;
            run.errors = 900;
            run.realised_load = 0.1;
        };
        assert!(reason(starved).contains("ulimit -n"));
    }

    #[test]
    fn the_lag_limit_follows_the_ideal_but_not_below_a_millisecond() {
        assert_eq!(send_lag_max_ns(1_000_000), 1_000_000);
        assert_eq!(send_lag_max_ns(100_000_000), 5_000_000);
    }
}
