//! Why a replay could not be run.

use crate::failure::Failure;
use sooner_workload::PlanError;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// A replay that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Nothing left to measure.
    #[error("warm-up of {warm_up_s} s in a run of {duration_s} s: give a shorter --warm-up")]
    WarmUp {
        /// Warm-up in seconds.
        warm_up_s: f64,
        /// Length of the run in seconds.
        duration_s: f64,
    },
    /// SURGE's users ask for other files.
    #[error("a trace of {objects} objects for users of {files} files: give SURGE's own trace")]
    Files {
        /// Objects of the trace.
        objects: usize,
        /// Files of the model.
        files: u32,
    },
    /// The arrivals cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A socket cannot be made as asked.
    #[error(
        "cannot make a socket: {0}; is the congestion control in net.ipv4.tcp_available_congestion_control?"
    )]
    Socket(io::Error),
    /// A source address cannot be used.
    #[error(
        "cannot send from {address} to {target}: {error}; give addresses of this host, of the server's family"
    )]
    Source {
        /// The source address.
        address: IpAddr,
        /// Where to.
        target: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// An abort closes a connection, and HTTP/2 has several requests on one.
    #[error(
        "--patience with --http2: an abort would be the reset of a stream, which is another thing than a closed connection; \
         leave one of them out"
    )]
    PatienceWithHttp2,
    /// The first request failed.
    #[error(
        "{url}: {failure}; serve the trace's files there \
         (`sooner load mkroot TRACE DIR`) or correct --url"
    )]
    Probe {
        /// The requested URL.
        url: String,
        /// How it failed.
        failure: Failure,
    },
    /// The system refused a timer.
    #[error("cannot set up a timer: {0}")]
    Timer(io::Error),
}
