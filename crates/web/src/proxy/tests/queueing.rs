//! Who goes in when places are few, and who leaves.

use super::support::*;
use crate::proxy::{Failure, Proxy};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_local};

/// Asks for a path in a task of its own.
pub(super) fn spawn(proxy: &Rc<Proxy>, path: &'static str) -> JoinHandle<FullResponse> {
    let proxy = proxy.clone();
    spawn_local(async move { ask(&proxy, get(path)).await })
}

pub(super) fn waiting(proxy: &Rc<Proxy>) -> usize {
    proxy.states()[0].waiting
}

/// An upstream that takes 60 ms for paths with `slow`, 10 ms for those with `short`, until it is let
/// go for those with `held`, and no time for others.
pub(super) async fn slow_and_fast() -> (String, ScriptedRequests) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = ScriptedRequests::default();
    let watching = seen.clone();
    spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let seen = watching.clone();
            spawn_local(async move {
                while let Some(request) = read_message(&mut stream).await {
                    let takes_ms = match &request {
                        slow if slow.contains("slow") => 60,
                        short if short.contains("short") => 10,
                        _ => 0,
                    };
                    let is_held = request.contains("held");
                    seen.requests.borrow_mut().push(request);
                    if takes_ms > 0 {
                        tokio::time::sleep(Duration::from_millis(takes_ms)).await;
                    }
                    if is_held {
                        until(|| seen.let_go.get() > 0).await;
                    }
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    tokio::io::AsyncWriteExt::write_all(&mut stream, answer)
                        .await
                        .unwrap();
                }
            });
        }
    });
    (url, seen)
}

/// The paths in the order the upstream got them, from number `from` on.
pub(super) fn order(seen: &ScriptedRequests, from: usize) -> Vec<String> {
    (from..seen.count())
        .map(|index| seen.lines(index)[0].split(' ').nth(1).unwrap().to_owned())
        .collect()
}

#[test]
fn what_is_expected_to_be_short_goes_first() {
    run(async {
        for order_line in ["", "order = 'boost'", "order = 'hrrn'", "order = 'nudge'"] {
            let (url, seen) = slow_and_fast().await;
            let proxy = to(&[&url], &format!("limit = 1\n{order_line}"));
            // So often that one that took long on a busy machine does not count. Of the first nothing
            // is expected, so the law does not know it.
            for path in ["/slow/1", "/quick/1"].repeat(3) {
                ask(&proxy, get(path)).await;
            }
            let inside = spawn(&proxy, "/held");
            until(|| seen.count() == 7).await;
            let later = ["/slow/3", "/quick/2", "/slow/4", "/quick/3"];
            let later = later.map(|path| spawn(&proxy, path));
            until(|| waiting(&proxy) == 4).await;
            seen.let_go.set(1);
            inside.await.unwrap();
            for one in later {
                let whole = one.await.unwrap();
                assert!(whole.report.wait_ns > 0);
            }
            assert_eq!(
                order(&seen, 7),
                ["/quick/2", "/quick/3", "/slow/3", "/slow/4"],
                "{order_line}"
            );
        }
    });
}

#[test]
fn a_class_goes_before_another_and_fcfs_is_what_it_says() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let proxy = proxy(&format!(
            "[[upstream]]\nname='app'\nservers=['{url}']\nlimit=1\norder='fcfs'\n\
             [[route]]\npath='/'\nupstream='app'\n\
             [[route]]\npath='/first'\nupstream='app'\nclass=0\n"
        ));
        ask(&proxy, get("/quick")).await;
        let inside = spawn(&proxy, "/held");
        until(|| seen.count() == 2).await;
        let later = ["/slow/2", "/quick", "/first/slow"].map(|path| spawn(&proxy, path));
        until(|| waiting(&proxy) == 3).await;
        seen.let_go.set(1);
        inside.await.unwrap();
        for one in later {
            one.await.unwrap();
        }
        assert_eq!(order(&seen, 2), ["/first/slow", "/slow/2", "/quick"]);
    });
}

