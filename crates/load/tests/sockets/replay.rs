//! Replays against a real server on loopback: what is counted, what is waited for, what is refused.

use super::server::{Reply, TestServer};
use sooner_load::model::{Model, Offered};
use sooner_load::pool::Reuse;
use sooner_load::replay::{self, Replay, ReplayError, ReplayOptions};
use sooner_load::socket::SocketOptions;
use sooner_load::target::Target;
use sooner_load::tls::TlsOptions;
use sooner_stats::{ErrorKind, FIRST_ERRORS, GapLaw, Outcome, Verdict};
use sooner_workload::{Object, Process, Schedule, Trace, TraceRequest};
use std::num::NonZeroU32;
use std::time::Duration;

const NO_TIME: Duration = Duration::ZERO;

/// Forty objects of 500 to 20 000 bytes, two thousand requests in their turn, ten a second.
pub fn trace() -> Trace {
    let object = |id: u32| Object {
        id,
        size_bytes: 500 * (u64::from(id) + 1),
        ext: "html".into(),
    };
    let request = |n: u32| TraceRequest {
        time_s: f64::from(n) / 10.0,
        object: n * 7 % 40,
        client: 0,
    };
    Trace {
        name: "test".into(),
        objects: (0..40).map(object).collect(),
        requests: (0..2000).map(request).collect(),
        dropped_zero_rows: 0,
    }
}

pub fn size_of(path: &str) -> usize {
    let id = path
        .strip_prefix("/objects/")
        .and_then(|rest| rest.strip_suffix(".html"));
    500 * (id.unwrap().parse::<usize>().unwrap() + 1)
}

pub fn whole_body(path: &str) -> Reply {
    Reply::Body {
        bytes: size_of(path),
        after: NO_TIME,
    }
}

/// About 150 requests in one and a half seconds after half a second of warm-up.
pub fn options(server: &TestServer) -> ReplayOptions {
    let target = Target::resolve(&server.url(), &TlsOptions::default()).unwrap();
    options_for(target)
}

pub fn options_for(target: Target) -> ReplayOptions {
    ReplayOptions {
        target,
        trace: trace(),
        model: Model::Open(offered()),
        rate: "10mbit".parse().unwrap(),
        duration: Duration::from_secs(2),
        warm_up: Duration::from_millis(500),
        drain: Duration::from_secs(10),
        reuse: Reuse {
            requests_per_connection: NonZeroU32::MIN,
            http2_streams: None,
        },
        patience: None,
        expects_refusals: false,
        plan_head_bytes: None,
        sources: Vec::new(),
        seed: 1,
        label: "test".into(),
        socket: SocketOptions::default(),
    }
}

