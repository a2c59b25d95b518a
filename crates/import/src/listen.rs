//! Where clients come in.

use crate::document::Group;
use crate::ini::ImportError;
use crate::translation::Translation;
use crate::values;
use std::net::{IpAddr, SocketAddr};

const DEFAULT_PORT: u16 = 6432;
/// PgBouncer's own, for clients and for servers without a host.
const DEFAULT_SOCKET_FOLDER: &str = "/tmp";
/// Who may open a socket file is who may write to it.
const WRITE_FOR_ALL: u32 = 0o222;
const NARROW: &str = "all users of the machine may open the gate's socket file, \
    so it is left out; add it to listen in a folder that only they can enter";

impl Translation<'_> {
    /// `listen`.
    pub fn listen(&mut self) -> Result<(), ImportError> {
        let port = match self.number("listen_port")? {
            None => DEFAULT_PORT,
            Some(number) => {
                let port = u16::try_from(number).ok().filter(|port| *port > 0);
                port.ok_or_else(|| {
                    let at = &self.source.settings["listen_port"].at;
                    at.wrong(format!(
                        "listen_port: {number} is not a port; 1 to 65535 are"
                    ))
                })?
            }
        };
        let mut places = self.addresses(port);
        match self.socket_folder() {
            Some(folder) if folder.starts_with('@') => {
                let why = "the gate's socket files are files";
                self.leave_out(Group::Head, "unix_socket_dir", why);
            }
            Some(_) if self.has_narrow_socket() => {
                let rest = if places.is_empty() {
                    "the gate is at 127.0.0.1:6432 instead"
                } else {
                    "the addresses of listen_addr are kept"
                };
                let why = format!("{NARROW}; {rest}");
                self.leave_out(Group::Head, "unix_socket_mode", &why);
            }
            Some(folder) => {
                let folder = self.files.absolute(&folder);
                places.push(format!("{}/.s.PGSQL.{port}", folder.trim_end_matches('/')));
            }
            None => {}
        }
        if places.is_empty() {
            let words = "PgBouncer could be reached nowhere. The gate is then at 127.0.0.1:6432.";
            self.document.comment(Group::Head, words);
        } else {
            self.document.list(Group::Head, "listen", &places);
        }
        let user = self.source.get("user").map(|setting| setting.value.clone());
        if let Some(user) = user.filter(|user| !user.is_empty()) {
            self.document.text(Group::Head, "system_user", &user);
        }
        Ok(())
    }

    /// Whether not all users of the machine could open the socket file.
    fn has_narrow_socket(&self) -> bool {
        let setting = self.source.settings.get("unix_socket_mode");
        setting.is_some_and(|own| {
            let mode = u32::from_str_radix(&own.value, 8).unwrap_or_default();
            mode & WRITE_FOR_ALL != WRITE_FOR_ALL
        })
    }

    /// Whether clients had to have the right to open a socket file, and no other way in.
    pub fn is_for_socket_alone(&self) -> bool {
        let has_addresses = self
            .source
            .get("listen_addr")
            .is_some_and(|own| !values::list(&own.value).is_empty());
        let has_socket = (self.socket_folder()).is_some_and(|own| !own.starts_with('@'));
        !has_addresses && has_socket && self.has_narrow_socket()
    }

    fn addresses(&mut self, port: u16) -> Vec<String> {
        let text = self
            .source
            .get("listen_addr")
            .map(|setting| setting.value.clone());
        let mut places = Vec::new();
        for name in values::list(&text.unwrap_or_default()) {
            let found: &[&str] = match name.as_str() {
                "*" => &["0.0.0.0", "::"],
                "localhost" => &["127.0.0.1", "::1"],
                name => &[name],
            };
            if found.len() > 1 {
                let words = format!(
                    "{name} means IPv4 and IPv6; if this machine has no IPv6, remove the second address."
                );
                self.document.comment(Group::Head, &words);
            }
            for text in found {
                match text.parse::<IpAddr>() {
                    Ok(address) => places.push(SocketAddr::new(address, port)),
                    Err(_) => {
                        let setting = format!("listen_addr = {name}");
                        let why = "the gate listens at addresses, so write that of the name";
                        self.document.leave_out(Group::Head, &setting, why);
                    }
                }
            }
        }
        self.once(places)
    }

    /// Each place once, and none of which all addresses of its kind are listened at: PgBouncer warns
    /// of those that it cannot have, and the gate would not start.
    fn once(&mut self, places: Vec<SocketAddr>) -> Vec<String> {
        let mut kept: Vec<SocketAddr> = Vec::new();
        let mut gone: Vec<String> = Vec::new();
        for place in &places {
            let is_covered = places.iter().any(|other| {
                other != place && other.ip().is_unspecified() && other.is_ipv4() == place.is_ipv4()
            });
            if is_covered || kept.contains(place) {
                gone.push(place.ip().to_string());
            } else {
                kept.push(*place);
            }
        }
        gone.dedup();
        if !gone.is_empty() {
            let words = format!(
                "listen_addr stands for {} more than once; it is here once.",
                gone.join(", ")
            );
            self.document.comment(Group::Head, &words);
        }
        kept.iter().map(SocketAddr::to_string).collect()
    }

    /// Where socket files are, of clients and of servers without a host.
    pub fn socket_folder(&self) -> Option<String> {
        let folder = match self.source.settings.get("unix_socket_dir") {
            Some(setting) => setting.value.as_str(),
            None => DEFAULT_SOCKET_FOLDER,
        };
        (!folder.is_empty()).then(|| folder.to_owned())
    }
}
