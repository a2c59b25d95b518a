//! What waits for an upstream while the configuration changes: one queue, from which requests go in
//! by what is said at last.

use super::queueing::{canned, order, slow_and_fast, spawn, waiting, with_classes};
use super::support::*;
use crate::proxy::{Proxy, Standing};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::spawn_local;

/// One upstream with these servers and keys.
pub(super) fn config(servers: &[&str], keys: &str) -> String {
    format!(
        "[[upstream]]\nname='app'\nservers={servers:?}\n{keys}\n[[route]]\npath='/'\nupstream='app'\n"
    )
}

/// The same upstream by another configuration, which is in force.
pub(super) fn reloaded(before: &Rc<Proxy>, config: &str) -> Rc<Proxy> {
    let after = proxy_after(config, Some(before));
    after.take_over();
    after.start();
    after
}

/// Time for what must not happen.
pub(super) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(30)).await;
}

fn inside(proxy: &Rc<Proxy>) -> Vec<usize> {
    let states = proxy.states();
    states.iter().map(|state| state.inside).collect()
}

#[test]
fn the_limit_holds_across_reloads() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::SendThenWait(Vec::new(), canned())).await;
        let says = |seconds| config(&[&url], &format!("limit = 1\nconnect_seconds = {seconds}"));
        let mut now = proxy(&says(5));
        let mut asked = Vec::new();
        for seconds in [6, 7, 8] {
            asked.extend(["/a", "/b"].map(|path| spawn(&now, path)));
            until(|| seen.count() == 1 && waiting(&now) == asked.len() - 1).await;
            now = reloaded(&now, &says(seconds));
            a_moment().await;
            assert_eq!((seen.count(), waiting(&now)), (1, asked.len() - 1));
            assert_eq!(inside(&now), [1]);
        }
        seen.let_go.set(100);
        for one in asked {
            assert_eq!(one.await.unwrap().status, 200);
        }
        assert_eq!((inside(&now), now.states()[0].requests), (vec![0], 6));
    });
}

#[test]
fn a_limit_that_changes_holds_for_those_who_wait() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::SendThenWait(Vec::new(), canned())).await;
        let says = |limit| config(&[&url], &format!("limit = {limit}"));
        let before = proxy(&says(1));
        let mut asked: Vec<_> = (0..6).map(|_| spawn(&before, "/")).collect();
        until(|| seen.count() == 1 && waiting(&before) == 5).await;
        let more = reloaded(&before, &says(4));
        until(|| seen.count() == 4).await;
        assert_eq!((inside(&more), waiting(&more)), (vec![4], 2));
        let fewer = reloaded(&more, &says(2));
        // Of four that are inside two have to leave before one goes in.
        asked.remove(0).abort();
        asked.remove(0).abort();
        a_moment().await;
        assert_eq!((seen.count(), inside(&fewer)), (4, vec![2]));
        asked.remove(0).abort();
        until(|| seen.count() == 5).await;
        assert_eq!((inside(&fewer), waiting(&fewer)), (vec![2], 1));
        asked.into_iter().for_each(|one| one.abort());
    });
}

#[test]
fn who_waits_goes_to_the_servers_of_a_reload() {
    run(async {
        let (first, first_seen) = scripted(|_, _| Reply::Hang).await;
        let (second, second_seen) = scripted(|_, _| ok("second")).await;
        let before = proxy(&config(&[&first], "limit = 1"));
        let inside_first = spawn(&before, "/1");
        until(|| first_seen.count() == 1).await;
        let waits = spawn(&before, "/2");
        until(|| waiting(&before) == 1).await;
        let after = reloaded(&before, &config(&[&second], "limit = 1"));
        assert_eq!(waits.await.unwrap().text(), "second");
        // What the one has that went does not take the other's only place.
        assert_eq!(ask(&after, get("/3")).await.text(), "second");
        assert_eq!((first_seen.count(), second_seen.count()), (1, 2));
        assert_eq!(inside(&after), [0]);
        inside_first.abort();
        // It comes back, and has its place again.
        let back = reloaded(&after, &config(&[&first], "limit = 1"));
        let again = spawn(&back, "/4");
        until(|| first_seen.count() == 2).await;
        again.abort();
    });
}

