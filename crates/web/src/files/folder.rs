//! What one site serves from the disk: its root, and which file stands for a directory.

use super::resource::{Resource, ResourceMaker};
use super::root::{FileError, Opened, Root};
use super::root_path::RootPath;
use crate::clock::Moment;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::SystemTime;

/// A file that is being written is opened so often before it is sent as it is.
const TRIES: usize = 3;

/// A served directory and how paths in it are read.
#[derive(Debug)]
pub struct Folder {
    /// The names of files that stand for their directory; the first that exists does.
    pub index: Vec<Box<[u8]>>,
    /// The directory.
    pub root: RootPath,
    /// How files become resources.
    pub maker: ResourceMaker,
}

/// What a path leads to.
#[derive(Debug)]
pub enum Lookup {
    /// A regular file.
    Resource(Rc<Resource>),
    /// A directory, open for reading; when it was requested as one, none of its files stands for
    /// it.
    Directory(OwnedFd),
}

impl Folder {
    /// Opens what `path` leads to at `now`, for a directory its index; `known` is what it led to
    /// before.
    pub fn look_up(
        &self,
        path: &[u8],
        as_directory: bool,
        known: Option<&Rc<Resource>>,
        now: Moment,
    ) -> Result<Lookup, FileError> {
        let root = self.root.root(now.instant)?;
        let place = (&root, path);
        for _ in 1..TRIES {
            let found = self.look_up_once(place, as_directory, known, now.date)?;
            match &found {
                Lookup::Resource(resource) if !resource.is_current() => {}
                _ => return Ok(found),
            }
        }
        self.look_up_once(place, as_directory, known, now.date)
    }

    fn look_up_once(
        &self,
        (root, path): (&Root, &[u8]),
        as_directory: bool,
        known: Option<&Rc<Resource>>,
        now: SystemTime,
    ) -> Result<Lookup, FileError> {
        if as_directory {
            return self.look_up_directory((root, path), known, now);
        }
        match root.open_file(path)? {
            Opened::File(descriptor, stat) => self
                .maker
                .make((root, path), (descriptor, stat), known, now)
                .map(Lookup::Resource),
            Opened::Directory(descriptor) => Ok(Lookup::Directory(descriptor)),
        }
    }

    fn look_up_directory(
        &self,
        (root, path): (&Root, &[u8]),
        known: Option<&Rc<Resource>>,
        now: SystemTime,
    ) -> Result<Lookup, FileError> {
        for name in &self.index {
            let index = match path {
                b"" => name.to_vec(),
                _ => [path, b"/", &name[..]].concat(),
            };
            match root.open_file(&index) {
                Ok(Opened::File(descriptor, stat)) => {
                    return self
                        .maker
                        .make((root, &index), (descriptor, stat), known, now)
                        .map(Lookup::Resource);
                }
                Ok(Opened::Directory(_)) | Err(FileError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        match root.open_file(path)? {
            Opened::Directory(descriptor) => Ok(Lookup::Directory(descriptor)),
            Opened::File(..) => Err(FileError::NotFound),
        }
    }
}
