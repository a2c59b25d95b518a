//! How client and server speak with each other.

/// Which HTTP, and within what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// HTTP/1.1 in clear text.
    Clear1,
    /// HTTP/1.1 over TLS.
    Tls1,
    /// HTTP/2 in clear text, with prior knowledge.
    Clear2,
    /// HTTP/2 over TLS.
    Tls2,
}

impl Way {
    pub const ALL: &[Self] = &[Self::Clear1, Self::Tls1, Self::Clear2, Self::Tls2];
    pub const HTTP1: &[Self] = &[Self::Clear1, Self::Tls1];
    pub const HTTP2: &[Self] = &[Self::Clear2, Self::Tls2];

    pub fn is_tls(self) -> bool {
        matches!(self, Self::Tls1 | Self::Tls2)
    }

    /// As the access log calls it.
    pub fn protocol(self) -> &'static str {
        match self {
            Self::Clear1 | Self::Tls1 => "HTTP/1.1",
            Self::Clear2 | Self::Tls2 => "HTTP/2",
        }
    }
}
