//! A pooler for PostgreSQL: many clients, few server connections, and an order between them.
//!
//! A client connects (`gateway`), starts up and proves who it is (`client`), waits for admission
//! and leases a server connection (`pool`) for each transaction; `client::relay` passes its
//! bytes on. [`config`] is `gate.toml`, [`console`] the admin console, [`statistics`] what
//! transactions took. What the protocol means is decided in `sooner-postgres`, who goes next in
//! `sooner-gate`.
//!
//! One thread: what is shared is behind an `Rc`, and no lock is held over an `await`.

mod admin;
mod client;
pub mod config;
mod configuration;
pub mod console;
mod console_client;
mod gateway;
mod hashing;
mod lock_map;
pub mod lock_waits;
mod log;
pub mod openmetrics;
pub mod pgbouncer;
mod pool;
mod pooler;
pub mod priorities;
mod random;
mod readings;
pub mod statistics;
mod stream;
mod tls;
mod upkeep;

pub use configuration::Configuration;
pub use console::command::Stop;
pub use console_client::{Answer, ConsoleClient};
pub use gateway::{Gateway, Listener, Reload};
pub use pool::probe::probe_servers;
