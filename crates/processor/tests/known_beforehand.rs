//! Requests of which the like have come before, on an imagined processor.

use crate::imagined::{STEP_NS, WAIT_MAX_NS, World, fixed, kind, mix, settings};
use proptest::prelude::*;
use sooner_processor::{Bounds, History, HistoryFigures, RequestKind, Rule};

const MS: u64 = 1_000_000;

fn history() -> Rule {
    Rule::History(Box::default())
}

/// Twenty kinds, each of requests that are within a fifth of each other.
fn by_size(size_ns: u64) -> Option<RequestKind> {
    let classes = (size_ns as f64 / 2e6).ln() / 500_f64.ln() * 20.0;
    kind(1 + classes as u64)
}

/// Kinds that say nothing.
fn at_random(size_ns: u64) -> Option<RequestKind> {
    kind(1 + size_ns % MS)
}

/// What takes ten times as long now as its like did, or twice.
fn tenfold(size_ns: u64) -> Option<RequestKind> {
    by_size((size_ns / 10).max(2 * MS))
}

fn twofold(size_ns: u64) -> Option<RequestKind> {
    by_size((size_ns / 2).max(2 * MS))
}

/// What takes a tenth.
fn tenth(size_ns: u64) -> Option<RequestKind> {
    by_size((size_ns * 10).min(1000 * MS))
}

/// The mean of the last half of so many rounds of the mix, ms: the first ones are of these kinds,
/// the last of those; and what was known beforehand.
fn mean_ms(
    rule: Rule,
    rounds: (u64, u64),
    kinds: [fn(u64) -> Option<RequestKind>; 2],
) -> (f64, Option<HistoryFigures>) {
    let mut world = World::new(50, settings(rule, Bounds::default()), true);
    let round_ns = 60_000 * MS;
    for round in 0..rounds.0 + rounds.1 {
        if round == rounds.0 {
            world.responses_ns.clear();
        }
        world.kind_of = kinds[usize::from(round >= rounds.0)];
        // The nanoseconds of a size are a number by which requests may be told apart.
        let later = |(came_ns, size_ns): (u64, u64)| {
            (came_ns + round * round_ns, size_ns + came_ns / 1000 % 7)
        };
        let requests: Vec<(u64, u64)> = mix().into_iter().map(later).collect();
        world.run(&requests, (round + 1) * round_ns);
    }
    (world.mean_ms(), world.order.history())
}

/// The mean of a round with history over that of one without, after one of these kinds, and what
/// was known.
fn gain(kinds: [fn(u64) -> Option<RequestKind>; 2]) -> (f64, HistoryFigures) {
    let (without_ms, _) = mean_ms(Rule::Used, (1, 1), kinds);
    let (with_ms, figures) = mean_ms(history(), (1, 1), kinds);
    (with_ms / without_ms, figures.unwrap())
}

#[test]
fn a_short_one_goes_first_that_has_used_nothing() {
    let mut world = World::new(3, settings(history(), fixed()), true);
    world.kind_of = by_size;
    // One after the other: 3 ms and 200 ms.
    let learned: Vec<(u64, u64)> = (0..60)
        .map(|at| (at * 300 * MS, [3 * MS, 200 * MS][at as usize % 2]))
        .collect();
    let end_ns = 60 * 300 * MS;
    world.run(&learned, end_ns);
    assert_eq!(world.levels(), "000");
    let starts = world.order.take_starts();
    let last = starts.last().unwrap();
    assert_eq!((Some(last.kind), last.level), (by_size(200 * MS), 2));
    // Two long ones at once, which have used nothing, and a short one.
    let at = |ms: u64| end_ns + ms * MS;
    let requests = [(at(1), 200 * MS), (at(1), 200 * MS), (at(20), 3 * MS)];
    let mut left = requests.to_vec();
    let mut seen = Vec::new();
    for end_ms in [4, 19, 21, 30, 340, 380, 410] {
        let end_ns = at(end_ms);
        let now: Vec<_> = left.extract_if(.., |request| request.0 < end_ns).collect();
        world.run(&now, end_ns);
        seen.push(world.levels());
    }
    assert_eq!(seen.join(" "), "220 220 220 220 210 100 000");
    let (size_ns, response_ns) = world.responses_ns[60];
    assert!((size_ns, response_ns) <= (3 * MS, 4 * MS), "{response_ns}");
}

/// The same where nothing came before: their application says it.
#[test]
fn a_long_one_of_which_that_is_said_begins_below() {
    for rule in [history(), Rule::Used] {
        let mut world = World::new(3, settings(rule, fixed()), true);
        world.said_ns_of = |size_ns| if size_ns == 30 * MS { 0 } else { size_ns };
        // Two long ones, a short one, and one of 30 ms of which nothing is said.
        let requests = [
            (MS, 200 * MS),
            (MS, 200 * MS),
            (20 * MS, 3 * MS),
            (25 * MS, 30 * MS),
        ];
        let mut left = requests.to_vec();
        let mut seen = Vec::new();
        for end_ms in [4, 19, 21, 24, 28, 40, 450] {
            let end_ns = end_ms * MS;
            let now: Vec<_> = left.extract_if(.., |request| request.0 < end_ns).collect();
            world.run(&now, end_ns);
            seen.push(world.levels());
        }
        assert_eq!(seen.join(" "), "220 220 220 220 220 221 000");
        let (size_ns, response_ns) = world.responses_ns[0];
        assert!((size_ns, response_ns) <= (3 * MS, 4 * MS), "{response_ns}");
    }
}

