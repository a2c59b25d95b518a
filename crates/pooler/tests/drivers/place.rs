//! Where a script asks: the database itself, or a gate before it.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::support::{Database, Gate, said};

/// One that hangs is a failure, not a test without end.
const PATIENCE_S: &str = "100";

/// A database or a gate, as a script reaches it.
pub struct ScriptTarget<'a> {
    /// Of its socket file.
    pub folder: &'a Path,
    /// In that file's name.
    pub port: u16,
    database: &'a Database,
}

impl<'a> ScriptTarget<'a> {
    /// The database itself.
    pub fn straight(database: &'a Database) -> Self {
        Self {
            folder: database.folder(),
            port: 5432,
            database,
        }
    }

    /// The gate before it.
    pub fn through(gate: &'a Gate, database: &'a Database) -> Self {
        Self {
            folder: gate.folder(),
            port: 6432,
            database,
        }
    }

    /// A program that finds its way by the variables that PostgreSQL's own programs know.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args([PATIENCE_S, program]).stdin(Stdio::null());
        command
            .env("PGHOST", self.folder)
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "postgres")
            // Nothing is left beside the scripts.
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// psql that asks here.
    pub fn psql(&self) -> Command {
        self.database.psql(self.folder, self.port, "postgres")
    }

    /// What a script prints, which must come to its end.
    pub fn printed(&self, command: &mut Command) -> String {
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = said(&output);
        assert!(output.status.success(), "{command:?}: {printed}{said}");
        printed
    }
}

/// A port of this machine that leads to a place, for drivers that know no socket files.
pub struct Bridge(TcpListener);

impl Bridge {
    /// Carries every connection over, until the test ends.
    pub fn to(place: &ScriptTarget<'_>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let accepting = listener.try_clone().unwrap();
        let socket: PathBuf = place.folder.join(format!(".s.PGSQL.{}", place.port));
        thread::spawn(move || {
            while let Ok((client, _)) = accepting.accept() {
                if let Ok(server) = UnixStream::connect(&socket) {
                    carry(client, server);
                }
            }
        });
        Self(listener)
    }

    /// Its number.
    pub fn port(&self) -> String {
        self.0.local_addr().unwrap().port().to_string()
    }
}

/// Both directions, each by a thread that ends with it.
fn carry(client: TcpStream, server: UnixStream) {
    client.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = (client.try_clone().unwrap(), client);
    let (mut from_server, mut to_server) = (server.try_clone().unwrap(), server);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
}
