//! What clients may hold, and for how long; the `[limits]` table.
//!
//! Only what is received is limited, and what a client does not take although it was sent
//! (`stall_seconds`, by TCP itself): a client that waits for its turn on the uplink, or for a
//! backend, is never given up here.

mod activity;
mod activity_stream;
mod connections;
mod counts;
mod linger;
mod lingering_stream;
mod log_throttle;
mod metered_body;
mod receive_meter;
mod settings;

pub use activity::Activity;
#[cfg(test)]
pub use activity::CoarseClock;
pub use activity_stream::ActivityStream;
pub use connections::{
    AwaitedAnswer, CloseReason, ConnectionHandle, Connections, TooManyConnections,
};
pub use linger::Linger;
pub use lingering_stream::LingeringStream;
pub use log_throttle::LogThrottle;
pub use metered_body::{MeteredBody, ReceiveError};
pub use receive_meter::ReceiveMeter;
pub use settings::Limits;
