//! HTTP/2 over real sockets: by the client side of a library, by programs people use, and frame by
//! frame.

mod endings;
mod exchanges;
pub mod frames;
mod order;
mod programs;
mod support;
mod uploads;
mod violations;
mod windows;
