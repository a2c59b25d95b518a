//! Node with a file server of its standard library.

use std::fs;
use std::io;
use std::process::Command;

use super::{PORT, Setting, TLS_PORT, program};
use crate::hosts::{Hosts, SERVER_ADDRESS};

/// Its names in Debian and elsewhere.
pub const PROGRAMS: [&str; 2] = ["node", "nodejs"];

const SCRIPT: &str = include_str!("node.js");

/// The command line and the script.
pub fn config(setting: &Setting<'_>, is_chunked: bool) -> String {
    format!(
        "node {}\n\n{SCRIPT}",
        arguments(setting, is_chunked).join(" ")
    )
}

/// The command that runs it in the foreground.
pub fn command(hosts: &Hosts, setting: &Setting<'_>, is_chunked: bool) -> io::Result<Command> {
    fs::write(setting.folder.join("node.js"), SCRIPT)?;
    let mut command = hosts.on_server(program::find(&PROGRAMS).unwrap_or(PROGRAMS[0].into()));
    command.args(arguments(setting, is_chunked));
    Ok(command)
}

fn arguments(setting: &Setting<'_>, is_chunked: bool) -> Vec<String> {
    let options = setting.options;
    let mut words = vec![
        setting.folder.join("node.js").display().to_string(),
        SERVER_ADDRESS.to_string(),
        PORT.to_string(),
        setting.root.display().to_string(),
        setting.folder.join("access.log").display().to_string(),
        options.backlog.to_string(),
        options.keep_alive.to_string(),
        is_chunked.to_string(),
    ];
    if let Some(tls) = &options.tls {
        words.push(TLS_PORT.to_string());
        words.extend([&tls.certificate, &tls.key].map(|file| file.display().to_string()));
    }
    words
}
