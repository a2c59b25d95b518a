//! A job's place inside a server of an upstream.

use super::Upstream;
use crate::proxy::server::{Entry, Server};
use std::rc::{Rc, Weak};

/// A place inside a server; dropping it leaves. It has to be dropped before the job's permit: the gate must know how many places there
/// are before it lets the next one in.
pub struct Place {
    upstream: Weak<Upstream>,
    server: Rc<Server>,
    entry: Entry,
}

impl Place {
    /// Goes into `server`, one of `upstream`'s.
    pub fn take(upstream: &Rc<Upstream>, server: &Rc<Server>) -> Self {
        Self {
            upstream: Rc::downgrade(upstream),
            server: server.clone(),
            entry: server.enter(),
        }
    }

    /// The server.
    pub fn server(&self) -> &Rc<Server> {
        &self.server
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.server.leave(self.entry);
        if let Some(upstream) = self.upstream.upgrade() {
            upstream.count_places();
        }
    }
}
