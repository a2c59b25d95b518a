//! Links that are found, followed and left alone.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use sooner_bottleneck::{Limits, Search, State, Totals, Why};

use crate::world::{MOST, World};

#[test]
fn a_full_link_is_found_and_its_queue_drained() {
    for carries in [2e6, 10e6, 50e6, 200e6] {
        let mut world = World::of(carries).known();
        assert!(world.decisions.is_empty());
        let seconds = world.until_found(20.0);
        assert!(seconds <= 5.0, "{carries}: {seconds}");
        world.run(3.0);
        let (mut waited, mut sent) = (0, world.sent);
        for _ in 0..300 {
            world.step();
            // Four packets at least.
            waited += u32::from(world.waits / world.carries > (50_000.0 / carries).max(0.010));
        }
        sent = (world.sent - sent) / 30.0;
        assert!(sent > 0.94 * carries, "{carries}: {sent}");
        assert!(waited < 45, "{carries}: {waited} of 300 steps");
    }
}

#[test]
fn it_goes_through_these_states() {
    let mut world = World::of(10e6).known();
    world.run(4.0);
    assert_eq!(world.path(), "drain hold probe hold");
    let why: Vec<String> = world
        .decisions
        .iter()
        .map(|it| it.why.to_string())
        .collect();
    assert_eq!(why[0], "all clients wait: the link is full");
    assert!(
        why.contains(&"the link carries no more".to_owned()),
        "{why:?}"
    );
}

#[test]
fn it_follows_down_at_once_and_up_soon() {
    let mut world = World::of(50e6).known();
    world.run(20.0);
    world.carries = 25e6;
    assert!(world.until_found(10.0) <= 1.5);
    world.run(20.0);
    world.carries = 50e6;
    world.decisions.clear();
    let seconds = world.until_found(10.0);
    let said: Vec<String> = world.decisions.iter().map(ToString::to_string).collect();
    assert!(seconds <= 5.5, "{seconds}: {}", said.join("\n"));
}

#[test]
fn without_traffic_or_with_little_nothing_changes() {
    let mut world = World::of(10e6);
    world.demand = 4.5e6;
    world.run(60.0);
    world.demand = 0.0;
    world.run(60.0);
    assert_eq!(world.path(), "");
    assert_eq!(world.search.rate_bits_per_sec(), MOST as u64);
    let mut world = World::of(10e6).known();
    world.run(10.0);
    world.demand = 0.0;
    let found = world.search.carries_bits_per_sec();
    // A probe or a drain that is under way ends.
    world.run(2.0);
    let count = world.decisions.len();
    world.run(600.0);
    assert_eq!(world.decisions.len(), count);
    assert_eq!(world.search.carries_bits_per_sec(), found);
}

#[test]
fn a_queue_that_others_fill_is_left_to_them_until_they_go() {
    let mut world = World::of(20e6).known();
    // They fill the queue whatever we send.
    world.others = 18e6;
    world.demand = 8e6;
    let mut open = 0;
    for _ in 0..300 {
        open += u32::from(world.step() == State::Open);
    }
    assert!(
        world
            .decisions
            .iter()
            .any(|it| it.why.to_string().contains("others fill"))
    );
    assert!(open > 200, "{open} of 300: {}", world.path());
    world.others = 0.0;
    world.demand = MOST;
    // It looks again after 5 s, then after 10, or as soon as more gets through.
    let seconds = world.until_found(20.0);
    assert!(seconds <= 10.0, "{seconds}");
}

#[test]
fn what_was_saved_up_is_not_taken_for_the_links_rate_again_and_again() {
    let mut world = World::of(10e6).known();
    world.saved_max = 8e6;
    world.run(30.0);
    let mut waited = 0;
    for _ in 0..600 {
        world.step();
        waited += u32::from(world.waits / world.carries > 0.02);
    }
    assert!(waited < 60, "{waited} of 600 steps: {}", world.said());
}

#[test]
fn jitter_is_no_queue() {
    let mut world = World::of(10e6);
    world.jitter_ms = 20.0;
    world.demand = 4e6;
    world.run(30.0);
    let said: Vec<String> = world.decisions.iter().map(ToString::to_string).collect();
    assert_eq!(world.search.state(), State::Open, "{said:?}");
    assert!(world.decisions.len() < 8, "{said:?}");
    world.demand = MOST;
    assert!(world.until_found(20.0) <= 5.0);
}

#[test]
fn without_light_clients_all_vote() {
    let mut world = World::of(10e6);
    world.lights_told_a_second = 0.0;
    world = world.known();
    assert!(world.until_found(10.0) <= 5.0);
}

