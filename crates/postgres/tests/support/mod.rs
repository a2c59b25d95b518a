//! A private PostgreSQL and a gate before it, both gone when dropped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use sooner_postgres::net::{AuthMethod, Listener, ServerAddress, Settings, serve};
use tempfile::TempDir;
use tokio::net::UnixListener;

/// The port in the name of the database's socket file.
const DATABASE_PORT: u16 = 5432;
/// The same of the gate's.
const GATE_PORT: u16 = 6432;

const PATIENCE_S: &str = "60";

/// A database cluster of the test's own, reached by a socket file in its folder.
pub struct Database {
    folder: TempDir,
    programs: PathBuf,
    /// PostgreSQL refuses to run as root.
    owner: Option<u32>,
}

impl Database {
    /// Makes and starts one; `None`, after saying why, where PostgreSQL is not installed.
    pub fn start(test: &str) -> Option<Database> {
        let Some(programs) = programs() else {
            let _ = writeln!(
                std::io::stderr(),
                "skipped: {test}: needs the package postgresql"
            );
            return None;
        };
        let folder = TempDir::new().unwrap();
        let owner = rustix::process::getuid().is_root().then(postgres_uid);
        if let Some(uid) = owner {
            chown(folder.path(), Some(uid), None).unwrap();
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let database = Database {
            folder,
            programs,
            owner,
        };
        let data = database.data();
        database.must(
            "initdb",
            &["-D", &data, "-U", "postgres", "-A", "trust", "--no-sync"],
        );
        database.restart();
        Some(database)
    }

    /// Starts it, for the first time or again.
    pub fn restart(&self) {
        let options = format!(
            "-c fsync=off -c listen_addresses= -c unix_socket_directories={} -p {DATABASE_PORT} -c max_connections=50",
            self.folder().display()
        );
        let log = self.folder().join("log").display().to_string();
        self.must(
            "pg_ctl",
            &[
                "-w",
                "-D",
                &self.data(),
                "-l",
                &log,
                "-o",
                &options,
                "start",
            ],
        );
    }

    /// Ends it as the operator would, or at once.
    pub fn stop(&self, how: &str) {
        self.must("pg_ctl", &["-w", "-D", &self.data(), "-m", how, "stop"]);
    }

    /// Where its socket file is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> String {
        self.folder().join("data").display().to_string()
    }

    /// A program of PostgreSQL's, as the cluster's owner.
    pub fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        // One that hangs is a failure, not a test without end.
        let mut command = Command::new("timeout");
        command.arg(PATIENCE_S);
        if let Some(uid) = self.owner {
            command.args(["setpriv", &format!("--reuid={uid}"), "--clear-groups"]);
        }
        command.arg(path);
        // pg_ctl cannot return to a folder that its owner may not enter.
        command.current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    fn must(&self, name: &str, arguments: &[&str]) {
        // The server outlives pg_ctl and would hold a pipe open.
        let output = self
            .program(name)
            .args(arguments)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(output.success(), "{name} {arguments:?}");
    }

    /// psql without its own configuration, through a socket file in `folder`.
    pub fn psql(&self, folder: &Path, port: u16, user: &str) -> Command {
        let mut command = self.program("psql");
        command.args([
            "-X",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            user,
            "-d",
            "postgres",
        ]);
        command
            .arg("-h")
            .arg(folder)
            .args(["-p", &port.to_string()]);
        command
    }

    /// From now on `user` proves itself by `method`.
    pub fn require(&self, method: &str, user: &str) {
        let rules = format!("local all {user} {method}\nlocal all all trust\n");
        fs::write(self.folder().join("data/pg_hba.conf"), rules).unwrap();
        assert_eq!(self.ask("SELECT pg_reload_conf()"), "t");
    }

    /// What psql prints, straight from the database.
    pub fn ask(&self, sql: &str) -> String {
        printed(
            self.psql(self.folder(), DATABASE_PORT, "postgres")
                .args(["-c", sql]),
        )
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let data = self.data();
        let _ = self
            .program("pg_ctl")
            .args(["-D", &data, "-m", "immediate", "stop"])
            .stdout(Stdio::null())
            .status();
    }
}

/// Standard output of a command that must succeed.
pub fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

fn programs() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut versions: Vec<PathBuf> = debian
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop()
}

fn postgres_uid() -> u32 {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    line.and_then(|line| line.split(':').nth(2))
        .unwrap()
        .parse()
        .unwrap()
}

/// A gate in a thread of its own.
pub struct Gate {
    folder: TempDir,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Gate {
    /// Before `database`; `change` makes it other than usual.
    pub fn before(database: &Database, change: impl FnOnce(&mut Settings)) -> Gate {
        Self::before_folder(database.folder(), change)
    }

    /// Before whatever has a database's socket file in `server`.
    pub fn before_folder(server: &Path, change: impl FnOnce(&mut Settings)) -> Gate {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut settings = Settings {
            server: ServerAddress::Unix(server.to_owned(), DATABASE_PORT),
            auth: AuthMethod::Trust,
            users: Default::default(),
            limit: 4,
            by_session: false,
            clients_max: 1000,
            connect_patience: Duration::from_secs(10),
            login_patience: Duration::from_secs(10),
            statements_max: 100,
        };
        change(&mut settings);
        let path = folder.path().join(format!(".s.PGSQL.{GATE_PORT}"));
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
                listens.send(()).unwrap();
                tokio::select! {
                    ended = serve(settings, vec![Listener::Unix(listener)]) => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        is_listening.recv().unwrap();
        Gate {
            folder,
            stop: Some(stop),
            thread: Some(thread),
        }
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

impl Drop for Gate {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A gate that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Waits until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "waited in vain: {what}"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// A psql that is talked with, command by command.
pub struct Talk {
    psql: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// What psql prints behind each answer.
const END: &str = "=end=";

impl Talk {
    /// Starts it.
    pub fn begin(psql: &mut Command) -> Talk {
        let mut psql = psql
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (psql.stdin.take().unwrap(), psql.stdout.take().unwrap());
        let from = BufReader::new(from);
        Talk { psql, to, from }
    }

    /// Sends a command.
    pub fn say(&mut self, sql: &str) {
        writeln!(self.to, "{sql};\n\\echo {END}").unwrap();
    }

    /// What it printed, without the tags of commands.
    pub fn hear(&mut self) -> String {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(
                self.from.read_line(&mut line).unwrap() > 0,
                "psql has ended: {lines:?}"
            );
            match line.trim_end() {
                END => return lines.join("\n"),
                text => lines.push(text.to_owned()),
            }
        }
    }

    /// Both.
    pub fn ask(&mut self, sql: &str) -> String {
        self.say(sql);
        self.hear()
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) {
        // psql itself, which is below `timeout`: its end is what the gate sees.
        let _ = Command::new("pkill")
            .args(["-KILL", "-P", &self.psql.id().to_string()])
            .status();
        let _ = self.psql.wait();
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = writeln!(self.to, "\\q");
        let _ = self.psql.wait();
    }
}
