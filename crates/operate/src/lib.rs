//! What an operator touches of a command that runs for long, once for `serve`, `gate` and `attach`.
//!
//! Lines go to standard error by a thread that may lose and count them but never waits: a reader
//! that stalls (a full pipe, a stopped terminal, a busy service manager) must not stop an event
//! loop. The same thread tells the supervisor. Beside it: listening sockets, signals, metrics, the
//! server of an admin address, and becoming another user.

mod accept_failures;
pub mod account;
mod activation;
pub mod admin;
mod event_loop;
mod lines;
mod listen;
pub mod metrics;
mod outlet;
mod process;
mod signals;
mod supervisor;

pub use accept_failures::AcceptFailures;
pub use activation::{PassedError, PassedListeners, passed_listeners};
pub use event_loop::{polled_when_woken, run_local};
pub use lines::{finish, lost_lines, print, say, say_as};
pub use listen::{ListenError, listen, listen_together, may_listen};
pub use outlet::Outlet;
pub use process::ProcessReading;
pub use signals::{Action, Signals};
pub use supervisor::Supervisor;
