//! What bounds a class of requests, whatever the limit is.

use super::queueing::{canned, order, slow_and_fast, spawn, waiting, with_classes};
use super::support::*;
use crate::proxy::Failure;
use std::time::Duration;

fn inside(proxy: &crate::proxy::Proxy) -> Vec<(usize, Option<usize>)> {
    let states = proxy.class_states().into_iter();
    states
        .map(|state| (state.status.inside, state.status.inside_max))
        .collect()
}

#[test]
fn others_pass_a_class_of_which_as_many_are_inside_as_may_be() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let classes = "[[class]]\nname='batch'\npath=['/slow/*']\npriority=1\nrequests=1\n";
        let proxy = proxy(&with_classes(&url, classes).replace("limit=1", "limit=2"));
        let first = spawn(&proxy, "/slow/held");
        until(|| seen.count() == 1).await;
        let later = ["/slow/2", "/slow/3"].map(|path| spawn(&proxy, path));
        until(|| waiting(&proxy) == 2).await;
        assert_eq!(inside(&proxy), [(1, Some(1)), (0, None)]);
        // They do not wait for the other place, and others have it.
        let quick = ask(&proxy, get("/quick")).await;
        assert_eq!((quick.status, quick.report.wait_ns), (200, 0));
        seen.let_go.set(1);
        for one in [first].into_iter().chain(later) {
            assert_eq!(one.await.unwrap().status, 200);
        }
        assert_eq!(
            order(&seen, 0),
            ["/slow/held", "/quick", "/slow/2", "/slow/3"]
        );
    });
}

/// The cap goes with a reload, while some wait for it.
#[test]
fn a_cap_that_is_raised_lets_in_those_who_wait() {
    run(async {
        let (url, seen) = scripted(|_, _| Reply::Hang).await;
        let config = |cap| {
            let class = format!("[[class]]\nname='all'\nrequests={cap}\n");
            with_classes(&url, &class).replace("limit=1", "limit=9")
        };
        let before = proxy(&config(1));
        let tasks = ["/1", "/2", "/3"].map(|path| spawn(&before, path));
        until(|| seen.count() == 1 && waiting(&before) == 2).await;
        let after = proxy_after(&config(2), Some(&before));
        after.take_over();
        until(|| seen.count() == 2 && waiting(&after) == 1).await;
        assert_eq!(inside(&after)[0], (2, Some(2)));
        tasks.into_iter().for_each(|task| task.abort());
    });
}

#[test]
fn bounds_that_say_nothing_are_mistakes() {
    let mistake = |limit: &str, bounds: &str| {
        let class = format!("[[class]]\nname='a'\n{bounds}\n");
        let config = with_classes("http://127.0.0.1:1", &class).replace("limit=1", limit);
        let error = build(&config, None).err().expect("a mistake");
        format!("{}: {}", error.key, error.message)
    };
    assert_eq!(
        mistake("limit=4", "requests=5"),
        "class.requests: more than the limit of upstream `app` allows; write at most 4, or leave it out"
    );
    // The gate's word for it.
    assert_eq!(
        mistake("limit=4", "transactions=5"),
        mistake("limit=4", "requests=5")
    );
    for (limit, bounds, expected) in [
        (
            "waiting_max=5",
            "",
            "upstream.waiting_max: has no effect without a limit",
        ),
        (
            "observe=true",
            "",
            "upstream.observe: has no effect without a limit",
        ),
        ("", "longest='2 s'", "class.longest: there is no limit"),
        ("limit=1", "longest='2'", "class.longest: `2` has no unit"),
        (
            "limit=1",
            "longest='0 s'",
            "class.longest: out of range; write 10ms",
        ),
        (
            "limit=1",
            "longest='-2 s'",
            "class.longest: `-2 s` is not a length of time",
        ),
        (
            "limit=1",
            "longest_action='cancel'",
            "class.longest_action: has no effect without a time",
        ),
    ] {
        let said = mistake(limit, bounds);
        assert!(said.starts_with(expected), "{said}");
    }
    assert!(mistake("limit='auto'\nlimit_max=8", "requests=9").contains("write at most 8"));
    let bounded = |limit: &str, bounds: &str| {
        let class = format!("[[class]]\nname='a'\n{bounds}\n");
        let config = with_classes("http://127.0.0.1:1", &class).replace("limit=1", limit);
        build(&config, None).is_ok()
    };
    assert!(bounded("waiting_max=5\nobserve=true", "requests=3"));
    let cancelled = "longest='2 s'\nlongest_action='cancel'";
    assert!(bounded("observe=true", cancelled) && bounded("observe=false", ""));
}

/// An upstream that answers only what does not ask for `/hang` or `/endless`.
async fn hanging() -> (String, ScriptedRequests) {
    scripted(
        |_, request| match request.split(' ').nth(1).unwrap_or_default() {
            "/hang" => Reply::Hang,
            "/endless" => endless(),
            _ => ok("quick"),
        },
    )
    .await
}

