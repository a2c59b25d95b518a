//! A pgbouncer.ini, with a pg_hba.conf behind a line `---`, is refused or becomes a gate.toml that
//! the gate reads.

use sooner_import::{Files, ImportError, import};
use std::io;
use std::path::Path;

/// Tries one input.
pub fn run(text: &str) {
    let (ini, hba) = text.split_once("\n---\n").unwrap_or((text, ""));
    let read = |file: &Path| match file.to_str() {
        Some("/pgbouncer.ini") => Ok(ini.to_owned()),
        Some("/hba") => Ok(hba.to_owned()),
        Some("/users") => Ok("\"ann\" \"x\"\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let files = Files {
        folder: Path::new("/"),
        read: &read,
    };
    // Parsing and checking the result is part of the import, and its failure an error of its own.
    match import("pgbouncer.ini", &files) {
        Ok(imported) => {
            let lines = imported.text.lines();
            let left_out = lines.filter(|line| line.starts_with("# not carried over: "));
            assert_eq!(left_out.count(), imported.left_out);
        }
        Err(error @ ImportError::Own { .. }) => panic!("{error}"),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
