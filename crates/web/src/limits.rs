//! What clients may hold, and for how long; the `[limits]` table.
//!
//! Only what is received is limited, and what a client does not take although it was sent (`stall_seconds`, by TCP
//! itself): a client that waits for its turn on the uplink, or for a backend, is never given up here.

mod activity;
mod complaint;
mod connections;
mod counts;
mod linger;
mod lingering;
mod metered_body;
mod receive_meter;
mod settings;
mod watched;

pub use activity::Activity;
pub use complaint::Complaint;
pub use connections::{CloseReason, Connections, Guest, TooManyConnections};
pub use linger::Linger;
pub use lingering::Lingering;
pub use metered_body::{MeteredBody, ReceiveError};
pub use receive_meter::ReceiveMeter;
pub use settings::Limits;
pub use watched::Watched;
