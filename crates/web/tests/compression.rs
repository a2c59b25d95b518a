//! Compression over real sockets: curl as the client, nginx as the judge of heads, backends of all
//! kinds behind.

mod backends;
mod files;
mod judge;
mod streams;
mod support;
