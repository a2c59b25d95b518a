//! Where a database is, as a URL of the gate's.

use crate::ini::ImportError;
use crate::names;
use crate::source::Entry;
use crate::translation::{Translation, read_number};
use sooner_pooler::config::ServerAddress;
use std::net::Ipv6Addr;

const DEFAULT_PORT: i64 = 5432;

/// A server.
pub struct Server {
    /// Its URL.
    pub url: String,
    /// Hosts that PgBouncer used in turn besides.
    pub others: Vec<String>,
}

impl Translation<'_> {
    /// The server of an entry; the inner error says why the gate cannot have it.
    pub fn server(&self, entry: &Entry) -> Result<Result<Server, &'static str>, ImportError> {
        let port = match entry.get("port") {
            Some(text) => read_number("port", text, &entry.at)?,
            None => DEFAULT_PORT,
        };
        if !(1..=i64::from(u16::MAX)).contains(&port) {
            let what = format!("port: {port} is no port; 1 to 65535 are");
            return Err(entry.at.wrong(what));
        }
        let mut hosts = match entry.get("host") {
            Some(text) => names::list(text),
            None => Vec::from_iter(self.socket_folder()),
        };
        if hosts.is_empty() {
            let what = "no host, and no unix_socket_dir that could stand for it; write host=...";
            return Err(entry.at.wrong(what));
        }
        let host = hosts.remove(0);
        if host.starts_with('@') {
            return Ok(Err("the gate reaches socket files that are files only"));
        }
        let others = hosts;
        let url = if entry.get("host").is_some() && !host.starts_with('/') {
            self.tcp_url(&host, port)?
        } else {
            let folder = self.place.absolute(&host);
            format!("postgresql:///?host={}&port={port}", escaped(&folder))
        };
        match url.parse::<ServerAddress>() {
            Ok(_) => Ok(Ok(Server { url, others })),
            Err(what) => Err(entry.at.wrong(format!("host={host}: {what}"))),
        }
    }

    fn tcp_url(&self, host: &str, port: i64) -> Result<String, ImportError> {
        let bare = host.trim_matches(['[', ']']);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let mut url = if bare.parse::<Ipv6Addr>().is_ok() {
            format!("postgresql://[{bare}]:{port}?")
        } else if host.chars().all(is_plain) {
            format!("postgresql://{host}:{port}?")
        } else {
            format!("postgresql:///?host={}&port={port}&", escaped(host))
        };
        for (key, value) in self.encryption()? {
            url += &format!("{key}={}&", escaped(&value));
        }
        url.pop();
        Ok(url)
    }

    /// `server_tls_...` as libpq's parameters.
    fn encryption(&self) -> Result<Vec<(&'static str, String)>, ImportError> {
        let mode = self.source.word("server_tls_sslmode");
        let (mode, is_said) = match &mode {
            Some(mode) => (mode.as_str(), true),
            None => ("prefer", false),
        };
        let mode = match mode {
            "allow" => "prefer",
            "disable" | "prefer" | "require" | "verify-ca" | "verify-full" => mode,
            _ => return Err(self.wrong_mode("server_tls_sslmode")),
        };
        let mut parameters = Vec::new();
        if is_said {
            parameters.push(("sslmode", mode.to_owned()));
        }
        let file = |key| {
            let setting = self.source.get(key)?;
            Some((setting, self.place.absolute(&setting.value)))
        };
        let authorities = file("server_tls_ca_file");
        if let Some((_, path)) = authorities.filter(|_| mode.starts_with("verify")) {
            parameters.push(("sslrootcert", path));
        }
        match (file("server_tls_cert_file"), file("server_tls_key_file")) {
            _ if mode == "disable" => {}
            (Some((_, certificate)), Some((_, key))) => {
                parameters.push(("sslcert", certificate));
                parameters.push(("sslkey", key));
            }
            (None, None) => {}
            (Some((setting, _)), None) | (None, Some((setting, _))) => {
                let what =
                    "server_tls_cert_file and server_tls_key_file belong together; write both";
                return Err(setting.at.wrong(what));
            }
        }
        Ok(parameters)
    }
}

/// A text inside a URL's parameter.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}
