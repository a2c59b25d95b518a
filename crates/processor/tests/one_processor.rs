//! The order on an imagined processor.

use crate::imagined::{WAIT_MAX_NS, World, fixed, mix, settings};
use proptest::prelude::*;
use sooner_processor::{Bounds, Rule, RunWait};
use std::collections::BTreeMap;

#[test]
fn a_worker_falls_with_what_it_uses_and_is_on_top_when_it_is_idle() {
    let mut world = World::new(3, settings(Rule::Used, fixed()), true);
    let ms = 1_000_000;
    let mut seen = Vec::new();
    // Two long ones, then a short one.
    let requests = [(ms, 200 * ms), (2 * ms, 200 * ms), (150 * ms, 3 * ms)];
    let mut left = requests.to_vec();
    for end_ms in [5, 20, 80, 149, 153, 160, 300, 500] {
        let end_ns = end_ms * ms;
        let now: Vec<_> = left.extract_if(.., |request| request.0 < end_ns).collect();
        world.run(&now, end_ns);
        seen.push(world.levels());
    }
    assert_eq!(seen.join(" "), "000 110 110 220 220 220 220 000");
    let short_ns = world.responses_ns[0].1;
    assert!(short_ns <= 5 * ms, "{short_ns}");
}

#[test]
fn short_requests_overtake_and_long_ones_still_end() {
    let end_ns = 60_000_000_000;
    let mut equal = World::new(
        50,
        settings(Rule::Used, Bounds::fixed([u64::MAX - 1, u64::MAX])),
        true,
    );
    equal.run(&mix(), end_ns);
    let mut by_levels = World::new(50, settings(Rule::Used, fixed()), true);
    by_levels.run(&mix(), end_ns);
    assert_eq!(by_levels.responses_ns.len(), 2000, "{}", by_levels.now_ns);
    let (equal, ordered) = (equal.mean_ms(), by_levels.mean_ms());
    assert!(ordered < 0.8 * equal, "{ordered} of {equal}");
    // What the shadow says of the same requests.
    let means = by_levels
        .order
        .shadow()
        .means(1.0, fixed().bounds_ns())
        .unwrap();
    let near = |found_ns: f64, ms: f64| (found_ns / 1e6 / ms - 1.0).abs() < 0.15;
    assert!(near(means.equal_ns, equal), "{means:?} {equal}");
    assert!(near(means.levels_ns, ordered), "{means:?} {ordered}");
}

/// Nine texts of 6 ms at once, and behind each an image of 30 ms, a round a second.
fn pages(round: u64) -> Vec<(u64, u64)> {
    let texts = (0..9).map(|_| (round * 1_000_000_000, 6_000_000));
    let images = (0..9).map(|at| (round * 1_000_000_000 + 10_000_000 * (at + 1), 30_000_000));
    texts.chain(images).collect()
}

#[test]
fn bounds_are_learned_and_given_up_where_requests_are_alike() {
    let mut world = World::new(20, settings(Rule::Used, Bounds::default()), true);
    let requests: Vec<(u64, u64)> = (0..20).flat_map(pages).collect();
    world.run(&requests, 20_000_000_000);
    let [first, second] = world.order.bounds().bounds_ns();
    assert!(
        (6_500_000..30_000_000).contains(&first),
        "{first}, {second}"
    );
    // All alike: none falls.
    let alike: Vec<(u64, u64)> = (0..8000)
        .map(|at| (20_000_000_000 + at * 20_000_000, 15_000_000 + at % 3))
        .collect();
    world.run(&alike, 190_000_000_000);
    assert_eq!(world.order.bounds().level(1_000_000_000), 0);
}

#[test]
fn nothing_looks_while_one_works_alone() {
    let mut world = World::new(4, settings(Rule::Used, fixed()), true);
    world.run(&[(1, 2_000_000_000)], 3_000_000_000);
    assert_eq!(world.responses_ns.len(), 1);
    assert!(world.looks <= 4, "{} looks", world.looks);
}

#[test]
fn six_workers_are_ordered_where_beginnings_are_seen_and_left_alone_where_not() {
    let end_ns = 60_000_000_000;
    let run = |sees: bool, bounds: Bounds| {
        let mut world = World::new(6, settings(Rule::Used, bounds), sees);
        world.run(&mix(), end_ns);
        (world.mean_ms(), world.order.requests())
    };
    let none = Bounds::fixed([u64::MAX - 1, u64::MAX]);
    let (equal, _) = run(true, none);
    let (seen, requests) = run(true, fixed());
    let (unseen, _) = run(false, fixed());
    assert!(requests >= 1994, "{requests}");
    assert!(seen < 0.9 * equal, "{seen} of {equal}");
    assert!(unseen < 1.1 * equal, "{unseen} of {equal}");
}

#[test]
fn the_papers_rule_does_not_see_what_a_request_computes() {
    let rule = Rule::RunWait(RunWait::new(Some(3), Some(10_000_000)));
    let mut world = World::new(50, settings(rule, fixed()), true);
    world.run(&mix(), 30_000_000_000);
    let (levels, _) = world.order.standing();
    assert_eq!(levels[2], 0);
    assert!(world.order.requests() > 500);
}

#[test]
fn a_worker_that_is_gone_is_forgotten() {
    let mut world = World::new(2, settings(Rule::Used, fixed()), true);
    world.run(&[(1, 300_000_000), (1, 300_000_000)], 200_000_000);
    assert_eq!(world.levels(), "22");
    world.order.forget(0);
    let mut known = BTreeMap::new();
    known.insert(1, world.order.standing().0[2]);
    assert_eq!(known[&1], 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn none_waits_longer_than_the_bound_and_every_turn_before_it(
        requests in proptest::collection::vec((0_u64..8_000, 1_u64..900), 1..60),
        workers in 2_usize..12,
        sees in any::<bool>(),
    ) {
        let mut requests: Vec<(u64, u64)> =
            requests.into_iter().map(|(at, size)| (at * 1_000_000, size * 1_000_000)).collect();
        requests.sort_unstable();
        let mut world = World::new(workers, settings(Rule::Used, fixed()), sees);
        world.run(&requests, 70_000_000_000);
        prop_assert_eq!(world.responses_ns.len(), requests.len());
        // Each of the others may have a turn of 10 ms, and those on the top level theirs.
        let others_ns = workers as u64 * 20_000_000;
        prop_assert!(world.longest_wait_ns <= WAIT_MAX_NS + others_ns,
            "{} ms", world.longest_wait_ns / 1_000_000);
    }
}
