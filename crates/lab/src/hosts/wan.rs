//! Delay and loss between router and clients: the emulator.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::error::HostsError;
use super::plumbing::WAN_DEVICE;
use super::spec::HostsSpec;
use sooner_testbed::OwnedChild;

/// How long the emulator may take until its devices exist.
const START_WAIT: Duration = Duration::from_secs(10);

/// Starts the emulator in the router's namespace and waits until its TUN devices exist.
pub fn emulate(
    spec: &HostsSpec,
    program: &Path,
    router: &str,
    clients: &str,
) -> Result<OwnedChild, HostsError> {
    let mut command = Command::new("ip");
    // In the router's namespace, so that the process that removes that namespace after a kill finds
    // the emulator.
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
        let mut word = format!("{address},rtt_ms={},loss={}", client.rtt_ms, client.loss);
        if client.jitter_ms > 0.0 {
            word += &format!(",jitter_ms={}", client.jitter_ms);
        }
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::spec::ClientSpec;
    use super::*;

    fn spec() -> HostsSpec {
        let mut spec = HostsSpec::new("t", 10_000_000);
        spec.clients = vec![
            ClientSpec {
                rtt_ms: 100.0,
                loss: 0.05,
                jitter_ms: 0.0,
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
}
