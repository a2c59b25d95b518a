//! Streams without sockets: connections with an HTTP/2 engine each, clients that are slow, a clock
//! that jumps.

use crate::ask;
use crate::multiplexed::{GRANT, SEGMENT, World};
use proptest::prelude::*;
use sooner_link::StreamOrder::{BySize, InSequence, Shared};
use sooner_link::{Answer, StreamOrder, wire};
use sooner_policy::{GuardLimits, PolicyName, Time};

fn srpt() -> World {
    World::new(PolicyName::Srpt, None)
}

/// Streams of one class on one connection; what they are granted, in order.
fn on_one_connection(streams: &[(u64, StreamOrder)]) -> String {
    let mut world = srpt();
    let connection = world.connect();
    for &(grants, order) in streams {
        world.stream(connection, grants * GRANT, 3, order);
    }
    world.run_to_the_end();
    world.decisions
}

#[test]
fn the_shortest_goes_first_whichever_connection_it_is_on() {
    let mut world = srpt();
    let (one, other) = (world.connect(), world.connect());
    world.stream(one, 6 * GRANT, 3, BySize);
    world.stream(one, 2 * GRANT, 3, BySize);
    world.stream(other, 3 * GRANT, 3, BySize);
    world.run_until(3_000_000);
    world.stream(other, GRANT, 3, BySize);
    world.run_to_the_end();
    assert_eq!(world.decisions, "BBDCCCAAAAAA");
}

#[test]
fn whole_responses_go_in_the_order_of_their_requests() {
    assert_eq!(on_one_connection(&[(3, BySize), (1, BySize)]), "BAAA");
    assert_eq!(
        on_one_connection(&[(3, InSequence), (1, InSequence)]),
        "AAAB"
    );
}

#[test]
fn incremental_responses_share() {
    assert_eq!(on_one_connection(&[(3, Shared), (4, Shared)]), "ABABABB");
}

#[test]
fn between_the_groups_the_policy_decides() {
    let mixed = [
        (3, InSequence),
        (2, Shared),
        (1, BySize),
        (1, InSequence),
        (4, BySize),
    ];
    assert_eq!(on_one_connection(&mixed), "CBBAAADEEEE");
}

#[test]
fn the_order_of_one_connection_binds_no_other() {
    let mut world = srpt();
    let (one, other) = (world.connect(), world.connect());
    world.stream(one, 5 * GRANT, 3, InSequence);
    world.stream(one, GRANT, 3, InSequence);
    world.stream(other, 2 * GRANT, 3, InSequence);
    world.run_to_the_end();
    assert_eq!(world.decisions, "CCAAAAAB");
}

#[test]
fn a_stream_that_has_nothing_to_send_holds_up_no_sibling() {
    let mut world = srpt();
    let connection = world.connect();
    let head = world.quiet_stream(connection, 2 * GRANT, 3, InSequence);
    world.stream(connection, 3 * GRANT, 3, InSequence);
    world.run_until(2_500_000);
    world.write(head);
    world.run_to_the_end();
    assert_eq!(world.decisions, "BBAAB");
}

#[test]
fn urgency_orders_the_streams_of_one_connection_and_no_others() {
    let mut world = srpt();
    let (one, other) = (world.connect(), world.connect());
    world.stream(one, GRANT, 3, BySize);
    let late = world.stream(one, 4 * GRANT, 5, BySize);
    world.stream(other, 2 * GRANT, 3, BySize);
    let early = world.stream(other, GRANT, 1, BySize);
    world.set_urgency(late, 0, BySize);
    world.set_urgency(early, 7, BySize);
    world.run_to_the_end();
    assert_eq!(world.decisions, "CCDBBBBA");
}

#[test]
fn many_streams_of_urgency_0_do_not_go_before_a_shorter_one_of_another_connection() {
    let mut world = srpt();
    let (greedy, honest) = (world.connect(), world.connect());
    for _ in 0..20 {
        world.stream(greedy, 9 * GRANT, 0, BySize);
    }
    world.run_until(3_500_000);
    world.stream(honest, 2 * GRANT, 7, BySize);
    world.run_to_the_end();
    assert!(
        world.decisions.starts_with("AAUUAAAAAAAB"),
        "{}",
        world.decisions
    );
}

