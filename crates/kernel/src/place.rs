//! Who is attached to a device, whether it changes anything there or only looks: the process that
//! holds a socket name of the network namespace.
//!
//! The kernel frees such a name when the process ends, however it ends, so a holder is alive exactly
//! while the name is taken: no process numbers to compare, which mean nothing across containers and
//! are used again. Any local process may take a name; the error then says so.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

/// How often the name is tried: it is also taken while another process only looks, and in a child
/// between fork and exec.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);

/// A socket name of a network namespace, until dropped.
#[derive(Debug)]
pub(crate) struct TakenName {
    _socket: UnixDatagram,
}

impl TakenName {
    /// Takes it in the calling thread's network namespace; none while another process has it.
    pub(crate) fn take(name: &str) -> io::Result<Option<TakenName>> {
        for _ in 0..ATTEMPTS {
            match TakenName::try_once(name)? {
                None => thread::sleep(PAUSE),
                taken => return Ok(taken),
            }
        }
        Ok(None)
    }

    /// The same without waiting for one who only looks.
    pub(crate) fn try_once(name: &str) -> io::Result<Option<TakenName>> {
        match UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            bound => bound.map(|socket| Some(TakenName { _socket: socket })),
        }
    }
}

/// The place of a device's one attachment, until dropped.
#[derive(Debug)]
pub struct Place {
    _name: TakenName,
}

impl Place {
    /// Takes it for the device with this index, in the calling thread's network namespace; none
    /// while another process has it.
    pub fn take(device: u32) -> io::Result<Option<Place>> {
        let name = TakenName::take(&format!("sooner-attach-{device}"))?;
        Ok(name.map(|name| Place { _name: name }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_it() {
        // No device has such an index.
        let device = 0x7fff_fffe;
        let place = Place::take(device).unwrap();
        assert!(place.is_some() && Place::take(device).unwrap().is_none());
        assert!(Place::take(device - 1).unwrap().is_some());
        drop(place);
        assert!(Place::take(device).unwrap().is_some());
    }
}
