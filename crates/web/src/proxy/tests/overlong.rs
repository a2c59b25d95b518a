//! Which requests ran for longer than their class may, and what becomes of them after a reload.

use super::queueing::{slow_and_fast, spawn, waiting, with_classes};
use super::reloading::reloaded;
use super::support::*;
use crate::proxy::Proxy;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// How many of each class ran too long, by name, and how many of them were cancelled.
fn overlong(proxy: &Proxy) -> Vec<(String, u64, u64)> {
    let states = proxy.class_states().into_iter();
    states
        .map(|state| state.status)
        .map(|status| (status.name, status.overlong, status.cancelled))
        .filter(|(name, _, _)| !name.is_empty())
        .collect()
}

/// A server that closes the first connection late, and is slow to answer on others.
async fn slow_twice() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    spawn_local(async move {
        let mut is_first = true;
        while let Ok((mut stream, _)) = listener.accept().await {
            let answers = !std::mem::take(&mut is_first);
            spawn_local(async move {
                read_message(&mut stream).await;
                sleep(Duration::from_millis(150)).await;
                if answers {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(answer).await.unwrap();
                }
            });
        }
    });
    url
}

#[test]
fn a_request_that_is_tried_again_counts_once() {
    run(async {
        let class = "[[class]]\nname='slow'\nlongest='30 ms'\n";
        let proxy = proxy(&with_classes(&slow_twice().await, class));
        let whole = ask(&proxy, get("/")).await;
        assert_eq!((whole.status, whole.report.tries), (200, 2));
        assert_eq!(overlong(&proxy), [("slow".to_owned(), 1, 0)]);
    });
}

#[test]
fn it_counts_for_its_class_wherever_that_is_by_then() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::Hang).await;
        let slow = "[[class]]\nname='slow'\npath=['/hang']\nlongest='400 ms'\n";
        let other = "[[class]]\nname='other'\npath=['/other']\n";
        let before = proxy(&with_classes(&url, &format!("{slow}{other}")));
        let hanging = spawn(&before, "/hang");
        until(|| seen.count() == 1).await;
        let after = reloaded(&before, &with_classes(&url, &format!("{other}{slow}")));
        let counted = |proxy: &Proxy| overlong(proxy).iter().map(|it| it.1).sum::<u64>();
        until(|| counted(&after) == 1).await;
        let expected = [("other".to_owned(), 0, 0), ("slow".to_owned(), 1, 0)];
        assert_eq!(overlong(&after), expected);
        hanging.abort();
    });
}

#[test]
fn what_ran_too_long_while_it_was_observed_gives_its_place_up_then() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        for action in ["yield", "cancel"] {
            seen.let_go.set(0);
            let longest = format!("longest='30 ms'\nlongest_action='{action}'\n");
            let class = format!("[[class]]\nname='slow'\npath=['/held']\n{longest}");
            let config = with_classes(&url, &class).replace("limit=1", "limit=1\nqueue_seconds=3");
            let observed = config.replace("limit=1", "limit=1\nobserve=true");
            let before = proxy(&observed);
            let held = spawn(&before, "/held");
            until(|| overlong(&before)[0].1 == 1).await;
            let after = reloaded(&before, &config);
            let quick = spawn(&after, "/quick").await.unwrap();
            assert_eq!((quick.status, waiting(&after)), (200, 0), "{action}");
            seen.let_go.set(1);
            let (status, cancelled) = if action == "yield" {
                (200, 0)
            } else {
                (504, 1)
            };
            assert_eq!(held.await.unwrap().status, status);
            // It was counted before.
            assert_eq!(overlong(&after), [("slow".to_owned(), 1, cancelled)]);
            until(|| after.states()[0].inside == 0 && after.states()[0].limit == 1).await;
        }
    });
}

/// One class and what is said of how long its requests may run.
fn says(url: &str, longest: &str) -> String {
    let class = format!("[[class]]\nname='slow'\npath=['/held']\n{longest}");
    with_classes(url, &class)
}

fn cancelled_after(time: &str) -> String {
    format!("longest='{time}'\nlongest_action='cancel'\n")
}

#[test]
fn a_reload_bounds_those_in_flight() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        // Longer than it says, not at all, and to another end.
        let before = [
            cancelled_after("10 min"),
            String::new(),
            "longest='30 ms'\n".to_owned(),
        ];
        for (number, before) in before.iter().enumerate() {
            let before = proxy(&says(&url, before));
            let held = spawn(&before, "/held");
            until(|| seen.count() == number + 1).await;
            let after = reloaded(&before, &says(&url, &cancelled_after("30 ms")));
            assert_eq!(held.await.unwrap().status, 504, "{number}");
            assert_eq!(overlong(&after), [("slow".to_owned(), 1, 1)]);
        }
    });
}

/// Also where they have run too long for what was said before.
#[test]
fn a_reload_lets_those_in_flight_run_on() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let observed = says(&url, &cancelled_after("30 ms"));
        let observed = observed.replace("limit=1", "limit=1\nobserve=true");
        for longest in [String::new(), cancelled_after("10 min")] {
            seen.let_go.set(0);
            let before = proxy(&observed);
            let held = spawn(&before, "/held");
            until(|| overlong(&before)[0].1 == 1).await;
            let after = reloaded(&before, &says(&url, &longest));
            seen.let_go.set(1);
            assert_eq!(held.await.unwrap().status, 200);
            assert_eq!(overlong(&after), [("slow".to_owned(), 1, 0)]);
        }
        // What is said then comes later.
        seen.let_go.set(0);
        let before = proxy(&observed);
        let held = spawn(&before, "/held");
        until(|| overlong(&before)[0].1 == 1).await;
        let after = reloaded(&before, &says(&url, &cancelled_after("200 ms")));
        assert_eq!(held.await.unwrap().status, 504);
        assert_eq!(overlong(&after), [("slow".to_owned(), 1, 1)]);
    });
}
