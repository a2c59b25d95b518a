//! The client that received the least of late goes first.

use crate::connections::World;
use crate::multiplexed::{GRANT, World as Streams};
use crate::{ask, client, paced_by_client};
use sooner_link::{LinkLimits, LinkScheduler, ResponseStart, StreamOrder, wire};
use sooner_policy::{GuardLimits, Payer, Time};

/// 8 Mbit/s: a byte takes a microsecond.
const RATE: u64 = 8_000_000;
const SEGMENT: u64 = wire::SEGMENT_BYTES;

fn link(guard: Option<GuardLimits>) -> LinkScheduler {
    let limits = LinkLimits {
        credit_ns: 0,
        ..LinkLimits::at_rate(RATE)
    };
    paced_by_client(limits, guard)
}

/// A connection of a client with a response of so many segments.
fn respond(world: &mut World, of: Payer, segments: u64) {
    let flow = world.open();
    world.link.of_client(flow, of);
    world.respond(flow, segments * SEGMENT);
}

#[test]
fn a_new_client_goes_before_what_is_sent_to_another_at_the_next_turn() {
    let mut world = World::on(link(None));
    for _ in 0..3 {
        respond(&mut world, client(1), 4);
    }
    world.run_until(8_000_000);
    assert_eq!(world.decisions, "AAAAB");
    respond(&mut world, client(2), 3);
    world.run_to_the_end();
    assert_eq!(world.decisions, "AAAABDDDBBBCCCC");
}

#[test]
fn who_has_caught_up_takes_turns() {
    let mut world = World::on(link(None));
    respond(&mut world, client(1), 6);
    respond(&mut world, client(1), 6);
    world.run_until(4_000_000);
    assert_eq!(world.decisions, "AAA");
    respond(&mut world, client(2), 7);
    world.run_to_the_end();
    // Two connections were opened for one, and a connection for the other.
    assert_eq!(world.decisions, "AAACCCCACACACBBBBBB");
}

#[test]
fn a_neighbour_of_many_clients_waits_as_one_of_them() {
    let of = |number, network| Payer {
        network: Some(client(network).client),
        ..client(number)
    };
    // A new client, and after it one that had a segment before; alone, and in a network of which
    // sixteen clients have had two segments each.
    for (network, decisions) in [(902, "RRSS"), (900, "SRRS")] {
        let mut world = World::on(link(None));
        for number in 0..16 {
            respond(&mut world, of(number, 900), 2);
        }
        world.run_to_the_end();
        respond(&mut world, of(50, 901), 1);
        world.run_to_the_end();
        world.decisions.clear();
        respond(&mut world, of(99, network), 2);
        respond(&mut world, of(50, 901), 2);
        world.run_to_the_end();
        assert_eq!(world.decisions, decisions, "{network}");
    }
}

#[test]
fn streams_of_one_connection_are_one_client() {
    let mut world = Streams::by_client();
    let [greedy, modest] = [1, 2].map(|number| {
        let connection = world.connect();
        world.of_client(connection, number);
        connection
    });
    let order = StreamOrder::BySize;
    for _ in 0..3 {
        world.stream(greedy, 3 * GRANT, 3, order);
    }
    world.run_until(6_000_000);
    assert_eq!(world.decisions, "AAAB");
    for _ in 0..2 {
        world.stream(modest, 2 * GRANT, 3, order);
    }
    world.run_to_the_end();
    assert_eq!(world.decisions, "AAABDDEEBBCCC");
}

#[test]
fn whom_a_proxy_names_is_charged() {
    let mut link = link(None);
    let now = Time::ZERO;
    let mut flows = Vec::new();
    for named in [Some(client(1)), Some(client(2)), None] {
        let flow = link.open(now);
        link.of_client(flow, client(9));
        let response = ResponseStart {
            body_bytes: Some(9 * SEGMENT),
            payer: named,
            ..ResponseStart::default()
        };
        _ = link.start(flow, response, Box::new(|_| {}), now);
        ask(&mut link, flow, SEGMENT, now);
        link.settle(flow, SEGMENT, SEGMENT, now);
        flows.push(flow);
    }
    let had = wire::CONNECTION_BYTES + wire::PACKET_BYTES;
    assert_eq!(
        flows
            .iter()
            .map(|&flow| link.rank(flow))
            .collect::<Vec<_>>(),
        [Some(had); 3]
    );
    link.settle(flows[1], SEGMENT, SEGMENT, now);
    assert_eq!(link.rank(flows[1]), Some(had + wire::PACKET_BYTES));
    assert_eq!(link.rank(flows[2]), Some(had));
}

/// What a client has had of late, as a new connection of it finds it, bytes.
fn had(link: &mut LinkScheduler, of: Payer, now: Time) -> u64 {
    let flow = link.open(now);
    link.of_client(flow, of);
    let rank = crate::start(link, flow, Some(0), 0, now);
    link.close(flow, now);
    rank - wire::CONNECTION_BYTES
}

