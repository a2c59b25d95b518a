//! Puts response bytes onto a limited link in the order a policy decides.
//!
//! The link out of a server is busy, so bytes queue. Left alone they queue in the kernel and the
//! network, in the order in which they were written. This crate keeps them in user space instead,
//! where they can be ordered: a connection writes only when it is granted a turn, the turns
//! together go at the rate of the uplink, and everything a connection puts on the wire is charged
//! to it. Of a connection with several responses at a time (HTTP/2) each asks for itself, before
//! its payload goes to the protocol's engine ([`StreamFlow`]).
//!
//! Crate `link` decides, without I/O. [`Uplink`] runs it under tokio: it wraps accepted sockets.
//! Where the process may change queueing disciplines, the kernel's priority bands are added
//! beneath, so that what already left for the kernel is ordered too.
#![forbid(unsafe_code)]

mod auto_rate;
mod config;
mod fair_shadow;
mod flow;
mod installed_bands;
mod mechanism;
mod observer;
mod pacer;
mod shared_link;
mod stream;
mod stream_flow;
mod uplink;

pub use auto_rate::{Found, Tell};
pub use config::{Mechanism, UplinkConfig, UplinkError};
pub use fair_shadow::FairShadow;
pub use flow::Flow;
pub use observer::Observer;
pub use sooner_bottleneck::{NO_LIMIT_BITS_PER_SEC, limit};
pub use stream::GatedStream;
pub use stream_flow::{FinishedStream, StreamFlow};
pub use uplink::Uplink;
