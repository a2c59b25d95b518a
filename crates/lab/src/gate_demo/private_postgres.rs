//! A PostgreSQL of the demo's own: reached by a socket file alone, in a temporary folder, with the settings that PostgreSQL is installed
//! with but for fsync, parallel queries and compilation.
//!
//! Nothing of it is worth keeping, so fsync is off; the load only reads, so that makes no difference to it. A transaction is to be one
//! process's work of about the same length each time, so there are neither parallel workers nor JIT.

use super::installation::Installation;
use super::process::{await_ready, finish, spawn};
use crate::hosts::OwnedChild;
use anyhow::Result;
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// In the name of the socket file.
const PORT: u16 = 5432;
/// Of the server's postmaster.pid, from 0.
const STATUS_LINE: usize = 7;
/// Connections for looking and for whoever is just leaving.
const SPARE_CONNECTIONS: usize = 20;

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
}

/// A server that runs; ended when dropped.
pub struct PrivatePostgres {
    at: Address,
    _server: OwnedChild,
}

impl PrivatePostgres {
    /// Makes a cluster in a new folder in `scratch` and starts its server for so many connections.
    pub async fn start(
        installation: &Installation,
        scratch: &Path,
        connections: usize,
    ) -> Result<PrivatePostgres> {
        let folder = scratch.join("postgres");
        installation.make_folder(&folder)?;
        let mut initdb = installation.server_program("initdb", &folder);
        initdb.args(["-D", "data", "-U", "postgres", "-A", "trust"]);
        initdb.args(["--no-sync", "--no-locale", "-E", "UTF8"]);
        finish("initdb", &mut initdb).await?;
        let mut postgres = installation.server_program("postgres", &folder);
        postgres.args(["-D", "data", "-p", &PORT.to_string()]);
        let connections = connections + SPARE_CONNECTIONS;
        for setting in [
            "listen_addresses=".to_owned(),
            format!("unix_socket_directories={}", folder.display()),
            format!("max_connections={connections}"),
            "fsync=off".to_owned(),
            "jit=off".to_owned(),
            "max_parallel_workers_per_gather=0".to_owned(),
        ] {
            postgres.args(["-c", &setting]);
        }
        let mut server = spawn("postgres", &mut postgres)?;
        // Its own processes are no part of its group: it has to end them, at once, whoever is still connected.
        server.end_by(Signal::QUIT);
        let at = Address { folder, port: PORT };
        let status = at.folder.join("data/postmaster.pid");
        await_ready("postgres", &mut server, |_| is_ready(&status)).await?;
        Ok(PrivatePostgres {
            at,
            _server: server,
        })
    }

    /// Where clients come in.
    pub fn at(&self) -> &Address {
        &self.at
    }
}

/// Whether the server has written that it is; it listens a moment before it takes anybody.
fn is_ready(status: &Path) -> bool {
    let text = fs::read_to_string(status).unwrap_or_default();
    text.lines().nth(STATUS_LINE).map(str::trim_end) == Some("ready")
}
