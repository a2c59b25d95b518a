//! A control group of the hosts' own, for what the kernel can only be told by group: the first
//! retransmission timeout.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sooner_kernel::initial_timeout::{InitialTimeout, groups};

/// Moves the shell into the group of the file that comes first, then becomes the program behind it.
const ENTER: &str = r#"echo $$ > "$0" && exec "$@""#;

/// A control group with a first timeout; the caller of [`Group::make`] removes the folder.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    _timeout: InitialTimeout,
}

/// Where a group of this name would be.
pub fn path(name: &str) -> io::Result<PathBuf> {
    let mount = groups()?.ok_or_else(|| {
        let what = "control groups of version 2 are not mounted";
        io::Error::new(io::ErrorKind::NotFound, what)
    })?;
    Ok(mount.join(name))
}

impl Group {
    /// Makes the group and sets the timeout.
    pub fn make(path: PathBuf, initial_timeout: Duration) -> io::Result<Group> {
        fs::create_dir(&path)?;
        let timeout = InitialTimeout::set(&path, initial_timeout)?;
        Ok(Group {
            path,
            _timeout: timeout,
        })
    }

    /// A command that runs in the group.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", ENTER]);
        command.arg(self.path.join("cgroup.procs"));
        command.arg(program.as_ref());
        command
    }
}
