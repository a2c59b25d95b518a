//! What a site is asked for, and what of it that leads to: an index for a directory, a page of
//! last resort for what is not there.
//!
//! As nginx does, what a path leads to is looked up as if it had been asked for itself: locations
//! and passwords for it hold, whichever path led there.

use crate::proxy::{ScriptRoutes, is_script};
use hyper::Request;

/// What is asked of a site.
#[derive(Clone, Copy, Default)]
pub struct Asked<'a> {
    /// What the path of the request led to, as it would stand in a request; it leads no further.
    pub led: Option<&'a str>,
    /// The scripts that may be run instead of being sent.
    pub scripts: ScriptRoutes<'a>,
    /// Whether parts are not wanted, whatever the request says.
    pub is_whole: bool,
}

/// What a request led to that is not what it named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Led {
    /// Its path, as it would stand in a request.
    pub path: String,
    /// Whether the configuration names it, as the last resort, and no client can choose it. A
    /// location that answers for this path keeps clients from naming it, and nothing else.
    pub is_last_resort: bool,
}

impl Asked<'_> {
    /// The path that is looked for.
    pub fn path<'r, B>(&'r self, request: &'r Request<B>) -> &'r str {
        self.led.unwrap_or(request.uri().path())
    }
}

impl Led {
    /// The path of a script with the end of its name in small letters, if it is not so: patterns
    /// tell capitals apart, and what runs scripts does not.
    pub fn in_small_letters(&self) -> Option<String> {
        const END: &str = ".php";
        let begin = self.path.len().checked_sub(END.len())?;
        let is_other = is_script(self.path.as_bytes()) && !self.path.ends_with(END);
        is_other.then(|| format!("{}{END}", &self.path[..begin]))
    }
}
