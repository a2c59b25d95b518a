//! The two network namespaces of a check, named after its process: removed at its end, and by the
//! next check when it was killed.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio, id};

use anyhow::{Context, Result, bail};

use crate::emulator::path::Client;

/// Where `ip netns` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";
/// What the names of ours begin with; the process id and a letter for the side follow.
const PREFIX: &str = "sooner-emu-";
/// The device of the emulator.
pub const DEVICE: &str = "wan0";
/// The server's address, in the router namespace.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const SERVER_NETWORK: &str = "10.79.0.0/24";
const CLIENT_NETWORK: &str = "10.78.0.0/24";

/// The address of client number `index`, at most 250 of them.
pub fn client_address(index: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, 0, index + 1)
}

/// The namespaces; removed when dropped.
#[derive(Debug)]
pub struct Hosts {
    /// Where packets to clients come from; the server of a check is there.
    pub router: String,
    /// Where the clients are.
    pub client: String,
}

impl Hosts {
    /// Removes what killed checks left behind, then makes both; needs root and iproute2.
    pub fn make() -> Result<Hosts> {
        remove_leftovers()?;
        let hosts = Hosts {
            router: format!("{PREFIX}{}-r", id()),
            client: format!("{PREFIX}{}-c", id()),
        };
        ip(&["netns", "add", &hosts.router])?;
        ip(&["netns", "add", &hosts.client])?;
        Ok(hosts)
    }

    /// Gives the emulator's devices addresses and routes and brings them up: to be called when it
    /// is ready.
    pub fn connect(&self, clients: &[Client]) -> Result<()> {
        let server = format!("{SERVER}/32");
        let client_addresses = clients
            .iter()
            .map(|client| format!("{}/32", client.address));
        connect(&self.router, [server], CLIENT_NETWORK)?;
        connect(&self.client, client_addresses, SERVER_NETWORK)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for namespace in [&self.router, &self.client] {
            // What is not there needs no removing.
            let _ = ip(&["netns", "del", namespace]);
        }
    }
}

fn connect(
    namespace: &str,
    addresses: impl IntoIterator<Item = String>,
    network: &str,
) -> Result<()> {
    let inside = |arguments: &[&str]| ip(&[&["-n", namespace], arguments].concat());
    for address in addresses {
        inside(&["addr", "add", &address, "dev", DEVICE])?;
    }
    inside(&["link", "set", DEVICE, "up"])?;
    inside(&["route", "add", network, "dev", DEVICE])
}

/// Removes the namespaces of checks that have no process any more; gives their names. For before
/// this process makes its own. Where another process has the number of one by now, they stay until
/// that ends too.
fn remove_leftovers() -> Result<Vec<String>> {
    let Ok(entries) = fs::read_dir(NAMESPACES) else {
        // No namespace was ever made here.
        return Ok(Vec::new());
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_left = |name: &String| {
        // One of our own number is another's as well: it was there before this check made any.
        owner(name)
            .is_some_and(|pid| pid == id() || !Path::new("/proc").join(pid.to_string()).exists())
    };
    let left: Vec<String> = names.filter(is_left).collect();
    for name in &left {
        ip(&["netns", "del", name]).context("cannot remove what a killed check left behind")?;
    }
    Ok(left)
}

/// The process a namespace was made by; `None` for one that no check made.
fn owner(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(PREFIX)?;
    let pid = rest
        .strip_suffix("-r")
        .or_else(|| rest.strip_suffix("-c"))?;
    pid.parse().ok()
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("cannot run `ip`; install iproute2")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("ip {}: {}", arguments.join(" "), said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_checks_have_an_owner() {
        assert_eq!(owner("sooner-emu-123-r"), Some(123));
        assert_eq!(owner("sooner-emu-123-c"), Some(123));
        for other in [
            "sooner-emu-123",
            "sooner-emu-x-r",
            "sooner-lab-1-r",
            "emu-1-r",
            "",
        ] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
