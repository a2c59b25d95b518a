//! Where requests go: an `http://` or `https://` URL, resolved once before the run so that no name
//! lookup is ever measured.

use crate::tls::{TlsClient, TlsError, TlsOptions};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How requests name this generator.
pub const USER_AGENT: &str = "sooner-load";
/// How long one of several addresses may take to accept a connection.
const CONNECT_WAIT: Duration = Duration::from_secs(2);

/// Where a connection leads, and how it is secured.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Address to connect to.
    pub address: SocketAddr,
    /// TLS; `None`: clear text.
    pub tls: Option<TlsClient>,
}

/// A server and the path below which the requested objects are.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where to connect to.
    pub endpoint: Endpoint,
    /// Value of the Host field, or of `:authority`.
    pub authority: String,
    /// Path of the URL, starting with a slash.
    pub path: String,
}

/// A URL that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Not `http://host[:port][/path]`, nor `https://`.
    #[error("{url}: not an http:// or https:// URL; give one like http://127.0.0.1:8080")]
    NotHttp {
        /// The URL as given.
        url: String,
    },
    /// A user and a password before the host.
    #[error(
        "{url}: user and password in a URL are not sent; leave them out, and give --header 'authorization: Basic ...', with USER:PASSWORD in base64"
    )]
    Credentials {
        /// The URL without them.
        url: String,
    },
    /// The host name has no address.
    #[error(
        "{url}: cannot find the address of {authority} ({reason}); give a host that resolves, or an IP address"
    )]
    Unknown {
        /// The URL as given.
        url: String,
        /// Host and port as looked up.
        authority: String,
        /// The resolver's words.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error("{url}: {error}")]
    Tls {
        /// The URL as given.
        url: String,
        /// What is wrong.
        error: TlsError,
    },
}

impl From<SocketAddr> for Endpoint {
    /// In clear text.
    fn from(address: SocketAddr) -> Endpoint {
        Endpoint { address, tls: None }
    }
}

impl Target {
    /// Parses `http[s]://host[:port][/path]` and resolves the host; fails when it is another
    /// scheme, has no address, or TLS cannot be set up as `tls` says.
    pub fn resolve(url: &str, tls: &TlsOptions) -> Result<Target, TargetError> {
        let shown = without_user(url);
        let not_http = || TargetError::NotHttp { url: shown.clone() };
        let (scheme, rest) = url.split_once("://").ok_or_else(not_http)?;
        let is_secured = scheme.eq_ignore_ascii_case("https");
        if !is_secured && !scheme.eq_ignore_ascii_case("http") {
            return Err(not_http());
        }
        let (authority, path) = rest.split_at(authority_end(rest));
        let path = from_slash(path);
        if authority.contains('@') {
            return Err(TargetError::Credentials { url: shown });
        }
        let usable = !authority.is_empty() && !authority.contains(['?', '#']);
        if !usable || http::Uri::try_from(url).is_err() || path.contains('#') || !path.is_ascii() {
            return Err(not_http());
        }
        let (host, port) = host_and_port(authority);
        let lookup = match port {
            Some(_) => authority.to_owned(),
            None => format!("{authority}:{}", if is_secured { 443 } else { 80 }),
        };
        let unknown = |reason: String| TargetError::Unknown {
            url: url.into(),
            authority: lookup.clone(),
            reason,
        };
        let addresses = lookup
            .to_socket_addrs()
            .map_err(|error| unknown(error.to_string()))?;
        let address = reachable(&addresses.collect::<Vec<_>>())
            .ok_or_else(|| unknown("no address".into()))?;
        // A file that is none is an error also where nothing is secured.
        let secured = match is_secured {
            true => TlsClient::new(host, tls).map(Some),
            false => tls.check().map(|()| None),
        };
        let tls = secured.map_err(|error| TargetError::Tls {
            url: url.into(),
            error,
        })?;
        Ok(Target {
            endpoint: Endpoint { address, tls },
            authority: authority.into(),
            path,
        })
    }

    /// The path of `object_path` (starting with a slash) below this target's path.
    pub fn path_of(&self, object_path: &str) -> String {
        format!("{}{object_path}", self.path.trim_end_matches('/'))
    }

    /// The URL of `path`, which starts with a slash.
    pub fn url_of(&self, path: &str) -> String {
        let scheme = match self.endpoint.tls {
            Some(_) => "https",
            None => "http",
        };
        format!("{scheme}://{}{path}", self.authority)
    }

    /// The HTTP/1.1 bytes of a GET for `path` (of the server, not of this target).
    pub fn http1_request(&self, path: &str, close: bool) -> Vec<u8> {
        let connection = if close { "connection: close\r\n" } else { "" };
        format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nuser-agent: {USER_AGENT}\r\n{connection}\r\n",
            self.authority
        )
        .into_bytes()
    }

    /// The HTTP/2 head of a GET for `path`; fails when the URL is none that HTTP allows.
    pub fn http2_request(&self, path: &str) -> Result<http::Request<()>, http::Error> {
        http::Request::get(self.url_of(path))
            .version(http::Version::HTTP_2)
            .header(http::header::USER_AGENT, USER_AGENT)
            .body(())
    }
}

/// Where what names the server ends, in a URL without its scheme.
pub fn authority_end(url: &str) -> usize {
    url.find(['/', '?']).unwrap_or(url.len())
}

