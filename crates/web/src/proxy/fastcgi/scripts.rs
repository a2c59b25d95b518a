//! Which script a path runs: one that is there, below the root. A path that leads to none never
//! reaches PHP, which would look for a script in what is before it (`/photo.jpg/x.php`).

use crate::files::{Root, RootPath};
use rustix::fs::FileType;
use sooner_http::target::{self, DotFiles};
use std::time::Instant;

/// The end of a script's name.
const ENDING: &[u8] = b".php";

/// The scripts below a root.
#[derive(Debug)]
pub struct Scripts {
    /// Where they are.
    pub root: RootPath,
    /// The script that stands for its directory.
    pub index: Box<[u8]>,
    /// The path of the script for what is no file, without its first slash.
    pub fallback: Option<Box<[u8]>>,
}

/// A script, and the rest of the path that is for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Its path below the root, with a slash in front.
    pub name: Vec<u8>,
    /// What follows it in the path: empty, or with a slash in front.
    pub info: Vec<u8>,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A script.
    Script(Script),
    /// A script by its name, and no such file.
    Missing,
    /// Something else, or nothing.
    Other,
}

impl Scripts {
    /// What `path` leads to, as it stands in a request.
    pub fn find(&self, path: &str, now: Instant) -> Found {
        let Ok(target) = target::parse(path, DotFiles::Refused) else {
            return Found::Other;
        };
        let path = &*target.path;
        let there = There(self.root.root(now).ok());
        if let Some(found) = there.named(path, target.is_directory) {
            return found;
        }
        if target.is_directory {
            let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
            let index = [path, slash, &self.index[..]].concat();
            if there.has_file(&index) {
                return Found::Script(Script::of(&index, b""));
            }
        }
        match &self.fallback {
            Some(fallback) if there.look_at(path).is_none() && there.has_file(fallback) => {
                Found::Script(Script::of(fallback, b""))
            }
            // An application behind one script has its own page at the root.
            Some(fallback) if path.is_empty() && there.has_file(fallback) => {
                Found::Script(Script::of(fallback, b""))
            }
            _ => Found::Other,
        }
    }
}

/// The root that is there now, if there is one.
struct There(Option<Root>);

impl There {
    /// The first part of the path that is the name of a script, if it leads to one.
    fn named(&self, path: &[u8], ends_with_slash: bool) -> Option<Found> {
        let (end, is_there) = first_script(path, |name| self.look_at(name))?;
        if !is_there {
            return Some(Found::Missing);
        }
        let (name, info) = path.split_at(end);
        let slash: &[u8] = if ends_with_slash { b"/" } else { b"" };
        Some(Found::Script(Script::of(name, &[info, slash].concat())))
    }

    fn has_file(&self, path: &[u8]) -> bool {
        self.look_at(path) == Some(FileType::RegularFile)
    }

    fn look_at(&self, path: &[u8]) -> Option<FileType> {
        let stat = self.0.as_ref()?.look_at(path).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    }
}

/// Where the name of a script ends in `path`, and whether a file is there; `None` where no part of
/// the path is such a name. Nothing is below what is no directory, so that a path with many such
/// names costs a look at as many as there are directories.
fn first_script(
    path: &[u8],
    mut look_at: impl FnMut(&[u8]) -> Option<FileType>,
) -> Option<(usize, bool)> {
    let mut last = None;
    let ends = (0..=path.len()).filter(|&at| at == path.len() || path[at] == b'/');
    for end in ends {
        let name = &path[..end];
        if name.len() == ENDING.len() || !is_script(name) {
            continue;
        }
        match look_at(name) {
            Some(FileType::Directory) => last = Some((end, false)),
            found => return Some((end, found == Some(FileType::RegularFile))),
        }
    }
    last
}

impl Script {
    fn of(path: &[u8], info: &[u8]) -> Self {
        Self {
            name: [&b"/"[..], path].concat(),
            info: info.to_vec(),
        }
    }

    /// Its path as it would stand in a request.
    pub fn path(&self) -> String {
        path_in_request(&self.name[1..])
    }

    /// Whether `path`, as it stands in a request, is its name and nothing else.
    pub fn is_at(&self, path: &str) -> bool {
        self.info.is_empty() && self.path() == path
    }
}

