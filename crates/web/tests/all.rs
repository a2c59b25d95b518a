//! One program of all tests that use the crate from outside, because each program is linked anew.

mod admin;
mod commenting;
mod compression;
mod config_text;
mod http;
mod http2;
mod leaving;
mod log_on_a_full_disk;
mod sharing;
mod site;
mod tls;
