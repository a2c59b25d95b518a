//! HTTP/2 (RFC 9113), with the order among the streams in our hands.
//!
//! The library `h2` speaks the protocol: frames, compression, windows, states of streams. What it
//! must not do is decide who sends next, within a connection or among connections; that is for the
//! uplink, which knows the rank of every response. The library sends what it is given in the order
//! it is given, as long as the client's windows allow it. So bytes are given to it only when it is
//! their turn, and no faster than the socket takes them. For every piece of a body, in this order:
//!
//! 1. The source. A backend or a disk that has nothing to give asks for no turn. A file at hand is
//!    not read before its turn: what waits in memory is memory that a client holds, 128 times a
//!    connection.
//! 2. The window. A stream asks for no turn while its client's window is shut. The library gives
//!    the connection's window to the stream that reserves first, so a reservation that waits for
//!    its turn would take the window away from a sibling that goes before it, which turns the order
//!    upside down where the window is what is scarce. So nothing is reserved while a stream waits
//!    for its turn: every stream that could send asks, and the uplink decides (`windows`).
//! 3. The turn. The uplink grants some bytes. A connection of which enough waits to be written
//!    gets none, because what was given to the library cannot be overtaken.
//! 4. Only now the granted bytes are reserved from the windows; what was not to be had, because a
//!    sibling was faster or the source ended, goes back to the uplink, which gives the turn to the
//!    next.
//! 5. The bytes are given to the library, and what is left of the reservation is given back.
//! 6. When the library has everything the response wants no more turns; it is over, and completed,
//!    when its last frame was seen in what the library writes (`stream_ends`) and the connection
//!    was flushed. The library drops what it holds of a stream that is reset.
//!
//! Heads, settings, acknowledgements and window updates are not held: they are small, and others
//! wait for them. The uplink counts them.
//!
//! The Priority field, PRIORITY_UPDATE frames and what else makes a response urgent are in the
//! crate `http` (`priority`). The library skips PRIORITY_UPDATE, so the bytes are looked through
//! below it (`tap`).
//!
//! A client's means to use more than its share, and what bounds them: streams
//! (`SETTINGS_MAX_CONCURRENT_STREAMS`), requests reset (`ResetBudget`, and by the library those not
//! accepted yet), heads (size, and number of CONTINUATION frames), request bodies (windows), small
//! and empty DATA frames (counted by the library), malformed requests (counted), PING and SETTINGS
//! (answered before the next frame is read, so they wait when their answers are not taken), windows
//! that stay shut (time), PRIORITY_UPDATE (the table is as large as the number of streams). See
//! `bounds`.

mod body_source;
mod bounds;
mod connection;
mod cork;
mod priorities;
mod request;
mod request_stream;
mod response;
mod sender;
mod stream;
mod tap;
mod unwritten;
mod uploads;
mod windows;

pub use bounds::Bounds;
pub use connection::serve;
pub use request_stream::RequestStream;