/// A Poisson process at load 0.8.
pub fn offered() -> Offered {
    Offered {
        schedule: Schedule::constant(0.8).unwrap(),
        process: Process::Poisson,
        crowd: None,
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub fn run(options: &ReplayOptions) -> Replay {
    block_on(replay::run(options, &mut |_| ())).unwrap()
}

/// A machine that is busy with other tests may make the generator late, and then it must say so.
pub fn assert_valid_or_late(replay: &Replay) {
    let reason = &replay.run.verdict_reason;
    assert!(
        replay.run.verdict == Verdict::Valid || reason.contains("send lag"),
        "{reason}"
    );
}

#[test]
fn every_request_is_sent_once_and_its_answer_measured() {
    let server = TestServer::start(|path, _| whole_body(path));
    let options = options(&server);
    let replay = run(&options);
    let (run, samples) = (&replay.run, &replay.samples);
    assert_valid_or_late(&replay);
    assert_eq!(
        server.requests(),
        samples.len() as u64 + 1,
        "the first request finds a wrong URL"
    );
    assert_eq!(server.connections(), server.requests());
    assert!(samples.iter().all(|sample| sample.outcome == Outcome::Ok));
    assert!(
        samples
            .iter()
            .all(|sample| sample.first_byte_ns <= sample.response_ns)
    );
    assert!(
        samples
            .iter()
            .all(|sample| sample.ideal_srpt_ns > 0 && sample.ideal_ps_ns > 0)
    );
    assert!(samples.is_sorted_by_key(|sample| sample.arrival_ns));
    let measured = replay.measured.iter().filter(|measured| **measured).count();
    assert_eq!(run.all.n as usize, measured);
    assert!(measured < samples.len() && replay.measured.is_sorted());
    assert_eq!(
        (run.model.as_deref(), run.segment_bytes),
        (Some("open"), Some(1448))
    );
    assert!(
        (run.realised_load / 0.8 - 1.0).abs() < 0.01,
        "realised {}",
        run.realised_load
    );
    assert!(run.all.ideal_srpt_mean_response_ms < run.all.ideal_ps_mean_response_ms);
}

#[test]
fn the_servers_delay_is_in_every_response_time() {
    const DELAY: Duration = Duration::from_millis(30);
    let server = TestServer::start(|path, _| Reply::Body {
        bytes: size_of(path),
        after: DELAY,
    });
    let replay = run(&options(&server));
    let delay_ns = DELAY.as_nanos() as u64;
    assert!(
        replay
            .samples
            .iter()
            .all(|sample| sample.first_byte_ns.unwrap() >= delay_ns)
    );
}

/// At most `k` requests a connection.
pub fn kept(server: &TestServer, k: u32) -> ReplayOptions {
    ReplayOptions {
        reuse: Reuse {
            requests_per_connection: NonZeroU32::new(k).unwrap(),
            http2_streams: None,
        },
        ..options(server)
    }
}

#[test]
fn kept_connections_realise_the_load_asked_for() {
    let server = TestServer::start(|path, _| whole_body(path));
    let replay = run(&kept(&server, 5));
    assert_valid_or_late(&replay);
    assert_eq!(replay.run.all.errors, 0);
    let realised = replay.run.realised_load;
    assert!((realised / 0.8 - 1.0).abs() < 0.01, "realised {realised}");
    assert!(server.connections() < replay.samples.len() as u64);
}

#[test]
fn a_connection_is_closed_with_its_last_request() {
    let server = TestServer::start(|path, _| whole_body(path));
    run(&kept(&server, 5));
    let closes = server.closes();
    let (probe, run) = closes.split_first().unwrap();
    assert_eq!(probe[..], [true]);
    assert!(run.iter().any(|closes| closes.len() == 5));
    for closes in run {
        let expected = [false, false, false, false, true];
        assert_eq!(closes[..], expected[..closes.len()]);
    }
}

#[test]
fn a_long_response_holds_up_no_other_request() {
    let server = TestServer::start(|path, n| match n {
        1 => Reply::Silence,
        _ => whole_body(path),
    });
    let replay = run(&ReplayOptions {
        warm_up: NO_TIME,
        drain: Duration::from_millis(200),
        ..kept(&server, 1_000_000)
    });
    let (first, others) = replay.samples.split_first().unwrap();
    assert_eq!(first.outcome, Outcome::Incomplete);
    assert!(others.iter().all(|sample| sample.outcome == Outcome::Ok));
    // The probe's, the one that is never answered, and at least one for all the others.
    assert!(server.connections() >= 3);
    assert!(server.connections() < replay.samples.len() as u64);
}

#[test]
fn a_connection_closed_between_requests_is_made_again() {
    let server = TestServer::start(|path, _| Reply::BodyThenClose {
        bytes: size_of(path),
    });
    let replay = run(&kept(&server, 5));
    assert_eq!(replay.run.all.errors, 0);
    assert!(server.connections() > replay.samples.len() as u64);
}

#[test]
fn bodies_that_end_with_the_connection_are_counted() {
    let server = TestServer::start(|path, _| Reply::UntilClose {
        bytes: size_of(path),
    });
    let replay = run(&options(&server));
    assert_valid_or_late(&replay);
    assert_eq!(replay.run.all.errors, 0);
}

#[test]
fn errors_are_told_apart_and_make_a_run_invalid() {
    let server = TestServer::start(|path, n| match n % 5 {
        _ if n == 0 => whole_body(path),
        0 => Reply::Status(404),
        1 => Reply::Cut {
            announced_bytes: size_of(path),
            bytes: size_of(path) - 1,
        },
        2 => Reply::Raw {
            text: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno size",
            keep: false,
        },
        3 => Reply::Body {
            bytes: size_of(path) + 1,
            after: NO_TIME,
        },
        _ => whole_body(path),
    });
    let replay = run(&options(&server));
    let kinds: Vec<ErrorKind> = replay.run.errors_by_kind.keys().copied().collect();
    let expected = [
        ErrorKind::Reset,
        ErrorKind::Status,
        ErrorKind::Protocol,
        ErrorKind::Body,
    ];
    assert_eq!(kinds, expected);
    let told = &replay.run.first_errors;
    assert_eq!(told.len(), FIRST_ERRORS.min(replay.run.all.errors as usize));
    assert!(told.is_sorted_by(|one, next| one.sent_s <= next.sent_s));
    assert!(
        told.iter()
            .any(|error| error.what == "status 404 instead of 200")
    );
    assert_eq!(replay.run.verdict, Verdict::Invalid);
    assert!(
        replay
            .run
            .verdict_reason
            .contains("requests failed, mostly:")
    );
}

#[test]
fn refusals_that_are_expected_are_counted_and_make_no_run_invalid() {
    for expects_refusals in [true, false] {
        let server = TestServer::start(|path, n| match n % 5 {
            1 => Reply::Status(503),
            _ => whole_body(path),
        });
        let replay = run(&ReplayOptions {
            expects_refusals,
            ..options(&server)
        });
        let refused = replay.run.errors_by_kind.get(&ErrorKind::Status);
        assert!(refused.is_some_and(|count| *count > 10), "{refused:?}");
        if expects_refusals {
            assert_valid_or_late(&replay);
        } else {
            assert_eq!(replay.run.verdict, Verdict::Invalid);
        }
    }
}

#[test]
fn unanswered_requests_are_incomplete_when_the_drain_ends() {
    let server = TestServer::start(|path, n| match n {
        20.. => Reply::Silence,
        _ => whole_body(path),
    });
    let drain = Duration::from_millis(200);
    let replay = run(&ReplayOptions {
        warm_up: NO_TIME,
        drain,
        ..options(&server)
    });
    assert_eq!(replay.run.incompletes, replay.samples.len() as u64 - 19);
    assert_eq!(replay.run.verdict, Verdict::Invalid);
}

#[test]
fn a_generator_that_is_held_up_says_so() {
    let server = TestServer::start(|path, _| whole_body(path));
    let options = options(&server);
    let hog = async {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let mut ignore = |_| ();
    let replay = block_on(async {
        tokio::select! {
            replay = replay::run(&options, &mut ignore) => replay.unwrap(),
            () = hog => unreachable!("it never ends"),
        }
    });
    assert_eq!(replay.run.verdict, Verdict::Invalid);
    assert!(
        replay.run.verdict_reason.contains("send lag p99"),
        "{}",
        replay.run.verdict_reason
    );
}

#[test]
fn gaps_are_compared_with_what_was_asked_for() {
    let server = TestServer::start(|path, _| whole_body(path));
    for (process, law) in [
        (Process::Poisson, GapLaw::Exponential),
        (Process::Trace, GapLaw::Trace),
    ] {
        let replay = run(&ReplayOptions {
            model: Model::Open(Offered {
                process,
                ..offered()
            }),
            ..options(&server)
        });
        let test = replay.run.interarrivals.expect("enough gaps");
        assert_eq!((test.law, test.gaps + 1), (law, replay.run.all.n));
        assert_valid_or_late(&replay);
        assert!(
            test.distance <= test.limit || replay.run.verdict == Verdict::Invalid,
            "{test:?}"
        );
    }
}

#[test]
fn progress_is_told_every_second() {
    let server = TestServer::start(|path, _| whole_body(path));
    let mut told = Vec::new();
    block_on(replay::run(&options(&server), &mut |progress| {
        told.push(progress)
    }))
    .unwrap();
    let last = told.last().expect("a run of two seconds");
    assert!(last.sent > 0 && last.sent <= last.planned && last.ended <= last.sent);
}

#[test]
fn what_cannot_work_is_said_before_the_run() {
    let missing = TestServer::start(|_, _| Reply::Status(404));
    let error = |options: &ReplayOptions| block_on(replay::run(options, &mut |_| ())).unwrap_err();
    let message = error(&options(&missing)).to_string();
    assert!(message.contains("/objects/0.html: status 404") && message.contains("mkroot"));
    let fine = TestServer::start(|path, _| whole_body(path));
    let no_run = ReplayOptions {
        warm_up: Duration::from_secs(2),
        ..options(&fine)
    };
    assert!(matches!(error(&no_run), ReplayError::WarmUp { .. }));
    let unknown = SocketOptions {
        congestion_control: Some("no-such".into()),
        ..SocketOptions::default()
    };
    let unknown = ReplayOptions {
        socket: unknown,
        ..options(&fine)
    };
    assert!(matches!(error(&unknown), ReplayError::Socket(_)));
}

#[test]
fn early_hints_and_chunks_are_answers_like_others() {
    let server = TestServer::start(|path, _| Reply::Hinted {
        bytes: size_of(path),
    });
    let replay = run(&options(&server));
    assert_eq!((replay.run.all.errors, replay.run.incompletes), (0, 0));
    assert_eq!(replay.run.all.completed, replay.run.all.n);
    assert!(replay.run.all.n > 0);
}
