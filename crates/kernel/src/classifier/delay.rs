//! For how long packets are on their way, measured by a program where they leave the device.

use std::net::{IpAddr, Ipv6Addr};
use std::os::linux::fs::MetadataExt;

use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf};

use super::{ClassifierError, tls_probe};
use crate::netlink::message::{u32_at, u64_at};

/// The program, and the tracepoint it hangs on.
const PROGRAM: &str = "note_leaving";
const TRACEPOINT: &str = "net_dev_start_xmit";
/// The smallest ring that a kernel makes: a page, of whichever size.
pub(super) const RING_BYTES_MIN: u32 = 65_536;

/// A packet's way to a client and its acknowledgement's way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The client.
    pub client: IpAddr,
    /// When the acknowledgement came, ns of the monotonic clock.
    pub at_ns: u64,
    /// How long after the packet had left the device.
    pub delay_us: u32,
    /// Whether its connection had so little under way that it has no queue of its own.
    pub is_light: bool,
}

impl Delay {
    /// Reads a `struct delay`; none where the bytes are of something else.
    pub fn read(bytes: &[u8]) -> Option<Delay> {
        let octets: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
        Some(Delay {
            client: IpAddr::V6(Ipv6Addr::from(octets)).to_canonical(),
            at_ns: u64_at(bytes, 16)?,
            delay_us: u32_at(bytes, 24)?,
            is_light: u32_at(bytes, 28)? != 0,
        })
    }
}

/// What is missing here to measure delays; none where nothing is.
pub fn lacks_for_delays() -> Option<&'static str> {
    tls_probe::lacks_for_sockets()
}

/// The number of this thread's network namespace, by which the kernel tells devices of the same
/// number apart.
pub(super) fn namespace_number() -> u32 {
    let found = std::fs::metadata("/proc/thread-self/ns/net");
    found.map_or(0, |found| found.st_ino() as u32)
}

pub(super) fn load(ebpf: &mut Ebpf) -> Result<(), ClassifierError> {
    let types = Btf::from_sys_fs().map_err(|error| ClassifierError::load(error.into()))?;
    let loaded = program(ebpf)?.load(TRACEPOINT, &types);
    loaded.map_err(|error| ClassifierError::load(error.into()))
}

/// It goes with the descriptor that holds it.
pub(super) fn attach(ebpf: &mut Ebpf) -> Result<(), ClassifierError> {
    let attached = program(ebpf)?.attach();
    attached
        .map(drop)
        .map_err(|error| ClassifierError::load(error.into()))
}

fn program(ebpf: &mut Ebpf) -> Result<&mut BtfTracePoint, ClassifierError> {
    let program = ebpf
        .program_mut(PROGRAM)
        .ok_or(ClassifierError::Lacks(PROGRAM))?;
    program
        .try_into()
        .map_err(|error: aya::programs::ProgramError| ClassifierError::load(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_delay_is_read() {
        let mut bytes = [0; 32];
        bytes[10..16].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        bytes[16..24].copy_from_slice(&7_u64.to_ne_bytes());
        bytes[24..28].copy_from_slice(&1500_u32.to_ne_bytes());
        bytes[28] = 1;
        let delay = Delay::read(&bytes).unwrap();
        assert_eq!(delay.client.to_string(), "10.0.0.1");
        assert_eq!(
            (delay.at_ns, delay.delay_us, delay.is_light),
            (7, 1500, true)
        );
        assert_eq!(Delay::read(&bytes[..31]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Delay::read(&bytes);
        }
    }
}
