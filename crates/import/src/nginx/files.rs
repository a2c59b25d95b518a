//! Where the text of a configuration comes from: a folder, or one file with the output of
//! `nginx -T`.

use crate::ini::ImportError;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// What `nginx -T` writes before each file.
const MARK: &str = "# configuration file ";
/// The name of the file that others are beside.
const MAIN: &str = "nginx.conf";

/// Reads files for an import, which does no I/O itself.
#[derive(Clone, Copy)]
pub struct NginxFiles<'a> {
    /// The folder that a relative name of the main file is in.
    pub folder: &'a Path,
    /// Reads a file of text.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The names of what is in a folder.
    pub list: &'a dyn Fn(&Path) -> io::Result<Vec<String>>,
}

/// A main file, and what it may include.
pub struct Sources<'a> {
    files: NginxFiles<'a>,
    /// The files in the output of `nginx -T`; nothing else is read then.
    dumped: Option<BTreeMap<PathBuf, String>>,
    /// The main file, and its name in messages.
    pub main: (PathBuf, String),
    /// The folder that relative names are in.
    pub prefix: PathBuf,
}

impl<'a> Sources<'a> {
    /// Finds out what `file` is.
    pub fn of(file: &str, files: NginxFiles<'a>) -> Result<Self, ImportError> {
        let path = plain(&files.folder.join(file));
        let text = (files.read)(&path).map_err(|error| ImportError::Unreadable {
            file: file.to_owned(),
            what: error.to_string(),
        })?;
        if let Some((main, dumped)) = dumped(&text) {
            let name = main.display().to_string();
            return Ok(Self {
                files,
                prefix: main.parent().unwrap_or(Path::new("/")).to_owned(),
                main: (main, name),
                dumped: Some(dumped),
            });
        }
        Ok(Self {
            files,
            prefix: prefix(&path, files),
            main: (path, file.to_owned()),
            dumped: None,
        })
    }

    /// The text of a file.
    pub fn text(&self, path: &Path) -> io::Result<String> {
        match &self.dumped {
            Some(dumped) => dumped
                .get(path)
                .cloned()
                .ok_or_else(|| io::ErrorKind::NotFound.into()),
            None => (self.files.read)(path),
        }
    }

    /// An absolute name.
    pub fn absolute(&self, name: &str) -> PathBuf {
        plain(&self.prefix.join(name))
    }

    /// The files that an `include` names, in nginx's order. A pattern may name none.
    pub fn included(&self, name: &str) -> Vec<PathBuf> {
        let path = self.absolute(name);
        if !name.contains(['*', '?', '[']) {
            return vec![path];
        }
        let mut found = vec![PathBuf::new()];
        for part in path.components() {
            let Component::Normal(wanted) = part else {
                found.iter_mut().for_each(|path| path.push(part));
                continue;
            };
            let wanted = wanted.to_string_lossy();
            found = found
                .iter()
                .flat_map(|folder| self.below(folder, &wanted))
                .collect();
        }
        found.sort();
        found
    }

    fn below(&self, folder: &Path, wanted: &str) -> Vec<PathBuf> {
        if !wanted.contains(['*', '?', '[']) {
            return vec![folder.join(wanted)];
        }
        let names = match &self.dumped {
            Some(dumped) => dumped
                .keys()
                .filter_map(|path| path.strip_prefix(folder).ok()?.components().next())
                .map(|name| name.as_os_str().to_string_lossy().into_owned())
                .collect(),
            None => (self.files.list)(folder).unwrap_or_default(),
        };
        let mut names: Vec<String> = names
            .into_iter()
            .filter(|name| fits(wanted.as_bytes(), name.as_bytes()))
            // A star at the beginning does not stand for a hidden file.
            .filter(|name| !name.starts_with('.') || wanted.starts_with('.'))
            .collect();
        names.sort();
        names.dedup();
        names.iter().map(|name| folder.join(name)).collect()
    }
}

/// nginx takes relative names from the folder of nginx.conf; a file of one site is somewhere below.
fn prefix(path: &Path, files: NginxFiles<'_>) -> PathBuf {
    let own = path.parent().unwrap_or(Path::new("/"));
    let has_main = |folder: &&Path| {
        let names = (files.list)(folder).unwrap_or_default();
        names.iter().any(|name| name == MAIN)
    };
    own.ancestors().find(has_main).unwrap_or(own).to_owned()
}

/// A path without `.` and `..`, as names and not as the file system has it.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The first file and all files of what `nginx -T` has written, if that is what it is.
fn dumped(text: &str) -> Option<(PathBuf, BTreeMap<PathBuf, String>)> {
    let mut main = None;
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut current: Option<PathBuf> = None;
    for line in text.split_inclusive('\n') {
        let mark = line.strip_prefix(MARK);
        let name = mark.and_then(|rest| rest.trim_end().strip_suffix(':'));
        if let Some(name) = name.filter(|name| name.starts_with('/')) {
            let path = plain(Path::new(name));
            main.get_or_insert_with(|| path.clone());
            files.entry(path.clone()).or_default();
            current = Some(path);
        } else if let Some(text) = current.as_ref().and_then(|path| files.get_mut(path)) {
            text.push_str(line);
        }
    }
    Some((main?, files))
}

/// Whether a name fits a pattern with `*`, `?` and `[...]`, as glob(7) has it.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut own) = (0, 0);
    // Where the last star was, and how much of the name it stands for.
    let mut star: Option<(usize, usize)> = None;
    while own < name.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, own));
            at += 1;
        } else if let Some(bytes) = one(&pattern[at..], name[own]) {
            at += bytes;
            own += 1;
        } else if let Some((place, from)) = star {
            star = Some((place, from + 1));
            at = place + 1;
            own = from + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// How many bytes of the pattern stand for this one byte, if they do.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', set @ ..] => {
            let end = set.iter().skip(1).position(|&byte| byte == b']')? + 1;
            let (is_negated, own) = match &set[..end] {
                [b'!' | b'^', own @ ..] => (true, own),
                own => (false, own),
            };
            let is_range = own
                .windows(3)
                .any(|three| three[1] == b'-' && (three[0]..=three[2]).contains(&byte));
            ((is_range || own.contains(&byte)) != is_negated).then_some(end + 2)
        }
        [own, ..] => (*own == byte).then_some(1),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_glob() {
        for (pattern, name, is_fit) in [
            ("*.conf", "a.conf", true),
            ("*.conf", "a.conf~", false),
            ("*", "a", true),
            ("a?c", "abc", true),
            ("[0-9]*-x", "10-x", true),
            ("[!a]b", "ab", false),
            ("*a*b", "xxaxxb", true),
            ("[", "[", false),
            ("a*", "ba", false),
        ] {
            assert_eq!(
                fits(pattern.as_bytes(), name.as_bytes()),
                is_fit,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn what_nginx_prints_is_taken_apart() {
        let text = "nginx: the configuration file is ok\n\
            # configuration file /etc/nginx/nginx.conf:\nhttp {\n}\n\n\
            # configuration file /etc/nginx/conf.d/a.conf:\nserver {}\n";
        let (main, files) = dumped(text).unwrap();
        assert_eq!(main, Path::new("/etc/nginx/nginx.conf"));
        assert_eq!(files[Path::new("/etc/nginx/conf.d/a.conf")], "server {}\n");
        assert_eq!(files[&main], "http {\n}\n\n");
        assert!(dumped("# configuration file of ours\nserver {}").is_none());
    }
}