#[test]
fn what_was_written_and_not_sent_is_given_back_and_what_was_sent_twice_is_charged() {
    let now = Time::ZERO;
    let written = 10 * SEGMENT;
    for (sent, counted_bytes, charged_packets) in [(10, 0, 10), (4, 0, 4), (10, 13, 13)] {
        let mut link = link(None);
        let flow = link.open(now);
        link.of_client(flow, client(1));
        crate::start(&mut link, flow, Some(written), 0, now);
        link.settle(flow, written, sent * SEGMENT, now);
        if counted_bytes > 0 {
            let handshake = wire::CONNECTION_BYTES - wire::UNCOUNTED_BYTES;
            link.account(flow, handshake + counted_bytes * wire::PACKET_BYTES, now);
        }
        link.close(flow, now);
        let charged = wire::CONNECTION_BYTES + charged_packets * wire::PACKET_BYTES;
        assert_eq!(had(&mut link, client(1), now), charged, "{sent}");
        // A connection without a response more.
        assert_eq!(
            had(&mut link, client(1), now),
            charged + wire::CONNECTION_BYTES
        );
        assert_eq!(had(&mut link, client(2), now), 0);
    }
}

#[test]
fn what_lies_in_the_socket_is_paid_by_its_own_client_and_not_by_the_next() {
    let now = Time::ZERO;
    let mut link = link(None);
    let flow = link.open(now);
    link.of_client(flow, client(9));
    let handshake = wire::CONNECTION_BYTES - wire::UNCOUNTED_BYTES;
    let respond = |link: &mut LinkScheduler, of: Payer, segments: u64, sent: u64| {
        let response = ResponseStart {
            body_bytes: Some(segments * SEGMENT),
            payer: Some(of),
            ..ResponseStart::default()
        };
        link.body_done(flow);
        _ = link.start(flow, response, Box::new(|_| {}), now);
        link.settle(flow, segments * SEGMENT, sent * SEGMENT, now);
        crate::finish(link, flow, now);
    };
    respond(&mut link, client(1), 10, 4);
    link.account(flow, handshake + 4 * wire::PACKET_BYTES, now);
    respond(&mut link, client(2), 1, 7);
    link.account(flow, handshake + 11 * wire::PACKET_BYTES, now);
    link.close(flow, now);
    let of_first = had(&mut link, client(1), now);
    let of_second = had(&mut link, client(2), now);
    assert!(of_first >= 10 * wire::PACKET_BYTES, "{of_first}");
    assert!(of_second < 3 * wire::PACKET_BYTES, "{of_second}");
}

#[test]
fn who_only_shakes_hands_pays_for_that() {
    let now = Time::ZERO;
    let mut link = link(None);
    let flow = link.open(now);
    link.of_client(flow, client(1));
    link.account(flow, 5 * wire::PACKET_BYTES, now);
    link.close(flow, now);
    assert!(had(&mut link, client(1), now) >= 5 * wire::PACKET_BYTES);
}

#[test]
fn what_was_handed_over_and_not_sent_is_given_back() {
    let now = Time::ZERO;
    let mut link = link(None);
    let connection = link.open(now);
    link.of_client(connection, client(1));
    let stream = link.open_stream(connection, now);
    crate::start(&mut link, stream, Some(20 * GRANT), 3, now);
    for _ in 0..2 {
        link.settle_stream(stream, SEGMENT, now);
    }
    link.settle(connection, SEGMENT, SEGMENT, now);
    link.close(connection, now);
    let charged = wire::CONNECTION_BYTES + wire::PACKET_BYTES;
    assert_eq!(had(&mut link, client(1), now), charged);
}

#[test]
fn the_guard_gives_the_others_their_share() {
    let limits = GuardLimits {
        oldest_share: 4,
        silence_ns_max: u64::MAX,
        ..GuardLimits::with_turn(wire::PACKET_BYTES)
    };
    let turns_of_the_first = |guard| {
        let mut world = World::on(link(guard));
        respond(&mut world, client(1), 40);
        world.run_until(30_000_000);
        // Clients that come one after the other, and had nothing.
        for number in 2..12 {
            let before = world.decisions.len();
            respond(&mut world, client(number), 2);
            while world.decisions.len() < before + 2 {
                world.run_until(world.now.as_ns() + 1_000_000);
            }
        }
        let busy = world.decisions.chars().skip_while(|&it| it == 'A');
        busy.filter(|&it| it == 'A').count()
    };
    let (guarded, unguarded) = (turns_of_the_first(Some(limits)), turns_of_the_first(None));
    assert!(guarded >= 3 && unguarded <= 1, "{guarded} {unguarded}");
}
