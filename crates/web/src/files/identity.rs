//! What tells one version of a file from another.

use hyper::header::HeaderValue;
use rustix::fs::Stat;
use sooner_http::negotiation::Coding;
use std::time::{Duration, SystemTime};

/// The last second an HTTP date can say: the end of the year 9999.
const HTTP_DATE_SECONDS_MAX: i64 = 253_402_300_799;

/// A version of a file. The inode belongs to it, because archives and reproducible builds give many
/// files one and the same date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

    /// The device that the file is on, as stat(2) numbers it.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it was last changed before `other` was.
    pub fn is_older_than(&self, other: &Self) -> bool {
        let date = |of: &Self| (of.modified_seconds, of.modified_nanoseconds);
        date(self) < date(other)
    }

    /// An entity tag, strong, with its quotes; another one for each coding.
    pub fn etag(&self, coding: Option<Coding>) -> HeaderValue {
        let Self {
            inode,
            len,
            modified_seconds,
            modified_nanoseconds,
            ..
        } = self;
        let (dash, token) = coding.map_or(("", ""), |coding| ("-", coding.token()));
        let tag = format!(
            "\"{modified_seconds:x}.{modified_nanoseconds:x}-{len:x}-{inode:x}{dash}{token}\""
        );
        HeaderValue::try_from(tag).expect("letters, digits and quotes are visible ASCII")
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

    fn changed_at(modified_seconds: i64, modified_nanoseconds: i64) -> Identity {
        Identity {
            device: 0,
            inode: 0,
            len: 0,
            modified_seconds,
            modified_nanoseconds,
        }
    }

    #[test]
    fn dates_no_header_can_say_are_clamped() {
        for (modified_seconds, date) in [
            (i64::MIN, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            let identity = changed_at(modified_seconds, 0);
            assert_eq!(httpdate::fmt_http_date(identity.modified()), date);
        }
    }

    #[test]
    fn older_to_the_nanosecond() {
        assert!(changed_at(1, 999).is_older_than(&changed_at(2, 0)));
        assert!(changed_at(1, 1).is_older_than(&changed_at(1, 2)));
        assert!(!changed_at(1, 1).is_older_than(&changed_at(1, 1)));
    }

    #[test]
    fn each_coding_has_a_tag_of_its_own() {
        let identity = changed_at(16, 1);
        assert_eq!(identity.etag(None), "\"10.1-0-0\"");
        assert_eq!(identity.etag(Some(Coding::Br)), "\"10.1-0-0-br\"");
    }
}
