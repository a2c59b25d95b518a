//! What tells one version of a file from another.

use hyper::header::HeaderValue;
use rustix::fs::Stat;
use std::time::{Duration, SystemTime};

/// The last second an HTTP date can say: the end of the year 9999.
const HTTP_DATE_SECONDS_MAX: i64 = 253_402_300_799;

/// A version of a file. The inode belongs to it, because archives and reproducible builds give many files one and the
/// same date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    len: u64,
    modified_seconds: i64,
    modified_nanoseconds: i64,
}

impl Identity {
    /// The version that a file's metadata describes.
    pub fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            len: u64::try_from(stat.st_size).unwrap_or(0),
            modified_seconds: stat.st_mtime,
            modified_nanoseconds: i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        }
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// An entity tag, strong, with its quotes.
    pub fn etag(&self) -> HeaderValue {
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

    /// When it was changed, in whole seconds and within what an HTTP date can say.
    pub fn modified(&self) -> SystemTime {
        let seconds = self.modified_seconds.clamp(0, HTTP_DATE_SECONDS_MAX);
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_no_header_can_say_are_clamped() {
        for (modified_seconds, date) in [
            (i64::MIN, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            let identity = Identity {
                device: 0,
                inode: 0,
                len: 0,
                modified_seconds,
                modified_nanoseconds: 0,
            };
            assert_eq!(httpdate::fmt_http_date(identity.modified()), date);
        }
    }
}
