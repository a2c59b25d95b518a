//! What a client and a server connection have from one transaction to the next.
//!
//! The state of both, what the client's commands may have changed in its session, and the query by
//! which the server says what they did.

mod changes;
mod own_commands;
mod prepared_here;
mod query;
mod state;

pub use changes::{ENTRY_BYTES, KEPT_BYTES_MAX, PossibleChanges, Ties};
pub use own_commands::{WITHOUT_WAIT, without_timeouts};
pub use prepared_here::PreparedHere;
pub use query::{SessionQuery, begin, discard, forget_resets};
pub use state::{ClientState, ServerState, SessionRole, Unnamed};
