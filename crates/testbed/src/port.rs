//! Addresses of this machine that no server has.
//!
//! Another process may take one before it is used; then the server under test fails to start and
//! says so.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::{fs, io};

/// The lowest port that is taken.
const LOWEST: u16 = 10_000;
/// Where the kernel says which ports it gives to connections.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const TRIES: u32 = 64;

/// One at 127.0.0.1.
pub fn free() -> io::Result<SocketAddr> {
    free_at(Ipv4Addr::LOCALHOST.into())
}

/// One at this address.
pub fn free_at(address: IpAddr) -> io::Result<SocketAddr> {
    listen(address)?.local_addr()
}

/// Below those that the kernel gives to connections, any of which could have it a moment later.
fn listen(address: IpAddr) -> io::Result<TcpListener> {
    let end = ephemeral_from().filter(|end| *end > LOWEST);
    for _ in 0..TRIES {
        let Some(end) = end else { break };
        let lot = RandomState::new().build_hasher().finish();
        let port = LOWEST + (lot % u64::from(end - LOWEST)) as u16;
        if let Ok(listener) = TcpListener::bind((address, port)) {
            return Ok(listener);
        }
    }
    TcpListener::bind((address, 0))
}

fn ephemeral_from() -> Option<u16> {
    let range = fs::read_to_string(EPHEMERAL).ok()?;
    range.split_whitespace().next()?.parse().ok()
}

/// Several different ones at 127.0.0.1.
pub fn free_ones<const COUNT: usize>() -> io::Result<[SocketAddr; COUNT]> {
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); COUNT];
    let mut held = Vec::new();
    for address in &mut addresses {
        let listener = listen(address.ip())?;
        *address = listener.local_addr()?;
        held.push(listener);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_never_given_one() {
        let [one, other] = free_ones().unwrap();
        assert_ne!(one, other);
        let Some(end) = ephemeral_from().filter(|end| *end > LOWEST) else {
            return;
        };
        for address in [one, other, free().unwrap()] {
            assert!(address.port() < end, "{address}");
        }
    }
}