#[test]
fn what_the_server_says_goes_before_the_policy_on_all_connections() {
    let mut world = srpt();
    let (one, other) = (world.connect(), world.connect());
    let streams = [
        world.classed_stream(one, GRANT, 3, (0, BySize)),
        world.classed_stream(other, 3 * GRANT, 1, (7, BySize)),
    ];
    for stream in streams {
        world.write(stream);
    }
    world.run_to_the_end();
    assert_eq!(world.decisions, "BBBA");
}

#[test]
fn a_stream_with_a_shut_window_lets_less_urgent_siblings_go() {
    let mut world = srpt();
    let connection = world.connect();
    let urgent = world.stream(connection, 3 * GRANT, 0, BySize);
    world.stream(connection, 2 * GRANT, 5, BySize);
    world.run_until(2_000_000);
    assert_eq!(world.decisions, "AA");
    world.ignore_calls(urgent);
    world.run_until(9_000_000);
    assert_eq!(world.decisions, "AABB");
    world.write(urgent);
    world.run_to_the_end();
    assert_eq!(world.decisions, "AABBA");
}

#[test]
fn the_guard_shares_by_client_and_not_by_response() {
    let guard = GuardLimits {
        oldest_share: 2,
        turn: wire::payload_cost_bytes(GRANT),
        turns_max: None,
        silence_ns_max: u64::MAX,
        trickle: 1,
    };
    let play = |clients: [u64; 3]| {
        let mut world = World::new(PolicyName::Psjf, Some(guard));
        let connections = clients.map(|client| {
            let connection = world.connect();
            world.of_client(connection, client);
            connection
        });
        let [greedy, greedy_too, honest] = connections;
        for connection in [greedy, greedy_too, honest] {
            world.stream(connection, 9 * GRANT, 3, BySize);
        }
        // What the policy prefers, without end.
        for _ in 0..8 {
            world.stream(greedy, 2 * GRANT, 3, BySize);
        }
        world.run_until(13_500_000);
        world.decisions.chars().filter(|&it| it == 'C').count()
    };
    let (apart, together) = (play([1, 1, 2]), play([1, 1, 1]));
    assert!(apart >= 2 && together == 0, "{apart} {together}");
}

#[test]
fn a_stream_that_becomes_incremental_shares() {
    let mut world = srpt();
    let connection = world.connect();
    let streams = [4, 4].map(|grants| world.stream(connection, grants * GRANT, 3, InSequence));
    world.run_until(3_000_000);
    for stream in streams {
        world.set_urgency(stream, 3, Shared);
    }
    world.run_to_the_end();
    assert_eq!(world.decisions, "AABBABAB");
}

#[test]
fn a_socket_that_sends_nothing_leaves_the_link_to_others() {
    let mut world = srpt();
    let (slow, fast) = (world.connect(), world.connect());
    world.shut_window(slow);
    world.stream(slow, 3 * GRANT, 3, BySize);
    world.stream(fast, 6 * GRANT, 3, BySize);
    world.run_until(5_500_000);
    world.open_window(slow);
    world.run_to_the_end();
    assert_eq!(world.decisions, "ABBBAABBB");
}

#[test]
fn an_engine_that_cannot_write_gets_two_grants_at_most() {
    let mut world = srpt();
    let connection = world.connect();
    world.stop_engine(connection);
    world.stream(connection, 9 * GRANT, 3, BySize);
    world.stream(connection, 9 * GRANT, 3, BySize);
    world.run_until(50_000_000);
    assert_eq!(world.decisions, "AA");
    world.start_engine(connection);
    world.run_to_the_end();
    assert_eq!(world.decisions.len(), 18);
}

#[test]
fn every_byte_is_charged_once() {
    let mut world = srpt();
    let connection = world.connect();
    world.stream(connection, 5 * GRANT, 3, BySize);
    world.stream(connection, 3 * GRANT, 3, BySize);
    world.run_to_the_end();
    // With its frame and its record each grant fills a segment.
    let wire_bytes = wire::CONNECTION_BYTES + 8 * wire::PACKET_BYTES;
    assert_eq!(world.link.charged_bytes(), wire_bytes);
    // Heads were paid by no stream.
    world.frames(connection, 100);
    let wire_bytes = wire_bytes + wire::payload_cost_bytes(100);
    assert_eq!(world.link.charged_bytes(), wire_bytes);
    let id = world.connection_id(connection);
    let counted_bytes = wire_bytes - wire::UNCOUNTED_BYTES;
    world.link.account(id, counted_bytes, world.now);
    assert_eq!(world.link.charged_bytes(), wire_bytes);
    world.link.account(id, counted_bytes + 1_000, world.now);
    assert_eq!(world.link.charged_bytes(), wire_bytes + 1_000);
}

