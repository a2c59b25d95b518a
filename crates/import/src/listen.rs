//! Where clients come in.

use crate::document::Group;
use crate::ini::ImportError;
use crate::translation::Translation;
use crate::values;
use std::net::{IpAddr, SocketAddr};

const DEFAULT_PORT: u16 = 6432;
/// PgBouncer's own, for clients and for servers without a host.
const DEFAULT_SOCKET_FOLDER: &str = "/tmp";

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
                    Ok(address) => places.push(SocketAddr::new(address, port).to_string()),
                    Err(_) => {
                        let setting = format!("listen_addr = {name}");
                        let why = "the gate listens at addresses, so write that of the name";
                        self.document.leave_out(Group::Head, &setting, why);
                    }
                }
            }
        }
        places
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
