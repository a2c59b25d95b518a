//! A PostgreSQL of a test's or an experiment's own.
//!
//! The programs are those in the folder that SOONER_POSTGRES names, else those in PATH, else the
//! newest of Debian's. PostgreSQL refuses to run as root, so root runs it as the user `postgres`.

mod cluster;
mod database;
mod gate;
mod talk;
mod template;

pub use cluster::{Address, Cluster};
pub use database::{DATABASE_PORT, Database, printed, said, signal_child_of, until};
pub use gate::Gate;
pub use talk::Talk;

use anyhow::{Context, Result, ensure};
use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All of them, or a folder is not the one.
const PROGRAMS: [&str; 4] = ["initdb", "postgres", "psql", "pgbench"];
/// Names the folder with the programs to take.
const VARIABLE: &str = "SOONER_POSTGRES";
/// Where Debian and its relatives have a folder a version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// An installed PostgreSQL.
#[derive(Clone, Debug)]
pub struct Installation {
    programs: PathBuf,
    version: String,
    /// User and group of the server, where it cannot be those of this process.
    owner: Option<(u32, u32)>,
}

impl Installation {
    /// Looks for one where SOONER_POSTGRES says, in PATH, then for the newest under
    /// /usr/lib/postgresql; an error says what to install.
    pub fn find() -> Result<Installation> {
        let path = env::var_os("PATH").unwrap_or_default();
        let programs = match env::var_os(VARIABLE) {
            Some(named) => named.into(),
            None => programs(env::split_paths(&path), Path::new(DEBIAN))?,
        };
        let owner = if rustix::process::geteuid().is_root() {
            Some(postgres_user().context(
                "PostgreSQL refuses to run as root, and there is no user `postgres`: run this as another user, or install PostgreSQL as a package (`apt install postgresql`)",
            )?)
        } else {
            None
        };
        let version = version(&programs.join("postgres"))?;
        Ok(Installation {
            programs,
            version,
            owner,
        })
    }

    /// What it calls itself, as `PostgreSQL 15.9`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// One of its programs, without what the environment says of other databases.
    pub fn program(&self, name: &str) -> Command {
        command_without_environment(&self.programs.join(name))
    }

    /// The same, as the user who runs the server, in a folder that they may enter.
    pub fn server_program(&self, name: &str, folder: &Path) -> Command {
        self.server_command(&self.programs.join(name), folder)
    }

    /// Any program as that user.
    pub fn server_command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = command_without_environment(program);
        command.current_dir(folder);
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command
    }

    /// Where its programs are.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// User and group of the server, where it cannot be those of this process.
    pub fn owner(&self) -> Option<(u32, u32)> {
        self.owner
    }

    /// Makes a folder that belongs to the user who runs the server.
    pub fn make_folder(&self, folder: &Path) -> Result<()> {
        let made = fs::create_dir(folder).and_then(|()| self.give(folder));
        made.with_context(|| format!("cannot make {}", folder.display()))
    }

    /// Gives a file or folder to the user who runs the server.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        match self.owner {
            Some((user, group)) => chown(path, Some(user), Some(group)),
            None => Ok(()),
        }
    }
}

fn command_without_environment(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (key, _) in env::vars_os() {
        if key.to_string_lossy().starts_with("PG") {
            command.env_remove(key);
        }
    }
    command.env("LC_ALL", "C");
    command
}

/// The first folder that has all of them.
fn programs(path: impl Iterator<Item = PathBuf>, debian_root: &Path) -> Result<PathBuf> {
    let found = path
        .chain(debian(debian_root))
        .find(|folder| has_all(folder));
    found.with_context(|| {
        format!(
            "there is no PostgreSQL here: {} were found together neither in PATH nor under {}; install it (`apt install postgresql`)",
            PROGRAMS.join(", "),
            debian_root.display()
        )
    })
}

fn has_all(folder: &Path) -> bool {
    PROGRAMS.iter().all(|name| folder.join(name).is_file())
}

/// The folders of programs below `root`, the newest version first.
fn debian(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, path)| path).collect()
}

/// Numbers of the user `postgres` and its group.
fn postgres_user() -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut numbers = line.split(':').skip(2);
    let user = numbers.next()?.parse().ok()?;
    let group = numbers.next()?.parse().ok()?;
    Some((user, group))
}

fn version(postgres: &Path) -> Result<String> {
    let output = Command::new(postgres).arg("--version").output();
    let output = output.with_context(|| format!("cannot start {}", postgres.display()))?;
    ensure!(
        output.status.success(),
        "{} --version failed",
        postgres.display()
    );
    let text = String::from_utf8_lossy(&output.stdout);
    // `postgres (PostgreSQL) 15.9 (Debian 15.9-1)`
    let (_, rest) = text
        .split_once("(PostgreSQL) ")
        .with_context(|| format!("{} is not a PostgreSQL", postgres.display()))?;
    let number = rest.split_whitespace().next().unwrap_or_default();
    Ok(format!("PostgreSQL {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_looked_at_first() {
        let root = tempfile::tempdir().unwrap();
        for name in ["9", "15", "17", "common"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let newest = ["17", "15", "9"].map(|name| root.path().join(name).join("bin"));
        assert_eq!(debian(root.path()), newest);
    }

    #[test]
    fn a_folder_without_one_of_the_programs_is_not_taken() {
        let root = tempfile::tempdir().unwrap();
        let [path, newest] = ["path", "17/bin"].map(|name| root.path().join(name));
        for folder in [&path, &newest] {
            fs::create_dir_all(folder).unwrap();
            for name in &PROGRAMS[1..] {
                fs::write(folder.join(name), "").unwrap();
            }
        }
        let found = || programs([path.clone()].into_iter(), root.path());
        let error = found().unwrap_err().to_string();
        assert!(error.contains("apt install postgresql"), "{error}");
        for folder in [&newest, &path] {
            fs::write(folder.join(PROGRAMS[0]), "").unwrap();
            assert_eq!(found().unwrap(), **folder);
        }
    }
}