#[test]
fn a_class_goes_first_whatever_else_changes() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let classes = "[[class]]\nname='gold'\npriority=1\npath=['/gold']\n";
        let text = with_classes(&url, classes);
        let before = proxy(&text);
        let held = spawn(&before, "/held");
        until(|| seen.count() == 1).await;
        let mut asked = vec![spawn(&before, "/slow/1"), spawn(&before, "/gold")];
        until(|| waiting(&before) == 2).await;
        let after = reloaded(&before, &text.replace("limit=1", "limit=1\nretries=2"));
        asked.push(spawn(&after, "/slow/2"));
        until(|| waiting(&after) == 3).await;
        seen.let_go.set(1);
        held.await.unwrap();
        for one in asked {
            one.await.unwrap();
        }
        assert_eq!(order(&seen, 1)[0], "/gold");
    });
}

/// Where there are no classes by name, or none any more.
#[test]
fn so_does_a_class_of_a_route() {
    run(async {
        let routes = "[[route]]\npath='/api'\nupstream='app'\nclass=1\n\
                      [[route]]\npath='/batch'\nupstream='app'\nclass=7\n";
        for class in ["", "[[class]]\nname='gold'\npath=['/gold']\n"] {
            let (url, seen) = slow_and_fast().await;
            let text = |keys: &str, class: &str| {
                let text = with_classes(&url, &format!("{routes}{class}"));
                text.replace("limit=1", &format!("limit=1\norder='fifo'\n{keys}"))
            };
            let before = proxy(&text("", class));
            let held = spawn(&before, "/held");
            until(|| seen.count() == 1).await;
            let waits = ["/batch/1", "/batch/2", "/api/1"].map(|path| spawn(&before, path));
            until(|| waiting(&before) == 3).await;
            let after = reloaded(&before, &text("retries=2", ""));
            let later = spawn(&after, "/api/2");
            until(|| waiting(&after) == 4).await;
            seen.let_go.set(1);
            held.await.unwrap();
            for one in waits.into_iter().chain([later]) {
                one.await.unwrap();
            }
            let expected = ["/api/1", "/api/2", "/batch/1", "/batch/2"];
            assert_eq!(order(&seen, 1), expected, "{class}");
        }
    });
}

#[test]
fn clients_share_who_waited_before_that_was_said() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let text = |keys: &str| {
            let keys = format!("limit=1\norder='fifo'\n{keys}");
            let upstream = config(&[&url], &keys);
            format!("[proxy]\ntrusted=['192.0.2.0/24']\n{upstream}")
        };
        let before = proxy(&text(""));
        let held = spawn(&before, "/held");
        until(|| seen.count() == 1).await;
        let asked = ["/a/1", "/a/2", "/a/3", "/b/1"].map(|path| {
            let address = match path.starts_with("/a") {
                true => "198.51.100.1",
                false => "203.0.113.1",
            };
            let mut request = get(path);
            let headers = request.headers_mut();
            headers.insert("x-forwarded-for", address.parse().unwrap());
            let proxy = before.clone();
            spawn_local(async move { ask(&proxy, request).await })
        });
        until(|| waiting(&before) == 4).await;
        let _after = reloaded(&before, &text("share_by='client'"));
        seen.let_go.set(1);
        held.await.unwrap();
        for one in asked {
            one.await.unwrap();
        }
        assert_eq!(order(&seen, 1), ["/a/1", "/b/1", "/a/2", "/a/3"]);
    });
}

