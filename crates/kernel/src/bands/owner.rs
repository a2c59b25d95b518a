//! Who has bands on a device: the process that holds a socket name of the network namespace.
//!
//! The kernel frees the name when the process ends, however it ends, so an owner is alive exactly while the name is taken: no process
//! numbers to compare, which mean nothing across containers and are used again. Any local process may take the name and thereby keep
//! bands off a device; the error then says so.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::error::BandsError;
use super::record::Record;
use crate::device::Device;

/// The right to change the bands of a device, until dropped.
#[derive(Debug)]
pub struct Ownership {
    _name: UnixDatagram,
}

impl Ownership {
    /// Takes the right in the calling thread's network namespace; [`BandsError::Busy`] while another has it.
    pub fn take(device: &Device) -> Result<Ownership, BandsError> {
        let name = SocketAddr::from_abstract_name(format!("sooner-bands-{}", device.index));
        match name.and_then(|name| UnixDatagram::bind_addr(&name)) {
            Ok(socket) => Ok(Ownership { _name: socket }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let pid = Record::read(device).map(|record| record.pid);
                Err(BandsError::Busy {
                    device: device.name.clone(),
                    pid,
                })
            }
            Err(source) => Err(BandsError::kernel("own", device, source)),
        }
    }
}
