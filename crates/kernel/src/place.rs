//! Who is attached to a device, whether it changes anything there or only looks: the process that
//! holds a socket name of the network namespace. As with the bands of a device the kernel frees the
//! name when the process ends, however it ends.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

/// How often the name is tried: it is also taken while another process only looks, and in a child
/// between fork and exec.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);

/// The place of a device's one attachment, until dropped.
#[derive(Debug)]
pub struct Place {
    _name: UnixDatagram,
}

impl Place {
    /// Takes it for the device with this index, in the calling thread's network namespace; none
    /// while another process has it.
    pub fn take(device: u32) -> io::Result<Option<Place>> {
        for _ in 0..ATTEMPTS {
            match Place::try_once(device)? {
                None => thread::sleep(PAUSE),
                place => return Ok(place),
            }
        }
        Ok(None)
    }

    fn try_once(device: u32) -> io::Result<Option<Place>> {
        let name = SocketAddr::from_abstract_name(format!("sooner-attach-{device}"))?;
        match UnixDatagram::bind_addr(&name) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            bound => bound.map(|socket| Some(Place { _name: socket })),
        }
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
