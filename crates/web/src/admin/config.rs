//! The table `[admin]`: where metrics and the live page are, and under which names.

use super::Admin;
use crate::config::{ListenAddress, Misconfigured};
use serde::Deserialize;
use toml::Spanned;

/// The table as it was written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdminConfig {
    /// Address and port of metrics and live page, such as `127.0.0.1:9090`; default: none.
    pub listen: Option<Spanned<ListenAddress>>,
    /// Host names under which clients reach them, besides loopback names and the address itself;
    /// default: none.
    pub hosts: Vec<String>,
}

impl AdminConfig {
    /// Binds the address; `None` when there is none. Needs a tokio runtime around it; no client is
    /// answered before [`Admin::serve`].
    pub fn bind(&self) -> Result<Option<Admin>, Misconfigured> {
        let Some(listen) = &self.listen else {
            return Ok(None);
        };
        let address = listen.get_ref().0;
        match Admin::bind(address, self.hosts.clone()) {
            Ok(admin) => Ok(Some(admin)),
            Err(error) => Err(Misconfigured::at(
                listen,
                "admin.listen",
                format!(
                    "cannot listen on {address}: {error}; choose another port, or an address of this machine"
                ),
            )),
        }
    }

    /// What works and is hardly meant.
    pub fn remark(&self) -> Option<Misconfigured> {
        let listen = self.listen.as_ref()?;
        let address = listen.get_ref().0;
        (!address.ip().is_loopback()).then(|| {
            Misconfigured::at(
                listen,
                "admin.listen",
                format!("{address} can be reached from other machines, which then see what clients request; 127.0.0.1 is safe"),
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
            (
                "listen = \"0.0.0.0:9090\"\nhosts = [\"metrics.example.org\"]",
                true,
            ),
        ] {
            assert_eq!(read(text).remark().is_some(), is_remarked, "{text}");
        }
        assert!(toml::from_str::<AdminConfig>("listen = \"9090\"").is_err());
        assert!(toml::from_str::<AdminConfig>("port = 9090").is_err());
    }
    #[tokio::test]
    async fn an_address_of_somebody_else_is_a_mistake_with_its_place() {
        assert!(read("").bind().unwrap().is_none());
        let mistake = read("listen = \"192.0.2.1:9090\"").bind().err().unwrap();
        assert_eq!(
            (mistake.span, mistake.key.as_str()),
            (Some(9..25), "admin.listen")
        );
    }
}