#[test]
fn what_was_handed_over_and_never_sent_pays_for_later_bytes_of_the_connection_only() {
    let mut world = srpt();
    let (one, other) = (world.connect(), world.connect());
    world.stop_engine(one);
    world.stream(one, GRANT, 3, BySize);
    world.run_until(2_000_000);
    let charged_bytes = world.link.charged_bytes();
    world.drop_handed_over(one);
    world.frames(one, 300);
    assert_eq!(world.link.charged_bytes(), charged_bytes, "paid before");
    world.close(one);
    world.frames(other, 300);
    let wire_bytes = charged_bytes + wire::payload_cost_bytes(300);
    assert_eq!(world.link.charged_bytes(), wire_bytes);
}

#[test]
fn a_turn_that_is_given_back_costs_nothing_and_is_anothers() {
    let mut world = srpt();
    let connection = world.connect();
    let first = world.quiet_stream(connection, GRANT, 3, BySize);
    world.now = world.now.after(1_000_000);
    let id = world.stream_id(first);
    assert!(matches!(
        ask(&mut world.link, id, 10, world.now),
        Answer::Go(10)
    ));
    world.link.settle_stream(id, 0, world.now);
    assert_eq!(world.link.charged_bytes(), wire::CONNECTION_BYTES);
    world.stream(connection, GRANT, 3, BySize);
    assert_eq!(world.decisions, "B");
}

#[test]
fn the_guard_keeps_a_stream_from_starving() {
    let limits = GuardLimits {
        oldest_share: 4,
        turn: wire::payload_cost_bytes(GRANT),
        turns_max: None,
        silence_ns_max: u64::MAX,
        trickle: 1,
    };
    let mut world = World::new(PolicyName::Srpt, Some(limits));
    let (old, new) = (world.connect(), world.connect());
    world.stream(old, 20 * GRANT, 3, InSequence);
    (0..4).for_each(|_| _ = world.stream(new, 3 * GRANT, 3, BySize));
    world.run_to_the_end();
    assert!(
        world.decisions.starts_with("BBBACCCADDDAEEEA"),
        "{}",
        world.decisions
    );
}

#[test]
fn frames_pass_while_the_link_is_busy() {
    let mut world = srpt();
    let connection = world.connect();
    world.stream(connection, 2 * GRANT, 3, BySize);
    let id = world.connection_id(connection);
    let busy_until = world.link.wake_at(world.now);
    assert!(busy_until > Some(world.now));
    assert_eq!(
        ask(&mut world.link, id, 30_000, world.now),
        Answer::Go(30_000)
    );
    world.link.settle(id, 17, 17, world.now);
    assert!(
        world.link.wake_at(world.now) > busy_until,
        "and are charged"
    );
}

#[test]
fn closing_a_connection_closes_its_streams() {
    let mut world = srpt();
    let (one, other) = (world.connect(), world.connect());
    (0..3).for_each(|_| _ = world.stream(one, 9 * GRANT, 3, InSequence));
    world.stream(other, GRANT, 3, InSequence);
    world.close(one);
    world.run_to_the_end();
    assert_eq!(world.decisions, "D");
    world.close(other);
    assert_eq!((world.link.flow_count(), world.link.waiting()), (0, 0));
    let gone = world.stream_id(0);
    assert_eq!(ask(&mut world.link, gone, 7, world.now), Answer::Go(7));
    world.link.settle_stream(gone, 7, world.now);
}

#[test]
fn a_stream_that_does_not_come_when_called_lets_its_siblings_go() {
    let mut world = srpt();
    let connection = world.connect();
    world.stream(connection, GRANT, 3, InSequence);
    world.stream(connection, 2 * GRANT, 3, InSequence);
    world.ignore_calls(0);
    world.run_until(20_000_000);
    assert_eq!(world.decisions, "BB");
    world.write(0);
    assert_eq!(world.decisions, "BBA");
}

#[test]
fn without_a_rate_streams_pass_until_their_connection_has_enough() {
    let mut world = World::without_rate();
    let connection = world.connect();
    world.stop_engine(connection);
    world.stream(connection, 1_000_000, 3, BySize);
    world.stream(connection, 1_000_000, 3, BySize);
    assert!((32_768..=65_536).contains(&world.handed_over_bytes(connection)));
    let other = world.connect();
    world.stream(other, 50_000, 3, BySize);
    assert!(world.decisions.ends_with("CC"), "{}", world.decisions);
    world.start_engine(connection);
    world.run_to_the_end();
    assert_eq!(world.left_bytes(), 0);
    assert_eq!(world.now, Time::ZERO);
}

