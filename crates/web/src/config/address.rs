//! An address and a port, as `listen` and the flags give them.

use super::parsed;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenAddress(pub SocketAddr);

/// Text that is no address with a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAddress {
    /// A port alone: who may connect is not for us to guess.
    #[error(
        "`{text}` has a port and no address; write 127.0.0.1:{port} for this machine alone, 0.0.0.0:{port} for all (IPv4), [::]:{port} for all (IPv6)"
    )]
    PortAlone {
        /// What was given.
        text: String,
        /// The port in it.
        port: u16,
    },
    /// A name with a port.
    #[error(
        "`{text}` has a name, and an address is needed; write for example 127.0.0.1:{port} or 0.0.0.0:{port}"
    )]
    Name {
        /// What was given.
        text: String,
        /// The port in it.
        port: u16,
    },
    /// Anything else.
    #[error(
        "`{0}` is not an address with a port; write for example 127.0.0.1:8080, 0.0.0.0:80 or [::]:8080"
    )]
    Other(String),
}

impl FromStr for ListenAddress {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let other = |_| NotAnAddress::Other(text.into());
        let port: u16 = port.parse().map_err(other)?;
        let text = text.to_owned();
        match host {
            "localhost" => Ok(Self((Ipv4Addr::LOCALHOST, port).into())),
            "*" => Ok(Self((Ipv4Addr::UNSPECIFIED, port).into())),
            "" => Err(NotAnAddress::PortAlone { text, port }),
            _ if host.contains([':', '[', '/']) => Err(NotAnAddress::Other(text)),
            _ => Err(NotAnAddress::Name { text, port }),
        }
    }
}

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_taken_or_answered_with_what_is_right() {
        let told = |text: &str| match text.parse::<ListenAddress>() {
            Ok(address) => address.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(told("localhost:8080"), "127.0.0.1:8080");
        assert_eq!(told("*:6432"), "0.0.0.0:6432");
        for text in ["8080", ":8080"] {
            assert!(
                told(text).contains("write 127.0.0.1:8080 for this machine alone"),
                "{text}"
            );
        }
        assert!(told("example.org:80").ends_with("127.0.0.1:80 or 0.0.0.0:80"));
        for text in ["99999", "::1:80", "[::1:80", "http://a:80", "a", "", ":"] {
            assert!(
                told(text).contains("is not an address with a port"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        let message = "localhost"
            .parse::<ListenAddress>()
            .unwrap_err()
            .to_string();
        assert!(message.contains("`localhost`") && message.contains("127.0.0.1:8080"));
        assert_eq!(
            "[::]:80".parse::<ListenAddress>().unwrap().to_string(),
            "[::]:80"
        );
    }
}
