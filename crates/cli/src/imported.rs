//! What `gate import` and `serve import` do with a file of another server, before and after.

use crate::{output, whole_file};
use anyhow::Context;
use sooner_import::Imported;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where `-` leads.
const STANDARD_INPUT: &str = "/dev/stdin";

/// The file that an argument names: `-` is standard input.
pub fn file(argument: &Path) -> String {
    match argument.as_os_str() == "-" {
        true => STANDARD_INPUT.into(),
        false => argument.display().to_string(),
    }
}

/// Reads a file; what is no text becomes a letter that stands for that: in a comment it does no
/// harm. A file is read more than once; a pipe gives its text once, so that is kept.
pub fn read(file: &Path) -> io::Result<String> {
    static PIPED: OnceLock<String> = OnceLock::new();
    let is_piped = file == Path::new(STANDARD_INPUT);
    if let (true, Some(text)) = (is_piped, PIPED.get()) {
        return Ok(text.clone());
    }
    let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
    if is_piped {
        PIPED.get_or_init(|| text.clone());
    }
    Ok(text)
}

/// Writes the configuration to a file or to standard output, and says how many of its `noun`s were
/// left out.
pub fn write(
    imported: &Imported,
    out: Option<&Path>,
    (command, noun): (&str, &str),
) -> anyhow::Result<()> {
    match out {
        Some(file) if imported.has_passwords => write_for_owner(file, &imported.text)
            .with_context(|| format!("cannot write {}", file.display()))?,
        Some(file) => whole_file::write(file, &imported.text)
            .with_context(|| format!("cannot write {}", file.display()))?,
        None => output::print(&imported.text)?,
    }
    let words = match imported.left_out {
        0 => "everything is carried over".to_owned(),
        1 => format!("1 {noun} is not carried over; a comment says which"),
        many => format!("{many} {noun}s are not carried over; comments say which"),
    };
    let _ = writeln!(io::stderr(), "{command}: {words}");
    Ok(())
}

/// The same as [`whole_file::write`], but that only the owner may read the file.
fn write_for_owner(file: &Path, text: &str) -> io::Result<()> {
    let place = match fs::metadata(file) {
        Ok(metadata) if !metadata.is_file() => return whole_file::write(file, text),
        // What is open already, as /dev/stdout, has its rights.
        Ok(_) if file.starts_with("/dev") || file.starts_with("/proc") => {
            return whole_file::write(file, text);
        }
        Ok(_) => fs::canonicalize(file)?,
        Err(_) => file.to_owned(),
    };
    let folder = place.parent().filter(|own| *own != Path::new(""));
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_owned);
    // A temporary file has the mode 0600 from the beginning.
    let mut own = tempfile::Builder::new()
        .prefix(".sooner-")
        .tempfile_in(folder)?;
    own.write_all(text.as_bytes())?;
    own.persist(&place).map_err(|error| error.error)?;
    Ok(())
}