/// One server with one place and these classes.
pub(super) fn with_classes(url: &str, classes: &str) -> String {
    format!(
        "[[upstream]]\nname='app'\nservers=['{url}']\nlimit=1\n\
         [[route]]\npath='/'\nupstream='app'\n{classes}"
    )
}

#[test]
fn a_class_by_what_a_request_says_goes_first() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let classes = "[[class]]\nname='gold'\npriority=1\nheader={x-tier=['gold*']}\n\
                       [[class]]\nname='api'\npath=['/api/*']\n";
        let proxy = proxy(&with_classes(&url, classes));
        ask(&proxy, get("/quick")).await;
        let inside = spawn(&proxy, "/held");
        until(|| seen.count() == 2).await;
        let plain = ["/other", "/api/x"].map(|path| spawn(&proxy, path));
        let mut gold = get("/gold");
        gold.headers_mut()
            .insert("x-tier", "golden".parse().unwrap());
        let gold = spawn_local({
            let proxy = proxy.clone();
            async move { ask(&proxy, gold).await }
        });
        until(|| waiting(&proxy) == 3).await;
        let present = |name: &str| {
            let states = proxy.class_states().into_iter();
            let mut states = states.filter(|state| state.status.name == name);
            states.next().map(|state| state.status.present)
        };
        assert_eq!(
            ["gold", "api", ""].map(present),
            [Some(1), Some(1), Some(2)]
        );
        seen.let_go.set(1);
        inside.await.unwrap();
        for one in plain.into_iter().chain([gold]) {
            one.await.unwrap();
        }
        assert_eq!(order(&seen, 2), ["/gold", "/api/x", "/other"]);
        assert_eq!(present("gold"), Some(0));
    });
}

#[test]
fn who_waited_is_told_about() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let keys = "limit = 1\ntell_wait = ['server', 'client']";
        let class = "[[class]]\nname='slow'\npath=['/slow/*']\n";
        let config = with_classes(&url, class).replace("limit=1", keys);
        let proxy = proxy(&config);
        let first = spawn(&proxy, "/slow/held");
        until(|| seen.count() == 1).await;
        let second = spawn(&proxy, "/other");
        until(|| waiting(&proxy) == 1).await;
        let third = spawn(&proxy, "/slow/2");
        until(|| waiting(&proxy) == 2).await;
        seen.let_go.set(1);
        let [first, second, third] = [first.await, second.await, third.await].map(Result::unwrap);
        let said = |index: usize, name: &str| {
            let lines = seen.lines(index).into_iter();
            let mut values = lines.filter_map(|line| Some(line.strip_prefix(name)?.to_owned()));
            values.next()
        };
        let ahead = [0, 1, 2].map(|index| said(index, "x-queue-ahead: ").unwrap());
        let classes = [0, 1, 2].map(|index| said(index, "x-queue-class: "));
        // The third is in a class and goes before the second.
        assert_eq!(ahead, ["0", "1", "0"]);
        let slow = Some("slow".to_owned());
        assert_eq!(classes, [slow.clone(), slow, None]);
        assert!(said(0, "x-request-start: t=").is_some());
        for (index, response) in [(0, first), (1, third), (2, second)] {
            let wait_ms = said(index, "x-queue-ms: ").unwrap();
            let timing = response.headers["server-timing"].to_str().unwrap();
            assert!(
                timing.starts_with(&format!("queue;dur={wait_ms}, server;dur=")),
                "{timing}"
            );
        }
    });
}

