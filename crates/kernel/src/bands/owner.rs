//! Who has bands on a device: the process that holds a socket name of the network namespace.
//!
//! The kernel frees the name when the process ends, however it ends, so an owner is alive exactly
//! while the name is taken: no process numbers to compare, which mean nothing across containers and
//! are used again. Any local process may take the name and thereby keep bands off a device; the
//! error then says so.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

use super::error::BandsError;
use super::record::Record;
use crate::device::Device;

/// How often the name is tried: it is also taken while another process only looks, and in a child
/// between fork and exec.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);

/// The right to change the bands of a device, until dropped.
#[derive(Debug)]
pub struct Ownership {
    _name: UnixDatagram,
}

impl Ownership {
    /// Whether no process has the right for the device of this index, or had it a moment ago.
    pub fn is_free(index: u32) -> bool {
        name_of(index).is_ok_and(|name| UnixDatagram::bind_addr(&name).is_ok())
    }

    /// Takes the right in the calling thread's network namespace; [`BandsError::Busy`] while
    /// another has it.
    pub fn take(device: &Device) -> Result<Ownership, BandsError> {
        let kernel = |source| BandsError::kernel("own", device, source);
        let name = name_of(device.index).map_err(kernel)?;
        for _ in 0..ATTEMPTS {
            match UnixDatagram::bind_addr(&name) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => thread::sleep(PAUSE),
                bound => {
                    return bound
                        .map(|socket| Ownership { _name: socket })
                        .map_err(kernel);
                }
            }
        }
        let pid = Record::read(device).map(|record| record.pid);
        Err(BandsError::Busy {
            device: device.name.clone(),
            pid,
        })
    }
}

fn name_of(index: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("sooner-bands-{index}"))
}
