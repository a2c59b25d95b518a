//! The configuration: one TOML file, in which nothing is ignored.
//!
//! Each table's type stands with the code that acts on it, keys, defaults and all; here they are
//! put together. Reading is pure: text in, a [`Config`] or one [`Misconfigured`] out, and
//! [`SourceText`] makes `FILE:LINE: KEY: what is wrong` of it. What needs the file system (roots,
//! certificates, names of upstreams) is looked at by those who build a server from the tables, with
//! the same kind of mistake.

mod address;
mod changes;
mod check;
mod paths;
mod scripts;
mod uplink;
mod workers;

pub use address::{ListenAddress, NotAnAddress};
pub use sooner_config::{Misconfigured, SourceText, Spanned, from_command_line, parsed};
pub use uplink::{
    AheadAmount, MechanismName, NotAPolicy, Policy, ShareName, StreamOrder, UplinkTable,
};

use crate::access_log::LogConfig;
use crate::admin::AdminConfig;
use crate::compress::CompressionTable;
use crate::limits::Limits;
use crate::proxy::{ClassTable, ProxyTable, RouteTable, UpstreamTable};
use crate::proxy_protocol::ProxyProtocolConfig;
use crate::static_site::StaticConfig;
use serde::Deserialize;
use sooner_config::Limit;
use sooner_config::classes::{self, LateName};
use sooner_tls::TlsConfig;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The port of the address that is listened on when none is named.
const DEFAULT_PORT: u16 = 8080;

/// Everything a configuration file can say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Addresses for clear text; default: `127.0.0.1:8080`, unless `listen_tls` names one.
    pub listen: Vec<Spanned<ListenAddress>>,
    /// Addresses for TLS; default: none.
    pub listen_tls: Vec<Spanned<ListenAddress>>,
    /// The directory of the only site; default: none.
    pub root: Option<Spanned<PathBuf>>,
    /// The user to become after binding; default: the user that started it.
    pub user: Option<Spanned<String>>,
    /// Threads that serve, or `"auto"`: as many as processors may be used; default: 1.
    pub workers: Option<Spanned<Limit>>,
    /// The link, and who goes first on it.
    pub uplink: UplinkTable,
    /// The access log.
    pub log: LogConfig,
    /// Bounds of what clients may use.
    pub limits: Limits,
    /// The address with metrics and the live page.
    pub admin: AdminConfig,
    /// Certificates.
    pub tls: Vec<TlsConfig>,
    /// The proxies that may name the client of a connection.
    pub proxy_protocol: ProxyProtocolConfig,
    /// Whether responses are compressed on their way, where site and route say nothing.
    pub compress: bool,
    /// How they are compressed.
    pub compression: Option<CompressionTable>,
    /// What is served of which host names.
    pub site: Vec<StaticConfig>,
    /// What holds for all servers behind this one.
    pub proxy: ProxyTable,
    /// Servers behind this one.
    pub upstream: Vec<UpstreamTable>,
    /// Which requests go to which upstream.
    pub route: Vec<RouteTable>,
    /// Which requests go first into an upstream; the first that fits counts.
    pub class: Vec<ClassTable>,
    /// Which classes are late where there is more load than targets allow; default: the less
    /// important ones.
    pub late: Option<Spanned<LateName>>,
}

impl Config {
    /// Reads a configuration file's text, without a look at anything else; the first mistake is the
    /// error.
    pub fn parse(text: &str) -> Result<Self, Misconfigured> {
        sooner_config::read(text).map_err(classes::explain)
    }

    /// All mistakes of a text that can be told at once; none if [`Config::parse`] and
    /// [`Config::check`] find none.
    pub fn mistakes(text: &str) -> Vec<Misconfigured> {
        match Self::parse(text) {
            Ok(config) => config.mistakes_together(),
            Err(_) => {
                let mistakes = sooner_config::mistakes::<Self>(text).into_iter();
                mistakes.map(classes::explain).collect()
            }
        }
    }

    /// The sites, whichever way they were named.
    pub fn sites(&self) -> Vec<StaticConfig> {
        match &self.root {
            Some(root) => vec![StaticConfig {
                root: Some(root.clone()),
                ..StaticConfig::default()
            }],
            None => self.site.clone(),
        }
    }

    /// A mistake with the key as it was written: the only site's directory may be in `root`.
    pub fn as_written(&self, mut mistake: Misconfigured) -> Misconfigured {
        if self.root.is_some() && mistake.key == "site.root" {
            mistake.key = "root".into();
        }
        mistake
    }

    /// The addresses for clear text, the default where no address is named at all.
    pub fn clear_addresses(&self) -> Vec<SocketAddr> {
        if self.listen.is_empty() && self.listen_tls.is_empty() {
            return vec![(Ipv4Addr::LOCALHOST, DEFAULT_PORT).into()];
        }
        addresses(&self.listen)
    }

    /// The addresses for TLS.
    pub fn tls_addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.listen_tls)
    }
}

/// Every key that holds a value, by its path: `listen`, `site.redirect.from`.
pub fn keys() -> Vec<String> {
    sooner_config::keys::<Config>()
}

fn addresses(listen: &[Spanned<ListenAddress>]) -> Vec<SocketAddr> {
    listen.iter().map(|address| address.get_ref().0).collect()
}

#[cfg(test)]
mod tests {
    use super::keys;

    #[test]
    fn keys_of_all_depths_are_found() {
        let keys = keys();
        for key in [
            "listen",
            "uplink.rate",
            "limits.head_bytes",
            "compress",
            "compression.types",
            "tls.certificate",
            "site.root",
            "site.headers",
            "site.redirect.from",
            "upstream.servers",
            "upstream.health.path",
            "route.path",
        ] {
            assert!(keys.iter().any(|found| found == key), "{key}: {keys:?}");
        }
        assert!(!keys.iter().any(|key| key == "site" || key == "uplink"));
    }
}