/// A path below the root as it would stand in a request.
pub fn path_in_request(path: &[u8]) -> String {
    let mut written = String::with_capacity(path.len() + 1);
    written.push('/');
    target::push_escaped(&mut written, path);
    written
}

/// Whether a path is that of a script, which no site shows as a file.
pub fn is_script(path: &[u8]) -> bool {
    path.len() >= ENDING.len() && path[path.len() - ENDING.len()..].eq_ignore_ascii_case(ENDING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Symlinks;
    use std::fs;
    use std::time::Duration;

    fn script(name: &str, info: &str) -> Found {
        Found::Script(Script {
            name: name.into(),
            info: info.into(),
        })
    }

    /// Any name of a script may have others behind it, as many as a request's head has room for.
    #[test]
    fn few_names_are_looked_at() {
        let path = "a.php/".repeat(2700);
        for (kinds, found, looks) in [
            (&[None][..], (5, false), 1),
            (&[Some(FileType::RegularFile)], (5, true), 1),
            (&[Some(FileType::Socket)], (5, false), 1),
            (&[Some(FileType::Directory), None], (11, false), 2),
            (
                &[Some(FileType::Directory), Some(FileType::RegularFile)],
                (11, true),
                2,
            ),
        ] {
            let mut looked_at = 0;
            let first = first_script(path.as_bytes(), |_| {
                looked_at += 1;
                *kinds.get(looked_at - 1).unwrap_or(&None)
            });
            assert_eq!((first, looked_at), (Some(found), looks), "{kinds:?}");
        }
        assert_eq!(first_script(b".php/b.txt", |_| panic!("no script")), None);
    }

    #[test]
    fn only_scripts_that_are_there_are_run() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("dir.php")).unwrap();
        fs::create_dir_all(root.join("plain")).unwrap();
        for name in [
            "index.php",
            "a.php",
            "photo.jpg",
            "dir.php/b.php",
            "plain/x.txt",
            "C.PHP",
        ] {
            fs::write(root.join(name), "").unwrap();
        }
        fs::write(folder.path().join("out.php"), "").unwrap();
        std::os::unix::fs::symlink("../out.php", root.join("leak.php")).unwrap();
        let find = |path: &str, fallback: Option<&str>| {
            let scripts = Scripts {
                root: RootPath::open(&root, Symlinks::Inside, Duration::ZERO).unwrap(),
                index: b"index.php"[..].into(),
                fallback: fallback.map(|fallback| fallback.as_bytes().into()),
            };
            scripts.find(path, Instant::now())
        };
        for (path, alone, behind_one) in [
            ("/", script("/index.php", ""), script("/index.php", "")),
            ("/a.php", script("/a.php", ""), script("/a.php", "")),
            (
                "/a.php/x/y",
                script("/a.php", "/x/y"),
                script("/a.php", "/x/y"),
            ),
            ("/a.php/", script("/a.php", "/"), script("/a.php", "/")),
            (
                "/%61.php/%20",
                script("/a.php", "/ "),
                script("/a.php", "/ "),
            ),
            ("/C.PHP", script("/C.PHP", ""), script("/C.PHP", "")),
            (
                "/dir.php/b.php/c",
                script("/dir.php/b.php", "/c"),
                script("/dir.php/b.php", "/c"),
            ),
            ("/photo.jpg", Found::Other, Found::Other),
            ("/photo.jpg/x.php", Found::Missing, Found::Missing),
            ("/none.php", Found::Missing, Found::Missing),
            ("/leak.php", Found::Missing, Found::Missing),
            ("/dir.php", Found::Missing, Found::Missing),
            ("/.php", Found::Other, Found::Other),
            ("/.hidden/a.php", Found::Other, Found::Other),
            ("/../a.php", Found::Other, Found::Other),
            ("/a%2ephp", script("/a.php", ""), script("/a.php", "")),
            ("/plain/", Found::Other, Found::Other),
            ("/posts/7", Found::Other, script("/index.php", "")),
            ("/posts/7.css", Found::Other, script("/index.php", "")),
            ("/a.phpx", Found::Other, script("/index.php", "")),
        ] {
            assert_eq!(find(path, None), alone, "{path}");
            assert_eq!(find(path, Some("index.php")), behind_one, "{path}");
        }
    }
}
