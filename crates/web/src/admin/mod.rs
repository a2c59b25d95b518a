//! The admin address: metrics, status and a live page, for who runs the server and for nobody else.
//!
//! A second, tiny HTTP service beside the real one, by default on loopback. It has nothing to do with the order on the uplink: its answers are
//! small and go straight to their socket. What it shows comes from [`crate::metrics`], and from [`Sources`], which are asked when somebody
//! reads, and once a second for what is shown over time.
//!
//! | path | what |
//! |---|---|
//! | `/` | a live page; without JavaScript a plain one that comes anew every five seconds |
//! | `/status.json` | the same as data |
//! | `/metrics` | OpenMetrics text, for Prometheus |
//! | `/healthz` | `ok`, or 503 and `stopping` |

mod config;
mod exposition;
mod families;
mod history;
mod host;
mod page;
mod process;
mod routes;
mod server;
mod sources;
mod status;
mod text;

pub use config::AdminConfig;
pub use host::is_allowed;
pub use server::Admin;
pub use sources::{ClassLoad, Sources, UplinkReading, UpstreamReading};
