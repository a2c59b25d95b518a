//! Where requests go: an `http://` URL, resolved once before the run so that no name lookup is ever
//! measured.

use std::net::{SocketAddr, ToSocketAddrs};

/// A server and the path below which the requested objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Address to connect to.
    pub address: SocketAddr,
    /// Value of the Host field.
    pub authority: String,
    /// Path of the URL, starting with a slash.
    pub path: String,
}

/// A URL that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Not `http://host[:port][/path]`.
    #[error("{url}: not an http:// URL; give one like http://127.0.0.1:8080")]
    NotHttp {
        /// The URL as given.
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
}

impl Target {
    /// Parses `http://host[:port][/path]` and resolves the host; fails when it is another scheme or has no address.
    pub fn resolve(url: &str) -> Result<Target, TargetError> {
        let not_http = || TargetError::NotHttp { url: url.into() };
        let rest = url.strip_prefix("http://").ok_or_else(not_http)?;
        let (authority, path) = rest
            .find('/')
            .map_or((rest, "/"), |slash| rest.split_at(slash));
        let usable = !authority.is_empty() && !authority.contains(['@', '?', '#']);
        if !usable || !rest.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
            return Err(not_http());
        }
        let lookup = if has_port(authority) {
            authority.to_owned()
        } else {
            format!("{authority}:80")
        };
        let unknown = |reason: String| TargetError::Unknown {
            url: url.into(),
            authority: lookup.clone(),
            reason,
        };
        let mut addresses = lookup
            .to_socket_addrs()
            .map_err(|error| unknown(error.to_string()))?;
        let address = addresses
            .next()
            .ok_or_else(|| unknown("no address".into()))?;
        Ok(Target {
            address,
            authority: authority.into(),
            path: path.into(),
        })
    }

    /// The bytes of a GET for `object_path` (starting with a slash) below this target's path.
    pub fn request(&self, object_path: &str, close: bool) -> Vec<u8> {
        get(&self.path_of(object_path), &self.authority, close)
    }

    /// The path of `object_path` (starting with a slash) below this target's path.
    pub fn path_of(&self, object_path: &str) -> String {
        format!("{}{object_path}", self.path.trim_end_matches('/'))
    }

    /// The bytes of a GET for this target's own path on a connection that stays open.
    pub fn own_request(&self) -> Vec<u8> {
        get(&self.path, &self.authority, false)
    }
}

fn get(path: &str, authority: &str, close: bool) -> Vec<u8> {
    let connection = if close { "connection: close\r\n" } else { "" };
    format!(
        "GET {path} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: sooner-load\r\n{connection}\r\n"
    )
    .into_bytes()
}

fn has_port(authority: &str) -> bool {
    let after_ipv6 = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    authority[after_ipv6..].contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        let target = Target::resolve("http://127.0.0.1:8080/a/b/").unwrap();
        assert_eq!(target.address, "127.0.0.1:8080".parse().unwrap());
        assert_eq!(
            (target.authority.as_str(), target.path.as_str()),
            ("127.0.0.1:8080", "/a/b/")
        );
        let bare = Target::resolve("http://[::1]").unwrap();
        assert_eq!(
            (bare.address, bare.path.as_str()),
            ("[::1]:80".parse().unwrap(), "/")
        );
    }

    #[test]
    fn requests_are_plain_gets() {
        let target = Target::resolve("http://127.0.0.1:8080/base/").unwrap();
        let close = "GET /base/objects/1.html HTTP/1.1\r\nhost: 127.0.0.1:8080\r\nuser-agent: sooner-load\r\nconnection: close\r\n\r\n";
        assert_eq!(target.request("/objects/1.html", true), close.as_bytes());
        let own = "GET /base/ HTTP/1.1\r\nhost: 127.0.0.1:8080\r\nuser-agent: sooner-load\r\n\r\n";
        assert_eq!(target.own_request(), own.as_bytes());
    }

    #[test]
    fn what_is_not_http_says_what_would_be_right() {
        for url in [
            "https://127.0.0.1/",
            "127.0.0.1:8080",
            "http://",
            "http://user@host/",
            "http://127.0.0.1/a b",
            "http://127.0.0.1/\r\nx:",
        ] {
            let message = Target::resolve(url).unwrap_err().to_string();
            assert!(message.contains("http://127.0.0.1:8080"), "{message}");
        }
        assert!(
            Target::resolve("http://127.0.0.1:99999/")
                .unwrap_err()
                .to_string()
                .contains("IP address")
        );
    }
}
