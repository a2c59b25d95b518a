//! Links that were full before anything was seen, with few clients or one: no other client can say
//! how long a packet takes without a queue.

use sooner_bottleneck::State;

use crate::world::World;

/// Downloads that fill the link, by which TCP leaves a queue that swings little, much, or not.
fn loaded(carries: f64, clients: u32, swings: Option<(f64, f64)>) -> World {
    let mut world = World::of(carries);
    (world.clients, world.lights_told_a_second) = (clients, 0.0);
    world.saw = swings;
    if swings.is_none() {
        // A full window keeps the queue as it is, and nothing is lost.
        world.window = 0.6;
    }
    world
}

#[test]
fn downloads_of_one_or_two_that_began_before_are_found() {
    let mut late = Vec::new();
    for carries in [5e6, 10e6, 200e6] {
        for clients in [1, 2] {
            for swings in [Some((0.9, 2.0)), Some((0.95, 1.0)), Some((0.5, 4.0)), None] {
                let mut world = loaded(carries, clients, swings);
                // Long before.
                world.milliseconds(20_000);
                let seconds = world.until_found(60.0);
                let what = format!("{carries} {clients} {swings:?}: {seconds}");
                world.run(3.0);
                let (mean_ms, _, used) = world.looked_at(30);
                if seconds > 5.0 || mean_ms > 10.0 || used < 0.94 {
                    late.push(format!("{what}, then {mean_ms} ms, {used}"));
                }
            }
        }
    }
    assert!(late.is_empty(), "{late:#?}");
}

#[test]
fn all_behind_one_address_are_found_as_one() {
    for lights in [0.0, 60.0] {
        let mut world = loaded(10e6, 10, None);
        (world.is_in_one_network, world.lights_told_a_second) = (true, lights);
        world.milliseconds(20_000);
        let seconds = world.until_found(60.0);
        assert!(seconds <= 5.0, "{lights}: {seconds}");
    }
}

#[test]
fn a_steady_stream_to_one_client_is_left_alone() {
    let mut world = loaded(10e6, 1, None);
    world.demand = 6e6;
    let mut tried = 0;
    for _ in 0..6000 {
        tried += u32::from(world.step() == State::Trial);
    }
    assert_eq!(world.search.state(), State::Open, "{}", world.said());
    assert!(tried < 100, "{tried} of 6000 steps: {}", world.said());
}

#[test]
fn a_second_client_behind_the_same_link_changes_nothing() {
    let mut world = loaded(10e6, 1, Some((0.6, 3.0)));
    world.run(10.0);
    assert!(
        world.search.carries_bits_per_sec().is_some(),
        "{}",
        world.said()
    );
    world.clients = 2;
    let mut open = 0;
    for _ in 0..150 {
        open += u32::from(world.step() == State::Open);
    }
    assert_eq!(open, 0, "{}", world.said());
}

#[test]
fn a_trial_waits_for_a_client_that_had_no_packet_for_a_moment() {
    let mut world = loaded(10e6, 2, None);
    while world.step() != State::Trial {}
    // Of two one is served first.
    world.clients = 1;
    world.run(0.8);
    world.clients = 2;
    let seconds = world.until_found(2.0);
    assert!(seconds <= 1.0, "{seconds}: {}", world.said());
}
