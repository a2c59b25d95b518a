//! Addresses of this machine that no server has.
//!
//! Another process may take one before it is used; then the server under test fails to start and
//! says so.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

/// One at 127.0.0.1.
pub fn free() -> io::Result<SocketAddr> {
    free_at(Ipv4Addr::LOCALHOST.into())
}

/// One at this address.
pub fn free_at(address: IpAddr) -> io::Result<SocketAddr> {
    TcpListener::bind((address, 0))?.local_addr()
}

/// Several different ones at 127.0.0.1.
pub fn free_ones<const COUNT: usize>() -> io::Result<[SocketAddr; COUNT]> {
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); COUNT];
    let mut held = Vec::new();
    for address in &mut addresses {
        let listener = TcpListener::bind(*address)?;
        *address = listener.local_addr()?;
        held.push(listener);
    }
    Ok(addresses)
}
