//! What several workers have in common, seen by the proxies of two of them in one thread.

use super::queueing::{canned, spawn, waiting, with_classes};
use super::reloading::{a_moment, config};
use super::support::*;
use crate::proxy::{Proxy, Standing, WorkerPart};
use sooner_admission::Subject;
use std::rc::Rc;
use std::time::Duration;

/// The proxies of two workers, which have started.
struct Workers {
    first: Rc<Proxy>,
    second: Rc<Proxy>,
}

impl Workers {
    fn new(config: &str) -> Self {
        let first = build_for(config, WorkerPart::First(2), None).unwrap();
        let share = first.share();
        let second = build_for(config, WorkerPart::Beside(&share), None).unwrap();
        first.start();
        second.start();
        Self {
            first: Rc::new(first),
            second: Rc::new(second),
        }
    }

    /// The first serves by this; the second has not heard of it.
    fn reload_first(&self, config: &str) -> Self {
        let part = WorkerPart::First(2);
        let first = build_for(config, part, Some(&self.first)).unwrap();
        let share = first.share();
        let part = WorkerPart::Beside(&share);
        let second = build_for(config, part, Some(&self.second)).unwrap();
        first.take_over();
        first.start();
        Self {
            first: Rc::new(first),
            second: Rc::new(second),
        }
    }
}

#[test]
fn one_limit_holds_for_both() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::SendThenWait(Vec::new(), canned())).await;
        let workers = Workers::new(&config(&[&url], "limit = 1"));
        let one = spawn(&workers.first, "/1");
        until(|| seen.count() == 1).await;
        let other = spawn(&workers.second, "/2");
        until(|| waiting(&workers.first) == 1).await;
        a_moment().await;
        assert_eq!((seen.count(), waiting(&workers.second)), (1, 1));
        seen.let_go.set(2);
        assert_eq!(one.await.unwrap().status, 200);
        assert_eq!(other.await.unwrap().status, 200);
        for proxy in [&workers.first, &workers.second] {
            let state = &proxy.states()[0];
            assert_eq!((state.requests, state.inside), (2, 0));
        }
    });
}

/// It takes one request at a time, so one connection is all that it has to have.
#[test]
fn an_idle_connection_ends_where_the_other_worker_opens_one() {
    run(async {
        for (limit, open) in [("limit = 1", 1), ("limit = 2", 2), ("", 2)] {
            let (url, seen) = scripted(|_, _| ok("x")).await;
            let workers = Workers::new(&config(&[&url], limit));
            for proxy in [&workers.first, &workers.second, &workers.first] {
                for _ in 0..2 {
                    assert_eq!(ask(proxy, get("/")).await.status, 200);
                    a_moment().await;
                }
            }
            assert_eq!(seen.open.get(), open, "{limit}");
            let opened = if open == 1 { 3 } else { 2 };
            assert_eq!(
                (seen.connections.get(), seen.count()),
                (opened, 6),
                "{limit}"
            );
            let state = &workers.first.states()[0];
            assert_eq!((state.failures, state.retries), (0, 0), "{limit}");
        }
    });
}

#[test]
fn a_server_is_out_for_both() {
    run(async {
        let url = unused_address().await;
        let workers = Workers::new(&config(&[&url], "fails = 1\nretries = 0"));
        assert_eq!(ask(&workers.first, get("/")).await.status, 502);
        assert_eq!(workers.second.states()[0].standing, Standing::Down);
        assert_eq!(ask(&workers.second, get("/")).await.status, 503);
        assert_eq!(workers.first.states()[0].requests, 1);
        let out = || workers.second.states()[0].standing == Standing::Down;
        until(|| !out()).await;
        // Only one may try.
        let tries = [&workers.first, &workers.second].map(|proxy| spawn(proxy, "/"));
        for one in tries {
            assert_ne!(one.await.unwrap().status, 200);
        }
        assert_eq!(workers.first.states()[0].requests, 2);
    });
}

#[test]
fn who_waits_goes_on_by_a_reload_at_a_worker_that_has_not_heard_of_it() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::SendThenWait(Vec::new(), canned())).await;
        let before = Workers::new(&config(&[&url], "limit = 1"));
        let asked: Vec<_> = (0..4).map(|_| spawn(&before.second, "/")).collect();
        until(|| seen.count() == 1 && waiting(&before.first) == 3).await;
        let after = before.reload_first(&config(&[&url], "limit = 3"));
        until(|| seen.count() == 3).await;
        assert_eq!((waiting(&after.first), waiting(&before.second)), (1, 1));
        seen.let_go.set(100);
        for one in asked {
            assert_eq!(one.await.unwrap().status, 200);
        }
        assert_eq!(after.second.states()[0].requests, 4);
    });
}

#[test]
fn a_server_that_is_named_no_more_gets_none_of_either() {
    run(async {
        let (old, old_seen) = scripted(|_, _| ok("old")).await;
        let (new, _) = scripted(|_, _| ok("new")).await;
        let before = Workers::new(&config(&[&old], "limit = 4"));
        assert_eq!(ask(&before.first, get("/")).await.text(), "old");
        assert_eq!(ask(&before.second, get("/")).await.text(), "old");
        a_moment().await;
        assert_eq!(old_seen.open.get(), 2);
        let after = before.reload_first(&config(&[&new], "limit = 4"));
        assert_eq!(ask(&before.second, get("/")).await.text(), "new");
        assert_eq!(ask(&after.first, get("/")).await.text(), "new");
        after.second.start();
        assert_eq!(ask(&after.second, get("/")).await.text(), "new");
        until(|| old_seen.open.get() == 0).await;
    });
}

/// A worker may find a request's class, and another one may adopt other classes before it waits.
#[test]
fn a_request_that_meets_a_reload_is_in_the_class_of_its_name() {
    run(async {
        let text = |classes: &[&str]| {
            let tables = classes.iter();
            let tables = tables.map(|name| format!("[[class]]\nname='{name}'\npath=['/{name}']\n"));
            with_classes("http://127.0.0.1:1", &tables.collect::<String>())
        };
        let before = Workers::new(&text(&["gold", "silver"]));
        let current = before.second.upstreams[0].current();
        let _after = before.reload_first(&text(&["iron", "silver", "gold"]));
        let upstream = &before.second.upstreams[0];
        let _waits: Vec<_> = [0, 1, 2]
            .into_iter()
            .map(|class| upstream.acquire(class, Subject::default(), &current))
            .collect();
        let here = |status: &sooner_admission::ClassStatus| status.present;
        let counts: Vec<_> = upstream.class_statuses().iter().map(here).collect();
        assert_eq!(counts, [0, 1, 1, 1]);
    });
}

#[test]
fn checks_are_asked_by_the_first() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("well")).await;
        let health = "health = { path = '/health', seconds = 0.2 }";
        let _workers = Workers::new(&config(&[&url], health));
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!((1..=3).contains(&seen.count()), "{}", seen.count());
    });
}
