//! What to restore on a device, kept in a file so that a kill does not lose it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::BandsError;
use crate::device::Device;
use crate::netlink::link::GsoLimits;
use crate::netlink::traffic::{QdiscReply, ROOT};
use crate::netns;

/// What one installation changed beside the qdisc, and who did it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub pid: u32,
    pub device: String,
    pub previous: GsoLimits,
    pub limited: GsoLimits,
    /// The configured root qdisc that gave way and what was inside it, from the root down, which
    /// come back; none: the kernel's own does.
    pub replaced: Vec<QdiscReply>,
    path: PathBuf,
}

impl Record {
    /// Writes down what is about to be changed.
    pub fn write(
        device: &Device,
        previous: GsoLimits,
        limited: GsoLimits,
        replaced: Vec<QdiscReply>,
    ) -> Result<Record, BandsError> {
        let path = path_of(device).ok_or(BandsError::NoFolder)?;
        let record = Record {
            pid: std::process::id(),
            device: device.name.clone(),
            previous,
            limited,
            replaced,
            path,
        };
        record.save().map_err(|source| BandsError::Record {
            path: record.path.clone(),
            source,
        })?;
        Ok(record)
    }

    /// What was written down for the device of this index, by whatever name; None when nothing was,
    /// or not legibly. It may be of another device, which is gone: the limits tell.
    pub fn read(device: &Device) -> Option<Record> {
        let path = path_of(device)?;
        parse(&legible(&path)?, path)
    }

    /// Whether something is written down for it here, legibly or not.
    pub fn is_there(device: &Device) -> bool {
        path_of(device).is_some_and(|path| fs::symlink_metadata(path).is_ok())
    }

    /// Removes what is written down and cannot be read. One that may not be removed does no harm.
    pub fn forget(device: &Device) {
        if let Some(path) = path_of(device) {
            let _ = fs::remove_file(path);
        }
    }

    /// All that are legible, each with its network namespace and its device's index there.
    pub fn all() -> Vec<(Record, u64, u32)> {
        let folder = runtime_folder().and_then(|folder| fs::read_dir(folder).ok());
        let entries = folder.into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let (namespace, index) = place_of(name.to_str()?)?;
                let text = legible(&entry.path())?;
                Some((parse(&text, entry.path())?, namespace, index))
            })
            .collect()
    }

    /// Whether the process that wrote it is there, as far as its number says.
    pub fn has_process(&self) -> bool {
        Path::new("/proc").join(self.pid.to_string()).exists()
    }

    /// Forgets it; a file that is gone is fine. One that may not be removed any more, because the
    /// process has become another user, stays without harm: the next start finds nothing to restore
    /// by it, and removes it.
    pub fn delete(&self) -> Result<(), BandsError> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Ok(()),
                _ => Err(BandsError::Record {
                    path: self.path.clone(),
                    source: error,
                }),
            },
        }
    }

    /// Written beside and renamed, so that a reader never sees half of it.
    fn save(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let beside = self.path.with_extension(self.pid.to_string());
        let saved = self
            .write_to(&beside)
            .and_then(|()| fs::rename(&beside, &self.path));
        if saved.is_err() {
            // A full disk takes the name and not the text.
            let _ = fs::remove_file(&beside);
        }
        saved
    }

    fn write_to(&self, path: &Path) -> io::Result<()> {
        // What an earlier process of this number left. A new file, so that no link of this name leads
        // elsewhere, whichever user made it.
        let _ = fs::remove_file(path);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(self.text().as_bytes())
    }

    fn text(&self) -> String {
        let limits = |limits: GsoLimits| {
            let ipv4 = limits
                .ipv4_size_bytes
                .map_or("-".into(), |bytes| bytes.to_string());
            format!("{} {} {ipv4}", limits.size_bytes, limits.segments)
        };
        let replaced: String = self.replaced.iter().map(line_of).collect();
        format!(
            "pid {}\ndevice {}\nprevious {}\nlimited {}\n{replaced}",
            self.pid,
            self.device,
            limits(self.previous),
            limits(self.limited)
        )
    }
}

/// A record's text; none of what is no file, which could keep its reader waiting.
fn legible(path: &Path) -> Option<String> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    is_file.then(|| fs::read_to_string(path).ok()).flatten()
}

