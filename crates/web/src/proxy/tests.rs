//! The proxy between real sockets: upstreams that do what they should and what they should not.

mod bodies;
mod bounds;
mod checks;
mod commenting;
mod conversing;
mod disguised;
mod effects;
mod expecting;
mod failing;
mod framing;
mod http2;
mod kept;
mod learning;
mod nginx;
mod overlong;
mod passing;
mod probation;
mod promising;
mod queueing;
mod redirected;
mod reloading;
mod secure;
mod smuggling;
pub(super) mod support;
mod switching;
mod workers;
