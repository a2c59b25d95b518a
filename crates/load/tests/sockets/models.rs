//! Partly-open and closed systems against a real server.

use super::replay::{assert_valid_or_late, kept, offered, options, run, size_of, whole_body};
use super::server::{Reply, TestServer};
use sooner_load::model::Model;
use sooner_load::replay::{Replay, ReplayOptions};
use sooner_stats::{Outcome, Verdict};
use sooner_workload::{Behaviour, VisitLength, Visits};
use std::num::NonZeroU32;
use std::time::Duration;

fn partly_open(length: VisitLength, think_s: f64) -> Model {
    Model::PartlyOpen(offered(), Visits { length, think_s })
}

fn exactly(count: u32) -> VisitLength {
    VisitLength::Exactly(NonZeroU32::new(count).unwrap())
}

/// The paths of a run, the probe's left out.
fn asked(server: &TestServer) -> Vec<String> {
    server.paths().split_off(1)
}

#[test]
fn visits_realise_the_load_and_keep_their_connections() {
    let server = TestServer::start(|path, _| whole_body(path));
    let replay = run(&ReplayOptions {
        model: partly_open(exactly(4), 0.05),
        ..kept(&server, 10)
    });
    assert_valid_or_late(&replay);
    assert_eq!(replay.run.model.as_deref(), Some("partly-open"));
    assert_eq!((replay.run.all.errors, replay.run.incompletes), (0, 0));
    let realised = replay.run.realised_load;
    assert!((realised / 0.8 - 1.0).abs() < 0.01, "realised {realised}");
    assert!(replay.samples.is_sorted_by_key(|sample| sample.arrival_ns));
    let closes = server.closes();
    // One connection a visit; its last request says that it will not be needed any more.
    for visit in &closes[1..] {
        assert!(visit.len() <= 4, "{visit:?}");
        let (last, others) = visit.split_last().unwrap();
        assert!(*last && !others.contains(&true), "{visit:?}");
    }
    assert!(closes[1..].iter().filter(|visit| visit.len() == 4).count() > 10);
}

#[test]
fn a_visits_next_request_waits_for_the_response_and_the_pause() {
    const DELAY: Duration = Duration::from_millis(40);
    let server = TestServer::start(|path, _| Reply::Body {
        bytes: size_of(path),
        after: DELAY,
    });
    let replay = run(&ReplayOptions {
        model: partly_open(exactly(1_000_000), 0.0),
        drain: Duration::ZERO,
        ..kept(&server, 1_000_000)
    });
    // One visit at a time in each of the two phases, so two requests at most in any 40 ms.
    let times: Vec<u64> = replay
        .samples
        .iter()
        .map(|sample| sample.arrival_ns)
        .collect();
    let delay_ns = DELAY.as_nanos() as u64;
    assert!(times.len() > 10);
    assert!(
        times
            .windows(3)
            .all(|three| three[2] - three[0] >= delay_ns)
    );
    assert_eq!(replay.run.verdict, Verdict::Invalid);
    let reason = &replay.run.verdict_reason;
    assert!(
        reason.contains("--drain") || reason.contains("send lag"),
        "{reason}"
    );
}

fn users(count: u32, think_s: f64) -> Model {
    Model::Closed {
        users: count,
        behaviour: Behaviour::Trace { think_s },
    }
}

fn assert_closed(replay: &Replay) {
    assert_valid_or_late(replay);
    assert_eq!(replay.run.model.as_deref(), Some("closed"));
    assert_eq!(replay.run.all.errors, 0);
    assert_eq!(replay.run.offered_load, replay.run.realised_load);
    assert!(replay.run.interarrivals.is_none());
}

#[test]
fn users_ask_for_the_same_sequence_of_every_server() {
    let fast = TestServer::start(|path, _| whole_body(path));
    let slow = TestServer::start(|path, n| Reply::Body {
        bytes: size_of(path),
        after: Duration::from_millis(5 + n % 7),
    });
    let play = |server: &TestServer| {
        run(&ReplayOptions {
            model: users(4, 0.02),
            ..kept(server, 1_000_000)
        })
    };
    let (quick, late) = (play(&fast), play(&slow));
    assert_closed(&quick);
    assert_closed(&late);
    let sizes = |replay: &Replay| -> Vec<u64> {
        let samples = replay.samples.iter();
        samples.map(|sample| sample.size_bytes).collect()
    };
    let (quick, late) = (sizes(&quick), sizes(&late));
    let common = quick.len().min(late.len());
    assert!(common > 50 && quick[..common] == late[..common]);
    assert_eq!(asked(&slow).len(), late.len());
    // Each user has one connection all the time.
    assert_eq!((fast.connections(), slow.connections()), (5, 5));
}

#[test]
fn never_more_requests_than_users_are_under_way() {
    let server = TestServer::start(|path, _| Reply::Body {
        bytes: size_of(path),
        after: Duration::from_millis(10),
    });
    let replay = run(&ReplayOptions {
        model: users(3, 0.0),
        ..options(&server)
    });
    assert_closed(&replay);
    let samples = &replay.samples;
    assert!(samples.iter().all(|sample| sample.outcome == Outcome::Ok));
    for sample in samples {
        let at_ns = sample.arrival_ns;
        let is_under_way = |other: &&sooner_stats::Sample| {
            (other.arrival_ns..other.arrival_ns + other.response_ns.unwrap()).contains(&at_ns)
        };
        assert!(samples.iter().filter(is_under_way).count() <= 3);
    }
    let last_ns = samples.last().unwrap().arrival_ns;
    assert!(
        (1_900_000_000..2_100_000_000).contains(&last_ns),
        "{last_ns}"
    );
}

#[test]
fn a_dead_server_is_not_hammered() {
    let server = TestServer::start(|path, n| match n {
        0 => whole_body(path),
        _ => Reply::Status(503),
    });
    let replay = run(&ReplayOptions {
        model: users(2, 0.0),
        ..options(&server)
    });
    assert_eq!(replay.run.verdict, Verdict::Invalid);
    // Two users, two seconds, a pause of 10 ms after each failure.
    assert!(replay.samples.len() <= 402, "{}", replay.samples.len());
}
