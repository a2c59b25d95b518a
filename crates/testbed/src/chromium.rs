//! A page as Chromium shows it: how wide it becomes, what it says, and what went wrong.

use super::{program, skip};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// It speaks the DevTools protocol over two pipes, so it needs no package.
const SCRIPT: &str = include_str!("chromium/look.mjs");

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Where it is.
    pub url: &'a str,
    /// How wide the window is.
    pub width_pixels: u32,
    /// An expression that becomes true when the page is as it is to be.
    pub until: &'a str,
    /// Whether the system prefers dark pages.
    pub is_dark: bool,
    /// Whether scripts run.
    pub runs_scripts: bool,
    /// Where a picture of the whole page goes.
    pub picture: Option<&'a Path>,
}

impl<'a> Look<'a> {
    /// At a page in light colours, with scripts.
    pub fn at(url: &'a str, width_pixels: u32, until: &'a str) -> Self {
        Self {
            url,
            width_pixels,
            until,
            is_dark: false,
            runs_scripts: true,
            picture: None,
        }
    }

    /// What is seen, as JSON: `width_pixels` of the window, `content_pixels` that the page needs,
    /// `title`, `text`, `scripts` and `images` in it, `errors` of its console, and `failed`
    /// requests. Panics with Chromium's words where the page does not become so within `patience`.
    pub fn take(&self, patience: Duration) -> String {
        let profile = tempfile::tempdir().expect("a folder for the profile");
        let mut node = Command::new("node");
        node.args(["--input-type=module", "--eval", SCRIPT, self.url])
            .arg(profile.path())
            .arg(self.width_pixels.to_string())
            .arg(self.until)
            .arg(patience.as_millis().to_string())
            .arg(if self.is_dark { "dark" } else { "light" })
            .arg(if self.runs_scripts {
                "scripts"
            } else {
                "plain"
            })
            .args(self.picture)
            .stdin(Stdio::null());
        let output = node.output().expect("node runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Whether pages cannot be looked at here; then says so for `test`.
pub fn is_missing(test: &str) -> bool {
    let programs = [("chromium", "chromium"), ("node", "nodejs")];
    let missing = programs.iter().find(|(name, _)| program::missing(&[name]));
    if let Some((_, package)) = missing {
        skip(
            test,
            &format!("no {package}; as root: apt-get install {package}"),
        );
    }
    missing.is_some()
}
