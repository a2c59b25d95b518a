//! Load generator: replays a trace at an exact load or for a number of users, or saturates a server
//! with a fixed number of connections.
//!
//! Open load is only worth something if the generator never waits for the server and never is the
//! bottleneck itself. So arrivals have absolute times, nothing is copied or allocated while bodies
//! are read in clear text (TLS has to decrypt them, HTTP/2 to sort them by stream), and every
//! replay ends with a verdict: VALID, or INVALID with the reason.

pub mod agenda;
pub mod chunked;
pub mod client;
pub mod closed;
pub mod connection;
pub mod counters;
pub mod exchange;
pub mod expectation;
pub mod failure;
pub mod hgrm;
pub mod http2;
pub mod ideal;
pub mod interarrivals;
pub mod measured;
pub mod message;
pub mod model;
pub mod outcome;
mod own_certificate;
pub mod patience;
pub mod play;
pub mod pool;
pub mod probe;
pub mod questions;
pub mod rate;
pub mod reachable;
pub mod replay;
pub mod response;
pub mod samples;
pub mod script;
pub mod sending;
pub mod socket;
pub mod stopped;
pub mod target;
pub mod tls;
pub mod transport;
pub mod unanswered;
pub mod verdict;