#[test]
fn who_had_the_least_of_late_goes_first() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let proxy = to(&[&url], "limit = 1\nshare_by = 'header:x-key'");
        let keyed = |key: &'static str, path: &'static str| {
            let proxy = proxy.clone();
            let mut request = get(path);
            request.headers_mut().insert("x-key", key.parse().unwrap());
            spawn_local(async move { ask(&proxy, request).await })
        };
        keyed("hog", "/slow/0").await.unwrap();
        let inside = keyed("hog", "/slow/held");
        until(|| seen.count() == 2).await;
        let later = [
            ("hog", "/slow/2"),
            ("hog", "/quick/hog"),
            ("small", "/slow/small"),
            ("hog", "/slow/3"),
            ("small", "/quick/small"),
        ];
        let later = later.map(|(key, path)| keyed(key, path));
        let unnamed = spawn(&proxy, "/slow/unnamed");
        until(|| waiting(&proxy) == 6).await;
        // More than what others have while it waits, on a busy machine as well.
        tokio::time::sleep(Duration::from_secs(1)).await;
        seen.let_go.set(1);
        inside.await.unwrap();
        for one in later.into_iter().chain([unnamed]) {
            one.await.unwrap();
        }
        // The hog has had more than a second; what others are expected to take is the mean until it is known.
        let order = order(&seen, 2);
        let place = |path: &str| order.iter().position(|own| own == path).unwrap();
        let hogs = ["/slow/2", "/quick/hog", "/slow/3"].map(place);
        let others = ["/slow/small", "/quick/small", "/slow/unnamed"].map(place);
        assert!(hogs.iter().min() > others.iter().max(), "{order:?}");
    });
}

/// In which order two that wait go in, of classes of which the second goes last, after a reload by
/// which it goes first; what becomes of the reload is up to `reloaded`.
async fn order_after_a_reload(reloaded: impl FnOnce(Rc<Proxy>)) -> Vec<String> {
    let (url, seen) = slow_and_fast().await;
    let classes = "[[class]]\nname='a'\npath=['/slow/a']\n\
                   [[class]]\nname='b'\npriority=150\npath=['/slow/b']\n";
    let before = proxy(&with_classes(&url, classes));
    ask(&before, get("/quick")).await;
    let inside = spawn(&before, "/held");
    until(|| seen.count() == 2).await;
    let later = ["/slow/b", "/slow/a"].map(|path| spawn(&before, path));
    until(|| waiting(&before) == 2).await;
    let changed = classes.replace("150", "1");
    let after = proxy_after(&with_classes(&url, &changed), Some(&before));
    assert_eq!(waiting(&after), 2, "the queue is taken over");
    reloaded(after);
    seen.let_go.set(1);
    inside.await.unwrap();
    for one in later {
        one.await.unwrap();
    }
    order(&seen, 2)
}

#[test]
fn who_waits_goes_in_by_the_classes_of_a_reload() {
    run(async {
        let order = order_after_a_reload(|proxy| proxy.take_over()).await;
        assert_eq!(order, ["/slow/b", "/slow/a"]);
        // One that is refused, because something else is wrong, changes nothing.
        let order = order_after_a_reload(drop).await;
        assert_eq!(order, ["/slow/a", "/slow/b"]);
    });
}

#[test]
fn a_target_lets_in_what_is_due() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let classes = "[[class]]\nname='soon'\npath=['/slow/soon']\ntarget={mean='1ms'}\n\
                       [[class]]\nname='later'\npath=['/slow/later']\ntarget={mean='10min'}\n";
        let proxy = proxy(&with_classes(&url, classes));
        for path in ["/slow/soon", "/slow/later", "/quick"] {
            ask(&proxy, get(path)).await;
        }
        let inside = spawn(&proxy, "/held");
        until(|| seen.count() == 4).await;
        let paths = ["/slow/later", "/quick", "/slow/soon"];
        let later = paths.map(|path| spawn(&proxy, path));
        until(|| waiting(&proxy) == 3).await;
        seen.let_go.set(1);
        inside.await.unwrap();
        for one in later {
            one.await.unwrap();
        }
        assert_eq!(order(&seen, 4), ["/slow/soon", "/quick", "/slow/later"]);
    });
}

