//! Caddy with its file server, without compression. How many connections may wait to be accepted it
//! takes from `net.core.somaxconn`, which [`super::Peer::start`] sets.

use std::fs;
use std::io;
use std::process::Command;

use super::{PORT, Setting, TLS_PORT, program};
use crate::hosts::{Hosts, SERVER_ADDRESS};

/// Its names.
pub const PROGRAMS: [&str; 1] = ["caddy"];

/// The configuration.
pub fn config(setting: &Setting<'_>) -> String {
    let (at, root) = (setting.folder.display(), setting.root.display());
    // It has no switch for this; its server closes a connection over which it said so.
    let close = if setting.options.keep_alive {
        ""
    } else {
        "\theader Connection close\n"
    };
    let site = |url: String, tls: String| {
        format!(
            "{url} {{
\tbind {SERVER_ADDRESS}
{tls}\troot * {root}
{close}\tfile_server
\tlog {{
\t\toutput file {at}/access.log {{
\t\t\troll_disabled
\t\t}}
\t}}
}}
"
        )
    };
    let clear = site(format!("http://:{PORT}"), String::new());
    let secured = setting.options.tls.as_ref().map_or(String::new(), |tls| {
        let (certificate, key) = (tls.certificate.display(), tls.key.display());
        // Without HTTP/2, which the generator does not ask for either.
        let line = format!("\ttls {certificate} {key} {{\n\t\talpn http/1.1\n\t}}\n");
        site(format!("https://:{TLS_PORT}"), line)
    });
    format!(
        "{{
\tadmin off
\tauto_https off
\tlog {{
\t\toutput file {at}/error.log
\t\tlevel WARN
\t}}
}}
{clear}{secured}"
    )
}

/// The command that runs it in the foreground.
pub fn command(hosts: &Hosts, setting: &Setting<'_>) -> io::Result<Command> {
    let path = setting.folder.join("Caddyfile");
    fs::write(&path, config(setting))?;
    let mut command = hosts.on_server(program::find(&PROGRAMS).unwrap_or(PROGRAMS[0].into()));
    command
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(path);
    // Whatever it keeps stays in the folder.
    for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        command.env(variable, &setting.folder);
    }
    Ok(command)
}