#[test]
fn so_do_the_bound_of_the_queue_and_whether_it_is_only_observed() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::Hang).await;
        let before = proxy(&config(&[&url], "limit = 1"));
        let mut asked: Vec<_> = (0..3).map(|_| spawn(&before, "/")).collect();
        until(|| seen.count() == 1 && waiting(&before) == 2).await;
        let bounded = reloaded(&before, &config(&[&url], "limit = 1\nwaiting_max = 2"));
        assert_eq!(ask(&bounded, get("/")).await.status, 503);
        let observed = reloaded(&bounded, &config(&[&url], "limit = 1\nobserve = true"));
        until(|| seen.count() == 3).await;
        let held = reloaded(&observed, &config(&[&url], "limit = 1"));
        asked.push(spawn(&held, "/"));
        until(|| waiting(&held) == 1).await;
        assert_eq!((seen.count(), inside(&held)), (3, vec![3]));
        asked.into_iter().for_each(|one| one.abort());
    });
}

/// One that is refused, because something else is wrong, changes nothing.
#[test]
fn a_reload_that_comes_to_nothing_changes_nothing() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::Hang).await;
        let before = proxy(&config(&[&url], "limit = 1"));
        let asked: Vec<_> = (0..3).map(|_| spawn(&before, "/")).collect();
        until(|| seen.count() == 1 && waiting(&before) == 2).await;
        let servers = [&*url, "http://127.0.0.1:1"];
        drop(build(&config(&servers, "limit = 9"), Some(&before)));
        a_moment().await;
        assert_eq!((seen.count(), inside(&before)), (1, vec![1]));
        asked.into_iter().for_each(|one| one.abort());
    });
}

#[test]
fn a_health_check_of_a_reload_begins_and_ends() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("well")).await;
        let before = proxy(&config(&[&url], ""));
        let checked = reloaded(
            &before,
            &config(&[&url], "health = { path = '/health', seconds = 0.01 }"),
        );
        until(|| seen.count() > 2).await;
        assert!(seen.lines(0)[0].starts_with("GET /health "));
        let _unchecked = reloaded(&checked, &config(&[&url], ""));
        a_moment().await;
        let asked = seen.count();
        a_moment().await;
        assert_eq!(seen.count(), asked);
    });
}

/// What only checks can take back comes back where there are none any more.
#[test]
fn a_server_that_checks_held_out_is_back_without_them() {
    run(async {
        let (url, _) = scripted(|_, request| {
            if request.starts_with("GET /health ") {
                text("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
            } else {
                ok("here")
            }
        })
        .await;
        let health = "limit = 1\nhealth = { path = '/health', seconds = 0.02, fails = 1 }";
        let before = proxy(&config(&[&url], health));
        until(|| before.states()[0].standing == Standing::Down).await;
        let after = reloaded(&before, &config(&[&url], "limit = 1"));
        assert_eq!(after.states()[0].standing, Standing::Up);
        assert_eq!(ask(&after, get("/")).await.text(), "here");
    });
}

/// As after a reload that was a mistake.
#[test]
fn a_server_that_comes_back_still_has_what_it_had() {
    run(async {
        let held = |_, _: &str| Reply::SendThenWait(Vec::new(), canned());
        let (first, seen) = scripted(held).await;
        let (second, _) = scripted(|_, _| ok("second")).await;
        let says = config(&[&first], "limit = 2");
        let before = proxy(&says);
        let mut asked = vec![spawn(&before, "/1"), spawn(&before, "/2")];
        until(|| seen.count() == 2).await;
        let without = reloaded(&before, &config(&[&second], "limit = 2"));
        assert_eq!(ask(&without, get("/")).await.text(), "second");
        let back = reloaded(&without, &says);
        assert_eq!((inside(&back), back.states()[0].requests), (vec![2], 2));
        asked.push(spawn(&back, "/3"));
        until(|| waiting(&back) == 1).await;
        a_moment().await;
        assert_eq!((seen.count(), back.states()[0].limit), (2, 2));
        seen.let_go.set(100);
        for one in asked {
            assert_eq!(one.await.unwrap().status, 200);
        }
    });
}
