//! What an answer teaches of requests like it, and what counts as waiting.

use super::queueing::{slow_and_fast, spawn, waiting};
use super::support::*;
use crate::proxy::{Failure, Proxy};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

/// How many jobs count, and how long they took on the average, ms.
fn learnt(proxy: &Rc<Proxy>) -> (u64, Option<u64>) {
    let status = proxy.upstreams[0].status();
    let mean_ms = status.mean_service_ns.map(|ns| ns / 1_000_000);
    (status.completed, mean_ms)
}

fn with_status(status: u16) -> Reply {
    text(&format!(
        "HTTP/1.1 {status} Text\r\ncontent-length: 0\r\n\r\n"
    ))
}

#[test]
fn an_answer_that_is_an_error_teaches_nothing() {
    run(async {
        let (url, _) = scripted(|_, request| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            with_status(path[1..].parse().unwrap())
        })
        .await;
        let proxy = to(&[&url], "limit = 1\nkind = ['method']");
        for path in ["/500", "/503", "/504", "/429"] {
            let whole = ask(&proxy, get(path)).await;
            assert_eq!(format!("/{}", whole.status), path);
            assert_eq!(learnt(&proxy), (0, None), "{path}");
        }
        // It has left its place.
        until(|| proxy.states()[0].inside == 0).await;
        for (path, done) in [("/200", 1), ("/404", 2), ("/302", 3)] {
            ask(&proxy, get(path)).await;
            until(|| proxy.states()[0].inside == 0).await;
            assert_eq!(learnt(&proxy).0, done, "{path}");
        }
        assert_eq!(proxy.states()[0].failures, 0);
    });
}

/// A server that closes its connections 300 ms after a request has come.
async fn closing_late() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            spawn_local(async move {
                read_message(&mut stream).await;
                sleep(Duration::from_millis(300)).await;
            });
        }
    });
    url
}

#[test]
fn a_try_that_failed_is_no_time_of_the_one_that_did_not() {
    run(async {
        let (well, seen) = scripted(|_, _| ok("well")).await;
        let keys = "limit = 1\ntell_wait = ['server', 'client']";
        let proxy = to(&[&closing_late().await, &well], keys);
        let began = Instant::now();
        let whole = ask(&proxy, get("/")).await;
        assert_eq!((whole.text(), whole.report.tries), ("well", 2));
        until(|| proxy.states()[1].inside == 0).await;
        let (done, mean_ms) = learnt(&proxy);
        let took_ms = began.elapsed().as_millis() as u64;
        assert!(
            done == 1 && mean_ms.unwrap() + 280 <= took_ms,
            "{mean_ms:?}"
        );
        // It counts as waiting, for all who are told.
        assert!(whole.report.wait_ns >= 300_000_000);
        let queue_ms = whole.report.wait_ns / 1_000_000;
        let timing = whole.headers["server-timing"].to_str().unwrap();
        assert!(
            timing.starts_with(&format!("queue;dur={queue_ms}.")),
            "{timing}"
        );
        let told = format!("x-queue-ms: {queue_ms}.");
        let lines = seen.lines(0);
        assert!(
            lines.iter().any(|line| line.starts_with(&told)),
            "{lines:?}"
        );
    });
}

/// So is a wait for a server that may be asked.
#[test]
fn a_wait_for_another_server_is_no_time_of_a_job() {
    run(async {
        let (busy, seen) = slow_and_fast().await;
        let keys = "limit = 1\nfails = 100\nkind = ['path']";
        let proxy = to(&[&busy, &unused_address().await], keys);
        let began = Instant::now();
        let first = spawn(&proxy, "/held");
        until(|| seen.count() == 1).await;
        let second = spawn(&proxy, "/other");
        until(|| proxy.states()[1].failures == 1).await;
        sleep(Duration::from_millis(300)).await;
        seen.let_go.set(1);
        first.await.unwrap();
        let whole = second.await.unwrap();
        assert!(whole.report.wait_ns >= 290_000_000);
        until(|| proxy.states()[0].inside == 0).await;
        let (done, mean_ms) = learnt(&proxy);
        // The first took 300 ms, the second nothing.
        let took_ms = began.elapsed().as_millis() as u64;
        assert!(
            done == 2 && mean_ms.unwrap() < took_ms * 3 / 4,
            "{mean_ms:?}"
        );
    });
}

/// In the queue, and for another server after a try that failed.
#[test]
fn all_waiting_together_has_one_bound() {
    run(async {
        let (busy, busy_seen) = scripted(|_, _| Reply::Hang).await;
        let (flaky, flaky_seen) = scripted(|number, _| match number {
            0 => Reply::SendThenWait(Vec::new(), super::queueing::canned()),
            _ => Reply::Close,
        })
        .await;
        let keys = "limit = 1\nfails = 100\nqueue_seconds = 1.5";
        let proxy = to(&[&busy, &flaky], keys);
        let hanging = spawn(&proxy, "/1");
        let held = spawn(&proxy, "/2");
        until(|| busy_seen.count() + flaky_seen.count() == 2).await;
        let last = spawn(&proxy, "/3");
        until(|| waiting(&proxy) == 1).await;
        sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        flaky_seen.let_go.set(1);
        assert_eq!(held.await.unwrap().status, 200);
        let whole = last.await.unwrap();
        let expected = Failure::QueuedTooLong(Duration::from_millis(1500));
        assert_eq!(
            (whole.report.failure, whole.report.tries),
            (Some(expected), 1)
        );
        // A second is over by then.
        let took = began.elapsed();
        assert!(took < Duration::from_millis(1300), "{took:?}");
        hanging.abort();
    });
}
