//! Which connection may write onto a limited link, how much, and when the next one may.
//!
//! Everything here is pure: events and the time come in as values, decisions and the next wake-up go
//! out. Crate `uplink` runs it under tokio.
#![forbid(unsafe_code)]

mod ahead;
pub mod bucket;
pub mod core;
pub mod flood;
pub mod gate;
mod handover;
pub mod marks;
pub mod path;
mod response;
pub mod shadow;
mod siblings;
mod snapshot;
pub mod wire;

pub use ahead::{Ahead, NotAnAmount};
pub use response::{JobReport, ResponseStart};
pub use siblings::{StreamOrder, StreamRule, UnknownStreamRule};
pub use snapshot::{Load, SIZE_CLASS_BYTES, SIZE_CLASSES, Snapshot, size_class};
