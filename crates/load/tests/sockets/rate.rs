//! Requests at a rate against a real server on loopback.

use super::server::{Reply, TestServer};
use sooner_load::message::Question;
use sooner_load::pool::Reuse;
use sooner_load::questions::Questions;
use sooner_load::rate::arrivals::Stages;
use sooner_load::rate::recorder::Second;
use sooner_load::rate::{self, Arrival, Ran, RateOptions};
use sooner_load::socket::SocketOptions;
use sooner_load::tls::TlsOptions;
use sooner_stats::Verdict;
use std::num::NonZeroU32;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn options(urls: &[String]) -> RateOptions {
    let mut questions = Questions::new(TlsOptions::default(), NonZeroU32::MAX);
    for url in urls {
        questions.add(url, &Question::get("/"), 1.0).unwrap();
    }
    RateOptions {
        servers: questions.servers().to_vec(),
        requests: questions.requests().to_vec(),
        duration: SECOND,
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(20),
        connections: 100,
        reuse: Reuse {
            requests_per_connection: NonZeroU32::MAX,
            http2_streams: None,
        },
        arrivals: "constant",
        stages: None,
        expectations: Vec::new(),
        socket: SocketOptions::default(),
    }
}

fn run_with(options: &RateOptions, rate: f64, told: &mut dyn FnMut(&Second)) -> Ran {
    run_again(options, rate, |_| false, told)
}

