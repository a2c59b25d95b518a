//! An address and a port, as `listen` and the flags give them.

use super::parsed;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenAddress(pub SocketAddr);

/// Text that is no address with a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no address with a port; write for example 127.0.0.1:8080, 0.0.0.0:80 or [::]:8080"
)]
pub struct NotAnAddress {
    text: String,
}

impl FromStr for ListenAddress {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        text.parse()
            .map(Self)
            .map_err(|_| NotAnAddress { text: text.into() })
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
