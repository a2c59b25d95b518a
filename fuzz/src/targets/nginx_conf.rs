//! An nginx.conf, with a file that it may include behind a line `---`, is refused or becomes a
//! sooner.toml that the server reads.

use sooner_import::{ImportError, NginxFiles, import_nginx};
use std::io;
use std::path::Path;

/// Tries one input.
pub fn run(text: &str) {
    let (main, other) = text.split_once("\n---\n").unwrap_or((text, ""));
    let read = |file: &Path| match file.to_str() {
        Some("/nginx.conf") => Ok(main.to_owned()),
        Some("/other") => Ok(other.to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let list = |_: &Path| Ok(vec!["nginx.conf".to_owned(), "other".to_owned()]);
    let files = NginxFiles {
        folder: Path::new("/"),
        read: &read,
        list: &list,
    };
    // Parsing and checking the result is part of the import, and its failure an error of its own.
    match import_nginx("nginx.conf", files) {
        Ok(imported) => {
            let lines = imported.text.lines();
            let left_out = lines.filter(|line| line.starts_with("# not carried over: "));
            assert_eq!(left_out.count(), imported.left_out);
        }
        Err(error @ ImportError::Own { .. }) => panic!("{error}"),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
