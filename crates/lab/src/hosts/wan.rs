//! Delay and loss between router and clients: the emulator, or netem where the kernel has it and it is asked for.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::child::OwnedChild;
use super::error::HostsError;
use super::plumbing::{self, WAN_DEVICE};
use super::spec::{ClientSpec, HostsSpec};
use super::tools::{is_unknown_kind, tc_in};

/// How long the emulator may take until its devices exist.
const START_WAIT: Duration = Duration::from_secs(10);
/// Packets that may be under way in one direction for one client, with netem.
const NETEM_PACKETS: u32 = 10_000;
/// No limit to speak of, for the class a client's netem hangs on.
const NETEM_RATE: &str = "10gbit";

/// Starts the emulator in the router's namespace and waits until its TUN devices exist.
pub fn emulate(
    spec: &HostsSpec,
    program: &Path,
    router: &str,
    clients: &str,
) -> Result<OwnedChild, HostsError> {
    let mut command = Command::new("ip");
    // In the router's namespace, so that whoever removes that one after a kill finds it.
    command
        .args(["netns", "exec", router])
        .arg(program)
        .args(emulator_arguments(spec, router, clients));
    let cannot = |source| HostsError::system("cannot start the network emulator", source);
    let mut child = OwnedChild::spawn(&mut command).map_err(cannot)?;
    let start = Instant::now();
    loop {
        let left = START_WAIT.saturating_sub(start.elapsed());
        match child.next_line(left) {
            Ok(line) if line.trim() == "ready" => return Ok(child),
            Ok(_) => (),
            Err(RecvTimeoutError::Timeout) => {
                let waited = START_WAIT.as_secs();
                return Err(HostsError::Emulator(format!(
                    "is not ready after {waited} s"
                )));
            }
            Err(RecvTimeoutError::Disconnected) => {
                child.end();
                let message = child.message();
                return Err(HostsError::Emulator(format!("ended: {message}")));
            }
        }
    }
}

fn emulator_arguments(spec: &HostsSpec, router: &str, clients: &str) -> Vec<String> {
    let mut words: Vec<String> = [
        "emulate",
        "--router-namespace",
        router,
        "--client-namespace",
        clients,
        "--device",
        WAN_DEVICE,
        "--json",
        "--seed",
    ]
    .map(String::from)
    .into();
    words.push(spec.seed.to_string());
    for (address, client) in spec.client_addresses().iter().zip(&spec.clients) {
        words.push("--client".into());
        words.push(format!(
            "{address},rtt_ms={},loss={}",
            client.rtt_ms, client.loss
        ));
    }
    words
}

/// Joins router and clients by a veth pair with netem on both ends; false, with nothing left, when the kernel has no netem.
pub fn netem(spec: &HostsSpec, router: &str, clients: &str) -> Result<bool, HostsError> {
    plumbing::pair((router, WAN_DEVICE), (clients, WAN_DEVICE))?;
    for (namespace, field) in [(router, "dst"), (clients, "src")] {
        for command in netem_commands(spec, field) {
            match tc_in(namespace, &command) {
                Err(error) if is_unknown_kind(&error) => {
                    super::tools::ip_in(router, &["link", "del", WAN_DEVICE])?;
                    return Ok(false);
                }
                result => result?,
            }
        }
    }
    Ok(true)
}

/// One class a client, found by its address in `field` of the IP header, with its delay and loss below.
fn netem_commands(spec: &HostsSpec, field: &str) -> Vec<String> {
    let mut commands = vec![format!("qdisc add dev {WAN_DEVICE} root handle 1: htb")];
    let clients = spec.client_addresses().into_iter().zip(&spec.clients);
    for (number, (address, client)) in (1..).zip(clients) {
        let (class, netem) = (format!("1:{number:x}"), netem_words(client));
        commands.push(format!(
            "class add dev {WAN_DEVICE} parent 1: classid {class} htb rate {NETEM_RATE} quantum 1514"
        ));
        commands.push(format!(
            "qdisc add dev {WAN_DEVICE} parent {class} netem limit {NETEM_PACKETS} {netem}"
        ));
        commands.push(format!(
            "filter add dev {WAN_DEVICE} parent 1: protocol ip prio 1 u32 match ip {field} {address}/32 flowid {class}"
        ));
    }
    commands
}

fn netem_words(client: &ClientSpec) -> String {
    let delay_us = (client.rtt_ms * 1000.0 / 2.0).round();
    format!("delay {delay_us}us loss {}%", client.loss * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> HostsSpec {
        let mut spec = HostsSpec::new("t", 10_000_000);
        spec.clients = vec![
            ClientSpec {
                rtt_ms: 100.0,
                loss: 0.05,
            },
            ClientSpec::default(),
        ];
        spec
    }

    #[test]
    fn the_emulator_is_told_every_client() {
        let words = emulator_arguments(&spec(), "r", "c").join(" ");
        assert_eq!(
            words,
            "emulate --router-namespace r --client-namespace c --device wan0 --json --seed 1 \
             --client 10.78.0.1,rtt_ms=100,loss=0.05 --client 10.78.0.2,rtt_ms=0,loss=0"
        );
    }

    #[test]
    fn netem_gets_half_the_round_trip_in_each_direction() {
        let commands = netem_commands(&spec(), "dst");
        assert_eq!(commands.len(), 1 + 2 * 3);
        assert_eq!(
            commands[2],
            "qdisc add dev wan0 parent 1:1 netem limit 10000 delay 50000us loss 5%"
        );
        assert!(commands[6].ends_with("match ip dst 10.78.0.2/32 flowid 1:2"));
    }
}
