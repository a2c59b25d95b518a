//! A `sooner gate` before a private PostgreSQL, as a process, for tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::{Database, printed};
use crate::child::OwnedChild;

/// The port in the name of the gate's socket file.
const GATE_PORT: u16 = 6432;
const PATIENCE: Duration = Duration::from_secs(30);

/// A gate that runs; ended when dropped.
pub struct Gate {
    folder: TempDir,
    _process: OwnedChild,
}

impl Gate {
    /// Starts `program` before `database` with this configuration besides; every client is trusted
    /// and four transactions go in at a time, unless the configuration says something else.
    pub fn start(program: &Path, database: &Database, config: &str) -> Gate {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let socket = folder.path().join(format!(".s.PGSQL.{GATE_PORT}"));
        let mut text = format!("listen = [\"{}\"]\n", socket.display());
        if !config.contains("auth = ") {
            text += "auth = \"trust\"\n";
        }
        text += config;
        if !config.contains("[limits]") {
            text += "\n[limits]\ntransactions = 4\n";
        }
        let server = database.folder().display();
        text +=
            &format!("\n[[database]]\nname = \"*\"\nserver = \"postgresql:///?host={server}\"\n");
        let path = folder.path().join("gate.toml");
        fs::write(&path, text).unwrap();
        let mut command = Command::new(program);
        command.args(["gate", "--config"]).arg(&path);
        let mut process = OwnedChild::spawn(&mut command).unwrap();
        let ready = process.next_line(PATIENCE);
        assert!(ready.is_ok(), "the gate ended: {}", process.message());
        Gate {
            folder,
            _process: process,
        }
    }

    /// Writes another configuration over the first; the gate reads it at the next RELOAD.
    pub fn rewrite(&self, change: impl FnOnce(String) -> String) {
        let path = self.folder.path().join("gate.toml");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, change(text)).unwrap();
    }

    /// Where its socket file is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What psql prints for a command to the gate itself.
    pub fn admin(&self, database: &Database, command: &str) -> String {
        let mut psql = self.psql(database, "postgres");
        printed(psql.args(["-d", "sooner", "-c", command]))
    }

    /// psql through the gate.
    pub fn psql(&self, database: &Database, user: &str) -> Command {
        database.psql(self.folder(), GATE_PORT, user)
    }

    /// Any of PostgreSQL's programs through the gate.
    pub fn program(&self, database: &Database, name: &str) -> Command {
        let mut command = database.program(name);
        command.arg("-h").arg(self.folder());
        command.args(["-p", &GATE_PORT.to_string(), "-U", "postgres"]);
        command
    }
}
