//! The emulator's decisions in virtual time: as a sequence that can be checked by hand, and as
//! properties.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use proptest::prelude::*;
use sooner_lab::emulator::core::{Bounds, ClientTwice, Direction, Emulator, Fate};
use sooner_lab::emulator::path::{Client, Path};
use sooner_lab::emulator::report::Traffic;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const MS: u64 = 1_000_000;

fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, 0, number)
}

fn client(number: u8, rtt_ms: f64, loss: f64) -> Client {
    let path = Path::new(rtt_ms, loss, 0.0).unwrap();
    Client {
        address: address(number),
        path,
    }
}

/// An IPv4 packet between the server and a client, told apart by its tag.
fn packet(direction: Direction, number: u8, tag: u32, length: u16) -> Vec<u8> {
    let (source, destination) = match direction {
        Direction::ToClient => (SERVER, address(number)),
        Direction::ToServer => (address(number), SERVER),
    };
    let mut packet = vec![0; usize::from(length)];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[12..16].copy_from_slice(&source.octets());
    packet[16..20].copy_from_slice(&destination.octets());
    packet[20..24].copy_from_slice(&tag.to_be_bytes());
    packet
}

fn tag(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[20..24].try_into().unwrap())
}

/// Every release until nothing is held, each exactly when it is due: "TAG@MILLISECONDS".
fn releases(emulator: &mut Emulator) -> String {
    let mut released = Vec::new();
    while let Some(at_ns) = emulator.wake_at_ns() {
        assert_eq!(emulator.release(at_ns - 1), None, "early");
        let packet = emulator.release(at_ns).unwrap().packet;
        released.push(format!("{}@{}", tag(&packet), at_ns as f64 / MS as f64));
    }
    released.join(" ")
}

#[test]
fn packets_leave_in_the_order_of_their_paths() {
    let clients = [
        client(2, 100.0, 0.0),
        client(3, 20.0, 0.0),
        client(4, 0.0, 0.0),
    ];
    let mut emulator = Emulator::new(&clients, 1, Bounds::default()).unwrap();
    let arrivals = [
        (Direction::ToClient, 2, 0),
        (Direction::ToClient, 3, 5),
        (Direction::ToServer, 3, 35),
        (Direction::ToServer, 2, 36),
        (Direction::ToClient, 4, 40),
        (Direction::ToClient, 2, 40),
        (Direction::ToServer, 4, 40),
        (Direction::ToClient, 3, 40),
    ];
    for (number, (direction, client, at_ms)) in arrivals.into_iter().enumerate() {
        let packet = packet(direction, client, number as u32, 40);
        assert_eq!(emulator.arrive(direction, &packet, at_ms * MS), Fate::Held);
    }
    assert_eq!(
        releases(&mut emulator),
        "1@15 4@40 6@40 2@45 0@50 7@50 3@86 5@90"
    );
}

#[test]
fn the_two_directions_together_are_the_round_trip_time() {
    let odd = Client {
        address: address(2),
        path: Path {
            rtt_ns: 101,
            loss_ppm: 0,
            jitter_ns: 0,
        },
    };
    let mut emulator = Emulator::new(&[odd], 1, Bounds::default()).unwrap();
    let mut delays_ns = Vec::new();
    for direction in Direction::BOTH {
        emulator.arrive(direction, &packet(direction, 2, 0, 40), 1_000);
        let at_ns = emulator.wake_at_ns().unwrap();
        assert_eq!(emulator.release(at_ns).unwrap().direction, direction);
        delays_ns.push(at_ns - 1_000);
    }
    assert_eq!(delays_ns, [50, 51]);
}

