//! Content codings of files that were compressed beforehand (RFC 9110, 8.4.1).

use serde::Deserialize;

/// A content coding that every browser of today reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coding {
    /// Zstandard (RFC 8878); `.zst`.
    Zstd,
    /// Brotli (RFC 7932); `.br`.
    Br,
    /// gzip (RFC 1952); `.gz`.
    Gzip,
}

impl Coding {
    /// Every coding there is.
    pub const ALL: [Self; 3] = [Self::Zstd, Self::Br, Self::Gzip];

    /// Its name in `Accept-Encoding` and `Content-Encoding`.
    pub fn token(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Br => "br",
            Self::Gzip => "gzip",
        }
    }

    /// What is added to the name of a file for the name of its compressed form.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Zstd => ".zst",
            Self::Br => ".br",
            Self::Gzip => ".gz",
        }
    }
}
