//! One version of one file, with everything a response says about it worked out once.

use super::content::Content;
use super::identity::Identity;
use super::root::FileError;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, LAST_MODIFIED,
};
use rustix::fs::Stat;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

/// One version of a regular file.
#[derive(Debug)]
pub struct File {
    /// Its length in bytes when it was opened.
    pub len: u64,
    /// When it was last changed, within what an HTTP date can say.
    pub modified: SystemTime,
    /// The entity tag, strong, with its quotes.
    pub etag: HeaderValue,
    /// The headers of a complete response.
    pub headers: HeaderMap,
    identity: Identity,
    content: Content,
}

impl File {
    /// Describes an open file; reads it into memory when it is no longer than `memory_bytes_max`.
    pub fn new(
        path: &[u8],
        descriptor: OwnedFd,
        stat: &Stat,
        memory_bytes_max: u64,
    ) -> Result<Self, FileError> {
        let identity = Identity::of(stat);
        let (len, etag, modified) = (identity.len(), identity.etag(), identity.modified());
        let headers = headers_of(path, len, &etag, modified);
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

    /// Whether `stat` describes this very version.
    pub fn is_version(&self, stat: &Stat) -> bool {
        self.identity == Identity::of(stat)
    }

    /// Its content, if it is kept in memory.
    pub fn in_memory(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Memory(bytes) => Some(bytes),
            Content::Disk(_) => None,
        }
    }

    /// How many bytes of memory its content takes.
    pub fn memory_bytes(&self) -> u64 {
        self.in_memory().map_or(0, |bytes| bytes.len() as u64)
    }

    /// Reads up to `len` bytes from `offset` if that needs no disk, else nothing. Fails with `UnexpectedEof` when the
    /// file has shrunk to before `offset`.
    pub fn read_cached(&self, offset: u64, len: usize) -> io::Result<Option<Bytes>> {
        self.content.read_cached(offset, len)
    }

    /// Reads like [`Self::read_cached`], and waits for the disk.
    pub fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        self.content.read_at(offset, len)
    }
}

fn headers_of(path: &[u8], len: u64, etag: &HeaderValue, modified: SystemTime) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(6);
    headers.insert(CONTENT_TYPE, content_type_of(path));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
    // A date that has not come yet must not be announced (RFC 9110, 8.8.2.1).
    if modified <= SystemTime::now()
        && let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(modified))
    {
        headers.insert(LAST_MODIFIED, date);
    }
    headers.insert(ETAG, etag.clone());
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers
}

fn content_type_of(path: &[u8]) -> HeaderValue {
    let guess = mime_guess::from_path(Path::new(OsStr::from_bytes(path)));
    let kind = guess.first_raw().unwrap_or("application/octet-stream");
    if !kind.starts_with("text/") {
        return HeaderValue::from_static(kind);
    }
    HeaderValue::try_from(format!("{kind}; charset=utf-8"))
        .unwrap_or(HeaderValue::from_static(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn says_what_it_is() {
        let etag = HeaderValue::from_static("\"e\"");
        let headers = headers_of(b"a/page.html", 5, &etag, SystemTime::UNIX_EPOCH);
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(headers[CONTENT_LENGTH], "5");
        assert_eq!(headers[ETAG], etag);
        assert_eq!(headers[LAST_MODIFIED], "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(content_type_of(b"a.png"), "image/png");
        assert_eq!(content_type_of(b"noextension"), "application/octet-stream");
    }

    #[test]
    fn a_date_to_come_is_not_announced() {
        let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
        let headers = headers_of(b"a", 5, &HeaderValue::from_static("\"e\""), tomorrow);
        assert!(!headers.contains_key(LAST_MODIFIED));
    }
}
