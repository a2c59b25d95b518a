//! One program of all tests that use the crate from outside, because each program is linked anew.

mod admin;
mod bounds;
mod bytes;
mod connection_limits;
mod connections;
mod conversations;
mod drivers;
mod encryption;
mod ending;
mod moved;
mod operating;
mod ordering;
mod parts;
mod places;
mod preemption;
mod promoted;
mod raw_bytes;
mod scripted_server;
mod silent_server;
mod slow_logins;
mod support;
mod through_the_gate;
