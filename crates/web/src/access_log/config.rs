//! The table `[log]`: where lines go, and in which form.

use super::output::is_refused_link;
use super::writer::{AccessLog, Closer};
use crate::config::{Misconfigured, parsed};
use serde::{Deserialize, Deserializer};
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::Spanned;

/// The table as it was written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// A file, `-` for standard output, or `off`; default: `off`.
    pub access: Option<Spanned<Destination>>,
    /// `json`, which says why a response took as long as it did, or `combined`, which other
    /// programs read; default: `json`.
    pub format: LogFormat,
}

/// Where the access log goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere.
    #[default]
    Off,
    /// To standard output.
    Stdout,
    /// To the end of a file, or into a pipe with a name.
    File(PathBuf),
}

/// The form of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// An object of JSON with everything that is known.
    #[default]
    Json,
    /// The combined format of Apache's httpd.
    Combined,
}

impl LogConfig {
    /// Makes a relative path of the file one below `folder`.
    pub fn relative_to(&mut self, folder: &Path) {
        if let Some(Destination::File(path)) = self.access.as_mut().map(Spanned::get_mut) {
            *path = folder.join(&*path);
        }
    }

    /// Where lines go.
    pub fn destination(&self) -> Destination {
        self.access
            .as_ref()
            .map_or(Destination::Off, |access| access.get_ref().clone())
    }

    /// Opens the destination; see [`AccessLog::open`].
    pub fn open(&self) -> Result<(AccessLog, Option<Closer>), Misconfigured> {
        let destination = self.destination();
        AccessLog::open(&destination, self.format).map_err(|error| {
            let message = destination.link_refusal().unwrap_or_else(|| {
                format!(
                    "cannot open {destination}: {error}; name a file in an existing directory, - or off"
                )
            });
            match &self.access {
                Some(access) => Misconfigured::at(access, "log.access", message),
                None => Misconfigured::without_place("log.access", message),
            }
        })
    }
}

impl Destination {
    /// Why it would not be opened now, where that is because it is a symbolic link.
    pub fn link_refusal(&self) -> Option<String> {
        match self {
            Self::File(path) if is_refused_link(path) => Some(format!(
                "{self} is a symbolic link, which root does not follow; name its target, or - for standard output"
            )),
            _ => None,
        }
    }

    /// The same, before it is known who will open it.
    pub fn link_remark(&self) -> Option<String> {
        self.link_refusal()?;
        Some(format!(
            "{self} is a symbolic link: root would not follow it; if the server starts as root, \
             name its target, or - for standard output"
        ))
    }
}

impl FromStr for Destination {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "off" => Self::Off,
            "-" => Self::Stdout,
            path => Self::File(path.into()),
        })
    }
}

impl<'de> Deserialize<'de> for Destination {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Stdout => f.write_str("standard output"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> LogConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_path_is_one_beside_the_file_and_words_are_not_paths() {
        for (text, expected) in [
            ("access = \"a.log\"", Destination::File("/etc/a.log".into())),
            ("access = \"/b.log\"", Destination::File("/b.log".into())),
            ("access = \"-\"", Destination::Stdout),
            ("access = \"off\"", Destination::Off),
            ("", Destination::Off),
        ] {
            let mut config = read(text);
            config.relative_to(Path::new("/etc"));
            assert_eq!(config.destination(), expected);
        }
        assert_eq!(read("format = \"combined\"").format, LogFormat::Combined);
        assert_eq!(read("").format, LogFormat::Json);
        assert!(toml::from_str::<LogConfig>("format = \"xml\"").is_err());
        assert!(toml::from_str::<LogConfig>("acess = \"-\"").is_err());
    }

    #[test]
    fn a_link_that_root_does_not_follow_is_called_so() {
        let test = "a_link_that_root_does_not_follow_is_called_so";
        if !rustix::process::geteuid().is_root() {
            return sooner_testbed::skip(test, "needs root");
        }
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("log");
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for target in [
            file.as_path(),
            Path::new("/dev/null"),
            Path::new("/nowhere/log"),
        ] {
            std::os::unix::fs::symlink(target, &link).unwrap();
            let config = read(&format!("access = {link:?}"));
            let message = config.open().err().unwrap().message;
            let begin = format!("{} is a symbolic link, which root does not", link.display());
            assert!(message.starts_with(&begin), "{message}");
            assert!(message.ends_with("name its target, or - for standard output"));
            std::fs::remove_file(&link).unwrap();
        }
        assert_eq!(Destination::File(file).link_refusal(), None);
        assert_eq!(Destination::File("/dev/stdout".into()).link_refusal(), None);
        assert_eq!(Destination::File(link.clone()).link_refusal(), None);
        assert_eq!(Destination::File(link).link_remark(), None);
    }

    #[test]
    fn a_folder_that_is_not_there_is_a_mistake_with_its_place() {
        let mistake = read("access = \"/nonexistent/log\"").open().err().unwrap();
        assert_eq!(
            (mistake.span, mistake.key.as_str()),
            (Some(9..27), "log.access")
        );
        assert!(mistake.message.contains("/nonexistent/log"));
    }
}
