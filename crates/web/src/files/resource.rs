//! A file and those beside it that hold the same, compressed: what a path stands for.

use super::entry::{Description, File};
use super::expires::{Expires, Rule};
use super::extra_headers::ExtraHeaders;
use super::identity::Identity;
use super::root::{FileError, Opened, Root};
use hyper::header::CONTENT_TYPE;
use rustix::fs::Stat;
use sooner_http::negotiation::Coding;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

/// A file in all the forms it can be sent in.
#[derive(Debug)]
pub struct Resource {
    /// Its path below the root.
    pub path: Box<[u8]>,
    /// The file itself.
    pub plain: Arc<File>,
    /// Its compressed forms, the one the server likes best first.
    pub encoded: Box<[(Coding, Arc<File>)]>,
    /// What says how long clients may keep it.
    pub expires: Option<Rc<Rule>>,
}

impl Resource {
    /// Whether all its bytes can still be had; see [`File::is_current`].
    pub fn is_current(&self) -> bool {
        self.files().all(|file| file.is_current())
    }

    /// Of how many files it consists.
    pub fn file_count(&self) -> usize {
        1 + self.encoded.len()
    }

    /// How many bytes of memory the contents take.
    pub fn memory_bytes(&self) -> u64 {
        self.files().map(|file| file.memory_bytes()).sum()
    }

    fn files(&self) -> impl Iterator<Item = &Arc<File>> {
        std::iter::once(&self.plain).chain(self.encoded.iter().map(|(_, file)| file))
    }

    fn is_version(&self, stat: &Stat, sidecars: &[Sidecar]) -> bool {
        self.plain.is_version(stat)
            && self.encoded.len() == sidecars.len()
            && self
                .encoded
                .iter()
                .zip(sidecars)
                .all(|(known, found)| known.0 == found.coding && known.1.is_version(&found.stat))
    }
}

/// How resources of one site are made.
#[derive(Debug)]
pub struct ResourceMaker {
    /// Which compressed files beside a file are looked for, the one the server likes best first.
    pub codings: Vec<Coding>,
    /// What the owner adds to the headers.
    pub extra: ExtraHeaders,
    /// How long clients may keep which files.
    pub expires: Expires,
    /// Longest file that is kept in memory, bytes.
    pub memory_file_bytes_max: u64,
}

/// An open compressed form of a file.
struct Sidecar {
    coding: Coding,
    descriptor: OwnedFd,
    stat: Stat,
}

impl ResourceMaker {
    /// The resource of the file at `path` below `root`, which was opened at `now`; `known` itself if
    /// nothing has changed since.
    pub fn make(
        &self,
        (root, path): (&Root, &[u8]),
        (descriptor, stat): (OwnedFd, Stat),
        known: Option<&Rc<Resource>>,
        now: SystemTime,
    ) -> Result<Rc<Resource>, FileError> {
        let sidecars = self.open_sidecars(root, path, &stat);
        if let Some(known) = known
            && known.is_version(&stat, &sidecars)
        {
            return Ok(known.clone());
        }
        let plain = Description {
            path,
            coding: None,
            is_negotiated: !sidecars.is_empty(),
            extra: &self.extra,
        };
        let encoded: Result<Box<[_]>, _> = sidecars
            .into_iter()
            .map(|sidecar| {
                let coding = Some(sidecar.coding);
                let description = Description { coding, ..plain };
                let file = self.file(description, sidecar.descriptor, &sidecar.stat, now)?;
                Ok::<_, FileError>((sidecar.coding, file))
            })
            .collect();
        let plain = self.file(plain, descriptor, &stat, now)?;
        let media_type = plain.headers.get(CONTENT_TYPE);
        Ok(Rc::new(Resource {
            path: path.into(),
            expires: self.expires.of_file(path, media_type),
            plain,
            encoded: encoded?,
        }))
    }

    fn file(
        &self,
        description: Description<'_>,
        descriptor: OwnedFd,
        stat: &Stat,
        now: SystemTime,
    ) -> Result<Arc<File>, FileError> {
        let memory_bytes_max = self.memory_file_bytes_max;
        File::new(description, descriptor, stat, memory_bytes_max, now).map(Arc::new)
    }

    /// Those that are there, can be read and are not older than the file: an old one holds
    /// something else.
    fn open_sidecars(&self, root: &Root, path: &[u8], stat: &Stat) -> Vec<Sidecar> {
        let file = Identity::of(stat);
        self.codings
            .iter()
            .filter_map(|&coding| {
                let beside = [path, coding.suffix().as_bytes()].concat();
                let Ok(Opened::File(descriptor, stat)) = root.open_file(&beside) else {
                    return None;
                };
                let is_of_file = !Identity::of(&stat).is_older_than(&file);
                is_of_file.then_some(Sidecar {
                    coding,
                    descriptor,
                    stat,
                })
            })
            .collect()
    }
}
