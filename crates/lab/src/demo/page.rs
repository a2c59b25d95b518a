//! Where the demo's HTML report goes. The place is claimed before the measurement, so that a
//! minute's work is not lost to a path that cannot be written; the file appears whole, at the end,
//! or not at all.

use super::{DemoOptions, setup};
use anyhow::{Context, Result};
use sooner_report::html;
use sooner_stats::Report;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

const DEFAULT_NAME: &str = "sooner-demo.html";

/// A place for the report.
pub struct Page {
    file: NamedTempFile,
    /// Its name at the end; none to keep the temporary one.
    path: Option<PathBuf>,
}

impl Page {
    /// Claims `path`.
    pub fn at(path: &Path) -> io::Result<Page> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let file = hidden().tempfile_in(dir.unwrap_or(Path::new(".")))?;
        Ok(Page {
            file,
            path: Some(path.to_owned()),
        })
    }

    /// Claims `sooner-demo.html` in the current directory, or a new file in the directory for
    /// temporary files.
    pub fn anywhere() -> io::Result<Page> {
        Page::at(Path::new(DEFAULT_NAME)).or_else(|_| {
            let file = hidden().prefix("sooner-demo-").suffix(".html").tempfile()?;
            Ok(Page { file, path: None })
        })
    }

    /// Writes the report and returns its absolute path.
    pub fn write(self, report: &Report, options: &DemoOptions) -> Result<PathBuf> {
        let page = html::render(report, &setup::context(options));
        let shown = self
            .path
            .as_deref()
            .unwrap_or(self.file.path())
            .display()
            .to_string();
        let path = self
            .persist(page.as_bytes())
            .with_context(|| format!("cannot write the report {shown}"))?;
        Ok(path.canonicalize().unwrap_or(path))
    }

    fn persist(mut self, page: &[u8]) -> io::Result<PathBuf> {
        self.file.write_all(page)?;
        match self.path {
            Some(path) => self
                .file
                .persist(&path)
                .map(|_| path)
                .map_err(|error| error.error),
            None => self
                .file
                .keep()
                .map(|(_, path)| path)
                .map_err(|error| error.error),
        }
    }
}

/// A file that all users may read, as reports are; removed unless it is kept.
fn hidden() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder
        .prefix(".sooner-demo-")
        .permissions(Permissions::from_mode(0o644));
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_cannot_be_written_is_found_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(Page::at(&dir.path().join("no/such/dir/report.html")).is_err());
        assert!(Page::at(dir.path()).is_err(), "a directory is no file");
    }

    #[test]
    fn nothing_is_left_of_a_page_that_was_not_written() {
        let dir = tempfile::tempdir().expect("a directory");
        drop(Page::at(&dir.path().join("report.html")).expect("a place"));
        assert_eq!(dir.path().read_dir().expect("readable").count(), 0);
    }
}
