//! `listen` and `server_name`.

use super::scope::Scope;
use super::tree::Directive;
use crate::ini::ImportError;
use sooner_http::forwarding::routes::HostPattern;
use sooner_http::host::HostMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// One address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Where.
    pub address: SocketAddr,
    /// With TLS.
    pub is_tls: bool,
    /// Whether hosts without a server of their own get this one there.
    pub is_default: bool,
    /// Whether a PROXY header comes first.
    pub has_proxy_header: bool,
}

impl Listen {
    /// nginx's own, where a server has none.
    pub const DEFAULT: Self = Self {
        address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 80),
        is_tls: false,
        is_default: false,
        has_proxy_header: false,
    };

    /// What tells addresses apart: all of a machine's, of both kinds, are one.
    pub fn key(&self) -> (Option<IpAddr>, u16) {
        let ip = self.address.ip();
        ((!ip.is_unspecified()).then_some(ip), self.address.port())
    }

    /// The same over IPv4, where `ipv6only=off` has all addresses of IPv6 stand for these too.
    /// Sooner listens at each kind by itself.
    pub fn over_ipv4(self, directive: &Directive) -> Option<Self> {
        let is_all = self.address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let is_both = directive.args.iter().any(|flag| flag == "ipv6only=off");
        (is_all && is_both).then(|| Self {
            address: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.address.port()),
            ..self
        })
    }

    /// Reads one; what cannot be said is the inner error.
    pub fn of(directive: &Directive) -> Result<Result<Self, &'static str>, ImportError> {
        let (address, flags) = match directive.args.split_first() {
            Some((address, flags)) => (address.as_str(), flags),
            None => {
                return Err(directive
                    .at
                    .wrong("listen names no address; write listen 80;"));
            }
        };
        if address.starts_with("unix:") {
            return Ok(Err("Sooner listens at addresses with ports"));
        }
        let has = |name: &str| flags.iter().any(|flag| flag == name);
        if has("quic") {
            return Ok(Err("Sooner has no HTTP/3"));
        }
        let address = match parse(address) {
            Some(address) => address,
            None if address.contains(|letter: char| letter.is_ascii_alphabetic()) => {
                return Ok(Err("a host name is not an address; write the address"));
            }
            None if address.contains('-') => {
                return Ok(Err("Sooner listens at single ports; write each of them"));
            }
            None => {
                let what = format!("listen: {address:?} is not an address or a port");
                return Err(directive.at.wrong(what));
            }
        };
        Ok(Ok(Self {
            address,
            is_tls: has("ssl"),
            is_default: has("default_server") || has("default"),
            has_proxy_header: has("proxy_protocol"),
        }))
    }
}

fn parse(text: &str) -> Option<SocketAddr> {
    let of_port = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    if let Ok(port) = text.parse::<u16>() {
        return (port > 0).then(|| of_port(port));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address);
    }
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    if let Ok(ip) = bare.unwrap_or(text).parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, 80));
    }
    let (host, port) = text.split_once(':').unwrap_or((text, "80"));
    let port = port.parse::<u16>().ok()?;
    match host {
        "*" => Some(of_port(port)),
        "localhost" => Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        _ => None,
    }
}

/// The hosts that a name of `server_name` stands for; the error says why it cannot be said.
pub fn hosts(name: &str) -> Result<Vec<String>, &'static str> {
    let name = name.to_ascii_lowercase();
    let hosts = match name.as_str() {
        "" | "_" | "__" | "*" | "--" => Vec::new(),
        _ if name.starts_with('~') => {
            return Err("hosts are names, or *.NAME for all below it; write the names");
        }
        _ if name.contains('$') => return Err("Sooner has no variables; write the name"),
        _ => match name.strip_prefix('.') {
            Some(bare) => vec![bare.to_owned(), format!("*.{bare}")],
            None => vec![name],
        },
    };
    let is_host = |host: &String| {
        HostMap::default().insert(host, ()).is_ok() && HostPattern::parse(host).is_ok()
    };
    if !hosts.iter().all(is_host) {
        return Err("a star stands for the first labels only, as in *.example.org");
    }
    Ok(hosts)
}

/// `$server_name`: the first name of a server, unless it is an expression or has a variable.
pub fn first_name(scope: &Scope<'_>) -> Option<String> {
    let names = scope.all(&["server_name"]);
    let first = names.first()?.first().to_ascii_lowercase();
    let name = first.strip_prefix('.').unwrap_or(&first);
    (!name.is_empty() && !name.starts_with('~') && !name.contains('$')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_many_ways() {
        for (text, expected) in [
            ("80", "0.0.0.0:80"),
            ("*:8080", "0.0.0.0:8080"),
            ("127.0.0.1", "127.0.0.1:80"),
            ("[::]:443", "[::]:443"),
            ("[::1]", "[::1]:80"),
            ("localhost:81", "127.0.0.1:81"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected, "{text}");
        }
        for text in ["0", "99999", "", "[::", "1.2.3", "a:80"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_hosts_or_said_not_to_be() {
        assert_eq!(hosts("A.org").unwrap(), ["a.org"]);
        assert_eq!(hosts(".a.org").unwrap(), ["a.org", "*.a.org"]);
        assert!(hosts("_").unwrap().is_empty());
        for name in ["~^www", "www.*", "$hostname", "a b"] {
            assert!(hosts(name).is_err(), "{name}");
        }
    }
}