/// Something that happens; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Event {
    Connect,
    Stream(usize, u64, u8, usize),
    Write(usize),
    GiveBack(usize),
    Engine(usize, u64),
    Window(usize, bool),
    Drop(usize),
    Urgency(usize, u8, usize),
    Ignore(usize),
    Call,
    Pass(u64),
    CloseStream(usize),
    Close(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let index = 0..40_usize;
    prop_oneof![
        1 => Just(Event::Connect),
        4 => (index.clone(), 1..20_000_u64, 0..3_u8, 0..3_usize)
            .prop_map(|(on, bytes, class, order)| Event::Stream(on, bytes, class, order)),
        4 => index.clone().prop_map(Event::Write),
        1 => index.clone().prop_map(Event::GiveBack),
        3 => (index.clone(), 0..5_000_u64).prop_map(|(on, bytes)| Event::Engine(on, bytes)),
        2 => (index.clone(), any::<bool>()).prop_map(|(on, open)| Event::Window(on, open)),
        1 => index.clone().prop_map(Event::Drop),
        2 => (index.clone(), 0..3_u8, 0..3_usize)
            .prop_map(|(stream, class, order)| Event::Urgency(stream, class, order)),
        1 => index.clone().prop_map(Event::Ignore),
        3 => Just(Event::Call),
        3 => (0..3_000_000_u64).prop_map(Event::Pass),
        1 => index.clone().prop_map(Event::CloseStream),
        1 => index.prop_map(Event::Close),
    ]
}

fn apply(world: &mut World, event: &Event) {
    let orders = [BySize, InSequence, Shared];
    let connection = |index: &usize| index % world.connection_count().max(1);
    let stream = |index: &usize| index % world.stream_count().max(1);
    match event {
        Event::Connect => _ = world.connect(),
        Event::Pass(ns) => world.now = world.now.after(*ns),
        Event::Call => _ = world.call(),
        _ if world.connection_count() == 0 => {}
        Event::Stream(index, bytes, class, order) => {
            let connection = connection(index);
            _ = world.quiet_stream(connection, *bytes, *class, orders[*order]);
        }
        Event::Engine(index, bytes) => {
            let connection = connection(index);
            world.run_engine(connection, *bytes);
        }
        Event::Window(index, open) => {
            let connection = connection(index);
            if *open {
                world.open_window(connection);
            } else {
                world.shut_window(connection);
            }
        }
        Event::Drop(index) => {
            let connection = connection(index);
            world.drop_handed_over(connection);
        }
        Event::Close(index) => {
            let connection = connection(index);
            world.close(connection);
        }
        _ if world.stream_count() == 0 => {}
        Event::Write(index) => {
            let stream = stream(index);
            world.write_if_not_waiting(stream);
        }
        Event::GiveBack(index) => {
            let stream = stream(index);
            world.give_back(stream);
        }
        Event::Urgency(index, urgency, order) => {
            let stream = stream(index);
            world.set_urgency(stream, *urgency, orders[*order]);
        }
        Event::Ignore(index) => {
            let stream = stream(index);
            world.ignore_calls(stream);
        }
        Event::CloseStream(index) => {
            let stream = stream(index);
            world.close_stream(stream);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever happens: streams that could go are counted, engines hold little, and when all
    /// windows open everything is sent although no stream asks again before it is woken.
    #[test]
    fn no_wake_up_is_lost(
        events in proptest::collection::vec(event(), 0..150),
        policy in 0..PolicyName::ALL.len(),
        guarded: bool,
        limited: bool,
    ) {
        let guard = guarded.then(|| GuardLimits::with_turn(wire::PACKET_BYTES));
        let mut world = if limited {
            World::new(PolicyName::ALL[policy], guard)
        } else {
            World::without_rate()
        };
        world.engines_wait();
        for event in &events {
            apply(&mut world, event);
            prop_assert!(world.link.wake_at(world.now).is_some() || world.link.waiting() == 0);
            prop_assert!(
                world.connections_that_could_go() <= world.link.waiting(),
                "{event:?}: a stream is forgotten"
            );
            prop_assert!(world.most_handed_over_bytes() <= 3 * world.quantum_bytes().max(SEGMENT));
        }
        world.open_everything();
        world.run_to_the_end();
        prop_assert_eq!(world.left_bytes(), 0, "a stream was never woken");
    }
}
