//! One process at a time takes the place of an attachment to a server's processes, or puts back what a killed
//! one left: two that start at the same moment would both find it empty.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::control::named;

/// Its file is there only as long as a process has its turn.
const FILE_NAME: &str = "attach.turn";
/// Longer than putting back takes; said in an error.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// A turn; the next process has it when this is dropped.
#[derive(Debug)]
pub struct Turn {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Turn {
    /// Waits for it, 10 s at most, in this user's folder, which is made where there is none. No
    /// other user can open the file, and keep it.
    pub fn wait(folder: &Path) -> io::Result<Turn> {
        let path = folder.join(FILE_NAME);
        let failed = named(&path);
        let turn = fs::create_dir_all(folder).and_then(|()| wait_at(&path));
        turn.map_err(failed)
    }
}

fn wait_at(path: &Path) -> io::Result<Turn> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options.custom_flags(flags);
    let begin = Instant::now();
    loop {
        let file = options.open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if begin.elapsed() > PATIENCE => {
                let words = "another process has had its turn for 10 s; it may be stopped";
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
            Err(Errno::WOULDBLOCK) => {
                thread::sleep(PAUSE);
                continue;
            }
            locked => locked?,
        }
        // The one before has removed its file, and another one may be there.
        let own = file.metadata()?.ino();
        if fs::symlink_metadata(path).is_ok_and(|found| found.ino() == own) {
            let path = path.to_owned();
            return Ok(Turn { path, _file: file });
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // No caller is left to report an error to; a file that stays is opened again.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_at_a_time_has_its_turn_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("sooner");
        let (inside, turns) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let _turn = Turn::wait(&below).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        turns.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 80);
        assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_takes_no_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let told = Turn::wait(&file).unwrap_err().to_string();
        assert!(told.contains(&file.display().to_string()), "{told}");
    }
}
