//! A gate in the test's own process before a private PostgreSQL, gone when dropped.

use sooner_pooler::config::Config;
use sooner_pooler::{Configuration, Gateway, Listener};
pub use sooner_testbed::postgres::{Database, Talk, printed, said, signal_child_of, until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::SystemTime;
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixListener};

/// The port in the name of the gate's socket file.
pub const GATE_PORT: u16 = 6432;

/// A configuration in which so many transactions go in at a time.
pub fn transactions(limit: usize) -> String {
    format!("[limits]\ntransactions = {limit}\n")
}

/// A gate in a thread of its own.
pub struct Gate {
    folder: TempDir,
    port: u16,
    admin_port: u16,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Gate {
    /// Before `database`, with this configuration besides; every client is trusted and four
    /// transactions go in, unless it says something else.
    pub fn before(database: &Database, config: &str) -> Gate {
        Gate::before_folder(database.folder(), config)
    }

    /// Before whatever has a database's socket file in `server`.
    pub fn before_folder(server: &Path, config: &str) -> Gate {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let server = format!("postgresql:///?host={}", server.display());
        Gate::at(&server, config, folder)
    }

    /// Before the server at an address; files that the configuration names are in `folder`.
    pub fn at(server: &str, config: &str, folder: TempDir) -> Gate {
        let auth = if config.contains("auth = ") {
            ""
        } else {
            "auth = \"trust\"\n"
        };
        let limits = if config.contains("[limits]") {
            String::new()
        } else {
            transactions(4)
        };
        let everything = format!("[[database]]\nname = \"*\"\nserver = \"{server}\"\n");
        let text = format!("{auth}{config}\n{limits}{everything}");
        fs::write(folder.path().join("gate.toml"), text).unwrap();
        let path = folder.path().join(format!(".s.PGSQL.{GATE_PORT}"));
        let config_folder = folder.path().to_owned();
        let (listens, is_listening) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async move {
                let listener = UnixListener::bind(&path).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
                let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let admin = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let ports = [&tcp, &admin].map(|at| at.local_addr().unwrap().port());
                let load = move || settings(&config_folder);
                let gateway = Gateway::new(load().unwrap(), Box::new(load)).unwrap();
                listens.send(ports).unwrap();
                let listeners = vec![Listener::Unix(listener), Listener::Tcp(tcp)];
                tokio::select! {
                    ended = gateway.serve(listeners, Some(admin)) => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        let [port, admin_port] = is_listening.recv().unwrap();
        Gate {
            port,
            admin_port,
            folder,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Writes another configuration over the first; the gate does not know yet.
    pub fn rewrite(&self, change: impl FnOnce(String) -> String) {
        let path = self.folder.path().join("gate.toml");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, change(text)).unwrap();
    }

    /// Whether it has ended by itself.
    pub fn is_over(&self) -> bool {
        self.thread
            .as_ref()
            .is_none_or(thread::JoinHandle::is_finished)
    }

    /// Its port at 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port of its admin address at 127.0.0.1.
    pub fn admin_port(&self) -> u16 {
        self.admin_port
    }

    /// What psql prints for a command to the gate itself.
    pub fn admin(&self, database: &Database, command: &str) -> String {
        let mut psql = self.psql(database, "postgres");
        printed(psql.args(["-d", "sooner", "-c", command]))
    }

    /// Where its socket file is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// psql through the gate.
    pub fn psql(&self, database: &Database, user: &str) -> Command {
        database.psql(self.folder.path(), GATE_PORT, user)
    }

    /// What psql prints for these commands, each in a message of its own.
    pub fn ask(&self, database: &Database, commands: &[&str]) -> String {
        let mut psql = self.psql(database, "postgres");
        psql.args(commands.iter().flat_map(|sql| ["-c", sql]));
        printed(&mut psql)
    }

    /// Any of PostgreSQL's programs through the gate.
    pub fn program(&self, database: &Database, name: &str) -> Command {
        let mut command = database.program(name);
        command.arg("-h").arg(self.folder.path()).args([
            "-p",
            &GATE_PORT.to_string(),
            "-U",
            "postgres",
        ]);
        command
    }
}

fn settings(folder: &Path) -> Result<Configuration, String> {
    let text = fs::read_to_string(folder.join("gate.toml")).unwrap();
    let mut config = Config::parse(&text).map_err(|error| error.to_string())?;
    config.relative_to(folder);
    let loaded = Configuration::load(config, SystemTime::now());
    loaded
        .map(|(settings, _)| settings)
        .map_err(|error| error.to_string())
}

impl Drop for Gate {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A gate that panicked has said so.
            let _ = thread.join();
        }
    }
}
