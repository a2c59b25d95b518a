//! Where the demo's HTML report goes. The place is tried before the measurement, so that a minute's
//! work is not lost to a path that cannot be written; the file appears whole, at the end, or not at
//! all.

use super::{DemoOptions, setup};
use anyhow::{Context, Result};
use sooner_report::{html, whole_file};
use sooner_stats::Report;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

const DEFAULT_NAME: &str = "sooner-demo.html";

/// A place for the report.
pub enum Page {
    /// Where it was wanted.
    At(PathBuf),
    /// A new file in the directory for temporary files.
    Temporary(NamedTempFile),
}

impl Page {
    /// Tries `path`: fails where it cannot be written, and changes nothing.
    pub fn at(path: &Path) -> io::Result<Page> {
        whole_file::check(path)?;
        Ok(Page::At(path.to_owned()))
    }

    /// `sooner-demo.html` in the current directory, or a new file in the directory for temporary
    /// files.
    pub fn anywhere() -> io::Result<Page> {
        Page::at(Path::new(DEFAULT_NAME)).or_else(|_| {
            let mut builder = Builder::new();
            // All users may read reports.
            builder.permissions(Permissions::from_mode(0o644));
            let builder = builder.prefix("sooner-demo-").suffix(".html");
            Ok(Page::Temporary(builder.tempfile()?))
        })
    }

    /// Writes the report and returns its absolute path.
    pub fn write(self, report: &Report, options: &DemoOptions) -> Result<PathBuf> {
        let page = html::render(report, &setup::context(options));
        let shown = match &self {
            Page::At(path) => path,
            Page::Temporary(file) => file.path(),
        };
        let shown = shown.display().to_string();
        let path = self
            .persist(page.as_bytes())
            .with_context(|| format!("cannot write the report {shown}"))?;
        Ok(path.canonicalize().unwrap_or(path))
    }

    fn persist(self, page: &[u8]) -> io::Result<PathBuf> {
        match self {
            Page::At(path) => whole_file::write(&path, page).map(|()| path),
            Page::Temporary(mut file) => {
                file.write_all(page)?;
                let kept = file.keep();
                kept.map(|(_, path)| path).map_err(|error| error.error)
            }
        }
    }
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

    #[test]
    fn a_device_and_a_link_stay_what_they_are() {
        let dir = tempfile::tempdir().expect("a directory");
        let written = |path: &Path| {
            let page = Page::at(path).expect("a place");
            page.persist(b"page").expect("written")
        };
        let (page, link) = (dir.path().join("page"), dir.path().join("link"));
        std::fs::write(&page, "old").expect("space");
        std::os::unix::fs::symlink(&page, &link).expect("a link");
        assert_eq!(written(&link), link);
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&page).expect("there"), b"page");
        // A link to a device: the device itself is not for a test to lose.
        let device = dir.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &device).expect("a link");
        written(&device);
        assert!(device.is_symlink());
    }
}
