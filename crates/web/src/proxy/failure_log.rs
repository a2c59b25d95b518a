//! Lines on standard error about requests that failed: at most one a minute for each server, for
//! each upstream's queue, and for exhausted resources of this host. The access log has every
//! request.

use crate::limits::LogThrottle;
use hyper::{Method, Uri};
use sooner_admission::Time;
use sooner_config::is_printable;
use sooner_operate::say;
use std::error::Error;
use std::fmt::{self, Display};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// The most of a path that is shown, characters.
const PATH_CHARS_MAX: usize = 200;
/// The most of a reason that is shown, characters: a certificate may have hundreds of names.
const REASON_CHARS_MAX: usize = 300;

/// A request, as it is named in a line. Its query is left out: it may hold a secret.
#[derive(Clone, Debug)]
pub struct RequestSummary {
    method: Method,
    uri: Uri,
    client: IpAddr,
}

impl RequestSummary {
    /// A request of `client`.
    pub fn new(method: &Method, uri: &Uri, client: IpAddr) -> Self {
        Self {
            method: method.clone(),
            uri: uri.clone(),
            client,
        }
    }
}

impl RequestSummary {
    /// The same for requests of the same path.
    pub fn path_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.uri.path().hash(&mut hasher);
        hasher.finish()
    }
}

impl Display for RequestSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = short(self.uri.path(), PATH_CHARS_MAX);
        write!(f, "{} {path} of {}", self.method, self.client)
    }
}

/// Lines about one kind of failure.
#[derive(Default)]
pub struct FailureLog(Mutex<LogThrottle>);

impl FailureLog {
    /// It has happened again: writes `what`, unless a line about it was written within the last
    /// minute.
    pub fn report(&self, now: Time, what: impl Display) {
        let times = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(now);
        if let Some(times) = times {
            say(line(&what, times));
        }
    }
}

fn line(what: &dyn Display, times: u64) -> String {
    match times {
        1 => what.to_string(),
        _ => format!("{what} ({times} times since this was last said)"),
    }
}

/// A reason in one line of bounded length; it may hold text of a server.
pub fn one_line(why: &dyn Display) -> String {
    short(&why.to_string(), REASON_CHARS_MAX)
}

/// An error with its causes, in one line.
pub fn with_causes(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words.push_str(": ");
            words.push_str(&more);
        }
        cause = error.source();
    }
    words
}

fn short(text: &str, chars_max: usize) -> String {
    let mut short = String::with_capacity(text.len().min(chars_max));
    let mut characters = text.chars();
    for character in characters.by_ref().take(chars_max) {
        if is_printable(character) {
            short.push(character);
        } else {
            short.extend(character.escape_default());
        }
    }
    if characters.next().is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_without_its_query() {
        let uri = Uri::from_static("http://h/a%20b?password=1");
        let summary = RequestSummary::new(&Method::POST, &uri, [192, 0, 2, 7].into());
        assert_eq!(summary.to_string(), "POST /a%20b of 192.0.2.7");
    }

    #[test]
    fn what_others_wrote_is_one_short_line() {
        assert_eq!(
            one_line(&"a\r\nsooner: b\u{1b}[2J"),
            "a\\r\\nsooner: b\\u{1b}[2J"
        );
        let long = one_line(&"\u{e9}".repeat(1000));
        assert_eq!(long.chars().count(), REASON_CHARS_MAX + "...".len());
    }

    #[test]
    fn how_often_is_said_when_it_was_more_than_once() {
        assert_eq!(line(&"x", 1), "x");
        assert_eq!(line(&"x", 12), "x (12 times since this was last said)");
    }
}
