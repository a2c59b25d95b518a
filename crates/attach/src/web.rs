//! Responses of web servers are ordered where they leave the host.
//!
//! | module | what it does |
//! |---|---|
//! | [`config`] | what the operator requested |
//! | [`ports`] | which ports a process, a control group or any server listens on |
//! | [`sources`] | from where lengths are known besides plain heads, and what is missing for the rest |
//! | `tls_libraries` | where servers hand plain text to a TLS library, and the probes there |
//! | [`attached`] | bands and programs on a device, the cutoffs between the bands learned as responses pass |
//! | `auto_uplink` | the rate of an uplink that is found: measured, decided, put on the device |
//! | [`watch`] | response times by size, beside those that FAIR would have given |
//! | [`snapshot`] | all that as values, for programs and for `attach top` |
//! | [`exposition`] | the same for Prometheus |
//! | [`admin`] | the same as a live page, where an admin address is given |
//! | [`daemon`] | attaching until told to stop |
//! | [`detach`] | ending one that runs, and cleaning up after one that was killed |

use std::io;

use sooner_kernel::device::Device;
use sooner_kernel::netns;

use crate::control;
use snapshot::Snapshot;

pub mod admin;
pub mod attached;
mod auto_uplink;
pub mod config;
pub mod daemon;
pub mod detach;
pub mod exposition;
pub mod ports;
pub mod snapshot;
pub mod sources;
mod tls_libraries;
pub mod watch;

/// What the control socket of a device's attachment is called, in the calling thread's network
/// namespace.
pub fn control_name(device: &Device) -> io::Result<String> {
    Ok(format!("{}-{}", netns::current_id()?, device.index))
}

/// Asks the attachment of a device; not found where there is none.
pub fn ask(device: &Device) -> io::Result<Snapshot> {
    control::ask(&control_name(device)?)
}