#[test]
fn what_is_no_clients_packet_is_dropped_and_counted() {
    let mut emulator = Emulator::new(&[client(2, 0.0, 0.0)], 1, Bounds::default()).unwrap();
    let stranger = packet(Direction::ToClient, 9, 0, 40);
    assert_eq!(
        emulator.arrive(Direction::ToClient, &stranger, 0),
        Fate::UnknownClient
    );
    let backwards = packet(Direction::ToServer, 2, 0, 40);
    assert_eq!(
        emulator.arrive(Direction::ToClient, &backwards, 0),
        Fate::UnknownClient,
        "its destination is the server"
    );
    assert_eq!(
        emulator.arrive(Direction::ToClient, &[0x60; 40], 0),
        Fate::NotIpv4
    );
    let counts = emulator.counts();
    assert_eq!(
        (counts.unknown_client_packets, counts.not_ipv4_packets),
        (2, 1)
    );
    assert_eq!(emulator.held_packets(), 0);
}

#[test]
fn at_a_bound_the_arriving_packet_is_dropped() {
    let bounds = Bounds {
        packets_max: 3,
        bytes_max: 1_000,
    };
    let mut emulator = Emulator::new(&[client(2, 10.0, 0.0)], 1, bounds).unwrap();
    let arrive = |emulator: &mut Emulator, tag, length| {
        emulator.arrive(
            Direction::ToClient,
            &packet(Direction::ToClient, 2, tag, length),
            0,
        )
    };
    assert_eq!(arrive(&mut emulator, 0, 900), Fate::Held);
    assert_eq!(arrive(&mut emulator, 1, 101), Fate::AtBound, "bytes");
    assert_eq!(arrive(&mut emulator, 2, 40), Fate::Held);
    assert_eq!(arrive(&mut emulator, 3, 40), Fate::Held);
    assert_eq!(arrive(&mut emulator, 4, 24), Fate::AtBound, "packets");
    assert_eq!(releases(&mut emulator), "0@5 2@5 3@5");
    assert_eq!(
        arrive(&mut emulator, 5, 900),
        Fate::Held,
        "there is room again"
    );
    assert_eq!(
        emulator
            .traffic(address(2), Direction::ToClient)
            .bound_packets,
        2
    );
    assert_eq!(emulator.counts().held_bytes_max, 980);
}

#[test]
fn lateness_is_what_passed_since_a_packet_was_due() {
    let mut emulator = Emulator::new(&[client(2, 10.0, 0.0)], 1, Bounds::default()).unwrap();
    let arrived = packet(Direction::ToServer, 2, 0, 40);
    emulator.arrive(Direction::ToServer, &arrived, 0);
    assert!(emulator.release(5 * MS + 77).is_some());
    assert_eq!(emulator.lateness().max_ns(), 77);
}

#[test]
fn a_client_has_one_path() {
    let clients = [
        client(2, 0.0, 0.0),
        client(3, 0.0, 0.0),
        client(2, 10.0, 0.0),
    ];
    let error = Emulator::new(&clients, 1, Bounds::default()).unwrap_err();
    assert_eq!(error, ClientTwice(address(2)));
}

/// Something that happens to the emulator.
#[derive(Debug, Clone)]
struct Event {
    to_client: bool,
    client: u8,
    length: u16,
    pause_ns: u64,
    /// Whether releases are taken, and how late.
    releases: bool,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (
        any::<bool>(),
        0..5_u8,
        24..1_500_u16,
        0..30 * MS,
        any::<bool>(),
    );
    let event = event.prop_map(|(to_client, client, length, pause_ns, releases)| Event {
        to_client,
        client,
        length,
        pause_ns,
        releases,
    });
    proptest::collection::vec(event, 1..200)
}

fn takes(
    emulator: &mut Emulator,
    now_ns: u64,
    released: &mut BTreeMap<u32, u64>,
    order: &mut Vec<u32>,
) {
    while let Some(packet) = emulator.release(now_ns) {
        let tag = tag(&packet.packet);
        assert!(released.insert(tag, now_ns).is_none(), "released twice");
        order.push(tag);
    }
}

