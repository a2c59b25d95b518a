//! nginx, in the foreground, with all of its own files in one folder.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::child::OwnedChild;
use crate::program;

/// How long it may take until it listens.
const START_WAIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// A configuration of one worker for so many connections; `http` is what stands in that block.
pub fn config(folder: &Path, connections: u32, http: &str) -> String {
    let at = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {at}/{kind};\n"))
        .concat();
    format!(
        "daemon off;\nworker_processes 1;\nworker_rlimit_nofile 65536;\npid {at}/pid;\n\
         error_log {at}/error.log;\nevents {{ worker_connections {connections}; }}\n\
         http {{\n{temporary}{http}}}\n"
    )
}

/// Writes a configuration into its folder; its path.
pub fn write_config(folder: &Path, connections: u32, http: &str) -> io::Result<PathBuf> {
    let path = folder.join("nginx.conf");
    fs::write(&path, config(folder, connections, http))?;
    Ok(path)
}

/// Gives a command that becomes nginx the arguments for the configuration in `folder`.
pub fn tell(command: &mut Command, folder: &Path) {
    // Its built-in log would be opened before the configuration is read.
    command.arg("-e").arg(folder.join("error.log"));
    command.arg("-c").arg(folder.join("nginx.conf"));
}

/// Whether it is installed with these modules (`http_v2_module`).
pub fn has_modules(modules: &[&str]) -> bool {
    let Some(program) = program::find(&["nginx"]) else {
        return false;
    };
    let built = Command::new(program).arg("-V").output();
    built.is_ok_and(|output| {
        let words = String::from_utf8_lossy(&output.stderr);
        modules.iter().all(|module| words.contains(module))
    })
}

/// A running nginx; it ends when dropped.
#[derive(Debug)]
pub struct Nginx {
    _process: OwnedChild,
}

impl Nginx {
    /// Starts it with its files in `folder` and waits until it listens at `address`.
    pub fn start(folder: &Path, http: &str, address: SocketAddr) -> Result<Nginx> {
        write_config(folder, 1024, http).context("cannot write nginx.conf")?;
        let program = program::find(&["nginx"]).context("needs the package nginx")?;
        let mut command = Command::new(program);
        tell(&mut command, folder);
        let mut process = OwnedChild::spawn(&mut command).context("cannot start nginx")?;
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            let is_over = process.has_ended() || begin.elapsed() > START_WAIT;
            if is_over {
                process.end();
            }
            ensure!(!is_over, "nginx does not listen: {}", process.message());
            thread::sleep(PAUSE);
        }
        Ok(Nginx { _process: process })
    }
}
