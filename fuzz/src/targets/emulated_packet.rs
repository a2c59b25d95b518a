//! Whatever a program under test sends is carried unchanged to the client it belongs to, or counted
//! as that of no client.

use sooner_lab::emulator::core::{Bounds, Direction, Emulator, Fate};
use sooner_lab::emulator::packet::ends;
use sooner_lab::emulator::path::{Client, Path};
use std::net::Ipv4Addr;

const PATH: Path = Path {
    rtt_ns: 1_000,
    loss_ppm: 0,
    jitter_ns: 0,
};

/// Tries one input.
pub fn run(packet: &[u8]) {
    let found = ends(packet);
    let client = found.map_or(Ipv4Addr::LOCALHOST, |ends| ends.destination);
    let clients = [Client {
        address: client,
        path: PATH,
    }];
    let mut emulator = Emulator::new(&clients, 0, Bounds::default()).expect("it is only one");
    let fate = emulator.arrive(Direction::ToClient, packet, 0);
    let Some(ends) = found else {
        assert_eq!(fate, Fate::NotIpv4);
        return;
    };
    assert_eq!(packet[0] >> 4, 4);
    assert_eq!(ends.source.octets(), packet[12..16]);
    assert_eq!(fate, Fate::Held);
    assert_eq!(emulator.release(499), None);
    let released = emulator.release(500).expect("its time has come");
    assert_eq!(
        (released.direction, &*released.packet),
        (Direction::ToClient, packet)
    );
    let back = emulator.arrive(Direction::ToServer, packet, 500);
    assert_eq!(back == Fate::Held, ends.source == client);
}
