//! A private PostgreSQL and gates before it, all ended when dropped, and when this program ends.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::run::Run;

/// How long a program may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The ways through the gate, as `mode` in its configuration calls them.
const MODES: [&str; 2] = ["transaction", "session"];

/// Where clients find a server: at the port of 127.0.0.1, and as a socket file.
#[derive(Debug, Clone)]
pub struct Address {
    pub folder: PathBuf,
    pub port: u16,
}

impl Address {
    /// In a folder, at a port that was free a moment ago.
    fn in_folder(folder: &Path) -> Result<Self> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Self {
            folder: folder.to_owned(),
            port: free.local_addr()?.port(),
        })
    }

    fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }
}

/// The folder of PostgreSQL's programs: Debian's newest.
pub fn programs() -> Result<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let bins = debian.flatten().map(|version| version.path().join("bin"));
    bins.filter(|bin| bin.join("initdb").exists())
        .max()
        .context("needs PostgreSQL (Debian: postgresql)")
}

/// A process that is ended by a signal when dropped.
struct Running {
    child: Child,
    end: Signal,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        let begin = Instant::now();
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, self.end);
        }
        while begin.elapsed() < PATIENCE {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            sleep(LOOK_EVERY);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A database cluster.
pub struct Cluster {
    // Before the folder, because fields are dropped in this order.
    _running: Running,
    folder: TempDir,
    owner: Option<u32>,
    pub address: Address,
    pub programs: PathBuf,
}

impl Cluster {
    /// Makes and starts one, with these settings (`NAME=VALUE`) and its log in this file.
    pub fn start(settings: &[&str], log: &Path) -> Result<Self> {
        let programs = programs()?;
        let folder = TempDir::new()?;
        let owner = owner()?;
        chown(folder.path(), owner, None)?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let address = Address::in_folder(folder.path())?;
        let data = folder.path().join("data");
        let mut initdb = as_owner(owner, &programs.join("initdb"));
        initdb
            .args(["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"])
            .arg("--no-locale")
            .arg("-D")
            .arg(&data)
            .current_dir(folder.path());
        super::fetch::quietly(&mut initdb)?;
        let mut postgres = as_owner(owner, &programs.join("postgres"));
        postgres.arg("-D").arg(&data).current_dir(folder.path());
        let folder_name = folder.path().display();
        for setting in [
            "listen_addresses=127.0.0.1",
            "max_connections=100",
            "fsync=off",
            &format!("port={}", address.port),
            &format!("unix_socket_directories={folder_name}"),
        ]
        .iter()
        .chain(settings)
        {
            postgres.args(["-c", setting]);
        }
        let running = start(postgres, log, Signal::INT)?;
        let mut cluster = Self {
            _running: running,
            folder,
            owner,
            address,
            programs,
        };
        wait_for(&cluster.address, &mut cluster._running, log)?;
        Ok(cluster)
    }

    /// A folder of the cluster's owner, for files that the server reads and writes.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder)?;
        chown(&folder, self.owner, None)?;
        Ok(folder)
    }

    /// psql as the superuser, straight to the server: it runs these commands, each by itself.
    pub fn ask(&self, commands: &[&str]) -> Result<String> {
        let mut psql = super::fetch::patient(60, self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .args(["-U", "postgres", "-d", "postgres"])
            .args(["-p", &self.address.port.to_string(), "-h"])
            .arg(&self.address.folder)
            .args(commands.iter().flat_map(|command| ["-c", command]));
        let printed = crate::process::output(&mut psql)?;
        Ok(printed.trim().to_owned())
    }
}

/// `sooner gate` before a cluster.
struct Gate {
    _running: Running,
    _folder: TempDir,
    pub address: Address,
}

impl Gate {
    /// Starts it in this mode, so many transactions at a time, with its log in this file.
    fn before(
        cluster: &Cluster,
        sooner: &Path,
        mode: &str,
        transactions: u32,
        log: &Path,
    ) -> Result<Self> {
        let folder = TempDir::new()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let address = Address::in_folder(folder.path())?;
        let config = folder.path().join("gate.toml");
        let text = format!(
            "listen = [\"127.0.0.1:{port}\", \"{socket}\"]\nauth = \"trust\"\nmode = \"{mode}\"\n\
             [limits]\ntransactions = {transactions}\n\
             [[database]]\nname = \"*\"\nserver = \"postgresql:///?host={host}&port={there}\"\n",
            port = address.port,
            socket = address.socket().display(),
            host = cluster.address.folder.display(),
            there = cluster.address.port,
        );
        fs::write(&config, text)?;
        let mut command = die_with_us();
        command.arg(sooner).args(["gate", "--config"]).arg(&config);
        let mut running = start(command, log, Signal::TERM)?;
        wait_for(&address, &mut running, log)?;
        Ok(Self {
            _running: running,
            _folder: folder,
            address,
        })
    }

    /// Whether it has ended by itself.
    fn is_over(&mut self) -> bool {
        !matches!(self._running.child.try_wait(), Ok(None))
    }
}

/// A server directly, or through a gate.
pub struct TestServer {
    /// `direct`, or the gate's mode.
    pub way: &'static str,
    // Before the cluster, because it is ended first.
    gate: Option<Gate>,
    pub cluster: Cluster,
}

impl TestServer {
    /// A cluster for each way, with these settings; so many transactions at a time go through a
    /// gate.
    pub fn all(run: &Run, settings: &[&str], transactions: u32) -> Result<Vec<Self>> {
        let ways = ["direct"].into_iter().chain(MODES);
        let places = ways.map(|way| {
            let log = |what: &str| run.folder.join(format!("{what}-{way}.log"));
            let cluster = Cluster::start(settings, &log("postgresql"))?;
            let gate = if MODES.contains(&way) {
                Some(Gate::before(
                    &cluster,
                    &run.sooner,
                    way,
                    transactions,
                    &log("gate"),
                )?)
            } else {
                None
            };
            Ok(Self { way, gate, cluster })
        });
        places.collect()
    }

    /// Where its clients find it.
    pub fn address(&self) -> &Address {
        let gate = self.gate.as_ref().map(|gate| &gate.address);
        gate.unwrap_or(&self.cluster.address)
    }

    /// Fails where its gate has ended by itself.
    pub fn must_be_there(&mut self) -> Result<()> {
        let is_over = self.gate.as_mut().is_some_and(Gate::is_over);
        ensure!(!is_over, "the gate ended by itself ({})", self.way);
        Ok(())
    }
}

fn start(mut command: Command, log: &Path, end: Signal) -> Result<Running> {
    let log = File::create(log)?;
    let child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    Ok(Running { child, end })
}

fn wait_for(address: &Address, running: &mut Running, log: &Path) -> Result<()> {
    let begin = Instant::now();
    while UnixStream::connect(address.socket()).is_err() {
        let is_over = running.child.try_wait()?.is_some();
        ensure!(
            !is_over && begin.elapsed() < PATIENCE,
            "does not start: see {}",
            log.display()
        );
        sleep(LOOK_EVERY);
    }
    Ok(())
}

/// A program as the owner of clusters, ended when this thread ends.
fn as_owner(owner: Option<u32>, program: &Path) -> Command {
    // Fast: it does not wait for its clients.
    let mut command = die_by("INT");
    if let Some(uid) = owner {
        command.args([&format!("--reuid={uid}"), "--clear-groups"]);
    }
    command.arg(program);
    command
}

/// The beginning of a command that gets SIGTERM when this program ends, however it does.
pub fn die_with_us() -> Command {
    die_by("TERM")
}

/// The same by another signal.
pub fn die_by(signal: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.arg(format!("--pdeathsig={signal}"));
    command
}

/// Who runs clusters where root runs us, because PostgreSQL refuses to run as root.
fn owner() -> Result<Option<u32>> {
    if !rustix::process::getuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let uid = line.and_then(|line| line.split(':').nth(2));
    let uid = uid.context("there is no user postgres (Debian: postgresql)")?;
    Ok(Some(uid.parse()?))
}
