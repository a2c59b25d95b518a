//! The address and protocol of an upstream's server, as `servers` names it.

use std::fmt;
use std::path::PathBuf;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A name or an address, and a port.
    Tcp {
        /// Without the brackets of an IPv6 address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket in the file system.
    Unix(PathBuf),
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointProtocol {
    /// HTTP/1.1 in clear text.
    Http1,
    /// HTTP/2 in clear text, without asking first (RFC 9113, 3.3).
    Http2,
    /// TLS, and in it what both sides like best.
    Tls,
    /// FastCGI.
    FastCgi,
}

/// A server of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it is.
    pub address: Address,
    /// What it speaks.
    pub protocol: EndpointProtocol,
    /// Its name in a `Host` header.
    pub authority: String,
}

/// Text that names no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No scheme, or one that is not spoken here.
    #[error(
        "`{0}` is not a server: write http://HOST:PORT, https://HOST:PORT, h2c://HOST:PORT, unix:/PATH, h2c+unix:/PATH, fastcgi://HOST:PORT or fastcgi+unix:/PATH"
    )]
    Scheme(String),
    /// A path, a query or a user after the port.
    #[error("`{0}` has more than a host and a port; paths belong to [[route]]")]
    TooMuch(String),
    /// No host, or one with characters no host has.
    #[error("`{0}` has no valid host; write for example http://127.0.0.1:3000")]
    Host(String),
    /// A port that is none.
    #[error("`{0}` has no valid port: it must be between 1 and 65535")]
    Port(String),
    /// A path that depends on where the server was started.
    #[error("the path of the socket in `{0}` must begin with /")]
    RelativePath(String),
}

impl Endpoint {
    /// Reads one entry of `servers`.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        if let Some(path) = text.strip_prefix("h2c+unix:") {
            return unix(text, path, EndpointProtocol::Http2);
        }
        if let Some(path) = text.strip_prefix("fastcgi+unix:") {
            return unix(text, path, EndpointProtocol::FastCgi);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return unix(text, path, EndpointProtocol::Http1);
        }
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| EndpointError::Scheme(text.into()))?;
        let (protocol, default_port) = match scheme {
            "http" => (EndpointProtocol::Http1, 80),
            "h2c" => (EndpointProtocol::Http2, 80),
            "https" => (EndpointProtocol::Tls, 443),
            "fastcgi" => (EndpointProtocol::FastCgi, 9000),
            _ => return Err(EndpointError::Scheme(text.into())),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#', '@']) {
            return Err(EndpointError::TooMuch(text.into()));
        }
        let (host, port) = split_port(authority);
        let port = match port {
            None => default_port,
            Some(port) => match port.parse() {
                Ok(port) if port != 0 => port,
                _ => return Err(EndpointError::Port(text.into())),
            },
        };
        let host = bare_host(host).ok_or_else(|| EndpointError::Host(text.into()))?;
        Ok(Self {
            address: Address::Tcp {
                host: host.into(),
                port,
            },
            protocol,
            authority: authority.into(),
        })
    }
}

fn unix(text: &str, path: &str, protocol: EndpointProtocol) -> Result<Endpoint, EndpointError> {
    let path = path.strip_prefix("//").unwrap_or(path);
    if !path.starts_with('/') {
        return Err(EndpointError::RelativePath(text.into()));
    }
    Ok(Endpoint {
        address: Address::Unix(path.into()),
        protocol,
        // A socket has no name of its own; this is what others send as well.
        authority: "localhost".into(),
    })
}

/// Splits at the colon of a port, which an IPv6 address in brackets has inside as well.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn bare_host(host: &str) -> Option<&str> {
    if let Some(bracketed) = host.strip_prefix('[') {
        let address = bracketed.strip_suffix(']')?;
        return address
            .parse::<std::net::Ipv6Addr>()
            .is_ok()
            .then_some(address);
    }
    let is_name = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
    is_name.then_some(host)
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.address, self.protocol) {
            (Address::Unix(path), EndpointProtocol::Http2) => {
                write!(f, "h2c+unix:{}", path.display())
            }
            (Address::Unix(path), EndpointProtocol::FastCgi) => {
                write!(f, "fastcgi+unix:{}", path.display())
            }
            (Address::Unix(path), _) => write!(f, "unix:{}", path.display()),
            (Address::Tcp { .. }, EndpointProtocol::Http1) => {
                write!(f, "http://{}", self.authority)
            }
            (Address::Tcp { .. }, EndpointProtocol::Http2) => write!(f, "h2c://{}", self.authority),
            (Address::Tcp { .. }, EndpointProtocol::Tls) => write!(f, "https://{}", self.authority),
            (Address::Tcp { .. }, EndpointProtocol::FastCgi) => {
                write!(f, "fastcgi://{}", self.authority)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> (String, u16, EndpointProtocol) {
        let endpoint = Endpoint::parse(text).unwrap();
        match endpoint.address {
            Address::Tcp { host, port } => (host, port, endpoint.protocol),
            Address::Unix(_) => panic!("{text} is a path"),
        }
    }

    #[test]
    fn names_addresses_and_sockets() {
        assert_eq!(
            tcp("http://127.0.0.1:3000"),
            ("127.0.0.1".into(), 3000, EndpointProtocol::Http1)
        );
        assert_eq!(
            tcp("http://app/"),
            ("app".into(), 80, EndpointProtocol::Http1)
        );
        assert_eq!(
            tcp("https://[::1]"),
            ("::1".into(), 443, EndpointProtocol::Tls)
        );
        assert_eq!(
            tcp("h2c://[::1]:81"),
            ("::1".into(), 81, EndpointProtocol::Http2)
        );
        let socket = Endpoint::parse("unix:/run/app.sock").unwrap();
        assert_eq!(socket.address, Address::Unix("/run/app.sock".into()));
        assert_eq!(Endpoint::parse("unix:///run/app.sock"), Ok(socket));
    }

    #[test]
    fn what_is_written_back_reads_the_same() {
        for text in [
            "http://a:1",
            "https://[::1]:8443",
            "h2c://a.b-c",
            "unix:/a",
            "h2c+unix:/a/b",
            "fastcgi://127.0.0.1:9000",
            "fastcgi+unix:/run/php/fpm.sock",
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for text in [
            "",
            "app:80",
            "ftp://a",
            "http://",
            "http://:80",
            "http://a:0",
            "http://a:x",
            "http://a:70000",
            "http://a/b",
            "http://u@a",
            "http://a?b",
            "http://[::1",
            "http://[a]",
            "unix:run/app.sock",
            "http://a b",
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert_eq!(error.to_string().lines().count(), 1, "{text}");
        }
    }
}
