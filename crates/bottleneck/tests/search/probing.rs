//! What looking for more costs those who wait meanwhile.

use sooner_bottleneck::Search;

use crate::world::{LIMITS, World};

/// A link with traffic as a server has it: six downloads, a dozen small responses a second.
fn served(carries: f64) -> World {
    let mut world = World::of(carries);
    (world.told_a_second, world.lights_told_a_second) = (200.0, 12.0);
    world.saw = Some((0.6, 3.0));
    world.known()
}

#[test]
fn those_who_come_while_it_looks_for_more_wait_little() {
    let mut said = Vec::new();
    for (carries, most_ms) in [(2e6, 22.0), (10e6, 7.5), (50e6, 7.5), (200e6, 7.5)] {
        let mut world = served(carries);
        world.run(10.0);
        let (mean_ms, late_ms, used) = world.looked_at(120);
        if mean_ms > 0.2 * most_ms || late_ms > most_ms || used < 0.95 {
            said.push(format!("{carries}: {mean_ms:.2} {late_ms:.2} {used:.3}"));
        }
    }
    assert!(said.is_empty(), "{said:#?}");
}

#[test]
fn jitter_takes_nothing_from_the_rate() {
    let mut said = Vec::new();
    for jitter_ms in [5.0, 20.0, 40.0] {
        let mut world = served(10e6);
        world.jitter_ms = jitter_ms;
        let seconds = world.until_found(20.0);
        let (mean_ms, late_ms, used) = world.looked_at(60);
        if seconds > 5.0 || used < 0.942 || mean_ms > 0.5 * jitter_ms {
            said.push(format!(
                "{jitter_ms}: {seconds} {mean_ms:.2} {late_ms:.2} {used:.3}"
            ));
        }
    }
    assert!(said.is_empty(), "{said:#?}");
}

#[test]
fn small_changes_are_followed_with_jitter_and_without() {
    for (is_smoothed, jitter_ms, most_s) in
        [(false, 0.0, 5.5), (false, 20.0, 10.0), (true, 0.0, 5.5)]
    {
        let mut world = served(10e6);
        if is_smoothed {
            world.search = Search::of_smoothed_delays(LIMITS);
            world = world.known();
        }
        world.jitter_ms = jitter_ms;
        world.run(15.0);
        for carries in [9e6, 10e6, 5e6, 10e6, 20e6, 10e6] {
            world.carries = carries;
            world.decisions.clear();
            let seconds = world.until_found(20.0);

            assert!(
                seconds <= most_s,
                "{jitter_ms} {carries}: {seconds} {}",
                world.said()
            );
            world.run(10.0);
        }
    }
}

#[test]
fn more_is_found_where_few_packets_tell() {
    let mut world = World::of(10e6);
    (
        world.told_a_second,
        world.lights_told_a_second,
        world.clients,
    ) = (6.0, 0.0, 1);
    world = world.known();
    world.until_found(20.0);
    world.run(10.0);
    world.carries = 15e6;
    let seconds = world.until_found(60.0);
    assert!(seconds <= 20.0, "{seconds}: {}", world.said());
}
