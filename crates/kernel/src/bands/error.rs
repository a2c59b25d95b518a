//! Why bands cannot be put on a device, or taken away.

use std::io;
use std::path::PathBuf;

use super::leftovers::Left;
use crate::device::Device;
use crate::qdisc::Handle;

/// Why bands cannot be put on a device, or taken away.
#[derive(Debug, thiserror::Error)]
pub enum BandsError {
    /// The device only leads back to this host.
    #[error(
        "bands on loopback device `{device}` would delay all traffic of this host to itself; name another device"
    )]
    Loopback {
        /// The device's name.
        device: String,
    },
    /// The operator has configured the device's queue.
    #[error(
        "device `{device}` has a configured queue ({kind} {handle}); let it be replaced with --replace-qdisc, after which it {}, or remove it with `tc qdisc del dev {device} root`; `sooner attach web --observe` says what the order would give",
        comes_back(kind, lost.as_deref())
    )]
    Configured {
        /// The device's name.
        device: String,
        /// What the queue is, for instance `tbf`.
        kind: String,
        /// What identifies it.
        handle: Handle,
        /// What stands inside it and does not come back, for instance `prio 7:`.
        lost: Option<String>,
    },
    /// Another process, or this one, has bands on the device.
    #[error("device `{device}` has the bands of {}; stop it first, or name another device", owner(*.pid))]
    Busy {
        /// The device's name.
        device: String,
        /// The process, when its record can be read.
        pid: Option<u32>,
    },
    /// A killed process of another user had bands there.
    #[error("{0}")]
    OfAnotherUser(Left),
    /// The privilege is missing.
    #[error(
        "bands on `{device}` need CAP_NET_ADMIN; run as root, or give it with `setcap cap_net_admin+ep` to the binary"
    )]
    NotPermitted {
        /// The device's name.
        device: String,
    },
    /// The kernel has no HTB.
    #[error("this kernel has no HTB queue; load its module with `modprobe sch_htb`")]
    Unsupported,
    /// The kernel has no sch_prio.
    #[error(
        "this kernel has no prio queue; load its module with `modprobe sch_prio`, or let the bands limit the link, without --no-shape"
    )]
    NoPrio,
    /// The rate is too low to share out.
    #[error("an uplink of {rate_bits_per_sec} bit/s is too slow for bands; give at least 1kbit")]
    Rate {
        /// The requested rate.
        rate_bits_per_sec: u64,
    },
    /// There is no place to write down what to restore.
    #[error("bands need a folder that keeps what to restore after a kill; set XDG_RUNTIME_DIR")]
    NoFolder,
    /// What to restore could not be written down.
    #[error("cannot keep {}, which says what to restore after a kill: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The devices of the network namespace could not be listed.
    #[error("cannot list the network devices: {0}")]
    Devices(io::Error),
    /// The kernel refused a step.
    #[error("cannot {step} device `{device}`: {source}")]
    Kernel {
        /// What was being done.
        step: &'static str,
        /// The device's name.
        device: String,
        /// Why.
        source: io::Error,
    },
}

impl BandsError {
    /// The kernel's answer in the operator's words where it has a known cause.
    pub(crate) fn kernel(step: &'static str, device: &Device, source: io::Error) -> BandsError {
        let device = device.name.clone();
        match source.raw_os_error() {
            Some(libc::EPERM) => BandsError::NotPermitted { device },
            Some(libc::ENOENT) if step == PUT_UP => BandsError::Unsupported,
            Some(libc::ENOENT) if step == PUT_UP_PRIO => BandsError::NoPrio,
            _ => BandsError::Kernel {
                step,
                device,
                source,
            },
        }
    }
}

/// What was found on a device; nothing where the device went away meanwhile, and all of it with it.
pub(crate) fn unless_gone<T: Default>(found: Result<T, BandsError>) -> Result<T, BandsError> {
    match found {
        Err(BandsError::Kernel { source, .. }) if source.raw_os_error() == Some(libc::ENODEV) => {
            Ok(T::default())
        }
        found => found,
    }
}

/// The step in which a missing file or object means a missing module.
pub(super) const PUT_UP: &str = "put bands on";
/// The same where the bands only order.
pub(super) const PUT_UP_PRIO: &str = "put priorities on";

/// The step in which a device with bands gets another rate.
pub(super) const CHANGE: &str = "change the rate of";

fn comes_back(kind: &str, lost: Option<&str>) -> String {
    match (super::comes_back(kind), lost) {
        (true, None) => "comes back as it is".into(),
        (true, Some(lost)) => format!("comes back without the {lost} inside it"),
        (false, _) => "does not come back".into(),
    }
}

fn owner(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_device_that_went_away_has_nothing() {
        let device = Device {
            name: "gone0".into(),
            index: 0x7fff_ffff,
            is_loopback: false,
            has_ethernet_header: true,
            mtu_bytes: 1500,
        };
        let failed = |code| {
            let source = io::Error::from_raw_os_error(code);
            BandsError::kernel("restore", &device, source)
        };
        assert!(!unless_gone::<bool>(Err(failed(libc::ENODEV))).unwrap());
        for code in [libc::EPERM, libc::ENOENT, libc::EBUSY] {
            assert!(unless_gone::<bool>(Err(failed(code))).is_err());
        }
        assert!(unless_gone(Ok(true)).unwrap());
    }
}
