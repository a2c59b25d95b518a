//! One version of one file, with everything a response says about it worked out once.

use super::content::Content;
use super::extra_headers::ExtraHeaders;
use super::identity::Identity;
use super::media_type;
use super::root::FileError;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue,
    LAST_MODIFIED, VARY,
};
use rustix::fs::Stat;
use sooner_http::negotiation::Coding;
use std::io;
use std::os::fd::OwnedFd;
use std::time::SystemTime;

/// One version of a regular file.
#[derive(Debug)]
pub struct File {
    /// Its length in bytes when it was opened.
    pub len: u64,
    /// When it was last changed, as far as it is announced.
    pub modified: Option<SystemTime>,
    /// The entity tag, strong, with its quotes.
    pub etag: HeaderValue,
    /// The headers of a complete response.
    pub headers: HeaderMap,
    identity: Identity,
    content: Content,
}

/// What a response says about a file besides what the file says itself.
#[derive(Debug, Clone, Copy)]
pub struct Description<'a> {
    /// The path without the suffix of a coding: its end tells the content type.
    pub path: &'a [u8],
    /// What it was compressed with.
    pub coding: Option<Coding>,
    /// Whether clients choose among several codings of it.
    pub is_negotiated: bool,
    /// What the owner adds.
    pub extra: &'a ExtraHeaders,
}

impl File {
    /// Describes a file that was opened at `now`; reads it into memory when it is no longer than
    /// `memory_bytes_max`.
    pub fn new(
        description: Description<'_>,
        descriptor: OwnedFd,
        stat: &Stat,
        memory_bytes_max: u64,
        now: SystemTime,
    ) -> Result<Self, FileError> {
        let identity = Identity::of(stat);
        let (len, etag) = (identity.len(), identity.etag(description.coding));
        // A date that has not come yet must not be announced (RFC 9110, 8.8.2.1).
        let modified = Some(identity.modified()).filter(|&date| date <= now);
        let headers = headers_of(description, len, &etag, modified);
        let content = Content::new(descriptor, &identity, memory_bytes_max)?;
        Ok(Self {
            len,
            modified,
            etag,
            headers,
            identity,
            content,
        })
    }

    /// What tells its version from others.
    pub(super) fn version(&self) -> Identity {
        self.identity
    }

    /// Whether `stat` describes this very version.
    pub fn is_version(&self, stat: &Stat) -> bool {
        self.identity == Identity::of(stat)
    }

    /// Whether its bytes can still be had: those of a file that is not in memory may have been
    /// overwritten.
    pub fn is_current(&self) -> bool {
        self.content.is_current()
    }

    /// Its content, if it is kept in memory.
    pub fn in_memory(&self) -> Option<&Bytes> {
        self.content.in_memory()
    }

    /// How many bytes of memory its content takes, or will take.
    pub fn memory_bytes(&self) -> u64 {
        self.content.memory_bytes()
    }

    /// Reads up to `len` bytes from `offset` if that needs no disk, else nothing. Fails with
    /// `UnexpectedEof` when the file has been changed since it was opened: bytes of two versions
    /// are never mixed.
    pub fn read_cached(&self, offset: u64, len: usize) -> io::Result<Option<Bytes>> {
        self.content.read_cached(offset, len)
    }

    /// Reads like [`Self::read_cached`], and waits for the disk.
    pub fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        self.content.read_at(offset, len)
    }
}

fn headers_of(
    description: Description<'_>,
    len: u64,
    etag: &HeaderValue,
    modified: Option<SystemTime>,
) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(7 + description.extra.count());
    headers.insert(CONTENT_TYPE, media_type::of(description.path));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
    if let Some(date) = modified
        && let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(date))
    {
        headers.insert(LAST_MODIFIED, date);
    }
    headers.insert(ETAG, etag.clone());
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(coding) = description.coding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
    }
    if description.is_negotiated {
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    description.extra.add_to(&mut headers);
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn plain<'a>(path: &'a [u8], extra: &'a ExtraHeaders) -> Description<'a> {
        Description {
            path,
            coding: None,
            is_negotiated: false,
            extra,
        }
    }

    #[test]
    fn says_what_it_is() {
        let etag = HeaderValue::from_static("\"e\"");
        let mut extra = ExtraHeaders::default();
        extra.push("x-a", "b").unwrap();
        let description = plain(b"a/page.html", &extra);
        let headers = headers_of(description, 5, &etag, Some(SystemTime::UNIX_EPOCH));
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(headers[CONTENT_LENGTH], "5");
        assert_eq!(headers[ETAG], etag);
        assert_eq!(headers[LAST_MODIFIED], "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(headers["x-a"], "b");
        assert_eq!(headers.len(), 6);
        let compressed = Description {
            coding: Some(Coding::Br),
            is_negotiated: true,
            ..description
        };
        let headers = headers_of(compressed, 5, &etag, None);
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(headers[CONTENT_ENCODING], "br");
        assert_eq!(headers[VARY], "accept-encoding");
    }

    #[test]
    fn a_date_to_come_is_not_announced() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let today = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let tomorrow = today + Duration::from_secs(86_400);
        file.as_file().set_modified(tomorrow).unwrap();
        let extra = ExtraHeaders::default();
        let opened_at = |now| {
            let descriptor = OwnedFd::from(file.reopen().unwrap());
            let stat = rustix::fs::fstat(&descriptor).unwrap();
            File::new(plain(b"a", &extra), descriptor, &stat, 0, now).unwrap()
        };
        let early = opened_at(today);
        assert_eq!(early.modified, None);
        assert!(!early.headers.contains_key(LAST_MODIFIED));
        let late = opened_at(tomorrow);
        assert_eq!(late.modified, Some(tomorrow));
        assert!(late.headers.contains_key(LAST_MODIFIED));
    }
}
