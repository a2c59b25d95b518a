//! A private PostgreSQL and a gate before it, socket files on both sides.
//!
//! A proxy has a core to itself, and everybody else the other.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::link::Running;
use super::server::sooner;

/// In the name of the database's socket file.
pub const DATABASE_PORT: &str = "5432";
/// In the name of the gate's.
pub const GATE_PORT: &str = "6432";
/// A proxy's own.
pub const PROXY_CORE: &str = "0";
/// Everybody else's.
pub const OTHERS_CORE: &str = "1";

/// Everything's folder, which the user postgres owns: neither PostgreSQL nor PgBouncer runs as root.
pub struct Folder {
    scratch: tempfile::TempDir,
    /// Where PostgreSQL's own programs are.
    pub programs: PathBuf,
}

impl Folder {
    /// A new one; root only.
    pub fn new() -> anyhow::Result<Self> {
        Self::new_in(&tempfile::env::temp_dir())
    }

    /// A new one in this folder; root only.
    pub fn new_in(parent: &Path) -> anyhow::Result<Self> {
        let scratch = tempfile::tempdir_in(parent)
            .with_context(|| format!("a folder in {}", parent.display()))?;
        let users = fs::read_to_string("/etc/passwd")?;
        let line = users.lines().find(|line| line.starts_with("postgres:"));
        let uid = line
            .and_then(|line| line.split(':').nth(2))
            .context("there is no user postgres: install postgresql")?;
        chown(scratch.path(), Some(uid.parse()?), None).context(
            "PostgreSQL refuses to run as root, so this needs root to run it as postgres",
        )?;
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755))?;
        let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")?
            .flatten()
            .map(|entry| entry.path().join("bin"))
            .collect();
        versions.sort();
        let programs = versions
            .pop()
            .context("no PostgreSQL in /usr/lib/postgresql")?;
        Ok(Self { scratch, programs })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// A program as the user postgres, on a core.
    pub fn program(&self, core: &str, program: &Path) -> Command {
        let mut command = Command::new("taskset");
        command.args([
            "-c",
            core,
            "setpriv",
            "--reuid=postgres",
            "--regid=postgres",
            "--init-groups",
        ]);
        command
            .arg(program)
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// A database in it, ready.
    pub fn database(&self) -> anyhow::Result<Running> {
        self.database_with(&[])
    }

    /// The same with these flags besides.
    pub fn database_with(&self, flags: &[&str]) -> anyhow::Result<Running> {
        let data = self.path().join("data");
        let mut initdb = self.program(OTHERS_CORE, &self.programs.join("initdb"));
        initdb
            .arg("-D")
            .arg(&data)
            .args(["-U", "postgres", "-A", "trust", "--no-sync"]);
        ensure!(
            initdb.stdout(Stdio::null()).status()?.success(),
            "initdb failed"
        );
        let mut postgres = self.program(OTHERS_CORE, &self.programs.join("postgres"));
        postgres.arg("-D").arg(&data).args([
            "-p",
            DATABASE_PORT,
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            "log_min_messages=fatal",
        ]);
        postgres.args([
            "-c",
            &format!("unix_socket_directories={}", self.path().display()),
        ]);
        postgres.args(flags);
        let running = Running(postgres.stderr(Stdio::null()).spawn()?);
        self.await_socket(DATABASE_PORT, running)
    }

    /// A gate before it whose socket file has this port, everybody let in; `flags` besides. Its process is the gate's own.
    pub fn gate(&self, port: &str, flags: &[&str]) -> anyhow::Result<Running> {
        self.gate_with(port, flags, Stdio::inherit())
    }

    /// The same, what it says on standard error going to `log`.
    pub fn gate_with(
        &self,
        port: &str,
        flags: &[&str],
        log: impl Into<Stdio>,
    ) -> anyhow::Result<Running> {
        // Where the workspace lies postgres may not go.
        let copy = self.path().join(format!("sooner-{port}"));
        fs::copy(sooner(), &copy)?;
        let mut command = self.program(PROXY_CORE, &copy);
        command
            .args(["gate", "--auth", "trust"])
            .args(flags)
            .arg("--backend");
        command.arg(format!(
            "postgresql:///?host={}&port={DATABASE_PORT}",
            self.path().display()
        ));
        command.arg("--listen").arg(self.socket(port));
        let running = Running(command.stdout(Stdio::null()).stderr(log).spawn()?);
        self.await_socket(port, running)
    }

    /// A PgBouncer before it whose socket file has this port, everybody let in.
    pub fn pgbouncer(&self, port: &str, mode: &str, pool: &str) -> anyhow::Result<Running> {
        self.pgbouncer_with(port, mode, pool, "", "")
    }

    /// The same with these `users` besides, as lines of its file, and these lines in its configuration.
    pub fn pgbouncer_with(
        &self,
        port: &str,
        mode: &str,
        pool: &str,
        users: &str,
        lines: &str,
    ) -> anyhow::Result<Running> {
        let at = self.path().display();
        let config = format!(
            "[databases]\n* = host={at} port={DATABASE_PORT}\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\nunix_socket_dir = {at}\n\
             auth_type = trust\nauth_file = {at}/users.txt\npool_mode = {mode}\ndefault_pool_size = {pool}\nlogfile = {at}/pgbouncer-{port}.log\nmax_client_conn = 300\n{lines}"
        );
        let users = format!("\"postgres\" \"\"\n{users}");
        fs::write(self.path().join("users.txt"), users)?;
        let path = self.path().join(format!("pgbouncer-{port}.ini"));
        fs::write(&path, config)?;
        let mut command = self.program(PROXY_CORE, Path::new("pgbouncer"));
        let running = Running(
            command
                .arg("-q")
                .arg(path)
                .spawn()
                .context("pgbouncer is needed")?,
        );
        self.await_socket(port, running)
    }

    /// The socket file of whoever has this port.
    pub fn socket(&self, port: &str) -> PathBuf {
        self.path().join(format!(".s.PGSQL.{port}"))
    }

    /// Waits until the process listens there.
    fn await_socket(&self, port: &str, mut running: Running) -> anyhow::Result<Running> {
        for _ in 0..200 {
            if let Some(status) = running.0.try_wait()? {
                anyhow::bail!("who was to listen on port {port} ended: {status}");
            }
            if UnixStream::connect(self.socket(port)).is_ok() {
                // It listens before it is ready for a session.
                sleep(Duration::from_millis(500));
                return Ok(running);
            }
            sleep(Duration::from_millis(50));
        }
        anyhow::bail!("nobody listens on port {port} after 10 s")
    }
}

/// The number that stands behind these words in what pgbench prints.
pub fn pgbench_figure(said: &str, behind: &str) -> anyhow::Result<f64> {
    let rest = said.split_once(behind);
    let (_, rest) = rest.with_context(|| format!("pgbench does not say {behind:?}"))?;
    let number = rest.split([' ', '/', '\n']).next().unwrap_or_default();
    Ok(number.parse()?)
}
