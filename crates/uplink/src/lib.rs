//! Puts response bytes onto a limited link in the order a policy decides.
//!
//! The link out of a server is busy, so bytes queue. Left alone they queue in the kernel and the network, in the order in which they
//! were written. This crate keeps them in user space instead, where they can be ordered: a connection writes only when it is granted a
//! turn, the turns together go at the rate of the uplink, and everything a connection puts on the wire is charged to it. Of a connection with
//! several responses at a time (HTTP/2) each asks for itself, before its payload goes to the protocol's engine ([`StreamFlow`]).
//!
//! [`gate::Gate`] decides: sans-IO, time comes in as a value. [`Uplink`] runs it under tokio: it wraps accepted sockets. Where the process may
//! change queueing disciplines, [`marks`] adds the kernel's priority bands beneath, so that what already left for the kernel is ordered too.
#![forbid(unsafe_code)]

mod ahead;
pub mod bucket;
mod config;
mod core;
pub mod flood;
mod flow;
pub mod gate;
mod handover;
pub mod marks;
mod mechanism;
mod observer;
mod pacer;
mod path;
pub mod shadow;
mod shared;
mod siblings;
mod snapshot;
mod stream;
mod stream_flow;
mod uplink;
pub mod wire;

pub use ahead::{Ahead, NotAnAmount};
pub use config::{Mechanism, StreamRule, UnknownStreamRule, UplinkConfig, UplinkError};
pub use flow::{Flow, JobReport, ResponseStart};
pub use observer::Observer;
pub use siblings::StreamOrder;
pub use snapshot::{Load, SIZE_CLASS_BYTES, SIZE_CLASSES, Snapshot, size_class};
pub use stream::GatedStream;
pub use stream_flow::{FinishedStream, StreamFlow};
pub use uplink::Uplink;