#[test]
fn never_more_inside_than_the_limit_on_any_server() {
    run(async {
        let (first, first_seen) = scripted(|_, _| Reply::SendThenWait(Vec::new(), canned())).await;
        let (second, second_seen) =
            scripted(|_, _| Reply::SendThenWait(Vec::new(), canned())).await;
        let proxy = to(&[&first, &second], "limit = 2");
        let asked: Vec<_> = (0..10).map(|_| spawn(&proxy, "/")).collect();
        until(|| first_seen.count() + second_seen.count() == 4).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!((first_seen.count(), second_seen.count()), (2, 2));
        let states = proxy.states();
        assert!(
            states
                .iter()
                .all(|state| state.inside == 2 && state.waiting == 6)
        );
        first_seen.let_go.set(100);
        second_seen.let_go.set(100);
        for one in asked {
            assert_eq!(one.await.unwrap().status, 200);
        }
        assert_eq!(waiting(&proxy), 0);
    });
}

pub(super) fn canned() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()
}

#[test]
fn a_client_that_leaves_leaves_the_queue_and_the_backend() {
    run(async {
        let (url, seen) = scripted(|number, _| match number {
            0 => Reply::Hang,
            _ => ok("next"),
        })
        .await;
        let proxy = to(&[&url], "limit = 1");
        let (address, _) = front(&proxy).await;
        let request = "GET / HTTP/1.1\r\nhost: h\r\n\r\n";
        let inside = client(address, request).await;
        until(|| seen.count() == 1).await;
        let impatient = client(address, request).await;
        until(|| waiting(&proxy) == 1).await;
        drop(impatient);
        until(|| waiting(&proxy) == 0).await;
        let patient = spawn(&proxy, "/");
        until(|| waiting(&proxy) == 1).await;
        drop(inside);
        assert_eq!(patient.await.unwrap().text(), "next");
        // The upstream saw that its answer was wanted no more.
        until(|| seen.open.get() == 1).await;
        assert_eq!(proxy.states()[0].failures, 0);
    });
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_response_ends_it() {
    run(async {
        let (url, seen) = scripted(|_, _| {
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbeg\r\n";
            Reply::SendThenWait(head.to_vec(), Vec::new())
        })
        .await;
        let proxy = to(&[&url], "limit = 1");
        let forwarded = forward(&proxy, get("/")).await;
        assert_eq!(proxy.states()[0].inside, 1);
        drop(forwarded);
        until(|| proxy.states()[0].inside == 0 && seen.open.get() == 0).await;
        assert_eq!(proxy.buffered_bytes(), 0);
    });
}

#[test]
fn waiting_ends_where_the_operator_says() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::Hang).await;
        let keys = "limit = 1\nwaiting_max = 1\nqueue_seconds = 0.5";
        let proxy = to(&[&url], keys);
        let inside = spawn(&proxy, "/");
        until(|| seen.count() == 1).await;
        let waits = spawn(&proxy, "/");
        until(|| waiting(&proxy) == 1).await;
        let full = ask(&proxy, get("/")).await;
        assert_eq!(full.status, 503);
        assert_eq!(full.report.failure, Some(Failure::QueueFull { waiting: 1 }));
        assert_eq!(full.headers["retry-after"], "1");
        let late = waits.await.unwrap();
        assert!(matches!(
            late.report.failure,
            Some(Failure::QueuedTooLong(_))
        ));
        assert_eq!((late.status, late.report.tries), (503, 0));
        inside.abort();
        until(|| proxy.states()[0].inside == 0).await;
    });
}

#[test]
fn who_has_least_to_do_is_asked_and_equals_in_turn() {
    run(async {
        let (first, first_seen) = scripted(|number, _| match number {
            1 => Reply::Hang,
            _ => ok(""),
        })
        .await;
        let (second, second_seen) = scripted(|_, _| ok("")).await;
        let proxy = to(&[&first, &second], "");
        let counts = || (first_seen.count(), second_seen.count());
        for _ in 0..2 {
            ask(&proxy, get("/")).await;
            until(|| proxy.states().iter().all(|state| state.inside == 0)).await;
        }
        assert_eq!(counts(), (1, 1));
        let hanging = spawn(&proxy, "/");
        until(|| first_seen.count() == 2).await;
        for _ in 0..3 {
            ask(&proxy, get("/")).await;
            until(|| proxy.states()[1].inside == 0).await;
        }
        assert_eq!(counts(), (2, 4));
        hanging.abort();
    });
}
