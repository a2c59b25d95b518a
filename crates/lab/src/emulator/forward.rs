//! The loop between two TUN devices: read what came, release what is due, sleep until the next of
//! both.
//!
//! One thread. A packet's time begins when it is read, so what it waited in the device's queue
//! before that comes on top; both that and a late release are kept small by real-time priority and
//! a timer slack of 1 ns. Measured lateness is part of the report.

use std::io;
use std::os::fd::AsFd;

use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::readiness::{Wake, wait_readable};
use sooner_kernel::tun::Tun;

use super::core::{Direction, Emulator};

/// Packets read from one device before due ones are released again.
const BATCH: usize = 16;
/// The largest IPv4 packet.
const PACKET_BYTES_MAX: usize = 65_535;

/// The two devices.
#[derive(Debug)]
pub struct Devices {
    /// In the namespace where packets to clients come from.
    pub router: Tun,
    /// In the clients' namespace.
    pub client: Tun,
}

impl Devices {
    fn source(&self, direction: Direction) -> &Tun {
        match direction {
            Direction::ToClient => &self.router,
            Direction::ToServer => &self.client,
        }
    }

    fn target(&self, direction: Direction) -> &Tun {
        match direction {
            Direction::ToClient => &self.client,
            Direction::ToServer => &self.router,
        }
    }
}

/// Carries packets until `stop` is readable; gives, by direction, how many released packets a
/// device refused. Fails when a device is gone.
pub fn until(stop: &Wake, emulator: &mut Emulator, devices: &Devices) -> io::Result<[u64; 2]> {
    let mut refused_packets = [0; 2];
    let mut buffer = vec![0; PACKET_BYTES_MAX];
    loop {
        let timeout_ns = emulator
            .wake_at_ns()
            .map(|at_ns| at_ns.saturating_sub(monotonic_ns()));
        let fds = [devices.router.as_fd(), devices.client.as_fd(), stop.as_fd()];
        let [from_router, from_client, is_over] = wait_readable(fds, timeout_ns)?;
        if is_over {
            return Ok(refused_packets);
        }
        for (direction, is_readable) in Direction::BOTH.into_iter().zip([from_router, from_client])
        {
            if is_readable {
                read_some(direction, emulator, devices.source(direction), &mut buffer)?;
            }
        }
        while let Some(released) = emulator.release(monotonic_ns()) {
            let target = devices.target(released.direction);
            if target.write_packet(&released.packet).is_err() {
                refused_packets[released.direction.index()] += 1;
            }
        }
    }
}

fn read_some(
    direction: Direction,
    emulator: &mut Emulator,
    source: &Tun,
    buffer: &mut [u8],
) -> io::Result<()> {
    for _ in 0..BATCH {
        let Some(length) = source.read_packet(buffer)? else {
            break;
        };
        emulator.arrive(direction, &buffer[..length], monotonic_ns());
    }
    Ok(())
}
