//! A database with little memory and a slow disk: a disk in memory, and control groups that bound
//! what its processes keep in the page cache and how often they read.
//!
//! The disk is a file in memory with a file system in it, since the machine's own may be one that
//! others write to as well: then what they do is measured. Either kind of control group, the older
//! one with a tree for each resource and the newer one with one for all. Everything is removed when
//! this is dropped, and what a crash has left at the next start.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::fs::FallocateFlags;

const ROOT: &str = "/sys/fs/cgroup";
/// A file system in memory, which Linux has here.
pub const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "sooner-lab-disk-";

/// Bounds of a database.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Of everything it keeps in memory, the page cache included.
    pub memory_mib: u64,
    pub reads_per_sec: u64,
    /// Of the disk.
    pub size_mib: u64,
}

/// The disk and the control groups of one database.
pub struct SlowDisk {
    /// Where its file system is; the file that it is in has the same name and an end.
    place: PathBuf,
    is_unified: bool,
    memory: PathBuf,
    disk: PathBuf,
    bounds: Bounds,
}

impl SlowDisk {
    /// An empty disk, and groups that have no member and in which nothing is bounded; root only.
    pub fn new(bounds: Bounds) -> Result<Self> {
        let is_unified = Path::new(ROOT).join("cgroup.controllers").exists();
        let trees = if is_unified {
            [PathBuf::from(ROOT), PathBuf::from(ROOT)]
        } else {
            ["memory", "blkio"].map(|tree| Path::new(ROOT).join(tree))
        };
        for folder in left_in(Path::new(MEMORY)) {
            remove_disk(&folder);
        }
        for folder in trees.iter().flat_map(|tree| left_in(tree)) {
            // One that is in use stays.
            _ = fs::remove_dir(folder);
        }
        let own = format!("{PREFIX}{}", process::id());
        let place = Path::new(MEMORY).join(&own);
        let [memory, disk] = trees.map(|tree| tree.join(&own));
        let slow = Self {
            place,
            is_unified,
            memory,
            disk,
            bounds,
        };
        for folder in [&slow.memory, &slow.disk] {
            fs::create_dir_all(folder).context("a control group needs root")?;
        }
        slow.make_disk()?;
        Ok(slow)
    }

    /// Where its file system is.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// All of its memory is taken at once, by this process and not by those that are bounded.
    fn make_disk(&self) -> Result<()> {
        let file = file_of(&self.place);
        let bytes = self.bounds.size_mib << 20;
        // First, because what is removed is found by it, also where there is too little memory for
        // the file.
        fs::create_dir(&self.place)?;
        rustix::fs::fallocate(File::create(&file)?, FallocateFlags::empty(), 0, bytes)
            .with_context(|| format!("{bytes} bytes in {MEMORY}"))?;
        // Discarding would give the memory back.
        let now = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
        run(Command::new("mkfs.ext4")
            .args(["-q", "-F", "-E", now])
            .arg(&file))?;
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&file)
            .arg(&self.place))
    }

    /// A process and its children are in it from now on, and those that they start; memory is
    /// bounded at once.
    pub fn take(&self, pid: u32) -> Result<()> {
        let bytes = (self.bounds.memory_mib << 20).to_string();
        let file = if self.is_unified {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
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
    pub fn slow_down(&self, folder: &Path) -> Result<()> {
        let device = fs::metadata(folder)?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let reads = self.bounds.reads_per_sec;
        if self.is_unified {
            write(
                &self.disk.join("io.max"),
                &format!("{major}:{minor} riops={reads}"),
            )
        } else {
            write(
                &self.disk.join("blkio.throttle.read_iops_device"),
                &format!("{major}:{minor} {reads}"),
            )
        }
        .context("reads of this device cannot be bounded")
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        for _ in 0..50 {
            // Both go when the last process has gone.
            _ = fs::remove_dir(&self.disk);
            _ = fs::remove_dir(&self.memory);
            remove_disk(&self.place);
            if ![&self.disk, &self.memory, &self.place]
                .into_iter()
                .any(|path| path.exists())
            {
                return;
            }
            sleep(Duration::from_millis(100));
        }
    }
}

/// The folders that this or another run made here.
fn left_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let own = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    own.map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

/// Removes the disk with the file system at `place`, unless it is in use.
fn remove_disk(place: &Path) {
    _ = run(Command::new("umount").arg(place));
    // Fails while it is mounted.
    if fs::remove_dir(place).is_ok() {
        _ = fs::remove_file(file_of(place));
    }
}

fn file_of(place: &Path) -> PathBuf {
    place.with_extension("ext4")
}

fn run(command: &mut Command) -> Result<()> {
    let what = format!("{command:?}");
    let output = command
        .stdin(Stdio::null())
        .output()
        .context(what.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{what}: {}", said.trim());
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    ensure!(file.exists(), "{} is not there", file.display());
    fs::write(file, text).with_context(|| format!("{}: {text}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_cannot_be_had_leaves_nothing() {
        let refused = SlowDisk::new(Bounds {
            memory_mib: 1,
            reads_per_sec: 1,
            // A thousand tebibytes.
            size_mib: 1 << 30,
        });
        let said = refused.err().map(|error| format!("{error:#}"));
        let said = said.unwrap_or_default();
        if said.contains("control group") {
            println!("skipped: a_disk_that_cannot_be_had_leaves_nothing: {said}");
            return;
        }
        assert!(said.contains(MEMORY), "{said}");
        let own = format!("{PREFIX}{}", process::id());
        for folder in [
            MEMORY,
            ROOT,
            "/sys/fs/cgroup/memory",
            "/sys/fs/cgroup/blkio",
        ] {
            let place = Path::new(folder).join(&own);
            assert!(!place.exists() && !file_of(&place).exists(), "{folder}");
        }
    }
}
