//! What the upstream is told of the client: `X-Forwarded-*` and `Forwarded` (RFC 7239).
//!
//! Who is in a trusted network (another proxy) is believed and added to. What anybody else says of himself is replaced: the upstream
//! will take these headers for our word.

use http::HeaderMap;
use http::header::{FORWARDED, HeaderName, HeaderValue};
use std::net::IpAddr;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
const X_CLIENT_SUBJECT: HeaderName = HeaderName::from_static("x-client-subject");

/// Names under which upstreams may look for the client, and which are therefore nobody's to say but a trusted proxy's: these, and all
/// that begin with [`X_FORWARDED`]. Ours are set anew; the others go.
const OF_THE_CLIENT: [&str; 4] = [
    "forwarded",
    "x-client-subject",
    "x-real-ip",
    "true-client-ip",
];

/// Every proxy makes up some more of these (`-Ssl`, `-User`, `-Client-Cert`).
const X_FORWARDED: &str = "x-forwarded-";

/// Who asks, as far as the upstream is to know.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// The client's address.
    pub address: IpAddr,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host the client asked for, with its port.
    pub host: Option<&'a str>,
    /// Whether what it says of others is believed.
    pub is_trusted: bool,
    /// The path of the route, where the upstream does not get it.
    pub prefix: Option<&'a str>,
    /// The subject of the client's certificate.
    pub subject: Option<&'a str>,
}

/// Whether `name`, or what a program that knows no difference between `-` and `_` takes it for, says who the client is.
pub(super) fn speaks_of_the_client(name: &HeaderName) -> bool {
    let name = name.as_str();
    if name.contains('_') {
        is_of_the_client(&name.replace('_', "-"))
    } else {
        is_of_the_client(name)
    }
}

fn is_of_the_client(name: &str) -> bool {
    name.starts_with(X_FORWARDED) || OF_THE_CLIENT.contains(&name)
}

/// Whether a trusted proxy may say `name`. A certificate is nobody's to speak of but who has seen it.
fn is_for_the_trusted(name: &HeaderName) -> bool {
    is_of_the_client(name.as_str()) && *name != X_CLIENT_SUBJECT
}

/// Tells `headers` of `client`. `said` is what the client's request had.
pub(super) fn tell(headers: &mut HeaderMap, said: &HeaderMap, client: Client<'_>) {
    if client.is_trusted {
        for (name, value) in said.iter().filter(|(name, _)| is_for_the_trusted(name)) {
            headers.append(name, value.clone());
        }
    }
    let address = client.address.to_canonical();
    add(headers, X_FORWARDED_FOR, address.to_string());
    add(headers, FORWARDED, element(address, client));
    set_if_unsaid(headers, X_FORWARDED_PROTO, Some(client.scheme));
    set_if_unsaid(headers, X_FORWARDED_HOST, client.host);
    set_if_unsaid(headers, X_FORWARDED_PREFIX, client.prefix);
    set_if_unsaid(headers, X_CLIENT_SUBJECT, client.subject);
}

