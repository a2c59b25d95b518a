//! Which connection may write onto a limited link, how much, and when the next one may.
//!
//! Everything here is pure: events and the time come in as values, decisions and the next wake-up
//! go out. [`LinkScheduler`] decides, and its module has the order of the calls; crate `uplink`
//! runs it under tokio. [`shadow`] plays beside it what equal sharing would have given.
#![forbid(unsafe_code)]

mod ahead;
mod band_chooser;
mod bucket;
pub mod flood;
mod path_estimate;
mod response;
pub mod scheduler;
mod send_buffer;
pub mod shadow;
mod siblings;
mod snapshot;
pub mod wire;

pub use ahead::{Ahead, NotAnAmount};
pub use band_chooser::BandChooser;
pub use bucket::transmission_ns;
pub use path_estimate::{PathEstimate, PathSample};
pub use response::{JobReport, ResponseStart};
pub use scheduler::{
    Answer, Effects, EndedResponse, FlowId, LinkConfig, LinkLimits, LinkScheduler, NextGrant,
    OnEnd, Pacing, StartedResponse,
};
pub use siblings::{StreamOrder, StreamRule, UnknownStreamRule};
pub use snapshot::{Load, SIZE_CLASS_BYTES, SIZE_CLASSES, Snapshot, size_class};
