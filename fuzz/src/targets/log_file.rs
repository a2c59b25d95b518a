//! Any bytes as two log files: compressed or not, whole or broken off, they are read to an end or
//! refused in one line.

use sooner_advise::{Logs, Surveyor, TimeTaken};
use std::io::Cursor;

/// Tries one input.
pub fn run(bytes: &[u8]) {
    let half = bytes.len() / 2;
    let streams = [("whole", bytes), ("half", &bytes[..half])];
    let streams = streams.map(|(name, bytes)| (name.to_owned(), Cursor::new(bytes.to_vec())));
    let mut surveyor = Surveyor::keeping(1_000_000, 20);
    let read = Logs::of_streams(streams, TimeTaken::Guess)
        .and_then(|logs| logs.read(&mut surveyor, |_| {}));
    if let Err(error) = read {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    for line in surveyor.broken_files() {
        assert!(!line.contains('\n'), "{line}");
    }
}
