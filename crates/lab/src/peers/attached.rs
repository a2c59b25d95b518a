//! `sooner attach web` beside a server that knows nothing of it.

use std::process::Command;

use super::{PORT, PeerOptions, TLS_PORT};
use crate::hosts::{Hosts, SERVER_DEVICE};

/// The arguments behind `sooner`.
pub fn arguments(options: &PeerOptions, rate_bits_per_sec: u64, extra: &[String]) -> Vec<String> {
    let rate = format!("{rate_bits_per_sec}bit");
    let port = match options.tls {
        Some(_) => format!("{PORT},{TLS_PORT}"),
        None => PORT.to_string(),
    };
    let mut words = vec!["attach", "web", "--dev", SERVER_DEVICE, "--port", &port];
    // An experiment may say another rate, or none.
    if !extra.iter().any(|word| word == "--uplink") {
        words.extend(["--uplink", &rate]);
    }
    let words = words.into_iter().map(String::from);
    words.chain(extra.iter().cloned()).collect()
}

/// The command that runs it, as root.
pub fn command(
    hosts: &Hosts,
    options: &PeerOptions,
    rate_bits_per_sec: u64,
    extra: &[String],
) -> Command {
    let mut command = hosts.on_server(&options.program);
    command.args(arguments(options, rate_bits_per_sec, extra));
    command
}
