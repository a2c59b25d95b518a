//! Archives that have the same bytes whenever and wherever they are made of the same files: one
//! time, no names of users, an order by path.

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A program's rights, and those of a folder.
pub const PROGRAM: u32 = 0o755;
/// Any other file's rights.
pub const PLAIN: u32 = 0o644;

/// A file or a folder that is to be there.
pub struct Node {
    /// What is in the file; `None` is a folder.
    pub bytes: Option<Vec<u8>>,
    /// Rights.
    pub mode: u32,
    /// The number of its user and of its group.
    pub owner: u64,
}

/// Files by their path, without a slash at the beginning.
#[derive(Default)]
pub struct Tree(BTreeMap<String, Node>);

impl Tree {
    /// Adds a file that root owns.
    pub fn add(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        let node = Node {
            bytes: Some(bytes.into()),
            mode,
            owner: 0,
        };
        self.0.insert(path.to_owned(), node);
    }

    /// Adds a file as it is on the disk.
    pub fn add_file(&mut self, path: &str, mode: u32, from: &Path) -> Result<()> {
        let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.add(path, mode, bytes);
        Ok(())
    }

    /// Adds every file of a folder, below another path.
    pub fn add_files(&mut self, path: &str, from: &Path) -> Result<()> {
        let entries = fs::read_dir(from);
        for entry in entries.with_context(|| format!("cannot read {}", from.display()))? {
            let entry = entry?;
            let name = entry.file_name();
            let path = format!("{path}/{}", name.to_string_lossy());
            self.add_file(&path, PLAIN, &entry.path())?;
        }
        Ok(())
    }

    /// Adds a folder of a user.
    pub fn add_folder(&mut self, path: &str, mode: u32, owner: u64) {
        let bytes = None;
        self.0.insert(path.to_owned(), Node { bytes, mode, owner });
    }

    /// Files and folders, by path.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Files with their bytes, by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .filter_map(|(path, node)| Some((path.as_str(), node.bytes.as_deref()?)))
    }

    /// Writes all of it below a folder, which is made anew.
    pub fn write(&self, folder: &Path) -> Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        make_folder(folder)?;
        for (path, node) in self.nodes() {
            let mut at = folder.to_path_buf();
            let names: Vec<&str> = path.split('/').collect();
            let folders = names.len() - usize::from(node.bytes.is_some());
            for name in &names[..folders] {
                at.push(name);
                make_folder(&at)?;
            }
            if let Some(bytes) = &node.bytes {
                at.push(names[folders]);
                fs::write(&at, bytes).with_context(|| format!("cannot write {}", at.display()))?;
            }
            set_mode(&at, node.mode)?;
        }
        Ok(())
    }

    /// As a tar archive of that time, in seconds since 1970.
    pub fn tar(&self, epoch: u64) -> Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, node) in self.nodes() {
            let mut header = tar::Header::new_gnu();
            header.set_mode(node.mode);
            header.set_mtime(epoch);
            header.set_uid(node.owner);
            header.set_gid(node.owner);
            let bytes = node.bytes.as_deref();
            header.set_size(bytes.map_or(0, <[u8]>::len) as u64);
            let is_folder = bytes.is_none();
            header.set_entry_type(if is_folder {
                tar::EntryType::Directory
            } else {
                tar::EntryType::Regular
            });
            let name = if is_folder {
                format!("{path}/")
            } else {
                path.to_owned()
            };
            builder.append_data(&mut header, name, bytes.unwrap_or_default())?;
        }
        Ok(builder.into_inner()?)
    }
}

fn make_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
    set_mode(path, PROGRAM)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot change the rights of {}", path.display()))
}

/// Compressed as much as gzip can, without a name and a time.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// In hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Two digits a byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.add("usr/bin/b", PROGRAM, "program");
        tree.add("a", PLAIN, "text");
        tree.add_folder("tmp", 0o1777, 65532);
        tree
    }

    #[test]
    fn an_archive_has_the_same_bytes_twice_and_what_was_put_in() {
        let first = tree().tar(1_767_225_600).unwrap();
        assert_eq!(sha256(&first), sha256(&tree().tar(1_767_225_600).unwrap()));
        let mut archive = tar::Archive::new(first.as_slice());
        let found: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                format!(
                    "{} {:o} {} {}",
                    entry.path().unwrap().display(),
                    header.mode().unwrap(),
                    header.uid().unwrap(),
                    header.mtime().unwrap()
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                "a 644 0 1767225600",
                "tmp/ 1777 65532 1767225600",
                "usr/bin/b 755 0 1767225600"
            ]
        );
    }

    #[test]
    fn a_tree_is_written_with_its_rights_whatever_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("tree");
        fs::create_dir_all(at.join("old")).unwrap();
        tree().write(&at).unwrap();
        assert!(!at.join("old").exists());
        let mode = |path: &str| fs::metadata(at.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("usr/bin/b"), 0o755);
        assert_eq!(mode("usr/bin"), 0o755);
        assert_eq!(mode("a"), 0o644);
        assert_eq!(mode("tmp"), 0o1777);
    }

    #[test]
    fn gzip_says_neither_when_nor_what() {
        let packed = gzip(b"text").unwrap();
        assert_eq!(&packed[..3], [0x1f, 0x8b, 8]);
        // Flags: no name. Time: none. Best compression.
        assert_eq!(&packed[3..9], [0, 0, 0, 0, 0, 2]);
    }
}