#[test]
fn a_link_that_was_full_from_the_start_is_found_by_a_trial() {
    for (carries, has_lights) in [(10e6, true), (10e6, false), (50e6, true), (50e6, false)] {
        let mut world = World::of(carries);
        world.lights_told_a_second = if has_lights { 60.0 } else { 0.0 };
        let seconds = world.until_found(20.0);
        assert!(seconds <= 5.0, "{carries} {has_lights}: {seconds}");
        world.run(5.0);
        assert_ne!(world.search.state(), State::Open, "{}", world.path());
    }
}

#[test]
fn a_trial_in_which_the_traffic_ends_says_nothing() {
    let mut world = World::of(10e6);
    while world.step() != State::Trial {}
    let traffic = (world.demand, world.clients);
    (world.demand, world.clients) = (0.0, 0);
    world.run(10.0);
    let last = world.decisions.last().expect("the trial has ended");
    assert_eq!((last.state, last.why), (State::Open, Why::Unheard));
    assert_eq!(world.search.rate_bits_per_sec(), MOST as u64);
    (world.demand, world.clients) = traffic;
    let seconds = world.until_found(10.0);
    assert!(seconds <= 5.0, "{seconds}");
}

#[test]
fn a_trial_in_which_one_of_several_is_heard_says_nothing() {
    let mut world = World::of(10e6);
    world.lights_told_a_second = 0.0;
    while world.step() != State::Trial {}
    let clients = std::mem::replace(&mut world.clients, 1);
    while world.step() == State::Trial {}
    assert_eq!(world.decisions.last().unwrap().why, Why::Unheard);
    world.clients = clients;
    let seconds = world.until_found(20.0);
    assert!(
        seconds <= 13.0,
        "{seconds}: tried again after as long as the first time"
    );
}

#[test]
fn paths_that_became_longer_are_learned() {
    for farther_ms in [4.0, 15.0] {
        let mut world = World::of(10e6).known();
        world.run(20.0);
        world.farther_ms = farther_ms;
        world.run(60.0);
        world.carries = 20e6;
        let seconds = world.until_found(20.0);
        assert!(seconds <= 6.0, "{farther_ms}: {seconds}");
    }
}

#[test]
fn a_process_that_was_stopped_for_a_while_cuts_nothing() {
    let mut world = World::of(10e6).known();
    world.run(20.0);
    let before = world.search.carries_bits_per_sec();
    for _ in 0..5 {
        // TCP goes on at the rate of before.
        world.milliseconds(4_000);
        world.step();
        world.run(3.0);
    }
    let found = world.search.carries_bits_per_sec().unwrap() as f64;
    let before = before.unwrap() as f64;
    assert!((found - before).abs() < 0.05 * before, "{found} {before}");
}

#[test]
fn a_client_that_comes_without_a_queue_frees_what_one_alone_was_held_to() {
    let mut world = World::of(4e6);
    (world.lights_told_a_second, world.clients) = (0.0, 1);
    world = world.known();
    assert!(world.until_found(10.0) <= 5.0);
    let near = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9));
    for _ in 0..30 {
        world.search.note_delay(near, world.now_ns, 3_000_000, true);
        world.step();
    }
    let freed = world
        .decisions
        .iter()
        .any(|it| it.why.to_string().contains("another client"));
    assert!(freed, "{}", world.path());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is told, rates stay within their limits and memory within bounds.
    #[test]
    fn any_world_keeps_the_limits(
        steps in proptest::collection::vec((0_u64..200_000_000, 0_u64..50_000_000, 0_u32..3000, 0_u32..6000, any::<bool>()), 1..200)
    ) {
        let limits = Limits { most_bits_per_sec: 500_000_000, least_bits_per_sec: 100_000 };
        let mut search = Search::new(limits);
        let mut totals = Totals::default();
        for (after_ns, bytes, delay_ms, client, is_light) in steps {
            totals.at_ns += after_ns;
            totals.sent_bytes += bytes;
            totals.measured_bytes += bytes;
            totals.measured_payload_bytes += bytes;
            totals.delivered_payload_bytes += bytes / 2;
            for more in 0..20 {
                let address = IpAddr::V4(Ipv4Addr::from_bits(client * 7 + more));
                search.note_delay(address, totals.at_ns, u64::from(delay_ms) * 1_000_000, is_light);
            }
            search.step(totals);
            let rate = search.rate_bits_per_sec();
            prop_assert!((100_000..=500_000_000).contains(&rate), "{rate}");
        }
    }
}
