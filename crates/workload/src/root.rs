//! Makes a document root from a trace: every object as a real file.

use crate::content;
use crate::trace::{Object, Trace};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// File that marks a directory as made here; it holds the trace's name.
pub const MARKER: &str = ".sooner-mkroot";

/// The same while it is written.
const UNFINISHED_MARKER: &str = ".sooner-mkroot.unfinished";

/// Bytes made or compared at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// What [`mkroot`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RootSummary {
    /// Files written.
    pub written_files: u64,
    /// Bytes in the files written.
    pub written_bytes: u64,
    /// Files that were already right.
    pub kept_files: u64,
    /// Bytes in the files that were already right.
    pub kept_bytes: u64,
}

/// A document root that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// The directory holds something else.
    #[error("{}: not empty and not made by mkroot; give an empty or new directory", .0.display())]
    NotOurs(PathBuf),
    /// The directory holds another trace's files.
    #[error("{}: holds the files of trace `{found}`; give another directory for `{wanted}`", path.display())]
    OtherTrace {
        /// The directory.
        path: PathBuf,
        /// The trace of the files that it holds.
        found: String,
        /// The requested trace.
        wanted: String,
    },
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Writes every object of `trace` that has bytes to `dir` + [`Object::path`], made if missing.
/// Files that are already right are kept, so an interrupted call can be repeated; each file appears
/// whole or not at all.
pub fn mkroot(trace: &Trace, dir: &Path) -> Result<RootSummary, RootError> {
    claim(dir, &trace.name)?;
    let mut summary = RootSummary::default();
    for object in trace.objects.iter().filter(|object| object.size_bytes > 0) {
        let path = dir.join(&object.path()[1..]);
        if is_right(object, &path) {
            summary.kept_files += 1;
            summary.kept_bytes += object.size_bytes;
        } else {
            write(object, &path).map_err(|source| RootError::Io { path, source })?;
            summary.written_files += 1;
            summary.written_bytes += object.size_bytes;
        }
    }
    Ok(summary)
}

/// Of this file or directory.
fn io_error(path: &Path) -> impl FnOnce(io::Error) -> RootError {
    let path = path.to_path_buf();
    move |source| RootError::Io { path, source }
}

/// Writes the marker, whole or not at all, into a directory with nothing but markers.
fn mark(dir: &Path, marker: &Path, trace_name: &str) -> Result<(), RootError> {
    for entry in fs::read_dir(dir).map_err(io_error(dir))? {
        let name = entry.map_err(io_error(dir))?.file_name();
        if name != MARKER && name != UNFINISHED_MARKER {
            return Err(RootError::NotOurs(dir.into()));
        }
    }
    let unfinished = dir.join(UNFINISHED_MARKER);
    fs::write(&unfinished, format!("{trace_name}\n"))
        .and_then(|()| fs::rename(&unfinished, marker))
        .map_err(io_error(marker))
}

/// Makes `dir` ours, or says why it cannot be.
fn claim(dir: &Path, trace_name: &str) -> Result<(), RootError> {
    let objects = dir.join("objects");
    let marker = dir.join(MARKER);
    match fs::read_to_string(&marker) {
        Ok(found) if found.trim_end() == trace_name => {}
        // As a full disk left it once.
        Ok(found) if found.is_empty() => mark(dir, &marker, trace_name)?,
        Ok(found) => {
            let (found, wanted) = (found.trim_end().into(), trace_name.into());
            return Err(RootError::OtherTrace {
                path: dir.into(),
                found,
                wanted,
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(dir).map_err(io_error(dir))?;
            mark(dir, &marker, trace_name)?;
        }
        Err(source) => {
            return Err(RootError::Io {
                path: marker,
                source,
            });
        }
    }
    fs::create_dir_all(&objects).map_err(io_error(&objects))
}

/// Whether the file is there with exactly the object's bytes.
fn is_right(object: &Object, path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    if !file
        .metadata()
        .is_ok_and(|metadata| metadata.len() == object.size_bytes)
    {
        return false;
    }
    let mut reader = BufReader::with_capacity(CHUNK_BYTES, file);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    while offset < object.size_bytes {
        let len = CHUNK_BYTES.min((object.size_bytes - offset) as usize);
        if reader.read_exact(&mut chunk[..len]).is_err()
            || !content::matches(object.id, offset, &chunk[..len])
        {
            return false;
        }
        offset += len as u64;
    }
    true
}

fn write(object: &Object, path: &Path) -> io::Result<()> {
    // No object's own name begins with a dot.
    let unfinished = path.with_file_name(format!(".{}.unfinished", object.id));
    let mut file = File::create(&unfinished)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    while offset < object.size_bytes {
        let len = CHUNK_BYTES.min((object.size_bytes - offset) as usize);
        content::fill(object.id, offset, &mut chunk[..len]);
        file.write_all(&chunk[..len])?;
        offset += len as u64;
    }
    drop(file);
    fs::rename(&unfinished, path)
}
