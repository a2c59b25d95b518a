//! Collects lines and writes them from a thread of their own.

use super::record::Record;
use sooner_uplink::JobReport;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lines wait for others at most this long.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// So many bytes are written without waiting.
const FLUSH_BYTES: usize = 64 << 10;
/// A writer that falls further behind loses lines: some ten thousand of them wait.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// How long the end of the program waits for a writer that is stuck.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// Where the access log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere.
    Off,
    /// To standard output.
    Stdout,
    /// To the end of a file.
    File(PathBuf),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Stdout => f.write_str("standard output"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// The way to the log; clones lead to the same one.
#[derive(Debug, Clone)]
pub struct AccessLog(Option<Arc<Shared>>);

/// Ends the log: dropping it writes what waits, within a second.
#[derive(Debug)]
pub struct Closer {
    shared: Arc<Shared>,
    has_ended: Receiver<()>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    is_worth_writing: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    lost_lines: u64,
    is_closed: bool,
}

impl AccessLog {
    /// Opens the destination and starts the thread that writes to it. The second value ends the log when dropped.
    pub fn open(destination: &Destination) -> io::Result<(Self, Option<Closer>)> {
        let out: Box<dyn Write + Send> = match destination {
            Destination::Off => return Ok((Self(None), None)),
            Destination::Stdout => Box::new(io::stdout()),
            Destination::File(path) => {
                Box::new(OpenOptions::new().create(true).append(true).open(path)?)
            }
        };
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            is_worth_writing: Condvar::new(),
        });
        let (ended, has_ended) = sync_channel(1);
        let writer = Writer {
            shared: shared.clone(),
            name: destination.to_string(),
            out,
            has_complained: false,
            lost_lines: 0,
        };
        std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || {
                writer.run();
                let _ = ended.send(());
            })?;
        Ok((
            Self(Some(shared.clone())),
            Some(Closer { shared, has_ended }),
        ))
    }

    /// Whether lines go anywhere.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a line. Never blocks on the destination; when that is too far behind, the line is lost and counted.
    pub fn write(&self, record: &Record, report: &JobReport) {
        let Some(shared) = &self.0 else { return };
        let mut waiting = shared.lock();
        if waiting.lines.len() >= WAITING_BYTES_MAX {
            waiting.lost_lines += 1;
            return;
        }
        let before = waiting.lines.len();
        record.write(report, &mut waiting.lines);
        let is_enough = before < FLUSH_BYTES && waiting.lines.len() >= FLUSH_BYTES;
        // First unlocked, or the writer wakes only to wait again.
        drop(waiting);
        if is_enough {
            shared.is_worth_writing.notify_one();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.is_worth_writing.notify_one();
        if self.has_ended.recv_timeout(CLOSE_WITHIN) == Err(RecvTimeoutError::Timeout) {
            eprintln!("sooner: the access log's reader does not read: its last lines are lost");
        }
    }
}

struct Writer {
    shared: Arc<Shared>,
    name: String,
    out: Box<dyn Write + Send>,
    has_complained: bool,
    lost_lines: u64,
}

impl Writer {
    fn run(mut self) {
        let mut lines = Vec::with_capacity(2 * FLUSH_BYTES);
        loop {
            let is_closed = self.wait_for_lines(&mut lines);
            self.write_out(&lines);
            lines.clear();
            if is_closed {
                break;
            }
        }
        if self.lost_lines > 0 {
            eprintln!(
                "sooner: access log {}: {} lines were lost",
                self.name, self.lost_lines
            );
        }
    }

    /// Swaps the waiting lines for the empty `lines`; says whether these were the last.
    fn wait_for_lines(&mut self, lines: &mut Vec<u8>) -> bool {
        let goes_on_waiting =
            |waiting: &mut Waiting| !waiting.is_closed && waiting.lines.len() < FLUSH_BYTES;
        let condvar = &self.shared.is_worth_writing;
        let (mut waiting, _) = condvar
            .wait_timeout_while(self.shared.lock(), FLUSH_EVERY, goes_on_waiting)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut waiting.lines, lines);
        let (lost_lines, is_closed) = (std::mem::take(&mut waiting.lost_lines), waiting.is_closed);
        drop(waiting);
        if lost_lines > 0 {
            self.lost_lines += lost_lines;
            self.complain("its writer cannot keep up");
        }
        is_closed
    }

    fn write_out(&mut self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        if let Err(error) = self.out.write_all(lines).and_then(|()| self.out.flush()) {
            self.lost_lines += lines.iter().filter(|&&byte| byte == b'\n').count() as u64;
            self.complain(&error.to_string());
        }
    }

    /// Once is enough: the count comes at the end.
    fn complain(&mut self, why: &str) {
        if !self.has_complained {
            self.has_complained = true;
            eprintln!(
                "sooner: access log {}: {why}; lines are being lost",
                self.name
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::Remote;

    fn write_lines(log: &AccessLog, count: usize) {
        let remote = Remote::new("[::1]:1".parse().unwrap());
        let record = Record::of_unreadable(b"", &remote, 400);
        let report = JobReport {
            wait_ns: 0,
            service_ns: 0,
            sent_bytes: 0,
            policy: "fair",
            rank_at_start: 0,
            bytes_of_others_meanwhile: 0,
            completed: true,
        };
        for _ in 0..count {
            log.write(&record, &report);
        }
    }

    #[test]
    fn everything_is_written_when_it_closes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for _ in 0..2 {
            let (log, closer) = AccessLog::open(&Destination::File(path.clone())).unwrap();
            write_lines(&log, 1000);
            drop(closer);
        }
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 2000);
        assert!(
            text.lines()
                .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
        );
    }

    #[test]
    fn a_full_disk_loses_lines_not_time() {
        let (log, closer) = AccessLog::open(&Destination::File("/dev/full".into())).unwrap();
        write_lines(&log, 100);
        drop(closer);
        write_lines(&log, 100_000);
        assert!(log.0.unwrap().lock().lines.len() <= WAITING_BYTES_MAX + 1000);
    }

    #[test]
    fn a_missing_folder_is_an_error_at_the_start() {
        assert!(AccessLog::open(&Destination::File("/nonexistent/log".into())).is_err());
    }
}
