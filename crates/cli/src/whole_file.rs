//! Files that flags name are written beside their place and renamed: what was there stays until all
//! of the new one is there.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What any program asks for; the umask takes away what it may not have.
#[cfg(unix)]
const MODE: u32 = 0o666;

/// Fails where [`write()`] would, and changes nothing.
pub fn check(path: &Path) -> io::Result<()> {
    match place(path)? {
        Some(place) => beside(&place).map(drop),
        None => fs::OpenOptions::new().write(true).open(path).map(drop),
    }
}

/// Writes `content` as all of the file at `path`, or leaves it as it is.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let Some(place) = place(path)? else {
        return fs::write(path, content);
    };
    let mut file = beside(&place)?;
    file.write_all(content.as_ref())?;
    file.persist(&place).map_err(|error| error.error)?;
    Ok(())
}

/// Where the file is, behind symbolic links; none of a device or a pipe, which is written to as it
/// is.
fn place(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() => fs::canonicalize(path).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(path.to_owned())),
        Err(error) => Err(error),
    }
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
    builder.tempfile_in(folder)
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
        assert!(check(&folder.path().join("none/page")).is_err());
        check(Path::new("/dev/null"))?;
        write(Path::new("/dev/null"), "gone")
    }
}
