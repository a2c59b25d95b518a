//! The server over real sockets, every byte looked at.

mod breaking_off;
mod closing;
mod conditions;
mod delivery;
mod early_answers;
mod expiring;
mod fastcgi;
mod fastcgi_bounds;
mod fastcgi_told;
mod fastcgi_twice;
mod guarded;
mod leaving;
mod linked_roots;
mod paths;
mod protocol;
mod proxied;
mod script_places;
mod statics_changes;
mod statics_heads;
mod stopping;
mod support;
