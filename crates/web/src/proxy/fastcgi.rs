//! FastCGI as a way to a server: PHP-FPM and its like.
//!
//! To the rest of the proxy such a connection is one over HTTP/1 that is good for one request. On
//! its other end, within this process, stands a small server that has the request carried out over
//! FastCGI ([`bridge`]). So everything that holds for servers over HTTP holds here: the queue,
//! times, tries, health, reading ahead, and the end of a request after its client has left.
//!
//! `scripts` says which file a path runs, `parameters` what a script is told; records are read and
//! written by [`sooner_http::fastcgi`].

mod bridge;
mod config;
mod exchange;
mod parameters;
mod script_routes;
mod scripts;

pub use bridge::{Bridge, Slot};
pub use config::{FastCgi, FastCgiTable};
pub use exchange::{HELD_BYTES_MAX, NEEDS_LENGTH};
pub use parameters::{Origin, User, of_probe, of_request};
pub use script_routes::ScriptRoutes;
pub use scripts::{Found, Script, is_script, path_in_request};