/// One place, and a class of which jobs keep it for 30 ms.
fn with_longest(url: &str, action: &str) -> String {
    let class = "[[class]]\nname='slow'\npath=['/hang','/endless']\nlongest='30 ms'";
    with_classes(url, &format!("{class}\n{action}\n"))
}

/// How many ran too long, and how many of them were cancelled.
fn overlong(proxy: &crate::proxy::Proxy) -> (u64, u64) {
    let status = &proxy.class_states()[0].status;
    (status.overlong, status.cancelled)
}

#[test]
fn who_runs_too_long_gives_its_place_up_and_goes_on() {
    run(async {
        let (url, seen) = hanging().await;
        let proxy = proxy(&with_longest(&url, ""));
        let slow = ["/hang", "/endless"].map(|path| spawn(&proxy, path));
        // The one behind the other, and what is quick behind both.
        until(|| seen.count() == 1 && waiting(&proxy) == 1).await;
        let quick = spawn(&proxy, "/quick");
        until(|| overlong(&proxy) == (2, 0)).await;
        // There are twice as many as may be, and no more go in.
        assert_eq!((seen.count(), waiting(&proxy)), (2, 1));
        assert!(slow.iter().all(|task| !task.is_finished()));
        slow[0].abort();
        assert_eq!(quick.await.unwrap().text(), "quick");
        let status = &proxy.states()[0];
        assert_eq!((status.inside, status.failures), (1, 0));
        slow[1].abort();
        until(|| proxy.states()[0].inside == 0 && proxy.states()[0].limit == 1).await;
    });
}

#[test]
fn who_runs_too_long_is_cancelled_where_that_is_said() {
    run(async {
        let (url, seen) = hanging().await;
        let proxy = proxy(&with_longest(&url, "longest_action='cancel'"));
        let silent = ask(&proxy, get("/hang")).await;
        let failure = Failure::RanTooLong(Duration::from_millis(30));
        assert_eq!((silent.status, silent.report.failure), (504, Some(failure)));
        assert_eq!(silent.report.tries, 1, "it is not tried again");
        until(|| seen.open.get() == 0).await;
        let begun = ask(&proxy, get("/endless")).await;
        assert_eq!((begun.status, begun.body.is_err()), (200, true));
        until(|| seen.open.get() == 0 && proxy.states()[0].inside == 0).await;
        assert_eq!((seen.count(), overlong(&proxy)), (2, (2, 2)));
        assert_eq!(
            proxy.states()[0].failures,
            0,
            "the server has done no wrong"
        );
        assert_eq!(ask(&proxy, get("/quick")).await.text(), "quick");
    });
}

/// Two at once where one may be: both go in, and the second would have waited for the first.
#[test]
fn where_it_is_only_observed_none_waits_and_the_wait_is_told() {
    run(async {
        let (url, seen) = slow_and_fast().await;
        let class = "[[class]]\nname='slow'\npath=['/slow/*']\nrequests=1\nlongest='10ms'\nlongest_action='cancel'\n";
        let config = with_classes(&url, class).replace("limit=1", "limit=1\nobserve=true");
        let proxy = proxy(&config);
        let both = ["/slow/held/1", "/slow/held/2"].map(|path| spawn(&proxy, path));
        until(|| seen.count() == 2).await;
        assert_eq!(waiting(&proxy), 0);
        seen.let_go.set(1);
        for one in both {
            let whole = one.await.unwrap();
            assert_eq!((whole.status, whole.report.wait_ns), (200, 0));
        }
        until(|| proxy.rehearsals()[0].would.jobs == 2).await;
        let state = &proxy.rehearsals()[0];
        assert_eq!((state.class.as_str(), state.would.waited), ("slow", 1));
        assert!(state.would.wait_max_ns > 0);
        // What runs too long is counted, and goes on.
        assert_eq!(overlong(&proxy), (2, 0));
        assert_eq!(ask(&proxy, get("/quick")).await.report.wait_ns, 0);
    });
}

/// It would have gone in after the other, and failed as it did in truth.
#[test]
fn who_fails_at_the_server_would_have_waited_as_well() {
    run(async {
        let (url, seen) = scripted(|_, request| match request.starts_with("GET /held ") {
            true => Reply::SendThenWait(Vec::new(), canned()),
            false => Reply::Close,
        })
        .await;
        let proxy = to(&[&url], "limit = 1\nobserve = true\nretries = 0");
        let held = spawn(&proxy, "/held");
        until(|| seen.count() == 1).await;
        assert_eq!(ask(&proxy, get("/close")).await.status, 502);
        seen.let_go.set(1);
        assert_eq!(held.await.unwrap().status, 200);
        let would = || proxy.rehearsals()[0].would;
        until(|| proxy.states()[0].inside == 0 && would().waiting == 0).await;
        assert_eq!((would().jobs, would().waited), (2, 1));
    });
}
