//! `sooner gate` before the private PostgreSQL, as a process, by a gate.toml as an operator would
//! write it.
//!
//! The gate logs in as one user for all, as applications do, so that any idle server connection
//! serves the next client.

use super::load::{APP, HIGH};
use super::{GateDemoOptions, Way};
use anyhow::{Context, Result};
use sooner_testbed::OwnedChild;
use sooner_testbed::child::waiting::{await_ready, spawn};
use sooner_testbed::postgres::{Address, Cluster};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// In the name of the socket file.
const PORT: u16 = 6432;
/// Clients who are just leaving.
const SPARE_CLIENTS: usize = 10;

/// A gate that runs; ended when dropped.
pub struct Gate {
    at: Address,
    _process: OwnedChild,
}

impl Gate {
    /// Starts one in `scratch`, with or without a class that goes first.
    pub async fn start(
        options: &GateDemoOptions,
        way: Way,
        postgres: &Cluster,
        scratch: &Path,
    ) -> Result<Gate> {
        let at = Address {
            folder: scratch.to_owned(),
            port: PORT,
        };
        let config = scratch.join("gate.toml");
        fs::write(&config, text(options, way, &at, postgres.address()))
            .context("cannot write gate.toml")?;
        let mut command = Command::new(&options.program);
        command.args(["gate", "--config"]).arg(&config);
        let mut process = spawn("sooner gate", &mut command)?;
        await_ready("sooner gate", &mut process, |process| {
            process.next_line(Duration::ZERO).is_ok()
        })
        .await?;
        Ok(Gate {
            at,
            _process: process,
        })
    }

    /// Where clients come in.
    pub fn at(&self) -> &Address {
        &self.at
    }
}

/// Its configuration.
fn text(options: &GateDemoOptions, way: Way, at: &Address, database: &Address) -> String {
    let (socket, server) = (at.socket(), database.folder.display());
    let (limit, port) = (options.limit_transactions, database.port);
    let clients = options.clients + SPARE_CLIENTS;
    let class = match way {
        Way::ClassPriority => {
            format!("\n[[class]]\nname = \"{HIGH}\"\npriority = 1\nuser = [\"{HIGH}\"]\n")
        }
        Way::Direct | Way::FirstComeFirstServed => String::new(),
    };
    format!(
        "auth = \"trust\"\nlisten = [\"{}\"]\n\n[limits]\ntransactions = {limit}\nclients = {clients}\n\n\
         [[database]]\nname = \"*\"\nserver = \"postgresql:///?host={server}&port={port}\"\nuser = \"{APP}\"\n{class}",
        socket.display()
    )
}
