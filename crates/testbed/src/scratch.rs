//! Temporary folders that every server may enter, and that are removed even after their process was
//! killed.
//!
//! Each is locked by the process that made it, for as long as that process lives. A shell waits for
//! the end of that process, whatever end it is, and removes the folder; what it could not remove,
//! the next start does.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

const PREFIX: &str = "sooner-scratch-";
/// A folder is there for a moment before it is locked.
const AGE_MIN: Duration = Duration::from_secs(60);

/// A folder that is removed with this.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Waits for the end of this process, by a pipe that nothing is written to.
    remover: Option<Child>,
    /// Locked, which the end of the process undoes whatever that end is.
    _lock: File,
}

impl Scratch {
    /// Makes one under TMPDIR.
    pub fn new() -> Result<Self> {
        let under = tempfile::env::temp_dir();
        remove_left(&under, AGE_MIN);
        Self::under(&under)
            .context("cannot make a temporary directory; set TMPDIR to one with room")
    }

    fn under(folder: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let lock = File::open(folder.path())?;
        lock.lock()?;
        let remover = remover(folder.path()).ok();
        Ok(Self {
            folder,
            remover,
            _lock: lock,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// What still writes there ends a moment after this process.
const REMOVE: &str = "cat; for pause in 0 1 2 4; do sleep $pause; rm -rf -- \"$1\" && exit; done";

/// Not in our process group, so that it does not end with the group.
fn remover(folder: &Path) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", REMOVE, "sh"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(mut remover) = self.remover.take() {
            // Its pipe is closed, and it removes the folder before we look whether it is gone.
            drop(remover.stdin.take());
            let _ = remover.wait();
        }
    }
}

/// Removes what killed processes left under `folder`; what cannot be looked at or removed belongs
/// to another user.
fn remove_left(folder: &Path, age_min: Duration) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let age = entry.metadata().and_then(|found| found.modified());
        let age = age
            .ok()
            .and_then(|made| made.elapsed().ok())
            .unwrap_or_default();
        if !is_ours || !is_folder || age < age_min {
            continue;
        }
        if let Ok(left) = File::open(entry.path())
            && left.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_our_end_removes_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("file"), "").unwrap();
        let mut remover = remover(&left).unwrap();
        assert!(remover.try_wait().unwrap().is_none() && left.exists());
        // As the kernel does for a process that is killed.
        drop(remover.stdin.take());
        assert!(remover.wait().unwrap().success());
        assert!(!left.exists());
    }

    #[test]
    fn what_nobody_holds_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let held = Scratch::under(folder.path()).unwrap();
        let left = folder.path().join(format!("{PREFIX}left"));
        let others = folder.path().join("others");
        for path in [&left, &others] {
            fs::create_dir(path).unwrap();
            fs::write(path.join("file"), "").unwrap();
        }
        remove_left(folder.path(), Duration::from_secs(3600));
        assert!(left.exists(), "it may be new and not yet locked");
        remove_left(folder.path(), Duration::ZERO);
        assert!(!left.exists());
        assert!(others.exists() && held.path().exists());
        drop(held);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
