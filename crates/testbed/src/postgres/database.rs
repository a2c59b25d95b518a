//! A private PostgreSQL for tests, which a missing program or a failure ends with words of its own.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::statvfs;
use tempfile::TempDir;

use super::Installation;
use super::template::copy_cluster;
use crate::port;
use crate::skip::skip;

/// The port in the name of the database's socket file.
pub const DATABASE_PORT: u16 = 5432;

const PATIENCE_S: &str = "60";
/// Where memory is a folder.
const MEMORY: &str = "/dev/shm";
/// What has to be free there: a few databases at a time have tens of megabytes each.
const MEMORY_BYTES_MIN: u64 = 4 << 30;

/// A database cluster of the test's own, reached by a socket file in its folder.
pub struct Database {
    folder: TempDir,
    installation: Installation,
}

impl Database {
    /// Makes and starts one; `None`, after saying why, where PostgreSQL is not installed.
    pub fn start(test: &str) -> Option<Database> {
        let Ok(installation) = Installation::find() else {
            skip(test, "needs the package postgresql");
            return None;
        };
        let folder = folder().unwrap();
        installation.give(folder.path()).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        copy_cluster(&installation, folder.path()).unwrap();
        let database = Database {
            folder,
            installation,
        };
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
        let port = port::free().unwrap().port();
        self.restart_with(&format!(
            "-c listen_addresses=127.0.0.1 -p {port} -c ssl=on -c ssl_cert_file=server.pem -c ssl_key_file=server.key -c ssl_ca_file=ca.pem"
        ));
        port
    }

    /// Starts it anew with a library of an extension that is loaded at the start; false, after
    /// saying why, where there is no such extension.
    pub fn restart_with_library(&self, test: &str, name: &str) -> bool {
        let question =
            format!("SELECT count(*) FROM pg_available_extensions WHERE name = '{name}'");
        if self.ask(&question) == "0" {
            skip(
                test,
                &format!("needs the extension {name} (cargo xtask test extension)"),
            );
            return false;
        }
        self.stop("fast");
        self.restart_with(&format!(
            "-c listen_addresses= -p 5432 -c shared_preload_libraries={name}"
        ));
        self.ask(&format!("CREATE EXTENSION {name}"));
        true
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

    /// Gives a file to the user who runs its programs, and to no other.
    pub fn give(&self, path: &Path) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        self.installation.give(path).unwrap();
    }

    fn data(&self) -> String {
        self.folder().join("data").display().to_string()
    }

    /// A program of PostgreSQL's, as the cluster's owner.
    pub fn program(&self, name: &str) -> Command {
        let path = self.installation.programs().join(name);
        // One that hangs is a failure, not a test without end.
        let mut command = Command::new("timeout");
        command.arg(PATIENCE_S);
        if let Some((uid, _)) = self.installation.owner() {
            command.args(["setpriv", &format!("--reuid={uid}"), "--clear-groups"]);
        }
        command.arg(path);
        // pg_ctl cannot return to a folder that its owner may not enter.
        command.current_dir(self.folder()).stdin(Stdio::null());
        // Files of the user who runs the tests are not looked at.
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

    /// From now on `user` authenticates by `method`.
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

/// A new folder for a cluster, in memory where there is enough: each test copies a thousand files,
/// for which a disk takes nine times as much of the processors (0.94 for 0.10 s, ext4).
fn folder() -> io::Result<TempDir> {
    let free_bytes = statvfs(MEMORY).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
    if free_bytes < MEMORY_BYTES_MIN {
        return TempDir::new();
    }
    TempDir::new_in(MEMORY).or_else(|_| TempDir::new())
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
