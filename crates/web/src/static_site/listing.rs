//! What a directory without an index shows, where the owner wants that: its names as a page or as
//! JSON.
//!
//! A directory may be long and its disk slow, so a listing is not made where requests are read: it
//! is taken along as a [`PendingListing`] to a thread that may wait.

mod budget;
mod entries;
mod html;
mod json;
mod text;

use super::refusal::{of_file, overloaded};
use crate::body::Source;
use crate::files::{ExtraHeaders, RootPath};
use crate::response::Response;
pub use budget::Budget;
use budget::Reserved;
use bytes::Bytes;
use entries::ListedDirectory;
use hyper::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, VARY,
};
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde::Deserialize;
use sooner_http::negotiation::prefers_json;
use sooner_http::target::DotFiles;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// How many names of a directory are read: more than a reader looks through, and some 20 ms of
/// work.
const ENTRIES_MAX: usize = 10_000;
/// How long a listing gets: names of a hundred bytes, ten thousand times.
const BYTES_MAX: usize = 4 << 20;
/// What a listing is taken to need before it has been read.
const RESERVED_BYTES: u64 = 1 << 20;
/// The memory all listings of a server may take that are being sent, bytes.
pub const BUDGET_BYTES: u64 = 64 << 20;

/// What a directory without an index shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listing {
    /// Nothing: 404.
    #[default]
    Off,
    /// A page.
    Html,
    /// A JSON object.
    Json,
    /// The one the client likes better (`Accept`), a page if it does not care.
    Auto,
}

/// Shows directories.
#[derive(Debug)]
pub struct Lister {
    /// How.
    pub listing: Listing,
    /// The root they are below.
    pub root: RootPath,
    /// Whether names that begin with a dot are listed.
    pub dot_files: DotFiles,
    /// What the owner adds to the headers.
    pub extra: ExtraHeaders,
    /// What memory there is.
    pub budget: Budget,
}

/// The directory that is shown.
#[derive(Debug)]
pub struct Shown<'a> {
    /// It, open.
    pub directory: OwnedFd,
    /// Its path as clients know it.
    pub path: &'a [u8],
    /// Its path below the root.
    pub path_below_root: &'a [u8],
    /// Whether scripts in it are not to be had.
    pub hides_scripts: bool,
}

/// A listing that has to be read.
#[derive(Debug)]
pub struct PendingListing {
    /// The path of the directory as clients know it.
    path: Vec<u8>,
    listed: ListedDirectory,
    is_json: bool,
    is_head: bool,
    headers: HeaderMap,
    extra: ExtraHeaders,
    reserved: Reserved,
}

/// What is known of a directory at once.
#[derive(Debug)]
pub enum Listed {
    /// It is not shown.
    Off,
    /// It will be, once it has been read.
    Pending(PendingListing),
    /// Too many are being shown.
    Refusal(Response),
}

impl Lister {
    /// Begins to show a directory that was opened below the root of `now`.
    pub fn list<B>(&self, request: &Request<B>, shown: Shown<'_>, now: Instant) -> Listed {
        let accept = request.headers().get_all(ACCEPT).iter();
        let is_json = match self.listing {
            Listing::Off => return Listed::Off,
            Listing::Html => false,
            Listing::Json => true,
            Listing::Auto => prefers_json(accept.map(HeaderValue::as_bytes)),
        };
        let root = match self.root.root(now) {
            Ok(root) => root,
            Err(error) => return Listed::Refusal(of_file(&error)),
        };
        let Some(reserved) = self.budget.reserve(RESERVED_BYTES) else {
            return Listed::Refusal(overloaded());
        };
        Listed::Pending(PendingListing {
            path: shown.path.to_vec(),
            listed: ListedDirectory {
                directory: shown.directory,
                path: shown.path_below_root.to_vec(),
                root,
                dot_files: self.dot_files,
                hides_scripts: shown.hides_scripts,
            },
            is_json,
            is_head: request.method() == Method::HEAD,
            headers: self.headers(is_json),
            extra: self.extra.clone(),
            reserved,
        })
    }

    fn headers(&self, is_json: bool) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(5 + self.extra.count());
        if is_json {
            let kind = HeaderValue::from_static("application/json");
            headers.insert(CONTENT_TYPE, kind);
        } else {
            let kind = HeaderValue::from_static("text/html; charset=utf-8");
            headers.insert(CONTENT_TYPE, kind);
            let policy = HeaderValue::from_static(html::CONTENT_SECURITY_POLICY);
            headers.insert(CONTENT_SECURITY_POLICY, policy);
        }
        if self.listing == Listing::Auto {
            headers.insert(VARY, HeaderValue::from_static("accept"));
        }
        self.extra.add_to(&mut headers);
        headers
    }
}

impl PendingListing {
    /// Reads the directory and makes the answer. Waits for the disk: not for the thread that
    /// serves.
    pub fn read(self) -> Response {
        let path = &*self.path;
        let mut response = match entries::read(self.listed, ENTRIES_MAX) {
            Ok(entries) => {
                let text = if self.is_json {
                    json::object(path, &entries, BYTES_MAX)
                } else {
                    html::page(path, &entries, BYTES_MAX)
                };
                match self.reserved.hold(text) {
                    Some(body) => shown(body, self.headers),
                    None => refused(overloaded(), &self.extra),
                }
            }
            Err(error) => refused(of_file(&error), &self.extra),
        };
        if self.is_head {
            response.source = Source::Empty;
        }
        response
    }
}

fn shown(body: Bytes, mut headers: HeaderMap) -> Response {
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    Response {
        status: StatusCode::OK,
        reason: None,
        headers,
        source: Source::Memory(body),
    }
}

fn refused(mut response: Response, extra: &ExtraHeaders) -> Response {
    extra.add_to(&mut response.headers);
    response
}
