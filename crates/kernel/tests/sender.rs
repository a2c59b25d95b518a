//! The device of the sending namespace, for tests of bands.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use sooner_kernel::bands::Bands;
use sooner_kernel::device::{self, Device};
use sooner_kernel::socket;

use crate::namespace::SENDER;

pub const TEN_MEGABIT: u64 = 10_000_000;
/// Long enough for the slowest machine; nothing waits this long when it works.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn s0() -> Device {
    device::by_name("s0").unwrap()
}

pub fn until(mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < PATIENCE, "did not happen in {PATIENCE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn socket_in_band(band: u8) -> UdpSocket {
    let sending = UdpSocket::bind((SENDER, 0)).unwrap();
    socket::set_priority(&sending, Bands::priority_of(band)).unwrap();
    sending
}