proptest! {
    /// Nothing is invented, reordered within a client and direction, early, or gone without being
    /// counted.
    #[test]
    fn every_packet_is_accounted_for(events in events(), seed: u64) {
        let clients: Vec<Client> = [(0.0, 0.0), (20.0, 0.3), (50.0, 0.0), (100.0, 0.1)]
            .into_iter().enumerate()
            .map(|(number, (rtt_ms, loss))| client(number as u8, rtt_ms, loss)).collect();
        let bounds = Bounds { packets_max: 20, bytes_max: 15_000 };
        let mut emulator = Emulator::new(&clients, seed, bounds).unwrap();
        let (mut now_ns, mut released, mut order) = (0, BTreeMap::new(), Vec::new());
        let mut held = BTreeMap::new();
        for (tag, event) in events.iter().enumerate() {
            let tag = tag as u32;
            now_ns += event.pause_ns;
            if event.releases {
                takes(&mut emulator, now_ns, &mut released, &mut order);
            }
            let direction = Direction::BOTH[usize::from(!event.to_client)];
            let packet = packet(direction, event.client, tag, event.length);
            let fate = emulator.arrive(direction, &packet, now_ns);
            prop_assert_eq!(fate == Fate::UnknownClient, event.client == 4);
            if fate == Fate::Held {
                held.insert(tag, (now_ns, event.client, direction));
            }
            prop_assert!(emulator.held_packets() <= bounds.packets_max);
            prop_assert!(emulator.counts().held_bytes_max <= bounds.bytes_max);
        }
        takes(&mut emulator, u64::MAX, &mut released, &mut order);

        prop_assert!(released.keys().eq(held.keys()), "what was held is released, and nothing else");
        for (tag, at_ns) in &released {
            let (came_ns, client, _) = held[tag];
            let rtt_ns = clients[usize::from(client)].path.rtt_ns;
            prop_assert!(*at_ns >= came_ns + rtt_ns / 2);
        }
        let mut last = BTreeMap::new();
        for tag in order {
            let (_, client, direction) = held[&tag];
            let earlier = last.insert((client, direction), tag);
            prop_assert!(earlier < Some(tag), "reordered");
        }
        let mut sum = Traffic::default();
        for client in &clients {
            for direction in Direction::BOTH {
                let traffic = emulator.traffic(client.address, direction);
                prop_assert!(client.path.loss_ppm > 0 || traffic.lost_packets == 0);
                sum.packets += traffic.packets;
                sum.lost_packets += traffic.lost_packets;
                sum.bound_packets += traffic.bound_packets;
                sum.released_packets += traffic.released_packets;
            }
        }
        prop_assert_eq!(sum.packets + emulator.counts().unknown_client_packets, events.len() as u64);
        prop_assert_eq!(sum.packets, sum.lost_packets + sum.bound_packets + sum.released_packets);
    }
}

#[test]
fn jitter_holds_packets_for_longer_and_none_overtakes_another() {
    let client = Client {
        address: address(2),
        path: Path::new(10.0, 0.0, 20.0).unwrap(),
    };
    let mut emulator = Emulator::new(&[client], 1, Bounds::default()).unwrap();
    for number in 0..1000 {
        let now_ns = number * 1_000_000;
        emulator.arrive(
            Direction::ToClient,
            &packet(Direction::ToClient, 2, 0, 40),
            now_ns,
        );
        emulator.arrive(
            Direction::ToServer,
            &packet(Direction::ToServer, 2, 0, 40),
            now_ns,
        );
    }
    let (mut held_ms, mut last_ns) = (Vec::new(), 0);
    while let Some(at_ns) = emulator.wake_at_ns() {
        assert!(at_ns >= last_ns);
        last_ns = at_ns;
        if emulator.release(at_ns).unwrap().direction == Direction::ToClient {
            held_ms.push(at_ns as f64 / 1e6 - held_ms.len() as f64);
        } else {
            // The way back has no jitter: nothing of it is late.
            assert_eq!(at_ns % 1_000_000, 0);
        }
    }
    assert_eq!(held_ms.len(), 1000);
    assert!(held_ms.iter().all(|held| (5.0..=25.0).contains(held)));
    assert!(held_ms.iter().any(|held| *held > 20.0));
}