fn parse(text: &str, path: PathBuf) -> Option<Record> {
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
    };
    let limits = |key: &str| {
        let mut words = value(key)?.split(' ');
        let (size, segments, ipv4) = (words.next()?, words.next()?, words.next()?);
        let ipv4_size_bytes = if ipv4 == "-" {
            None
        } else {
            Some(ipv4.parse().ok()?)
        };
        Some(GsoLimits {
            size_bytes: size.parse().ok()?,
            segments: segments.parse().ok()?,
            ipv4_size_bytes,
        })
    };
    Some(Record {
        replaced: text.lines().filter_map(qdisc_of).collect(),
        pid: value("pid")?.parse().ok()?,
        device: value("device")?.into(),
        previous: limits("previous")?,
        limited: limits("limited")?,
        path,
    })
}

/// One qdisc that gave way.
fn line_of(qdisc: &QdiscReply) -> String {
    let options: String = qdisc
        .options
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let place = match qdisc.parent {
        ROOT => "replaced".into(),
        parent => format!("inside {parent}"),
    };
    format!("{place} {} {} {options}\n", qdisc.kind, qdisc.handle)
}

/// The qdisc of such a line; none of another one.
fn qdisc_of(line: &str) -> Option<QdiscReply> {
    let mut words = line.split(' ');
    let parent = match words.next()? {
        "replaced" => ROOT,
        "inside" => words.next()?.parse().ok()?,
        _ => return None,
    };
    Some(QdiscReply {
        parent,
        kind: words.next()?.into(),
        handle: words.next()?.parse().ok()?,
        options: bytes(words.next()?)?,
    })
}

/// From two digits each.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    digits
        .len()
        .is_multiple_of(2)
        .then(|| digits.chunks(2).map(byte).collect())?
}

/// One file a network namespace and device; None where there is no folder for it.
fn path_of(device: &Device) -> Option<PathBuf> {
    Some(runtime_folder()?.join(format!(
        "bands-{}-{}",
        netns::current_id().ok()?,
        device.index
    )))
}

/// The namespace and the device's index in the name of a record's file.
fn place_of(file_name: &str) -> Option<(u64, u32)> {
    let (namespace, index) = file_name.strip_prefix("bands-")?.split_once('-')?;
    Some((namespace.parse().ok()?, index.parse().ok()?))
}

/// Where this process keeps what a next start must find, by its user and environment; none where
/// there is none.
pub fn runtime_folder() -> Option<PathBuf> {
    let is_root = rustix::process::geteuid().is_root();
    folder(is_root, |name| {
        std::env::var_os(name).filter(|value| !value.is_empty())
    })
}

/// A folder only this user may write, gone after a reboot as the bands are: root's own, systemd's
/// for a service, or the login's.
fn folder(is_root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if is_root {
        return Some("/run/sooner".into());
    }
    let of_service = variable("RUNTIME_DIRECTORY").map(PathBuf::from);
    of_service.or_else(|| Some(PathBuf::from(variable("XDG_RUNTIME_DIR")?).join("sooner")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(pid: u32, size: u32, segments: u32, ipv4: Option<u32>, all: Vec<(u32, Vec<u8>)>) {
            let limits = GsoLimits { size_bytes: size, segments, ipv4_size_bytes: ipv4 };
            let limited = GsoLimits { segments: 1, ..limits };
            let replaced = |(parent, options)| QdiscReply { kind: "cake".into(), handle: pid, parent, options };
            let root = all.first().map(|(_, options)| (ROOT, options.clone()));
            let replaced: Vec<_> = root.into_iter().chain(all).map(replaced).collect();
            let record = Record { pid, device: "eth0".into(), previous: limits, limited, replaced, path: "/x".into() };
            prop_assert_eq!(parse(&record.text(), "/x".into()), Some(record));
        }

        #[test]
        fn any_text_is_read(text: String) {
            let _ = parse(&text, "/x".into());
        }
    }

    #[test]
    fn the_folder_is_the_users_own() {
        let none = |_: &str| None;
        let login = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| "/run/user/7".into());
        let service = |_: &str| Some("/run/web".into());
        assert_eq!(folder(true, service), Some("/run/sooner".into()));
        assert_eq!(folder(false, service), Some("/run/web".into()));
        assert_eq!(folder(false, login), Some("/run/user/7/sooner".into()));
        assert_eq!(folder(false, none), None);
    }

    #[test]
    fn the_place_stands_in_the_files_name() {
        assert_eq!(place_of("bands-4026531840-2"), Some((4026531840, 2)));
        for other in [
            "bands-7",
            "bands-7-",
            "bands-7-2.113",
            "lab-7-2",
            "bands-x-2",
        ] {
            assert_eq!(place_of(other), None, "{other}");
        }
    }

    #[test]
    fn half_a_record_is_none() {
        assert_eq!(
            parse("pid 1\ndevice eth0\nprevious 65536 655", "/x".into()),
            None
        );
    }
}
