//! The real `sooner gate` as a process of its own, which can be killed and started again at the
//! same place.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::wire::ServerAddress;

/// No client has this address as its own, so that none can be given the gate's port while there is
/// no gate.
const ADDRESS: [u8; 4] = [127, 0, 64, 32];

/// A gate; killed when dropped.
pub struct GateProcess {
    folder: TempDir,
    address: SocketAddr,
    backend: String,
    limit: u32,
    child: Child,
}

impl GateProcess {
    /// Before the database with its socket file in `database`, ready.
    pub fn start(database: &Path, limit: u32) -> Self {
        let folder = TempDir::new().unwrap();
        let free = TcpListener::bind(SocketAddr::from((ADDRESS, 0))).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let backend = format!("postgresql:///?host={}&port=5432", database.display());
        let child = spawn(folder.path(), address, &backend, limit);
        Self {
            folder,
            address,
            backend,
            limit,
            child,
        }
    }

    /// Where clients come in: by TCP and by a socket file.
    pub fn places(&self) -> [ServerAddress; 2] {
        let file = socket(self.folder.path());
        [ServerAddress::Tcp(self.address), ServerAddress::Unix(file)]
    }

    /// What it has in memory.
    pub fn resident_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// The most that it has had in memory since it began.
    pub fn peak_bytes(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        kib.parse::<u64>().unwrap() * 1024
    }

    /// Whether it runs, as only `kill` should have ended it.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again.
    pub fn restart(&mut self) {
        self.child = spawn(self.folder.path(), self.address, &self.backend, self.limit);
    }

    /// What all of them have said so far.
    pub fn said(&self) -> String {
        let said = fs::read(log(self.folder.path())).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Drop for GateProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join(".s.PGSQL.6432")
}

fn log(folder: &Path) -> PathBuf {
    folder.join("log")
}

fn spawn(folder: &Path, address: SocketAddr, backend: &str, limit: u32) -> Child {
    let mut log_file = OpenOptions::new();
    let log_file: File = log_file
        .create(true)
        .append(true)
        .open(log(folder))
        .unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("sooner"));
    command
        .args(["gate", "--auth", "trust", "--clients-max", "1000"])
        .args(["--limit", &limit.to_string(), "--backend", backend])
        .args(["--listen", &address.to_string(), "--listen"])
        .arg(socket(folder))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log_file);
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready: "), "the gate says {line:?}");
    child
}
