//! What happened inside the server's host while a run went on, once a second: connections by state,
//! SYN and accept queue, drops, retransmissions, the queues of its device, processor time and
//! memory of the server.
//!
//! Every source belongs to the namespace or to the server's processes, so runs side by side do not
//! see each other. What the kernel counts up is given since the sampler's start.

mod mib;
pub(crate) mod processes;
mod row;
mod sampler;
mod sockets;
mod summary;

pub use mib::{TcpCounters, tcp_counters};
pub use processes::{Stat, TICKS_PER_SEC, resident_bytes_of, schedstat, stat, usage};
pub use row::{Counter, QueueCounter};
pub use sampler::{Sampler, SamplerOptions};
pub use sockets::{Connections, table, time_wait};
pub use summary::CountersSummary;
