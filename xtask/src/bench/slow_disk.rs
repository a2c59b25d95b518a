//! A database with little memory and a slow disk: control groups that bound what its processes keep in the page cache and how often they read.
//!
//! Either kind of control group, the older one with a tree for each resource and the newer one with one for all. They are removed when this is
//! dropped, and what a crash has left at the next start.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, ensure};

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "sooner-bench-disk-";

/// Bounds of a database.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Of everything it keeps in memory, the page cache included.
    pub memory_mib: u64,
    pub reads_per_sec: u64,
}

/// The control groups of one database.
pub struct SlowDisk {
    is_unified: bool,
    memory: PathBuf,
    disk: PathBuf,
    bounds: Bounds,
}

impl SlowDisk {
    /// New groups, of which nobody is a member and in which nothing is bounded; root only.
    pub fn new(bounds: Bounds) -> anyhow::Result<Self> {
        let is_unified = Path::new(ROOT).join("cgroup.controllers").exists();
        let trees = match is_unified {
            true => [PathBuf::from(ROOT), PathBuf::from(ROOT)],
            false => ["memory", "blkio"].map(|tree| Path::new(ROOT).join(tree)),
        };
        for tree in &trees {
            remove_what_was_left(tree);
        }
        let own = format!("{PREFIX}{}", process::id());
        let [memory, disk] = trees.map(|tree| tree.join(&own));
        for folder in [&memory, &disk] {
            fs::create_dir_all(folder).context("a control group needs root")?;
        }
        Ok(Self {
            is_unified,
            memory,
            disk,
            bounds,
        })
    }

    /// A process and its children are in it from now on, and those that they start; memory is bounded at once.
    pub fn take(&self, pid: u32) -> anyhow::Result<()> {
        let bytes = (self.bounds.memory_mib << 20).to_string();
        let file = match self.is_unified {
            true => "memory.max",
            false => "memory.limit_in_bytes",
        };
        write(&self.memory.join(file), &bytes)?;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let children = children.split_whitespace().map(str::to_owned);
        for process in std::iter::once(pid.to_string()).chain(children) {
            for folder in [&self.memory, &self.disk] {
                write(&folder.join("cgroup.procs"), &process)?;
            }
        }
        Ok(())
    }

    /// Reads from the device under `folder` are bounded from now on.
    pub fn slow_down(&self, folder: &Path) -> anyhow::Result<()> {
        let device = fs::metadata(folder)?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let reads = self.bounds.reads_per_sec;
        match self.is_unified {
            true => write(
                &self.disk.join("io.max"),
                &format!("{major}:{minor} riops={reads}"),
            ),
            false => write(
                &self.disk.join("blkio.throttle.read_iops_device"),
                &format!("{major}:{minor} {reads}"),
            ),
        }
        .context("reads of this device cannot be bounded")
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        for _ in 0..50 {
            // A group goes when its last process has gone.
            _ = fs::remove_dir(&self.disk);
            _ = fs::remove_dir(&self.memory);
            if !self.disk.exists() && !self.memory.exists() {
                return;
            }
            sleep(Duration::from_millis(100));
        }
    }
}

fn remove_what_was_left(tree: &Path) {
    let Ok(entries) = fs::read_dir(tree) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            // One that is in use stays.
            _ = fs::remove_dir(entry.path());
        }
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    ensure!(file.exists(), "{} is not there", file.display());
    fs::write(file, text).with_context(|| format!("{}: {text}", file.display()))
}