/// Two long ones alone: what is left decides once it is little.
#[test]
fn what_was_said_counts_down() {
    let mut world = World::new(2, settings(Rule::Used, fixed()), true);
    world.said_ns_of = |size_ns| size_ns;
    let mut seen = Vec::new();
    world.run(&[(MS, 200 * MS), (MS, 200 * MS)], 4 * MS);
    for end_ms in [270, 310, 360, 430] {
        world.run(&[], end_ms * MS);
        seen.push(world.levels());
    }
    assert_eq!(seen.join(" "), "22 12 01 00");
    // The first is over long before the second, which it would have ended with by turns.
    assert!(
        world.responses_ns[0].1 < 350 * MS,
        "{:?}",
        world.responses_ns
    );
}

/// Who says less than its request takes is put back for it.
#[test]
fn what_takes_longer_than_was_said_falls_to_the_last_level() {
    let mut world = World::new(2, settings(Rule::Used, fixed()), true);
    world.said_ns_of = |_| 4 * MS;
    world.run(&[(MS, 200 * MS), (2 * MS, 4 * MS)], 30 * MS);
    assert_eq!(world.levels(), "20");
}

#[test]
fn what_is_known_beforehand_is_worth_a_tenth_of_the_mean() {
    let (gain, figures) = gain([by_size, by_size]);
    assert!(gain < 0.9, "{gain} {figures:?}");
    assert!(
        !figures.is_left_out && figures.ranked_rightly > Some(0.9),
        "{figures:?}"
    );
    assert!(figures.by_history > 9 * figures.by_used, "{figures:?}");
}

#[test]
fn kinds_that_say_nothing_change_nothing() {
    let (gain, figures) = gain([at_random, at_random]);
    assert!(gain < 1.01, "{gain} {figures:?}");
    assert!(figures.by_history < figures.by_used / 5, "{figures:?}");
    // Nor does one kind for all.
    let (gain, figures) = self::gain([|_| kind(1), |_| kind(1)]);
    assert!(gain < 1.01, "{gain} {figures:?}");
}

#[test]
fn a_history_that_is_over_is_given_up() {
    for (name, now, most) in [
        ("ten times as long", tenfold as fn(u64) -> _, 1.01),
        ("twice as long", twofold, 0.95),
        ("a tenth", tenth, 1.03),
    ] {
        let (gain, figures) = gain([by_size, now]);
        assert!(gain < most, "{name}: {gain} {figures:?}");
    }
}

#[test]
fn a_history_that_is_over_again_and_again_does_no_harm() {
    // By turns: a kind takes what it did, or a tenth of that.
    let mut world = World::new(20, settings(history(), fixed()), true);
    let mut plain = World::new(20, settings(Rule::Used, fixed()), true);
    for (round, of_kind) in (0..12_u64).zip([by_size as fn(u64) -> _, tenth].into_iter().cycle()) {
        let round_ns = 60_000 * MS;
        let later = |(came_ns, size_ns): (u64, u64)| (came_ns + round * round_ns, size_ns);
        let requests: Vec<(u64, u64)> = mix().into_iter().map(later).collect();
        for world in [&mut world, &mut plain] {
            world.kind_of = of_kind;
            world.run(&requests, (round + 1) * round_ns);
        }
    }
    let gain = world.mean_ms() / plain.mean_ms();
    assert!(gain < 1.0, "{gain} {:?}", world.order.history());
}

#[test]
fn kinds_are_bounded_and_those_that_come_again_stay() {
    let mut world = World::new(4, settings(history(), fixed()), true);
    world.kind_of = |size_ns| kind(size_ns);
    let requests: Vec<(u64, u64)> = (0..8_000_u64)
        .map(|at| {
            let size_ns = match at % 4 {
                0 => 2 * MS,
                1 => 40 * MS,
                _ => 3 * MS + at,
            };
            (at * 13 * MS, size_ns)
        })
        .collect();
    world.run(&requests, 110_000 * MS);
    let figures = world.order.history().unwrap();
    assert_eq!(figures.kinds, sooner_processor::KINDS_MAX);
    let mut standing = std::collections::BTreeMap::new();
    for start in world.order.take_starts() {
        standing.insert(start.kind, start.level);
    }
    let below: Vec<_> = standing.iter().filter(|(_, level)| **level > 0).collect();
    assert_eq!(below, [(&kind(40 * MS).unwrap(), &1)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn none_waits_longer_than_the_bound_whatever_its_history(
        requests in proptest::collection::vec((0_u64..8_000, 1_u64..900, 0_u64..4), 1..60),
        workers in 2_usize..12,
    ) {
        let mut rule = History::default();
        let mut bounds = fixed();
        // What is said of a kind has nothing to do with what comes.
        for (_, size_ms, said) in requests.iter().cycle().take(300) {
            bounds.note(size_ms * MS);
            rule.finish(kind(said + 1), [2, 30, 300, 900][*said as usize] * MS, &bounds, true);
        }
        let mut requests: Vec<(u64, u64)> = requests
            .into_iter()
            .map(|(at, size, kind)| (at * MS, size * MS + kind))
            .collect();
        requests.sort_unstable();
        let mut world =
            World::new(workers, settings(Rule::History(Box::new(rule)), bounds), true);
        world.kind_of = |size_ns| kind(size_ns % MS + 1);
        world.run(&requests, 70_000_000_000);
        prop_assert_eq!(world.responses_ns.len(), requests.len());
        let others_ns = workers as u64 * 20 * STEP_NS;
        prop_assert!(world.longest_wait_ns <= WAIT_MAX_NS + others_ns,
            "{} ms", world.longest_wait_ns / MS);
    }
}
