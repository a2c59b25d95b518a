//! The table `[admin]`: where metrics and the live page are, and under which names.

use crate::config::{ListenAddress, Misconfigured};
use serde::Deserialize;
use std::net::SocketAddr;
use toml::Spanned;

/// The table as it was written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdminConfig {
    /// Address and port of metrics and live page, such as `127.0.0.1:9090`; default: none.
    pub listen: Option<Spanned<ListenAddress>>,
    /// Host names under which they are asked for, besides loopback names and the address itself; default: none.
    pub hosts: Vec<String>,
}

impl AdminConfig {
    /// Where to listen; `None`: nowhere.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listen.as_ref().map(|listen| listen.get_ref().0)
    }

    /// What works and is hardly meant.
    pub fn remark(&self) -> Option<Misconfigured> {
        let listen = self.listen.as_ref()?;
        let address = listen.get_ref().0;
        (!address.ip().is_loopback()).then(|| {
            Misconfigured::at(
                listen,
                "admin.listen",
                format!("{address} may be reached from other machines, and whoever reaches it sees what is asked for; 127.0.0.1 is safe"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> AdminConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn only_loopback_is_beyond_remark() {
        for (text, is_remarked) in [
            ("", false),
            ("listen = \"127.0.0.1:9090\"", false),
            ("listen = \"[::1]:9090\"", false),
            ("listen = \"0.0.0.0:9090\"\nhosts = [\"metrics.example.org\"]", true),
        ] {
            assert_eq!(read(text).remark().is_some(), is_remarked, "{text}");
        }
        assert_eq!(read("").address(), None);
        assert_eq!(read("listen = \"[::1]:9090\"").address(), "[::1]:9090".parse().ok());
        assert!(toml::from_str::<AdminConfig>("listen = \"9090\"").is_err());
        assert!(toml::from_str::<AdminConfig>("port = 9090").is_err());
    }
}