/// Requests of a log, of which those at some times failed before.
fn run_again(
    options: &RateOptions,
    rate: f64,
    failed_before: impl Fn(u64) -> bool,
    told: &mut dyn FnMut(&Second),
) -> Ran {
    let ramp = rate.to_string().parse().unwrap();
    let stages = Stages::one(ramp, options.duration.as_secs_f64()).unwrap();
    let mut arrivals = stages.times(true, 1).map(|at_ns| Arrival {
        at_ns,
        request: 0,
        failed_before: failed_before(at_ns),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(rate::run(options, &mut arrivals, told))
        .unwrap()
}

fn run(options: &RateOptions, rate: f64) -> Ran {
    run_with(options, rate, &mut |_| ())
}

fn answering(bytes: usize) -> TestServer {
    TestServer::start(move |_, _| Reply::Body {
        bytes,
        after: Duration::ZERO,
    })
}

#[test]
fn as_many_come_as_were_asked_and_each_is_counted() {
    let server = answering(500);
    let mut seconds = Vec::new();
    let ran = run_with(&options(&[server.url()]), 200.0, &mut |second| {
        seconds.push(*second)
    });
    assert_eq!(
        (ran.run.asked, ran.run.sent, ran.run.answered),
        (200, 200, 200)
    );
    assert_eq!((server.requests(), ran.run.errors), (200, 0));
    assert_eq!(ran.recorder.responses.len(), 200);
    assert_eq!(
        seconds.iter().map(|second| second.answered).sum::<u64>(),
        200
    );
    assert_eq!(seconds.iter().map(|second| second.sent).sum::<u64>(), 200);
    // Kept alive, and one more that looked whether the server is there.
    assert!(server.connections() < 100, "{}", server.connections());
    assert_eq!(ran.run.connections_opened + 1, server.connections());
}

#[test]
fn without_keep_alive_each_request_has_a_connection_that_it_asks_to_close() {
    let server = answering(5);
    let mut questions = Questions::new(TlsOptions::default(), NonZeroU32::MIN);
    questions
        .add(&server.url(), &Question::get("/"), 1.0)
        .unwrap();
    let mut options = options(&[server.url()]);
    options.requests = questions.requests().to_vec();
    options.reuse.requests_per_connection = NonZeroU32::MIN;
    let ran = run(&options, 50.0);
    assert_eq!((ran.run.answered, ran.run.connections_opened), (50, 50));
    let closes = server.closes();
    assert_eq!(
        closes
            .iter()
            .filter(|requests| **requests == [true])
            .count(),
        50
    );
}

/// A stall is seen by every request that was due meanwhile, and not by the one that met it.
#[test]
fn a_stall_counts_for_all_that_were_due_in_it() {
    const STALL: Duration = Duration::from_millis(500);
    let begin = std::sync::Mutex::new(None);
    let server = TestServer::start(move |_, _| {
        let mut begin = begin.lock().unwrap();
        let begin = *begin.get_or_insert_with(std::time::Instant::now);
        let left = STALL.saturating_sub(begin.elapsed());
        Reply::Body {
            bytes: 5,
            after: left,
        }
    });
    let ran = run(&options(&[server.url()]), 100.0);
    assert_eq!(ran.run.answered, 100, "{:?}", ran.run.failures);
    // Of those due in the first half of the second, half waited for 250 ms or more.
    let long = ran
        .recorder
        .responses
        .count_between(240_000_000, 600_000_000);
    assert!(long >= 20, "{long}");
}

#[test]
fn who_finds_no_connection_free_waits_and_the_wait_counts() {
    let server = TestServer::start(|_, _| Reply::Body {
        bytes: 5,
        after: Duration::from_millis(50),
    });
    let mut options = options(&[server.url()]);
    options.connections = 2;
    // Two connections carry 40 a second.
    let ran = run(&options, 100.0);
    // One looked whether the server is there.
    assert_eq!(server.connections(), 3);
    assert_eq!((ran.run.answered, server.requests()), (100, 100));
    assert!(
        ran.run.connection_wait.n > 80,
        "{:?}",
        ran.run.connection_wait
    );
    assert!(
        ran.run.response.max_ms.unwrap() > 1000.0,
        "{:?}",
        ran.run.response
    );
    assert_eq!(ran.run.verdict, Verdict::Invalid);
    assert!(
        ran.run
            .verdict_reason
            .contains("all 2 connections were busy"),
        "{}",
        ran.run.verdict_reason
    );
}

#[test]
fn a_server_that_never_answers_ends_with_the_timeout() {
    let server = TestServer::start(|_, _| Reply::Silence);
    let mut options = options(&[server.url()]);
    options.connections = 3;
    options.timeout = Duration::from_millis(300);
    let ran = run(&options, 20.0);
    assert_eq!((ran.run.answered, ran.run.errors), (0, 20));
    assert!(
        ran.run
            .failures
            .keys()
            .all(|words| words.contains("timeout")),
        "{:?}",
        ran.run.failures
    );
    // Each is gone with its request, and one looked whether the server is there.
    let opened = ran.run.connections_opened;
    assert!((15..server.connections()).contains(&opened), "{opened}");
    // They took at least as long as they were waited for.
    assert!(
        ran.run.response.min_ms.unwrap() >= 299.0,
        "{:?}",
        ran.run.response
    );
    assert!(
        ran.run.verdict_reason.contains("20 of 20 requests failed"),
        "{}",
        ran.run.verdict_reason
    );
}

#[test]
fn errors_are_told_by_kind_and_an_expectation_of_them_is_the_judge() {
    let server = TestServer::start(|_, nth| match nth % 10 {
        0 => Reply::Status(503),
        1 => Reply::Cut {
            announced_bytes: 10,
            bytes: 5,
        },
        2 => Reply::Status(302),
        3 => Reply::Hinted { bytes: 9 },
        _ => Reply::Body {
            bytes: 5,
            after: Duration::ZERO,
        },
    });
    let mut options = options(&[server.url()]);
    let ran = run(&options, 100.0);
    let failures: Vec<_> = ran.run.failures.iter().collect();
    let expected = ["body cut before its announced length", "status 503"];
    assert_eq!(
        failures
            .iter()
            .map(|(words, _)| words.as_str())
            .collect::<Vec<_>>(),
        expected
    );
    assert_eq!((ran.run.answered, ran.run.errors), (80, 20));
    assert_eq!(ran.run.statuses.get(&302), Some(&10));
    assert_eq!(ran.run.verdict, Verdict::Invalid);
    options.expectations = ["errors<=25%", "errors<10"]
        .map(|text| text.parse().unwrap())
        .to_vec();
    let ran = run(&options, 100.0);
    let met: Vec<bool> = ran
        .run
        .expectations
        .iter()
        .map(|checked| checked.is_met)
        .collect();
    assert_eq!(met, [true, false]);
    assert!(
        !ran.run.verdict_reason.contains("failed"),
        "{}",
        ran.run.verdict_reason
    );
}

/// What failed in the warm-up says nothing of the requests behind it.
#[test]
fn as_many_may_fail_as_failed_before_among_the_measured() {
    const WARM_UP_NS: u64 = 500_000_000;
    let server = TestServer::start(|_, _| Reply::Status(404));
    let mut options = options(&[server.url()]);
    options.warm_up = Duration::from_nanos(WARM_UP_NS);
    let ran = |failed_before: fn(u64) -> bool| {
        let run = run_again(&options, 100.0, failed_before, &mut |_| ()).run;
        assert_eq!((run.asked, run.errors), (50, 50));
        (run.verdict_reason, run.remarks)
    };
    let (reason, remarks) = ran(|at_ns| at_ns < WARM_UP_NS);
    assert!(reason.starts_with("50 of 50 requests failed"), "{reason}");
    assert!(remarks.is_empty(), "{remarks:?}");
    let (reason, remarks) = ran(|at_ns| at_ns >= WARM_UP_NS);
    assert!(!reason.contains("failed"), "{reason}");
    let said = "50 of the requests had status 400 or above in the log, and may get it again";
    assert_eq!(remarks, [said]);
}

#[test]
fn the_last_request_that_a_connection_may_have_asks_the_server_to_close() {
    let server = answering(5);
    let most = NonZeroU32::new(3).unwrap();
    let mut questions = Questions::new(TlsOptions::default(), most);
    questions
        .add(&server.url(), &Question::get("/"), 1.0)
        .unwrap();
    let mut options = options(&[server.url()]);
    options.requests = questions.requests().to_vec();
    options.reuse.requests_per_connection = most;
    let ran = run(&options, 60.0);
    assert_eq!((ran.run.answered, ran.run.errors), (60, 0));
    let closes = server.closes();
    let full = closes.iter().filter(|requests| requests.len() == 3);
    assert!(full.count() >= 10, "{closes:?}");
    for requests in &closes {
        let is_last = |place: usize| place == 2;
        let right: Vec<bool> = (0..requests.len()).map(is_last).collect();
        assert_eq!(*requests, right, "{closes:?}");
    }
}

/// A server that answers the first request of each connection, reads the second and closes.
fn closing() -> TestServer {
    TestServer::start(|_, nth| match nth % 2 {
        0 => Reply::Body {
            bytes: 5,
            after: Duration::ZERO,
        },
        _ => Reply::Raw {
            text: "",
            keep: false,
        },
    })
}

/// One connection, with requests of a method.
fn with_method(server: &TestServer, method: http::Method) -> RateOptions {
    let mut questions = Questions::new(TlsOptions::default(), NonZeroU32::MAX);
    let question = Question {
        method,
        body: Some("a=1".into()),
        ..Question::get("/")
    };
    questions.add(&server.url(), &question, 1.0).unwrap();
    RateOptions {
        requests: questions.requests().to_vec(),
        connections: 1,
        ..options(&[server.url()])
    }
}

/// The server may have acted on it (RFC 9110, section 9.2.2).
#[test]
fn what_is_not_idempotent_is_sent_once_and_its_loss_counts() {
    for method in [http::Method::POST, http::Method::PATCH] {
        let server = closing();
        let ran = run(&with_method(&server, method), 100.0);
        assert_eq!((ran.run.sent, server.requests()), (100, 100));
        assert_eq!(
            (ran.run.answered, ran.run.errors, ran.run.resent),
            (50, 50, 0)
        );
        assert_eq!(
            ran.run
                .failures
                .get("connection closed before the response"),
            Some(&50)
        );
    }
}

#[test]
fn what_is_idempotent_may_be_sent_again_and_that_is_counted() {
    for method in [http::Method::GET, http::Method::PUT, http::Method::DELETE] {
        let server = closing();
        let ran = run(&with_method(&server, method), 100.0);
        assert_eq!((ran.run.answered, ran.run.errors), (100, 0));
        assert_eq!(ran.run.resent, 99);
        assert_eq!(server.requests(), ran.run.sent + ran.run.resent);
    }
}

#[test]
fn a_saturated_server_has_its_own_rate_with_a_warm_up_too() {
    let server = TestServer::start(|_, _| Reply::Body {
        bytes: 5,
        after: Duration::from_millis(10),
    });
    let mut options = options(&[server.url()]);
    options.warm_up = Duration::from_millis(500);
    options.connections = 1;
    options.timeout = SECOND;
    // In the measured half it answers requests of the first half alone.
    let run = &run(&options, 1000.0).run;
    assert!((10.0..=110.0).contains(&run.answered_per_sec), "{run:?}");
    let difference = run.sent_per_sec - run.answered_per_sec;
    assert!((-4.1..=4.1).contains(&difference), "{run:?}");
}

#[test]
fn the_warm_up_is_left_out() {
    let server = answering(5);
    let mut options = options(&[server.url()]);
    options.warm_up = Duration::from_millis(500);
    let ran = run(&options, 100.0);
    assert_eq!(
        (server.requests(), ran.run.asked, ran.run.answered),
        (100, 50, 50)
    );
    assert!(
        (ran.run.measured_s - 0.5).abs() < 1e-6,
        "{}",
        ran.run.measured_s
    );
}
