//! What this process could use, asked without changing anything, and which capability would add
//! what is missing.

use std::fmt;

use crate::bands::{Bands, BandsError, Replace};
use crate::capability;
use crate::device::Device;

/// What could be used, and if not, what is missing.
#[derive(Debug)]
pub struct Probe {
    /// Eight priorities in the kernel on the device asked about.
    pub bands: Result<(), BandsError>,
    /// Any `SO_PRIORITY`, which selects a band; without it only 0 to 6.
    pub any_priority: Result<(), MissingCapability>,
    /// Real-time scheduling, for timers that are on time on a busy machine.
    pub realtime: Result<(), MissingCapability>,
}

/// A capability that would help; shown by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingCapability(pub &'static str);

impl fmt::Display for MissingCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}", self.0)
    }
}

/// Looks at the calling thread's capabilities and at the device.
pub fn probe(device: &Device, replace: Replace) -> Probe {
    let needs = |has: bool, name| {
        if has {
            Ok(())
        } else {
            Err(MissingCapability(name))
        }
    };
    Probe {
        bands: Bands::check(device, replace),
        any_priority: needs(
            capability::has_net_admin() || capability::has_net_raw(),
            "CAP_NET_ADMIN",
        ),
        realtime: needs(capability::has_sys_nice(), "CAP_SYS_NICE"),
    }
}
