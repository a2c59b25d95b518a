//! What the upstream is told of the client: `X-Forwarded-*` and `Forwarded` (RFC 7239).
//!
//! A client in a trusted network (another proxy) is believed and added to. What other clients say
//! of themselves is replaced: the upstream will take these headers for our word.

use super::request::Client;
use http::HeaderMap;
use http::header::{FORWARDED, HeaderName, HeaderValue};
use std::net::{IpAddr, SocketAddr};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const X_CLIENT_SUBJECT: HeaderName = HeaderName::from_static("x-client-subject");

/// Names under which upstreams may look for the client, and which therefore only a trusted proxy
/// may set: these, and all that begin with [`X_FORWARDED`]. Ours are set anew; the others go.
const CLIENT_HEADERS: [&str; 4] = [
    "forwarded",
    "x-client-subject",
    "x-real-ip",
    "true-client-ip",
];

/// Every proxy makes up some more of these (`-Ssl`, `-User`, `-Client-Cert`).
const X_FORWARDED: &str = "x-forwarded-";

/// Whether `name`, or what a program that knows no difference between `-` and `_` takes it for,
/// says who the client is.
pub(super) fn describes_client(name: &HeaderName) -> bool {
    let name = name.as_str();
    if name.contains('_') {
        is_client_header(&name.replace('_', "-"))
    } else {
        is_client_header(name)
    }
}

fn is_client_header(name: &str) -> bool {
    name.starts_with(X_FORWARDED) || CLIENT_HEADERS.contains(&name)
}

/// Whether a trusted proxy may say `name`. The subject of a certificate is set only by the proxy
/// that has seen the certificate.
fn is_believed_of_trusted(name: &HeaderName) -> bool {
    is_client_header(name.as_str()) && *name != X_CLIENT_SUBJECT
}

/// The client that trusted proxies name: of `X-Forwarded-For`, where each adds at the end, the last
/// address that is not trusted itself. `sender`, where that is not trusted.
pub fn client_address(
    received: &HeaderMap,
    sender: IpAddr,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> IpAddr {
    let fields = received.get_all(X_FORWARDED_FOR).iter().rev();
    // By bytes: a client may send what is no text, and the proxy's own word stands behind it.
    let entries = fields.flat_map(|field| field.as_bytes().rsplit(|byte| *byte == b','));
    let mut client = sender;
    for entry in entries {
        // What is behind text that is no address is no proxy's word.
        let (true, Some(address)) = (is_trusted(client), address(entry)) else {
            break;
        };
        client = address;
    }
    client.to_canonical()
}

/// An address, perhaps with a port or in brackets.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(entry).ok()?.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let with_port = || Some(text.parse::<SocketAddr>().ok()?.ip());
    bare.unwrap_or(text).parse().ok().or_else(with_port)
}

