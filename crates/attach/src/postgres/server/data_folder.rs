//! A data folder's postmaster.pid, also where its paths mean something else than here: below the root
//! of a container.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::{SOCKET_NAME, ServerError};

/// As many symbolic links the kernel follows in a path.
const LINKS_MAX: usize = 40;
/// Lines of postmaster.pid, from 0.
const PID_LINE: usize = 0;
const PORT_LINE: usize = 3;
const FOLDER_LINE: usize = 4;

/// What a server wrote into its data folder.
#[derive(Debug)]
pub(super) struct Written {
    /// Its first process, as it numbers it.
    pub(super) pid: u32,
    /// Its socket file, as this process reaches it.
    pub(super) socket: PathBuf,
}

/// What a data folder's postmaster.pid says, below `root`.
pub(super) fn written(root: &Path, folder: &Path) -> Result<Written, ServerError> {
    // As it was given it may be relative, to this process.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let path = resolved_below(root, &folder.join("postmaster.pid"));
    let text = path.and_then(|path| Ok((fs::read_to_string(&path)?, path)));
    let (text, path) = text.map_err(|source| ServerError::Data {
        path: root.join(inside(&folder)).join("postmaster.pid"),
        source,
    })?;
    let line = |at| text.lines().nth(at).map_or("", str::trim);
    let (Ok(pid), false) = (line(PID_LINE).parse(), line(FOLDER_LINE).is_empty()) else {
        return Err(ServerError::NoSocket(path));
    };
    // Relative to the data folder.
    let socket = folder
        .join(line(FOLDER_LINE))
        .join(format!("{SOCKET_NAME}{}", line(PORT_LINE)));
    // Where it is not there, connecting says so.
    let socket = resolved_below(root, &socket).unwrap_or_else(|_| root.join(inside(&socket)));
    Ok(Written { pid, socket })
}

fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// A path as processes with the root `root` see it, as this process reaches it: symbolic links
/// on the way, of which absolute ones begin at that root, are followed here.
fn resolved_below(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut left: Vec<OsString> = Vec::new();
    let push = |left: &mut Vec<OsString>, path: &Path| {
        let parts = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        });
        left.extend(parts);
    };
    push(&mut left, path);
    let mut found = PathBuf::new();
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            found.pop();
            continue;
        }
        let next = found.join(&part);
        let here = root.join(&next);
        if !fs::symlink_metadata(&here)?.is_symlink() {
            found = next;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(io::Error::other("too many symbolic links"));
        }
        let target = fs::read_link(&here)?;
        if target.is_absolute() {
            found = PathBuf::new();
        }
        push(&mut left, &target);
    }
    Ok(root.join(found))
}

/// A folder as a process with the root `top` has it: `/proc` names both from the root of its mount
/// namespace, which `chroot` leaves.
pub(super) fn below_top(folder: &Path, top: &Path) -> PathBuf {
    Path::new("/").join(folder.strip_prefix(top).unwrap_or(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_names_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let missing = written(Path::new("/"), folder.path())
            .unwrap_err()
            .to_string();
        assert!(
            missing.contains("postmaster.pid") && missing.contains("--data"),
            "{missing}"
        );
        let file = folder.path().join("postmaster.pid");
        fs::write(&file, "71\n/data\n1700000000\n5433\n/run/x\n\n\nready\n").unwrap();
        let found = written(Path::new("/"), folder.path()).unwrap();
        assert_eq!(found.socket, Path::new("/run/x/.s.PGSQL.5433"));
        assert_eq!(found.pid, 71);
        fs::write(&file, "71\n/data\n1700000000\n5433\n\nlocalhost\n\nready\n").unwrap();
        assert!(written(Path::new("/"), folder.path()).is_err());
    }

    #[test]
    fn what_is_below_a_root_of_its_own_is_named_from_there() {
        for (folder, top, below) in [
            ("/data", "/", "/data"),
            ("/srv/root/data", "/srv/root", "/data"),
            ("/data", "/srv/root", "/data"),
        ] {
            assert_eq!(
                below_top(Path::new(folder), Path::new(top)),
                Path::new(below)
            );
        }
    }

    #[test]
    fn links_are_followed_below_the_root_of_a_container() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        // As in Debian's images: /var/run is an absolute link.
        for below in ["run/postgresql", "var", "pg"] {
            fs::create_dir_all(root.join(below)).unwrap();
        }
        symlink("/run", root.join("var/run")).unwrap();
        symlink("../pg", root.join("var/data")).unwrap();
        let socket = root.join("run/postgresql/.s.PGSQL.5432");
        fs::write(&socket, "").unwrap();
        let file = "71\n/data\n1700000000\n5432\n/var/run/postgresql\n\n\nready\n";
        fs::write(root.join("pg/postmaster.pid"), file).unwrap();
        let found = written(root, Path::new("/var/data")).unwrap();
        assert_eq!(found.socket, socket);
        // None leads out of it, or goes round in a circle.
        symlink("/../../../pg", root.join("out")).unwrap();
        let out = resolved_below(root, Path::new("/out")).unwrap();
        assert_eq!(out, root.join("pg"));
        symlink("round", root.join("round")).unwrap();
        assert!(resolved_below(root, Path::new("/round")).is_err());
    }
}
