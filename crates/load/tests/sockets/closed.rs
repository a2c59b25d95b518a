//! The closed loop against a real server on loopback: its counts are the server's counts.

use super::server::{Reply, TestServer};
use sooner_load::closed::report::ClosedRun;
use sooner_load::closed::{self, ClosedOptions};
use sooner_load::expectation::Expectation;
use sooner_load::socket::SocketOptions;
use sooner_load::target::Target;
use sooner_load::tls::TlsOptions;
use sooner_stats::{ErrorKind, Verdict};
use std::time::Duration;

fn run(server: &TestServer, connections: u32) -> ClosedRun {
    run_of(vec![server.url()], connections, Vec::new())
}

fn run_of(urls: Vec<String>, connections: u32, expectations: Vec<Expectation>) -> ClosedRun {
    let target = |url: String| Target::resolve(&url, &TlsOptions::default()).unwrap();
    let options = ClosedOptions {
        asked: closed::gets(urls.into_iter().map(target).collect(), false).unwrap(),
        connections,
        sources: Vec::new(),
        http2_streams: None,
        duration: Duration::from_secs(1),
        timeout: None,
        expectations,
        socket: SocketOptions::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(closed::run(&options, &mut |_| ()))
        .unwrap()
        .run
}

#[test]
fn every_connection_asks_again_as_soon_as_it_is_answered() {
    const AFTER: Duration = Duration::from_millis(10);
    let server = TestServer::start(|_, _| Reply::Body {
        bytes: 1000,
        after: AFTER,
    });
    let run = run(&server, 4);
    // One more shows beforehand that the server is there.
    assert_eq!(server.connections(), 4 + 1);
    assert_eq!(run.all.errors, 0);
    assert!(run.all.completed > 0 && run.all.completed < server.requests());
    assert!(
        run.requests_per_sec <= 400.0,
        "four connections, 10 ms each"
    );
    assert!(run.all.p50_response_ms >= Some(10.0));
    let goodput = run.requests_per_sec * 8000.0;
    assert!((run.goodput_bits_per_sec / goodput - 1.0).abs() < 0.1);
}

#[test]
fn downloads_longer_than_the_run_count_by_their_bytes() {
    let server = TestServer::start(|_, _| Reply::Endless);
    let run = run(&server, 3);
    assert_eq!((run.all.completed, run.all.errors), (0, 0));
    assert!(run.goodput_bits_per_sec > 0.0);
    assert_eq!(run.verdict, Verdict::Valid, "{}", run.verdict_reason);
}

#[test]
fn connections_closed_by_the_server_are_made_again() {
    let server = TestServer::start(|_, _| Reply::UntilClose { bytes: 1000 });
    let run = run(&server, 2);
    assert_eq!(run.all.errors, 0);
    assert!(server.connections() > 2 && run.all.completed > 0);
}

#[test]
fn errors_are_counted_by_kind() {
    let server = TestServer::start(|_, _| Reply::Status(503));
    let run = run(&server, 2);
    assert_eq!(
        run.errors_by_kind.get(&ErrorKind::Status),
        Some(&run.all.errors)
    );
    assert_eq!(run.verdict, Verdict::Invalid);
    assert!(run.verdict_reason.contains("status 503"));
}

#[test]
fn every_way_to_answer_is_counted() {
    const KEPT: bool = true;
    for (name, text, keep, body_bytes) in [
        (
            "103 first",
            "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            KEPT,
            5.0,
        ),
        (
            "100, 102 and 103",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n\
             HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            KEPT,
            5.0,
        ),
        (
            "chunks with an extension and trailers",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nt: v\r\n\r\n",
            KEPT,
            15.0,
        ),
        ("204", "HTTP/1.1 204 No Content\r\n\r\n", KEPT, 0.0),
        (
            "304",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 77\r\n\r\n",
            KEPT,
            0.0,
        ),
        (
            "connection: close",
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello",
            !KEPT,
            5.0,
        ),
        (
            "until the end of the connection",
            "HTTP/1.1 200 OK\r\n\r\nhello",
            !KEPT,
            5.0,
        ),
        (
            "HTTP/1.0",
            "HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            !KEPT,
            5.0,
        ),
        (
            "HTTP/1.0 that keeps",
            "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello",
            KEPT,
            5.0,
        ),
    ] {
        let server = TestServer::start(move |_, _| Reply::Raw { text, keep });
        let run = run(&server, 2);
        assert_eq!(run.all.errors, 0, "{name}: {:?}", run.errors_by_kind);
        assert!(run.all.completed > 0, "{name}: {}", run.verdict_reason);
        assert!(run.all.completed <= server.requests(), "{name}");
        // One of them shows beforehand that the server is there.
        assert_eq!(server.connections() > 2 + 1, !keep, "{name}");
        let goodput = run.requests_per_sec * body_bytes * 8.0;
        let is_counted = (run.goodput_bits_per_sec - goodput).abs() <= 0.05 * goodput;
        assert!(
            is_counted,
            "{name}: {} not {goodput}",
            run.goodput_bits_per_sec
        );
    }
}

#[test]
fn a_server_that_never_answers_is_not_valid() {
    for reply in [
        Reply::Silence,
        Reply::Raw {
            text: "HTTP/1.1 103 Early Hints\r\n\r\n",
            keep: true,
        },
    ] {
        let run = run(&TestServer::start(move |_, _| reply), 2);
        assert_eq!((run.all.n, run.verdict), (0, Verdict::Invalid));
        assert_eq!(
            run.verdict_reason,
            "no request was answered, 2 connections wait"
        );
    }
}

#[test]
fn connections_that_hang_make_a_run_invalid() {
    let quick = Reply::Body {
        bytes: 5,
        after: Duration::from_millis(1),
    };
    let server = TestServer::start(move |path, _| match path {
        "/hang" => Reply::Silence,
        "/hints" => Reply::Raw {
            text: "HTTP/1.1 103 Early Hints\r\n\r\n",
            keep: true,
        },
        "/part" => Reply::Raw {
            text: "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
            keep: true,
        },
        "/long" => Reply::Endless,
        _ => quick,
    });
    let url = |path: &str| format!("{}{path}", server.url());
    for (paths, waiting) in [
        (["/", "/hang", "/"], 2),
        (["/hints", "/", "/"], 2),
        (["/part", "/", "/long"], 2),
        (["/", "/long", "/"], 0),
    ] {
        let run = run_of(
            paths.map(url).to_vec(),
            6,
            vec!["errors<1%".parse().unwrap()],
        );
        assert!(run.all.completed > 0 && run.expectations[0].is_met);
        assert_eq!(
            run.is_good(),
            waiting == 0,
            "{paths:?}: {}",
            run.verdict_reason
        );
        let words = format!("{waiting} of 6 connections still wait");
        let says_so = run.verdict_reason.contains(&words);
        assert_eq!(says_so, waiting > 0, "{paths:?}: {}", run.verdict_reason);
    }
}
