//! Load generator: replays a trace at an exact load, or saturates a server with a fixed number of
//! connections.
//!
//! Open load is only worth something if the generator never waits for the server and never is the
//! bottleneck itself. So arrivals have absolute times, nothing is copied or allocated while bodies
//! are read, and every replay ends with a verdict: VALID, or INVALID with the reason.

pub mod closed;
pub mod connection;
pub mod counters;
pub mod exchange;
pub mod exponential;
pub mod failure;
pub mod ideal;
pub mod outcome;
pub mod play;
pub mod pool;
pub mod replay;
pub mod response;
pub mod samples;
pub mod socket;
pub mod target;
pub mod verdict;
