//! A database cluster and its server: reached by a socket file alone, in a folder of its own.
//!
//! Nothing in it is worth keeping, so fsync is off.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use rustix::process::Signal;

use super::Installation;
use super::template::initdb;
use crate::child::OwnedChild;
use crate::child::waiting::{await_ready, spawn};

/// In the name of the socket file.
const PORT: u16 = 5432;
/// Of the server's postmaster.pid, from 0.
const STATUS_LINE: usize = 7;

/// Where clients come in.
#[derive(Clone, Debug)]
pub struct Address {
    /// The folder of the socket file.
    pub folder: PathBuf,
    /// The port in its name.
    pub port: u16,
}

impl Address {
    /// Tells one of PostgreSQL's client programs to go there as `user`.
    pub fn tell(&self, command: &mut Command, user: &str) {
        command.arg("-h").arg(&self.folder);
        command.args(["-p", &self.port.to_string(), "-U", user]);
    }

    /// Its socket file.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    /// As an address that `sooner` takes.
    pub fn url(&self) -> String {
        format!(
            "postgresql:///?host={}&port={}",
            self.folder.display(),
            self.port
        )
    }
}

/// A server that runs; ended when dropped.
#[derive(Debug)]
pub struct Cluster {
    address: Address,
    server: OwnedChild,
}

impl Cluster {
    /// Makes a cluster in the new folder `folder` and starts its server with these settings
    /// (`max_connections=9`); `under` are words before the program, such as `taskset -c 1`.
    pub async fn start(
        installation: &Installation,
        folder: &Path,
        settings: &[String],
        under: &[&str],
    ) -> Result<Cluster> {
        installation.make_folder(folder)?;
        initdb(installation, folder)?;
        let mut server = spawn(
            "postgres",
            &mut command(installation, folder, settings, under),
        )?;
        // Its own processes are no part of its group: it has to end them, at once, whatever clients
        // are still connected.
        server.end_by(Signal::QUIT);
        let status = folder.join("data/postmaster.pid");
        await_ready("postgres", &mut server, |_| is_ready(&status)).await?;
        let address = Address {
            folder: folder.to_owned(),
            port: PORT,
        };
        Ok(Cluster { address, server })
    }

    /// Where clients come in.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The process id of its first process.
    pub fn id(&self) -> u32 {
        self.server.id()
    }
}

fn command(
    installation: &Installation,
    folder: &Path,
    settings: &[String],
    under: &[&str],
) -> Command {
    let postgres = installation.server_program("postgres", folder);
    let mut command = match under {
        [] => postgres,
        [first, rest @ ..] => {
            let mut command = installation.server_command(Path::new(first), folder);
            command.args(rest).arg(postgres.get_program());
            command
        }
    };
    command.args(["-D", "data", "-p", &PORT.to_string()]);
    let own = [
        "listen_addresses=".to_owned(),
        format!("unix_socket_directories={}", folder.display()),
        "fsync=off".to_owned(),
    ];
    for setting in own.iter().chain(settings) {
        command.args(["-c", setting]);
    }
    command
}

/// Whether the server has written that it is ready; it listens a moment before it takes a client.
fn is_ready(status: &Path) -> bool {
    let text = fs::read_to_string(status).unwrap_or_default();
    text.lines().nth(STATUS_LINE).map(str::trim_end) == Some("ready")
}
