//! `sooner emulate` as a child: started, waited for, ended by closing its standard input, killed
//! when dropped.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::hosts::{DEVICE, Hosts};
use crate::emulator::path::Client;
use crate::emulator::report::Report;

/// A running emulator between the hosts, with addresses and routes set.
#[derive(Debug)]
pub struct Emulating {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Emulating {
    /// Starts `program emulate`, waits until its devices exist, and connects the hosts to them.
    pub fn start(
        program: &Path,
        hosts: &Hosts,
        clients: &[Client],
        seed: u64,
    ) -> Result<Emulating> {
        let mut command = Command::new(program);
        command.args(["emulate", "--json", "--end-with-stdin", "--device", DEVICE]);
        command.args(["--router-namespace", &hosts.router]);
        command.args(["--client-namespace", &hosts.client]);
        command.args(["--seed", &seed.to_string()]);
        for client in clients {
            command.args(["--client", &client.to_string()]);
        }
        // A process group of its own: Ctrl-C reaches only the check, which then ends it.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let output = child.stdout.take().context("the emulator has no stdout")?;
        let mut emulating = Emulating {
            child,
            output: BufReader::new(output),
        };
        let mut line = String::new();
        emulating.output.read_line(&mut line)?;
        if line.trim() != "ready" {
            // It said why on the standard error it shares with us.
            bail!("the emulator did not start");
        }
        hosts.connect(clients)?;
        Ok(emulating)
    }

    /// Ends it and gives what it reported.
    pub fn finish(mut self) -> Result<Report> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the emulator failed ({status})");
        }
        serde_json::from_str(&text).context("the emulator gave no report")
    }
}

impl Drop for Emulating {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
