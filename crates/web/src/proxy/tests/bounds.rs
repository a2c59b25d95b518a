//! What bounds a class of requests, whatever the limit is.

use super::queueing::{order, slow_and_fast, spawn, waiting, with_classes};
use super::support::*;

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
        let first = spawn(&proxy, "/slow/1");
        until(|| seen.count() == 1).await;
        let later = ["/slow/2", "/slow/3"].map(|path| spawn(&proxy, path));
        until(|| waiting(&proxy) == 2).await;
        assert_eq!(inside(&proxy), [(1, Some(1)), (0, None)]);
        // They do not wait for the other place, and others have it.
        let quick = ask(&proxy, get("/quick")).await;
        assert_eq!((quick.status, quick.report.wait_ns), (200, 0));
        for one in [first].into_iter().chain(later) {
            assert_eq!(one.await.unwrap().status, 200);
        }
        assert_eq!(order(&seen, 0), ["/slow/1", "/quick", "/slow/2", "/slow/3"]);
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
        "class.requests: there are never more than 4 inside (the limit of upstream `app`); write at most that, or leave it out"
    );
    assert!(mistake("limit='auto'\nlimit_max=8", "transactions=9").contains("more than 8 inside"));
}
