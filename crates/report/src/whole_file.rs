//! Files that flags name are written beside their place and renamed: what was there stays until all
//! of the new one is there. What is standard output or error is written where those are.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What any program asks for; the umask takes away what it may not have.
#[cfg(unix)]
const MODE: u32 = 0o666;

/// Where a file is written.
enum Place {
    /// Beside this one, which is replaced.
    Beside(PathBuf),
    /// Into what is there: a device, a pipe, or what a descriptor of this process is open for.
    Inside,
    Stdout,
    Stderr,
}

/// Fails where [`write()`] would, and changes nothing.
pub fn check(path: &Path) -> io::Result<()> {
    match place(path)? {
        Place::Beside(place) => beside(&place).map(drop),
        Place::Inside => fs::OpenOptions::new().write(true).open(path).map(drop),
        Place::Stdout | Place::Stderr => Ok(()),
    }
}

/// Writes `content` as all of the file at `path`, or leaves it as it is.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let Place::Beside(place) = place(path)? else {
        let mut file = create(path)?;
        file.write_all(content.as_ref())?;
        return file.flush();
    };
    let mut file = beside(&place)?;
    file.write_all(content.as_ref())?;
    file.persist(&place).map_err(|error| error.error)?;
    Ok(())
}

/// A file at `path` that is written piece by piece; what was there is lost.
pub fn create(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    Ok(match place(path)? {
        Place::Stdout => Box::new(io::stdout()),
        Place::Stderr => Box::new(io::stderr()),
        Place::Inside | Place::Beside(_) => Box::new(File::create(path)?),
    })
}

/// Where the file is, behind symbolic links.
fn place(path: &Path) -> io::Result<Place> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() => Ok(match standard(&metadata) {
            Some(place) => place,
            None if is_descriptor(path) => Place::Inside,
            None => Place::Beside(fs::canonicalize(path)?),
        }),
        Ok(_) => Ok(Place::Inside),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Place::Beside(path.to_owned())),
        Err(error) => Err(error),
    }
}

/// Whether a file is standard output or error: opened once more it would be written from its
/// beginning by both, one over the other.
#[cfg(unix)]
fn standard(file: &fs::Metadata) -> Option<Place> {
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::MetadataExt;
    let is = |descriptor: io::Result<OwnedFd>| {
        let open = descriptor.and_then(|descriptor| File::from(descriptor).metadata());
        open.is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
    };
    if is(io::stdout().as_fd().try_clone_to_owned()) {
        return Some(Place::Stdout);
    }
    is(io::stderr().as_fd().try_clone_to_owned()).then_some(Place::Stderr)
}

#[cfg(not(unix))]
fn standard(_: &fs::Metadata) -> Option<Place> {
    None
}

/// Whether a path names what a process has open.
fn is_descriptor(path: &Path) -> bool {
    let in_proc = || {
        let parts: Vec<_> = path.components().map(|part| part.as_os_str()).collect();
        parts.len() > 4 && parts[1] == "proc" && parts[parts.len() - 2] == "fd"
    };
    path.starts_with("/dev/fd") || in_proc()
}

fn beside(place: &Path) -> io::Result<NamedTempFile> {
    let folder = match place.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".sooner-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(MODE));
    // What the crate adds to an error is the name of a file that no caller knows.
    let plain = |error: io::Error| {
        let words = error.to_string();
        let words = words.split(" at path ").next().unwrap_or_default();
        io::Error::new(error.kind(), format!("{words}: {}", folder.display()))
    };
    builder.tempfile_in(folder).map_err(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (file, link) = (folder.path().join("page"), folder.path().join("link"));
        check(&file)?;
        assert!(!file.exists());
        write(&file, "one")?;
        std::os::unix::fs::symlink(&file, &link)?;
        check(&link)?;
        assert_eq!(fs::read_to_string(&file)?, "one");
        write(&link, "two")?;
        assert_eq!(fs::read_to_string(&file)?, "two");
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(&folder)?.count(), 2);
        assert!(check(folder.path()).is_err());
        let none = folder.path().join("none");
        let error = check(&none.join("page")).expect_err("there is no such folder");
        let words = error.to_string();
        assert!(words.ends_with(&format!(": {}", none.display())), "{words}");
        assert!(!words.contains(".sooner-"), "{words}");
        check(Path::new("/dev/null"))?;
        write(Path::new("/dev/null"), "gone")
    }

    #[test]
    fn what_is_open_is_known_by_its_name() {
        for path in ["/dev/fd/3", "/proc/self/fd/3", "/proc/17/task/18/fd/3"] {
            assert!(is_descriptor(Path::new(path)), "{path}");
        }
        for path in ["/tmp/fd/3", "/proc/self/mem", "/dev/null"] {
            assert!(!is_descriptor(Path::new(path)), "{path}");
        }
    }
}
