//! A private PostgreSQL and a gate before it, both gone when dropped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use sooner_pooler::config::Config;
use sooner_pooler::{Configuration, Gateway, Listener};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixListener};

/// The port in the name of the database's socket file.
const DATABASE_PORT: u16 = 5432;
/// The same of the gate's.
pub const GATE_PORT: u16 = 6432;

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
        self.restart_with("-c listen_addresses= -p 5432");
    }

    /// Starts it so that it speaks TLS as well, by the certificate and key `server.pem` and
    /// `server.key` in `folder`, and takes clients with a certificate that `ca.pem` there has
    /// signed; gives its port at 127.0.0.1.
    pub fn restart_with_tls(&self, folder: &Path) -> u16 {
        for file in ["server.pem", "server.key", "ca.pem"] {
            let copy = self.folder().join("data").join(file);
            fs::copy(folder.join(file), &copy).unwrap();
            self.give(&copy);
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        self.restart_with(&format!(
            "-c listen_addresses=127.0.0.1 -p {port} -c ssl=on -c ssl_cert_file=server.pem -c ssl_key_file=server.key -c ssl_ca_file=ca.pem"
        ));
        port
    }

    fn restart_with(&self, options: &str) {
        let options = format!(
            "-c fsync=off -c unix_socket_directories={} -c max_connections=50 {options}",
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

    /// Gives a file to the user that runs its programs, and to no other.
    pub fn give(&self, path: &Path) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        chown(path, self.owner, None).unwrap();
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
        // No settings of the user that runs the tests are read.
        command.env("HOME", self.folder());
        // Keys of 32 bytes, where psql knows them.
        command.env("PGMAXPROTOCOLVERSION", "3.2");
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

/// PostgreSQL's programs: those in the folder that SOONER_POSTGRES names, else Debian's newest.
fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("SOONER_POSTGRES") {
        return Some(named.into());
    }
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

/// A configuration in which so many transactions go in at a time.
pub fn transactions(limit: usize) -> String {
    format!("[limits]\ntransactions = {limit}\n")
}

/// A gate in a thread of its own.
pub struct Gate {
    folder: TempDir,
    port: u16,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Gate {
    /// Before `database`, with this configuration besides; everybody is trusted and four
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
                let port = tcp.local_addr().unwrap().port();
                let load = move || settings(&config_folder);
                let gateway = Gateway::new(load().unwrap(), Box::new(load)).unwrap();
                listens.send(port).unwrap();
                let listeners = vec![Listener::Unix(listener), Listener::Tcp(tcp)];
                tokio::select! {
                    ended = gateway.serve(listeners, None) => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Gate {
            port: is_listening.recv().unwrap(),
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

/// Sends a signal to what runs below `timeout`.
pub fn signal_child_of(id: u32, signal: &str) {
    let parent = id.to_string();
    let sent = Command::new("pkill").args([signal, "-P", &parent]).status();
    assert!(sent.unwrap().success());
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
        signal_child_of(self.psql.id(), "-KILL");
        let _ = self.psql.wait();
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = writeln!(self.to, "\\q");
        let _ = self.psql.wait();
    }
}
