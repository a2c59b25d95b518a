//! `[[upstream]] headers`: headers that each request to an upstream has, in place of what the
//! client sent or Sooner would send. An empty value takes the header away.

mod value;

use crate::config::Misconfigured;
use crate::files::ExtraHeaderError;
use crate::proxy::config::UpstreamTable;
use crate::proxy::tell_wait::{TellWait, is_told};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use sooner_http::forwarding::headers::remove_disguised;
use std::fmt::Display;
use std::slice;
use thiserror::Error;
use value::Value;

pub use value::{Asked, NoVariable};

/// What frames the request or belongs to one connection, beside all that begin with `proxy-`.
const OURS: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
];

/// Headers to set; each name once.
#[derive(Debug, Default)]
pub struct RequestHeaders(Vec<(HeaderName, Value)>);

/// Why a header cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestHeaderError {
    /// For the same reason as one of a site.
    #[error(transparent)]
    Header(#[from] ExtraHeaderError),
    /// It has a key of its own.
    #[error("set upstream.host instead: it is the Host that servers get")]
    Host,
    /// Its value has a `$` in it.
    #[error(transparent)]
    Value(#[from] NoVariable),
}

impl RequestHeaders {
    /// What `table` says, where servers and clients are told of waits so.
    pub fn build(table: &UpstreamTable, tell_wait: &TellWait) -> Result<Self, Misconfigured> {
        let mut all = Self::default();
        for (name, text) in table.headers.iter().flatten() {
            let wrong = |words: &dyn Display| {
                Misconfigured::at(text, &format!("upstream.headers.{name}"), words)
            };
            all.push(name, text.get_ref())
                .map_err(|error| wrong(&error))?;
            let dashed = dashed(&name.to_ascii_lowercase());
            if tell_wait.server && is_told(&dashed) {
                let words = "tell_wait = [\"server\"] sets it; leave one of the two out";
                return Err(wrong(&words));
            }
            if table.fastcgi.is_some() && name.contains('_') {
                return Err(wrong(&format!(
                    "scripts get no header with `_` in its name; write {dashed:?}, which is the \
                     same to them"
                )));
            }
        }
        Ok(all)
    }

    /// Adds a header.
    pub fn push(&mut self, name: &str, value: &str) -> Result<(), RequestHeaderError> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ExtraHeaderError::Name(name.to_owned()))?;
        let plain = dashed(name.as_str());
        if plain == "host" {
            return Err(RequestHeaderError::Host);
        }
        if OURS.contains(&plain.as_str()) || plain.starts_with("proxy-") {
            return Err(ExtraHeaderError::Ours(name).into());
        }
        if self
            .0
            .iter()
            .any(|(other, _)| dashed(other.as_str()) == plain)
        {
            return Err(ExtraHeaderError::Twice(name).into());
        }
        if HeaderValue::from_str(value).is_err() {
            return Err(ExtraHeaderError::Value(name).into());
        }
        self.0.push((name, Value::parse(value)?));
        Ok(())
    }

    /// Sets them in the head of a request of which this was asked.
    pub fn set(&self, headers: &mut HeaderMap, asked: &Asked<'_>) {
        for (name, value) in &self.0 {
            take_away(headers, name);
            if let Some(value) = value.of(asked) {
                headers.insert(name, value);
            }
        }
    }

    /// Sets those that are the same in each request, for one that no client sent.
    pub fn set_fixed(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.0 {
            take_away(headers, name);
            if let Some(value) = value.fixed() {
                headers.insert(name, value);
            }
        }
    }

    /// Takes them out of trailers: servers may add these to the headers.
    pub fn clean_trailers(&self, trailers: &mut HeaderMap) {
        self.0
            .iter()
            .for_each(|(name, _)| take_away(trailers, name));
    }
}

/// Removes a header, and what a program that reads CGI variables takes for it.
fn take_away(headers: &mut HeaderMap, name: &HeaderName) {
    remove_disguised(headers, slice::from_ref(name));
    headers.remove(dashed(name.as_str()));
}

/// The name that such a program takes it for.
fn dashed(name: &str) -> String {
    name.replace('_', "-")
}
