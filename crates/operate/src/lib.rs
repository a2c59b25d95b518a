//! What a command that runs for long tells its operator: lines on standard error and standard output, and whatever else may block.
//!
//! A reader that stalls (a full pipe, a stopped terminal, a busy service manager) must not stop an event loop. So a thread writes, the
//! loop only queues, and what does not fit into the bounded queue is lost and counted. A reader that is gone, or a full disk, costs lines
//! and nothing else.

mod lines;
mod outlet;
mod printable;

pub use lines::{finish, lost_lines, print, say, say_as};
pub use outlet::Outlet;
pub use printable::{is_printable, printable};