/// Adds to a list, in one line.
fn add(headers: &mut HeaderMap, name: HeaderName, element: String) {
    let mut list: Vec<u8> = Vec::with_capacity(element.len());
    for value in headers.get_all(&name) {
        list.extend_from_slice(value.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(element.as_bytes());
    if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(list)) {
        headers.insert(name, value);
    }
}

fn set_if_unsaid(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    let Some(value) = value else { return };
    if !headers.contains_key(&name)
        && let Ok(value) = HeaderValue::from_str(value)
    {
        headers.insert(name, value);
    }
}

/// One element of `Forwarded`: values with a colon are quoted, IPv6 addresses stand in brackets (RFC 7239, 6).
fn element(address: IpAddr, client: Client<'_>) -> String {
    let mut element = match address {
        IpAddr::V4(address) => format!("for={address}"),
        IpAddr::V6(address) => format!("for=\"[{address}]\""),
    };
    if let Some(host) = client.host {
        // A host of ours has no quote in it.
        element.push_str(&format!(";host=\"{host}\""));
    }
    element.push_str(";proto=");
    element.push_str(client.scheme);
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(is_trusted: bool) -> Client<'static> {
        Client {
            address: "192.0.2.7".parse().unwrap(),
            scheme: "https",
            host: Some("example.org:8443"),
            is_trusted,
            prefix: None,
            subject: None,
        }
    }

    fn said() -> HeaderMap {
        let mut said = HeaderMap::new();
        said.insert(X_FORWARDED_FOR, HeaderValue::from_static("198.51.100.1"));
        said.append(X_FORWARDED_FOR, HeaderValue::from_static("198.51.100.2"));
        said.insert(X_FORWARDED_PROTO, HeaderValue::from_static("http"));
        said.insert(FORWARDED, HeaderValue::from_static("for=198.51.100.1"));
        said
    }

    #[test]
    fn a_stranger_says_nothing_of_himself() {
        let mut headers = HeaderMap::new();
        tell(&mut headers, &said(), client(false));
        assert_eq!(headers[X_FORWARDED_FOR], "192.0.2.7");
        assert_eq!(headers[X_FORWARDED_PROTO], "https");
        assert_eq!(headers[X_FORWARDED_HOST], "example.org:8443");
        assert_eq!(
            headers[FORWARDED],
            "for=192.0.2.7;host=\"example.org:8443\";proto=https"
        );
    }

    #[test]
    fn a_trusted_proxy_is_added_to() {
        let mut headers = HeaderMap::new();
        tell(&mut headers, &said(), client(true));
        assert_eq!(
            headers[X_FORWARDED_FOR],
            "198.51.100.1, 198.51.100.2, 192.0.2.7"
        );
        assert_eq!(headers[X_FORWARDED_PROTO], "http");
        assert_eq!(
            headers[FORWARDED],
            "for=198.51.100.1, for=192.0.2.7;host=\"example.org:8443\";proto=https"
        );
    }

    #[test]
    fn an_address_of_six_is_quoted_and_one_of_four_is_one_of_four() {
        let mut six = client(false);
        six.host = None;
        six.address = "2001:db8::1".parse().unwrap();
        assert_eq!(
            element(six.address, six),
            "for=\"[2001:db8::1]\";proto=https"
        );
        let mut headers = HeaderMap::new();
        six.address = "::ffff:192.0.2.7".parse().unwrap();
        tell(&mut headers, &HeaderMap::new(), six);
        assert_eq!(headers[X_FORWARDED_FOR], "192.0.2.7");
    }

    #[test]
    fn an_underscore_is_no_disguise() {
        assert!(speaks_of_the_client(&HeaderName::from_static(
            "x_forwarded-for"
        )));
        assert!(speaks_of_the_client(&HeaderName::from_static("x-real-ip")));
        assert!(!speaks_of_the_client(&HeaderName::from_static("x_mine")));
    }

    #[test]
    fn all_of_x_forwarded_is_the_trusted_ones_to_say() {
        for name in [
            "x-forwarded-user",
            "x-forwarded-ssl",
            "x_forwarded-client_cert",
            "x-forwarded_for",
        ] {
            assert!(speaks_of_the_client(&HeaderName::from_static(name)));
        }
        assert!(!speaks_of_the_client(&HeaderName::from_static(
            "x-forwarded"
        )));
        let mut said = said();
        for (name, value) in [
            ("x-forwarded-user", "alice"),
            ("x_forwarded_user", "mallory"),
            ("x-mine", "1"),
        ] {
            said.insert(name, HeaderValue::from_static(value));
        }
        let mut headers = HeaderMap::new();
        tell(&mut headers, &said, client(false));
        assert!(!headers.contains_key("x-forwarded-user"));
        tell(&mut headers, &said, client(true));
        assert_eq!(headers["x-forwarded-user"], "alice");
        assert!(!headers.contains_key("x_forwarded_user") && !headers.contains_key("x-mine"));
    }

    #[test]
    fn a_subject_is_what_was_seen_here_and_nothing_else() {
        let mut said = HeaderMap::new();
        said.insert(X_CLIENT_SUBJECT, HeaderValue::from_static("CN=mallory"));
        for is_trusted in [false, true] {
            let mut headers = HeaderMap::new();
            tell(&mut headers, &said, client(is_trusted));
            assert!(!headers.contains_key(X_CLIENT_SUBJECT));
            let mut seen = client(is_trusted);
            seen.subject = Some("CN=alice");
            tell(&mut headers, &said, seen);
            assert_eq!(headers[X_CLIENT_SUBJECT], "CN=alice");
        }
    }
}