/// A URL, or a line with one, without the user and the password before its host.
pub fn without_user(text: &str) -> String {
    let begin = text.find("://").map_or(0, |place| place + 3);
    let end = begin + authority_end(&text[begin..]);
    match text[begin..end].rfind('@') {
        Some(at) if begin > 0 => format!("{}{}", &text[..begin], &text[begin + at + 1..]),
        _ => text.into(),
    }
}

/// What is behind the authority, as requests say it: a path begins it, and be it `/`.
pub fn from_slash(path: &str) -> String {
    match path.starts_with('/') {
        true => path.into(),
        false => format!("/{path}"),
    }
}

/// A path with a query as browsers send it: characters that are not ASCII, and those that end a
/// word or a text, are encoded by their bytes. What is encoded already stays.
pub fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b' ' | b'"' | b'<' | b'>' | 0x80.. => out.push_str(&format!("%{byte:02X}")),
            _ => out.push(char::from(byte)),
        }
    }
    out
}

/// The first of several addresses that takes a connection, as `localhost` is two; else the first.
fn reachable(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let takes = |address: &&SocketAddr| TcpStream::connect_timeout(address, CONNECT_WAIT).is_ok();
    match addresses {
        [] | [_] => addresses.first().copied(),
        _ => {
            let taking = addresses.iter().find(takes);
            taking.or(addresses.first()).copied()
        }
    }
}

/// The host without the brackets of an IPv6 address, and the port if there is one.
fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        // The last colon of an address in brackets that has no port is inside them.
        Some((host, port)) if !port.ends_with(']') => (without_brackets(host), Some(port)),
        _ => (without_brackets(authority), None),
    }
}

fn without_brackets(host: &str) -> &str {
    let inside = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inside.unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(url: &str) -> Result<Target, TargetError> {
        let options = TlsOptions {
            insecure: true,
            ..TlsOptions::default()
        };
        Target::resolve(url, &options)
    }

    #[test]
    fn parts_of_a_url() {
        let target = resolve("http://127.0.0.1:8080/a/b/").unwrap();
        assert_eq!(target.endpoint.address, "127.0.0.1:8080".parse().unwrap());
        assert!(target.endpoint.tls.is_none());
        assert_eq!(
            (target.authority.as_str(), target.path.as_str()),
            ("127.0.0.1:8080", "/a/b/")
        );
        let bare = resolve("http://[::1]").unwrap();
        assert_eq!(
            (bare.endpoint.address, bare.path.as_str()),
            ("[::1]:80".parse().unwrap(), "/")
        );
        let query = resolve("HTTP://127.0.0.1:9?x=1/2").unwrap();
        assert_eq!(
            (query.authority.as_str(), query.path.as_str()),
            ("127.0.0.1:9", "/?x=1/2")
        );
        assert!(resolve("HTTPS://127.0.0.1").unwrap().endpoint.tls.is_some());
        let secured = resolve("https://[::1]/x").unwrap();
        assert_eq!(secured.endpoint.address, "[::1]:443".parse().unwrap());
        assert!(secured.endpoint.tls.is_some());
        assert_eq!(secured.url_of("/x"), "https://[::1]/x");
    }

    #[test]
    fn a_file_without_certificates_is_one_in_clear_text_too() {
        let options = TlsOptions {
            authorities: Some("/no/such/file.pem".into()),
            ..TlsOptions::default()
        };
        let message = Target::resolve("http://127.0.0.1:8080/", &options);
        let message = message.unwrap_err().to_string();
        assert!(message.contains("/no/such/file.pem"), "{message}");
    }

    #[test]
    fn requests_are_plain_gets() {
        let target = resolve("http://127.0.0.1:8080/base/").unwrap();
        let path = target.path_of("/objects/1.html");
        let close = "GET /base/objects/1.html HTTP/1.1\r\nhost: 127.0.0.1:8080\r\nuser-agent: sooner-load\r\nconnection: close\r\n\r\n";
        assert_eq!(target.http1_request(&path, true), close.as_bytes());
        let own = "GET /base/ HTTP/1.1\r\nhost: 127.0.0.1:8080\r\nuser-agent: sooner-load\r\n\r\n";
        assert_eq!(target.http1_request(&target.path, false), own.as_bytes());
        let http2 = target.http2_request(&path).unwrap();
        assert_eq!(http2.uri(), "http://127.0.0.1:8080/base/objects/1.html");
    }

    #[test]
    fn what_is_not_http_says_what_would_be_right() {
        for url in [
            "ftp://127.0.0.1/",
            "127.0.0.1:8080",
            "http://",
            "https://",
            "http://127.0.0.1/a b",
            "http://127.0.0.1/?q=ü",
            "http://127.0.0.1/\r\nx:",
        ] {
            let message = resolve(url).unwrap_err().to_string();
            assert!(message.contains("http://127.0.0.1:8080"), "{message}");
        }
        let secret = resolve("http://user:geheim@127.0.0.1:8080/x@y").unwrap_err();
        let message = secret.to_string();
        assert!(
            message.contains("http://127.0.0.1:8080/x@y: user and"),
            "{message}"
        );
        assert!(message.contains("authorization: Basic"), "{message}");
        assert!(!message.contains("geheim"), "{message}");
        let other = resolve("ftp://user:geheim@127.0.0.1/").unwrap_err();
        assert!(!other.to_string().contains("geheim"), "{other}");
        assert!(
            resolve("http://127.0.0.1:99999/")
                .unwrap_err()
                .to_string()
                .contains("IP address")
        );
    }
}
