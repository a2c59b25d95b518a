//! Requests that a server did not answer while the others are full: each waits for another one, and
//! takes no place meanwhile.

use super::queueing::{spawn, waiting};
use super::reloading::a_moment;
use super::support::*;
use crate::proxy::Standing;
use tokio::net::TcpListener;
use tokio::task::spawn_local;

#[test]
fn who_is_sent_to_another_server_that_is_full_waits_there() {
    run(async {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell".to_vec();
        let (busy, seen) =
            scripted(move |_, _| Reply::SendThenWait(Vec::new(), answer.clone())).await;
        let proxy = to(&[&busy, &unused_address().await], "limit = 1\nfails = 1");
        let asked: Vec<_> = (0..2)
            .map(|_| {
                let proxy = proxy.clone();
                spawn_local(async move { ask(&proxy, get("/")).await })
            })
            .collect();
        until(|| proxy.states()[1].standing == Standing::Down && proxy.states()[0].waiting == 1)
            .await;
        assert_eq!((proxy.states()[0].inside, proxy.states()[0].limit), (1, 1));
        seen.let_go.set(100);
        let mut tries = Vec::new();
        for one in asked {
            let whole = one.await.unwrap();
            assert_eq!(whole.text(), "well");
            tries.push(whole.report.tries);
        }
        assert_eq!(tries, [1, 2]);
    });
}

/// Also while the server that cannot be reached still counts as up.
#[test]
fn a_server_that_was_tried_is_not_tried_again_while_another_is_only_full() {
    run(async {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell".to_vec();
        let (busy, seen) =
            scripted(move |_, _| Reply::SendThenWait(Vec::new(), answer.clone())).await;
        let proxy = to(&[&busy, &unused_address().await], "limit = 1\nfails = 100");
        let ask = || {
            let proxy = proxy.clone();
            spawn_local(async move { ask(&proxy, get("/")).await })
        };
        let first = ask();
        until(|| seen.count() == 1).await;
        let second = ask();
        until(|| proxy.states()[1].failures > 0).await;
        seen.let_go.set(100);
        assert_eq!(first.await.unwrap().text(), "well");
        let whole = second.await.unwrap();
        assert_eq!((whole.text(), whole.report.tries), ("well", 2));
        assert_eq!(proxy.states()[1].failures, 1);
    });
}

/// A server that answers `well` when it is let go.
async fn held() -> (String, ScriptedRequests) {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell".to_vec();
    scripted(move |_, _| Reply::SendThenWait(Vec::new(), answer.clone())).await
}

#[test]
fn who_waits_for_another_server_leaves_the_place_of_the_one_that_failed() {
    run(async {
        let (busy, seen) = held().await;
        let url = unused_address().await;
        let keys = "limit = 1\nfails = 100\nqueue_seconds = 5";
        let proxy = to(&[&busy, &url], keys);
        let first = spawn(&proxy, "/");
        until(|| seen.count() == 1).await;
        let second = spawn(&proxy, "/");
        until(|| proxy.states()[1].failures > 0).await;
        let listener = TcpListener::bind(&url["http://".len()..]).await.unwrap();
        scripted_on(listener, |_, _| ok("back"));
        for _ in 0..3 {
            assert_eq!(ask(&proxy, get("/")).await.text(), "back");
        }
        // It keeps to the one that it waits for, and nothing is left of it.
        assert!(!first.is_finished() && !second.is_finished());
        seen.let_go.set(100);
        for one in [first, second] {
            assert_eq!(one.await.unwrap().text(), "well");
        }
        let states = proxy.states();
        assert_eq!((states[1].failures, states[1].limit), (1, 2));
    });
}

#[test]
fn a_client_that_leaves_while_its_request_waits_for_another_server_leaves_nothing() {
    run(async {
        let (busy, seen) = held().await;
        let proxy = to(&[&busy, &unused_address().await], "limit = 1\nfails = 100");
        let first = spawn(&proxy, "/");
        until(|| seen.count() == 1).await;
        let second = spawn(&proxy, "/");
        until(|| proxy.states()[0].limit == 3).await;
        second.abort();
        until(|| proxy.states()[0].limit == 2).await;
        seen.let_go.set(100);
        assert_eq!(first.await.unwrap().text(), "well");
    });
}

/// Or it would soon have had the whole queue, and those who wait would be in no order.
#[test]
fn a_server_that_fails_whatever_it_gets_does_not_empty_the_queue() {
    run(async {
        let (busy, seen) = held().await;
        let (sick, failed) = scripted(|_, _| Reply::Close).await;
        let proxy = to(&[&busy, &sick], "limit = 1\nfails = 100");
        let first = spawn(&proxy, "/");
        until(|| seen.count() == 1).await;
        let others: Vec<_> = (0..9).map(|_| spawn(&proxy, "/")).collect();
        // As many as there are places, and one that has the sick one's.
        until(|| failed.count() == 3).await;
        a_moment().await;
        assert_eq!((failed.count(), waiting(&proxy)), (3, 6));
        seen.let_go.set(100);
        for one in others.into_iter().chain([first]) {
            assert_eq!(one.await.unwrap().text(), "well");
        }
        assert_eq!(proxy.states()[0].limit, 2);
    });
}

#[test]
fn a_server_that_is_back_is_tried_by_one_that_it_did_not_fail() {
    run(async {
        let (busy, seen) = held().await;
        let url = unused_address().await;
        let proxy = to(&[&busy, &url], "limit = 1\nfails = 1\nqueue_seconds = 10");
        let first = spawn(&proxy, "/");
        until(|| seen.count() == 1).await;
        let second = spawn(&proxy, "/");
        until(|| proxy.states()[1].standing == Standing::Down && waiting(&proxy) == 1).await;
        let listener = TcpListener::bind(&url["http://".len()..]).await.unwrap();
        scripted_on(listener, |_, _| ok("back"));
        assert_eq!(ask(&proxy, get("/")).await.text(), "back");
        assert_eq!(proxy.states()[1].standing, Standing::Up);
        seen.let_go.set(100);
        for one in [first, second] {
            assert_eq!(one.await.unwrap().text(), "well");
        }
    });
}
