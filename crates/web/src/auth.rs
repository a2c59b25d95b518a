//! Who may see what: paths of a site that are for the users of a file alone (RFC 7617).
//!
//! `config` says which paths, `htpasswd` and `secret` read the file, `checker` finds out whether a
//! request's password is right without holding up the others. What a request brings, and which
//! paths its path may be to a server behind this one, is decided in [`sooner_http::basic_auth`].

mod apr1;
mod checker;
mod config;
mod htpasswd;
mod secret;

pub use checker::{Check, Checker, Looked, Outcome, refusal};
pub use config::{AuthConfig, Served};
pub use htpasswd::{LineMistake, Users, UsersError};
pub use secret::SecretError;

use hyper::header::HeaderValue;
use sooner_http::basic_auth::ProtectedPaths;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// What lets users of a file pass.
pub struct Guard {
    /// The users.
    users: Arc<Users>,
    /// What is said to those without a name and password.
    challenge: HeaderValue,
}

/// Which paths of a site are protected.
#[derive(Debug, Default)]
pub struct Guards(ProtectedPaths<Rc<Guard>>);

impl Guards {
    /// What protects a path, as it stands in a request.
    pub fn find(&self, path: &str) -> Option<&Rc<Guard>> {
        self.0.find(path)
    }
}

/// Shows no hash.
impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.challenge)
    }
}
