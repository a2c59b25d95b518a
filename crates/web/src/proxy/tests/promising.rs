//! What classes are promised: targets, who is late, weights, a lower variability; and a limit that
//! is found, with several servers and through reloads.

use super::queueing::{canned, order, slow_and_fast, spawn, waiting, with_classes};
use super::support::*;
use crate::proxy::Proxy;
use std::rc::Rc;
use std::time::Duration;

/// In which order these go in where `known` were done before, and all wait behind one that is in no
/// class.
async fn order_of(config: &str, known: &[&'static str], paths: &[&'static str]) -> Vec<String> {
    order_after(config, known, paths, Duration::ZERO).await
}

/// The same where they wait for so long.
async fn order_after(
    config: &str,
    known: &[&'static str],
    paths: &[&'static str],
    held: Duration,
) -> Vec<String> {
    let (url, seen) = slow_and_fast().await;
    let proxy = proxy(&config.replace("URL", &url));
    for path in known {
        ask(&proxy, get(path)).await;
    }
    let inside = spawn(&proxy, "/held");
    until(|| seen.count() == known.len() + 1).await;
    // All at once, in this order: what is expected of them is some milliseconds, and a busy machine
    // takes as long from one to the next.
    let later: Vec<_> = paths.iter().map(|path| spawn(&proxy, path)).collect();
    until(|| waiting(&proxy) == paths.len()).await;
    tokio::time::sleep(held).await;
    seen.let_go.set(1);
    inside.await.unwrap();
    for one in later {
        one.await.unwrap();
    }
    order(&seen, known.len() + 1)
}

fn class(name: &str, keys: &str) -> String {
    let paths = ["slow", "quick"].map(|speed| format!("/{speed}/{name}"));
    format!("[[class]]\nname='{name}'\npath={paths:?}\n{keys}\n")
}

#[test]
fn of_several_targets_the_most_stringent_counts() {
    run(async {
        let classes = class("soon", "target={mean='10min', p95='1ms'}")
            + &class("later", "target={mean='9min', 'p99.9'='9min'}");
        let known = ["/slow/soon", "/slow/later", "/quick/none"];
        let paths = ["/slow/later", "/quick/none", "/slow/soon"];
        let order = order_of(&with_classes("URL", &classes), &known, &paths).await;
        assert_eq!(order, ["/slow/soon", "/quick/none", "/slow/later"]);
    });
}

#[test]
fn late_says_who_pays_where_not_all_can_be_in_time() {
    run(async {
        let classes = class("first", "priority=1\ntarget={mean='150ms'}")
            + &class("second", "priority=2\ntarget={mean='1ms'}");
        let paths = ["/quick/second", "/quick/first"];
        // Both are late then, the second by far more of its target.
        let held = Duration::from_millis(300);
        let by_priority = with_classes("URL", &classes);
        let order = order_after(&by_priority, &[], &paths, held).await;
        assert_eq!(order, ["/quick/first", "/quick/second"]);
        let in_proportion = format!("late='in-proportion'\n{by_priority}");
        let order = order_after(&in_proportion, &[], &paths, held).await;
        assert_eq!(order, ["/quick/second", "/quick/first"]);
    });
}

#[test]
fn where_a_class_is_to_vary_little_what_takes_long_goes_early() {
    run(async {
        // As many as make a kind believed.
        let known = ["/slow/1/a", "/short/1/a"].repeat(8);
        let paths = ["/short/2/a", "/short/3/a", "/short/4/a", "/slow/2/a"];
        let reduce = "[[class]]\nname='a'\npath=['/slow/*', '/short/*']\nvariability='reduce'\n";
        let order = order_of(&with_classes("URL", reduce), &known, &paths).await;
        // A turn in twenty is the first one's: too little for one of those, six of which are a slow
        // one.
        assert_eq!(order[0], "/slow/2/a", "{order:?}");
        let plain = reduce.replace("variability='reduce'\n", "");
        let order = order_of(&with_classes("URL", &plain), &known, &paths).await;
        assert_eq!(order, paths);
    });
}

#[test]
fn a_class_has_its_part_by_weight() {
    run(async {
        let classes = class("heavy", "weight=3") + &class("light", "weight=1");
        let known = ["/slow/heavy", "/slow/light"];
        let paths = ["/slow/light", "/slow/heavy"].repeat(9);
        let order = order_of(&with_classes("URL", &classes), &known, &paths).await;
        // Three parts of four are nine of twelve; half of them would be six.
        let heavy = order[..12].iter().filter(|path| path.ends_with("heavy"));
        let heavy = heavy.count();
        assert!((8..12).contains(&heavy), "{heavy} of {order:?}");
    });
}

/// How many are inside each server, and may be, and how many wait for all.
fn numbers(proxy: &Rc<Proxy>) -> (Vec<(usize, usize)>, usize) {
    let states = proxy.states();
    let servers = states.iter();
    let servers = servers.map(|state| (state.inside, state.server_limit));
    (servers.collect(), waiting(proxy))
}

#[test]
fn a_limit_that_is_found_is_each_servers_before_one_queue_and_outlives_a_reload() {
    run(async {
        let wait = |_: usize, _: &str| Reply::SendThenWait(Vec::new(), canned());
        let (first, first_seen) = scripted(wait).await;
        let (second, second_seen) = scripted(wait).await;
        let config = |class: &str| {
            format!(
                "[[upstream]]\nname='app'\nservers={:?}\nlimit='auto'\nlimit_max=4\n\
                 [[route]]\npath='/'\nupstream='app'\n\
                 [[class]]\nname='a'\ntarget={{mean='1s'}}\n{class}",
                [&first, &second]
            )
        };
        let before = proxy(&config(""));
        let asked: Vec<_> = (0..10).map(|_| spawn(&before, "/")).collect();
        until(|| first_seen.count() + second_seen.count() == 8).await;
        until(|| waiting(&before) == 2).await;
        assert_eq!(numbers(&before), (vec![(4, 4), (4, 4)], 2));
        // The classes change, the upstream does not.
        let after = proxy_after(&config("priority=7\n"), Some(&before));
        after.take_over();
        assert_eq!(numbers(&after), (vec![(4, 4), (4, 4)], 2));
        // Where its keys change, they hold for who waits as well.
        let fewer = config("").replace("limit='auto'\nlimit_max=4", "limit=1");
        let changed = proxy_after(&fewer, Some(&after));
        changed.take_over();
        assert_eq!(numbers(&changed), (vec![(4, 1), (4, 1)], 2));
        first_seen.let_go.set(100);
        second_seen.let_go.set(100);
        for one in asked {
            assert_eq!(one.await.unwrap().status, 200);
        }
        assert_eq!(numbers(&changed), (vec![(0, 1), (0, 1)], 0));
    });
}
