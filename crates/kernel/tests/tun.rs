//! A TUN device in a network namespace of the test's own: packets come out and go in, and it ends
//! with its descriptor.

use std::io;
use std::net::UdpSocket;

use crate::namespace::Pair;
use sooner_kernel::device;
use sooner_kernel::readiness::{Wake, wait_readable};
use sooner_kernel::tun::{Tun, TunError};
use std::os::fd::AsFd;

/// The host's address on the device, and one behind it that only the test answers for.
const NEAR: [u8; 4] = [10, 79, 0, 1];
const FAR: &str = "10.79.0.2";

/// The next packet from `FAR`'s side of the device that is IPv4, waiting at most five seconds.
fn next_ipv4(tun: &Tun) -> Vec<u8> {
    let never = Wake::new().unwrap();
    let mut buffer = [0; 2048];
    for _ in 0..50 {
        while let Some(length) = tun.read_packet(&mut buffer).unwrap() {
            if buffer[0] >> 4 == 4 {
                return buffer[..length].to_vec();
            }
        }
        wait_readable([tun.as_fd(), never.as_fd()], Some(100_000_000)).unwrap();
    }
    panic!("no packet came out of the device");
}

/// The UDP packet sent back: addresses and ports exchanged, which leaves all checksums right.
fn answer(packet: &[u8]) -> Vec<u8> {
    let mut answer = packet.to_vec();
    answer[12..16].copy_from_slice(&packet[16..20]);
    answer[16..20].copy_from_slice(&packet[12..16]);
    answer[20..22].copy_from_slice(&packet[22..24]);
    answer[22..24].copy_from_slice(&packet[20..22]);
    answer
}

#[test]
fn packets_pass_and_the_device_ends_with_its_descriptor() {
    let Some(pair) = Pair::new("packets_pass_and_the_device_ends_with_its_descriptor") else {
        return;
    };
    pair.in_sender(|| {
        let tun = Tun::open("wan0").unwrap();
        assert!(matches!(Tun::open("wan0"), Err(TunError::Taken { .. })));
        let device = device::by_name("wan0").unwrap();
        device.set_queue_packets_max(3).unwrap();
        assert_eq!(device.speed_mbit(), None, "a tun does not know it");
        assert!(tun.write_packet(&[0x45; 40]).is_err(), "it is down");
        pair.ip("addr add 10.79.0.1/24 dev wan0");
        pair.ip("link set wan0 up");

        let socket = UdpSocket::bind("10.79.0.1:0").unwrap();
        socket.send_to(b"there", (FAR, 9)).unwrap();
        let packet = next_ipv4(&tun);
        assert_eq!(packet.len(), 20 + 8 + 5);
        assert_eq!(packet[12..16], NEAR);
        tun.write_packet(&answer(&packet)).unwrap();
        let mut received = [0; 16];
        socket
            .set_read_timeout(Some(std::time::Duration::from_secs(5)))
            .unwrap();
        assert_eq!(socket.recv(&mut received).unwrap(), 5);
        assert_eq!(&received[..5], b"there");

        let dropped_before = device.tx_dropped_packets().unwrap();
        for _ in 0..10_000 {
            let _ = socket.send_to(b"too much", (FAR, 9));
        }
        assert!(device.tx_dropped_packets().unwrap() > dropped_before);

        drop(tun);
        let error = device::by_name("wan0").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    });
}
