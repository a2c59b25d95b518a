//! What the file's names mean: where it is read from.

use std::io;
use std::path::{Path, PathBuf};

/// PgBouncer takes relative names from the folder that it was started in, those after `%include`
/// too.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// That folder.
    pub folder: &'a Path,
    /// Reads a file of text.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
}

impl Place<'_> {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A name as gate.toml has it: there, relative names are beside that file.
    pub(super) fn absolute(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(super) fn text(&self, name: &str) -> io::Result<String> {
        (self.read)(&self.path(name))
    }
}
