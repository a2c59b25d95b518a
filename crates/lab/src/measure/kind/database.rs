//! A private PostgreSQL and proxies before it, socket files on both sides.
//!
//! A proxy has a core to itself, and all other processes the other, so that what a proxy costs is
//! seen and not what is left of the machine.

use crate::measure::bench::Bench;
use anyhow::{Context, Result, ensure};
use sooner_testbed::OwnedChild;
use sooner_testbed::postgres::{Address, Cluster, Installation};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A proxy's own core, and that of all others.
pub const PROXY_CORE: &str = "0";
pub const OTHERS_CORE: &str = "1";
/// In the name of the gate's socket file.
pub const GATE_PORT: u16 = 6432;

const START_WAIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// PgBouncer listens before it is ready for a session.
const READY_AFTER: Duration = Duration::from_millis(500);

/// A database and the place for proxies before it.
pub struct Database {
    cluster: Cluster,
    pub installation: Installation,
    folder: PathBuf,
    sooner: PathBuf,
}

/// A PgBouncer's configuration.
pub struct Bouncer<'a> {
    pub mode: &'a str,
    pub pool: u32,
    /// Users besides postgres, as lines of its file.
    pub users: &'a str,
    /// More lines of its configuration.
    pub lines: &'a str,
}

impl Database {
    /// A new one in `parent`, with these settings; every client is let in as whom it says.
    pub fn start(bench: &Bench<'_>, parent: &Path, settings: &[&str]) -> Result<Database> {
        bench.need(&["taskset"])?;
        let installation = Installation::find()?;
        let folder = parent.join(format!("database-{}", bench.number()));
        let settings: Vec<String> = settings
            .iter()
            .map(|setting| (*setting).to_owned())
            .collect();
        let under = ["taskset", "-c", OTHERS_CORE];
        let cluster = Cluster::start(&installation, &folder, &settings, &under);
        let cluster = bench.block_on_work(cluster)?;
        // The server's user may not go where the workspace lies.
        let sooner = folder.join("sooner");
        fs::copy(bench.program, &sooner).context("cannot copy the program")?;
        Ok(Database {
            cluster,
            installation,
            folder,
            sooner,
        })
    }

    /// Its folder, which the server's user owns.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The id of PostgreSQL's first process.
    pub fn id(&self) -> u32 {
        self.cluster.id()
    }

    /// Where clients come in: a proxy's place, or the database's own.
    pub fn address(&self, port: Option<u16>) -> Address {
        let address = self.cluster.address();
        Address {
            port: port.unwrap_or(address.port),
            ..address.clone()
        }
    }

    /// A program as the server's user, on a core.
    pub fn program(&self, core: &str, program: &Path) -> Command {
        let mut command = self
            .installation
            .server_command(Path::new("taskset"), &self.folder);
        command.args(["-c", core]).arg(program);
        command
    }

    /// One of PostgreSQL's programs that goes there, as `user`.
    pub fn client(&self, name: &str, port: Option<u16>, user: &str) -> Command {
        self.client_on(OTHERS_CORE, name, port, user)
    }

    /// The same on a core of one's choice.
    pub fn client_on(&self, core: &str, name: &str, port: Option<u16>, user: &str) -> Command {
        let program = self.installation.programs().join(name);
        let mut command = self.program(core, &program);
        self.address(port).tell(&mut command, user);
        command
    }

    /// What psql prints, straight from the database.
    pub fn ask(&self, bench: &Bench<'_>, sql: &str) -> Result<String> {
        let mut psql = self.client("psql", None, "postgres");
        psql.args(["-XAt", "-d", "postgres", "-c", sql]);
        bench.output(psql)
    }

    /// A database for pgbench, filled.
    pub fn fill_for_pgbench(&self, bench: &Bench<'_>) -> Result<()> {
        let mut fill = self.client("pgbench", None, "postgres");
        let scale = if bench.is_quick { "1" } else { "10" };
        fill.args(["-i", "-q", "-s", scale, "postgres"]);
        bench.output(fill).map(drop)
    }

    /// A gate before it with a socket file of this port, every client let in; its process is the
    /// gate's own.
    pub fn gate(
        &self,
        bench: &Bench<'_>,
        port: u16,
        config: Option<&str>,
        flags: &[&str],
    ) -> Result<OwnedChild> {
        let mut command = self.program(PROXY_CORE, &self.sooner);
        command.args(["gate", "--auth", "trust"]);
        if let Some(text) = config {
            let path = self.config_path(port);
            fs::write(&path, text)?;
            command.arg("--config").arg(path);
        }
        command.args(flags);
        if !config.is_some_and(|text| text.contains("[[database]]")) {
            command.args(["--backend", &self.address(None).url()]);
        }
        command
            .arg("--listen")
            .arg(self.address(Some(port)).socket());
        let mut gate = bench.start(command)?;
        let begin = Instant::now();
        while gate.next_line(LOOK).is_err() {
            let is_over = gate.has_ended() || begin.elapsed() > START_WAIT;
            if is_over {
                gate.end();
            }
            ensure!(!is_over, "the gate is not ready: {}", gate.message());
            bench.pause(Duration::ZERO)?;
        }
        Ok(gate)
    }

    /// The configuration of the gate at this port.
    pub fn config_path(&self, port: u16) -> PathBuf {
        self.folder.join(format!("gate-{port}.toml"))
    }

    /// A PgBouncer before it with a socket file of this port, every client let in.
    pub fn pgbouncer(
        &self,
        bench: &Bench<'_>,
        port: u16,
        bouncer: &Bouncer<'_>,
    ) -> Result<OwnedChild> {
        bench.need(&["pgbouncer"])?;
        let at = self.folder.display();
        let Bouncer {
            mode,
            pool,
            users,
            lines,
        } = bouncer;
        let database_port = self.address(None).port;
        let config = format!(
            "[databases]\n* = host={at} port={database_port}\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\nunix_socket_dir = {at}\n\
             auth_type = trust\nauth_file = {at}/users.txt\npool_mode = {mode}\ndefault_pool_size = {pool}\nlogfile = {at}/pgbouncer-{port}.log\nmax_client_conn = 300\n{lines}"
        );
        fs::write(
            self.folder.join("users.txt"),
            format!("\"postgres\" \"\"\n{users}"),
        )?;
        let path = self.folder.join(format!("pgbouncer-{port}.ini"));
        fs::write(&path, config)?;
        let program =
            sooner_testbed::program::find(&["pgbouncer"]).context("pgbouncer is not installed")?;
        let mut command = self.program(PROXY_CORE, &program);
        command.arg("-q").arg(path);
        let mut running = bench.start(command)?;
        let begin = Instant::now();
        while UnixStream::connect(self.address(Some(port)).socket()).is_err() {
            let is_over = running.has_ended() || begin.elapsed() > START_WAIT;
            if is_over {
                running.end();
            }
            ensure!(!is_over, "PgBouncer does not listen: {}", running.message());
            bench.pause(LOOK)?;
        }
        bench.pause(READY_AFTER)?;
        Ok(running)
    }
}

/// The number that stands behind these words in what pgbench prints.
pub fn pgbench_figure(printed: &str, behind: &str) -> Result<f64> {
    let rest = printed.split_once(behind);
    let (_, rest) = rest.with_context(|| format!("pgbench does not print {behind:?}"))?;
    let number = rest.split([' ', '/', '\n']).next().unwrap_or_default();
    Ok(number.parse()?)
}
