//! One version of one file, with everything a response says about it worked out once.

use super::root::FileError;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, LAST_MODIFIED,
};
use rustix::fs::Stat;
use rustix::io::{Errno, ReadWriteFlags};
use std::ffi::OsStr;
use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The last second an HTTP date can say: the end of the year 9999.
const HTTP_DATE_SECONDS_MAX: i64 = 253_402_300_799;

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

/// What tells one version of a file from another. The inode too, because archives and reproducible builds give many
/// files one and the same date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    len: u64,
    modified_seconds: i64,
    modified_nanoseconds: i64,
}

#[derive(Debug)]
enum Content {
    Memory(Bytes),
    Disk(OwnedFd),
}

impl Identity {
    /// The identity in a file's metadata.
    pub fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            len: u64::try_from(stat.st_size).unwrap_or(0),
            modified_seconds: stat.st_mtime,
            modified_nanoseconds: i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        }
    }

    fn etag(&self) -> HeaderValue {
        let Self {
            inode,
            len,
            modified_seconds,
            modified_nanoseconds,
            ..
        } = self;
        let tag = format!("\"{modified_seconds:x}.{modified_nanoseconds:x}-{len:x}-{inode:x}\"");
        HeaderValue::try_from(tag).expect("hexadecimal digits and quotes are visible ASCII")
    }

    fn modified(&self) -> SystemTime {
        let seconds = self.modified_seconds.clamp(0, HTTP_DATE_SECONDS_MAX);
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs())
    }
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
        let (etag, modified) = (identity.etag(), identity.modified());
        let headers = headers_of(path, &identity, &etag, modified);
        let content = match read_whole(&descriptor, &identity, memory_bytes_max)? {
            Some(bytes) => Content::Memory(bytes),
            None => Content::Disk(descriptor),
        };
        Ok(Self {
            len: identity.len,
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
        let Content::Disk(descriptor) = &self.content else {
            return self.read_at(offset, len).map(Some);
        };
        let mut buffer = vec![0; len];
        let nowait = ReadWriteFlags::NOWAIT;
        let read = retried(|| {
            rustix::io::preadv2(
                descriptor,
                &mut [IoSliceMut::new(&mut buffer)],
                offset,
                nowait,
            )
        });
        match read {
            Ok(0) => Err(has_shrunk()),
            Ok(count) => {
                buffer.truncate(count);
                Ok(Some(buffer.into()))
            }
            Err(Errno::AGAIN) => Ok(None),
            // File systems that cannot tell are mostly those that live in memory.
            Err(Errno::OPNOTSUPP) => self.read_at(offset, len).map(Some),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads like [`Self::read_cached`], and waits for the disk.
    pub fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let descriptor = match &self.content {
            Content::Disk(descriptor) => descriptor,
            Content::Memory(bytes) => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                return Ok(bytes.slice(start..start.saturating_add(len).min(bytes.len())));
            }
        };
        let mut buffer = Vec::with_capacity(len);
        match retried(|| {
            rustix::io::pread(
                descriptor,
                rustix::buffer::spare_capacity(&mut buffer),
                offset,
            )
        })? {
            0 => Err(has_shrunk()),
            _ => Ok(buffer.into()),
        }
    }
}

fn has_shrunk() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the file has shrunk while it was being sent",
    )
}

fn headers_of(
    path: &[u8],
    identity: &Identity,
    etag: &HeaderValue,
    modified: SystemTime,
) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(6);
    headers.insert(CONTENT_TYPE, content_type_of(path));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(identity.len));
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
    let kind = mime_guess::from_path(Path::new(OsStr::from_bytes(path)))
        .first_raw()
        .unwrap_or("application/octet-stream");
    if !kind.starts_with("text/") {
        return HeaderValue::from_static(kind);
    }
    HeaderValue::try_from(format!("{kind}; charset=utf-8"))
        .unwrap_or(HeaderValue::from_static(kind))
}

/// The content, or nothing when it is too long to keep or has changed while it was read.
fn read_whole(
    descriptor: &OwnedFd,
    identity: &Identity,
    bytes_max: u64,
) -> Result<Option<Bytes>, FileError> {
    if identity.len > bytes_max {
        return Ok(None);
    }
    let len = identity.len as usize;
    let mut content = Vec::with_capacity(len);
    while content.len() < len {
        let offset = content.len() as u64;
        if retried(|| {
            rustix::io::pread(
                descriptor,
                rustix::buffer::spare_capacity(&mut content),
                offset,
            )
        })? == 0
        {
            return Ok(None);
        }
    }
    let is_unchanged =
        content.len() == len && Identity::of(&rustix::fs::fstat(descriptor)?) == *identity;
    Ok(is_unchanged.then(|| content.into()))
}

fn retried<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path, memory_bytes_max: u64) -> File {
        let descriptor = OwnedFd::from(std::fs::File::open(path).unwrap());
        let stat = rustix::fs::fstat(&descriptor).unwrap();
        File::new(
            path.as_os_str().as_bytes(),
            descriptor,
            &stat,
            memory_bytes_max,
        )
        .unwrap()
    }

    #[test]
    fn says_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        std::fs::write(&path, "hello").unwrap();
        let file = open(&path, 0);
        assert_eq!(file.headers[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(file.headers[CONTENT_LENGTH], "5");
        assert_eq!(file.headers[ETAG], file.etag);
        assert!(file.headers.contains_key(LAST_MODIFIED));
        assert_eq!(content_type_of(b"a.png"), "image/png");
        assert_eq!(content_type_of(b"noextension"), "application/octet-stream");
    }

    #[test]
    fn reads_from_memory_and_from_disk_alike() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "0123456789").unwrap();
        for (memory_bytes_max, in_memory) in [(10, true), (9, false)] {
            let file = open(&path, memory_bytes_max);
            assert_eq!(file.in_memory().is_some(), in_memory);
            assert_eq!(file.read_at(3, 4).unwrap(), "3456");
            assert!(
                file.read_cached(3, 4)
                    .unwrap()
                    .is_none_or(|bytes| bytes == "3456")
            );
            assert_eq!(file.read_at(8, 64).unwrap(), "89");
        }
    }

    #[test]
    fn a_shrunken_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "0123456789").unwrap();
        let file = open(&path, 0);
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(4)
            .unwrap();
        assert_eq!(file.read_at(0, 10).unwrap(), "0123");
        assert_eq!(
            file.read_at(4, 6).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn dates_no_header_can_say_are_clamped() {
        let identity = |modified_seconds| Identity {
            device: 0,
            inode: 0,
            len: 0,
            modified_seconds,
            modified_nanoseconds: 0,
        };
        for (seconds, has_date) in [(-5, true), (i64::MIN, true), (i64::MAX, false)] {
            let identity = identity(seconds);
            let headers = headers_of(b"a", &identity, &identity.etag(), identity.modified());
            assert_eq!(headers.contains_key(LAST_MODIFIED), has_date, "{seconds}");
        }
    }
}
