//! Lines for the operator, on stderr.
//!
//! Written by a thread of their own: a reader that stalls must not stop the gate, so what it does not take is counted and dropped. What clients
//! say of themselves stands in lines, so nothing in them is a control character: nobody else writes a line of their own.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// Lines that may wait to be written.
const WAITING_LINES_MAX: usize = 1024;
/// The longest line, characters: names of clients are as long as they like.
const LINE_CHARACTERS_MAX: usize = 2000;
/// How long the end waits for what is not written yet.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

enum Entry {
    Line(String),
    /// Everything before it has been written.
    End(SyncSender<()>),
}

static LINES: OnceLock<Option<SyncSender<Entry>>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

fn lines() -> Option<&'static SyncSender<Entry>> {
    let begin = || {
        let (lines, written) = sync_channel(WAITING_LINES_MAX);
        let named = thread::Builder::new().name("log".into());
        named
            .spawn(move || write(&written))
            .is_ok()
            .then_some(lines)
    };
    LINES.get_or_init(begin).as_ref()
}

fn write(lines: &Receiver<Entry>) {
    let mut stderr = std::io::stderr();
    for entry in lines {
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let _ = writeln!(
                stderr,
                "sooner gate: {dropped} lines were not written: nobody read them"
            );
        }
        match entry {
            // Whoever read them may be gone: the gate goes on.
            Entry::Line(line) => drop(writeln!(stderr, "sooner gate: {line}")),
            Entry::End(written) => drop(written.try_send(())),
        }
    }
}

/// One line.
pub fn log(line: &str) {
    let line = Entry::Line(printable(line));
    let Some(lines) = lines() else { return };
    if let Err(TrySendError::Full(_)) = lines.try_send(line) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until what was said has been written, if somebody reads it.
pub fn finish() {
    let Some(lines) = lines() else { return };
    let (written, done) = sync_channel(1);
    if lines.try_send(Entry::End(written)).is_ok() {
        let _ = done.recv_timeout(LAST_LINES_WITHIN);
    }
}

/// Without control characters, and not too long.
fn printable(line: &str) -> String {
    let mut printable = String::with_capacity(line.len());
    for character in line.chars().take(LINE_CHARACTERS_MAX) {
        match character.is_control() {
            true => printable.extend(character.escape_default()),
            false => printable.push(character),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_writes_a_line_of_their_own() {
        let line = printable("user \"x\nsooner gate: all is well\u{1b}[2J\"");
        assert_eq!(line, "user \"x\\nsooner gate: all is well\\u{1b}[2J\"");
        assert_eq!(printable(&"x".repeat(5000)).len(), LINE_CHARACTERS_MAX);
    }
}