/// Adds to `headers` who `client` is, the `host` it requested, and the `prefix` of the path that
/// the upstream does not get. `received` is what the client sent.
pub(super) fn add_forwarded(
    headers: &mut HeaderMap,
    received: &HeaderMap,
    client: &Client,
    host: Option<&str>,
    prefix: Option<&str>,
) {
    if client.is_trusted {
        for (name, value) in received
            .iter()
            .filter(|(name, _)| is_believed_of_trusted(name))
        {
            headers.append(name, value.clone());
        }
    }
    let address = client.address.to_canonical();
    if !client.is_trusted {
        // Of a trusted proxy it would not be the client's.
        set_if_absent(headers, X_REAL_IP, Some(&address.to_string()));
    }
    add(headers, X_FORWARDED_FOR, address.to_string());
    add(headers, FORWARDED, element(address, host, client.scheme));
    set_if_absent(headers, X_FORWARDED_PROTO, Some(client.scheme));
    set_if_absent(headers, X_FORWARDED_HOST, host);
    set_if_absent(headers, X_FORWARDED_PREFIX, prefix);
    set_if_absent(headers, X_CLIENT_SUBJECT, client.subject.as_deref());
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

fn set_if_absent(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    let Some(value) = value else { return };
    if !headers.contains_key(&name)
        && let Ok(value) = HeaderValue::from_str(value)
    {
        headers.insert(name, value);
    }
}

/// One element of `Forwarded`: values with a colon are quoted, IPv6 addresses stand in brackets
/// (RFC 7239, 6).
fn element(address: IpAddr, host: Option<&str>, scheme: &str) -> String {
    let mut element = match address {
        IpAddr::V4(address) => format!("for={address}"),
        IpAddr::V6(address) => format!("for=\"[{address}]\""),
    };
    if let Some(host) = host {
        // A host of ours has no quote in it.
        element.push_str(&format!(";host=\"{host}\""));
    }
    element.push_str(";proto=");
    element.push_str(scheme);
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Option<&str> = Some("example.org:8443");

    fn client(is_trusted: bool) -> Client {
        Client {
            address: "192.0.2.7".parse().unwrap(),
            scheme: "https",
            is_trusted,
            subject: None,
        }
    }

    fn tell(headers: &mut HeaderMap, received: &HeaderMap, client: &Client) {
        add_forwarded(headers, received, client, HOST, None);
    }

    fn received() -> HeaderMap {
        let mut received = HeaderMap::new();
        received.insert(X_FORWARDED_FOR, HeaderValue::from_static("198.51.100.1"));
        received.append(X_FORWARDED_FOR, HeaderValue::from_static("198.51.100.2"));
        received.insert(X_FORWARDED_PROTO, HeaderValue::from_static("http"));
        received.insert(FORWARDED, HeaderValue::from_static("for=198.51.100.1"));
        received
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_trusted() {
        let is_trusted = |address: IpAddr| address.to_string().starts_with("10.");
        let of = |sender: &str, fields: &[&'static str]| {
            let mut received = HeaderMap::new();
            for field in fields {
                received.append(X_FORWARDED_FOR, HeaderValue::from_static(field));
            }
            client_address(&received, sender.parse().unwrap(), is_trusted).to_string()
        };
        assert_eq!(
            of("192.0.2.7", &["203.0.113.1"]),
            "192.0.2.7",
            "not trusted"
        );
        assert_eq!(of("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(
            of("10.0.0.1", &["198.51.100.9, 203.0.113.1"]),
            "203.0.113.1"
        );
        assert_eq!(of("10.0.0.1", &["203.0.113.1, 10.0.0.2"]), "203.0.113.1");
        assert_eq!(
            of("10.0.0.1", &["203.0.113.1", "10.0.0.2:8080"]),
            "203.0.113.1"
        );
        assert_eq!(of("10.0.0.1", &["203.0.113.1, unknown"]), "10.0.0.1");
        assert_eq!(of("10.0.0.1", &["::ffff:203.0.113.1"]), "203.0.113.1");
        assert_eq!(of("10.0.0.1", &["[2001:db8::1]:80"]), "2001:db8::1");
        assert_eq!(of("10.0.0.1", &["[2001:db8::1]"]), "2001:db8::1");
        let mut received = HeaderMap::new();
        let field = HeaderValue::from_bytes(b"\xff, 203.0.113.1").unwrap();
        received.insert(X_FORWARDED_FOR, field);
        let client = client_address(&received, "10.0.0.1".parse().unwrap(), is_trusted);
        assert_eq!(client.to_string(), "203.0.113.1");
    }

    #[test]
    fn a_stranger_says_nothing_of_himself() {
        let mut headers = HeaderMap::new();
        tell(&mut headers, &received(), &client(false));
        assert_eq!(headers[X_FORWARDED_FOR], "192.0.2.7");
        assert_eq!(headers[X_REAL_IP], "192.0.2.7");
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
        tell(&mut headers, &received(), &client(true));
        assert!(!headers.contains_key(X_REAL_IP));
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
        six.address = "2001:db8::1".parse().unwrap();
        assert_eq!(
            element(six.address, None, six.scheme),
            "for=\"[2001:db8::1]\";proto=https"
        );
        let mut headers = HeaderMap::new();
        six.address = "::ffff:192.0.2.7".parse().unwrap();
        add_forwarded(&mut headers, &HeaderMap::new(), &six, None, None);
        assert_eq!(headers[X_FORWARDED_FOR], "192.0.2.7");
    }

    #[test]
    fn an_underscore_is_no_disguise() {
        assert!(describes_client(&HeaderName::from_static(
            "x_forwarded-for"
        )));
        assert!(describes_client(&HeaderName::from_static("x-real-ip")));
        assert!(!describes_client(&HeaderName::from_static("x_mine")));
    }

    #[test]
    fn all_of_x_forwarded_is_the_trusted_ones_to_say() {
        for name in [
            "x-forwarded-user",
            "x-forwarded-ssl",
            "x_forwarded-client_cert",
            "x-forwarded_for",
        ] {
            assert!(describes_client(&HeaderName::from_static(name)));
        }
        assert!(!describes_client(&HeaderName::from_static("x-forwarded")));
        let mut received = received();
        for (name, value) in [
            ("x-forwarded-user", "alice"),
            ("x_forwarded_user", "mallory"),
            ("x-mine", "1"),
        ] {
            received.insert(name, HeaderValue::from_static(value));
        }
        let mut headers = HeaderMap::new();
        tell(&mut headers, &received, &client(false));
        assert!(!headers.contains_key("x-forwarded-user"));
        tell(&mut headers, &received, &client(true));
        assert_eq!(headers["x-forwarded-user"], "alice");
        assert!(!headers.contains_key("x_forwarded_user") && !headers.contains_key("x-mine"));
    }

    #[test]
    fn a_subject_is_what_was_seen_here_and_nothing_else() {
        let mut received = HeaderMap::new();
        received.insert(X_CLIENT_SUBJECT, HeaderValue::from_static("CN=mallory"));
        for is_trusted in [false, true] {
            let mut headers = HeaderMap::new();
            tell(&mut headers, &received, &client(is_trusted));
            assert!(!headers.contains_key(X_CLIENT_SUBJECT));
            let mut seen = client(is_trusted);
            seen.subject = Some("CN=alice".into());
            tell(&mut headers, &received, &seen);
            assert_eq!(headers[X_CLIENT_SUBJECT], "CN=alice");
        }
    }
}
