//! Collects lines and writes them from a thread of their own.

use super::config::{Destination, LogFormat};
use super::output::{Lost, Output};
use super::record::{OpenRecord, Record, Remote};
use super::timestamp::WallClock;
use hyper::Request;
use sooner_link::JobReport;
use sooner_operate::say;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines wait for others at most this long.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// So many bytes are written without waiting.
const FLUSH_BYTES: usize = 64 << 10;
/// A writer that falls further behind loses lines: some ten thousand of them wait.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// How long the end of the program waits for a writer that is stuck.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);
/// Why lines are lost that nothing refuses.
const TOO_SLOW: &str = "its reader or disk is too slow";
/// A disk that is full again and again is not worth more lines of complaint.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// The way to the log; clones lead to the same one.
#[derive(Debug, Clone)]
pub struct AccessLog {
    shared: Option<Arc<Shared>>,
    format: LogFormat,
}

/// Ends the log: dropping it writes what waits, within a second.
#[derive(Debug)]
pub struct Closer {
    shared: Arc<Shared>,
    has_ended: Receiver<()>,
}

#[derive(Debug)]
struct Shared {
    destination: Destination,
    waiting: Mutex<Waiting>,
    is_worth_writing: Condvar,
    lost_lines: AtomicU64,
    trouble: Mutex<Trouble>,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Where in `lines` those begin that belong into the destination opened anew.
    reopen_at: Option<usize>,
    lost_lines: u64,
    is_closed: bool,
}

impl AccessLog {
    /// Opens the destination and starts the thread that writes to it. The second value ends the log
    /// when dropped.
    pub fn open(
        destination: &Destination,
        format: LogFormat,
    ) -> io::Result<(Self, Option<Closer>)> {
        let Some(output) = Output::open(destination)? else {
            return Ok((Self::off(), None));
        };
        let shared = Arc::new(Shared {
            destination: destination.clone(),
            waiting: Mutex::default(),
            is_worth_writing: Condvar::new(),
            lost_lines: AtomicU64::new(0),
            trouble: Mutex::default(),
        });
        let (ended, has_ended) = sync_channel(1);
        let writer = Writer {
            shared: shared.clone(),
            output,
        };
        std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || {
                writer.run();
                let _ = ended.send(());
            })?;
        let closer = Closer {
            shared: shared.clone(),
            has_ended,
        };
        let log = Self {
            shared: Some(shared),
            format,
        };
        Ok((log, Some(closer)))
    }

    /// A log that goes nowhere.
    pub fn off() -> Self {
        Self {
            shared: None,
            format: LogFormat::default(),
        }
    }

    /// Whether lines go anywhere.
    pub fn is_on(&self) -> bool {
        self.shared.is_some()
    }

    /// Begins the line of a response to `request`, which was read at `now`; `None` when lines go
    /// nowhere.
    pub fn begin<B>(
        &self,
        clock: &mut WallClock,
        now: Instant,
        remote: &Remote,
        request: &Request<B>,
    ) -> Option<OpenRecord> {
        self.is_on()
            .then(|| OpenRecord::new(self.format, clock, now, remote, request))
    }

    /// Begins the line of a request that could not be read, and was refused at `now`; `None` when
    /// lines go nowhere.
    pub fn begin_unreadable(
        &self,
        clock: &mut WallClock,
        now: Instant,
        remote: &Remote,
    ) -> Option<OpenRecord> {
        self.is_on()
            .then(|| OpenRecord::of_unreadable(self.format, clock, now, remote))
    }

    /// Adds a line, with what FAIR gave the response if that is known by now. Never blocks on the
    /// destination; when that is too far behind, the line is lost and counted.
    pub fn write(&self, record: &Record, report: &JobReport, fair_ns: Option<u64>) {
        let Some(shared) = &self.shared else { return };
        let mut waiting = shared.lock();
        if waiting.lines.len() >= WAITING_BYTES_MAX {
            waiting.lost_lines += 1;
            let is_first = waiting.lost_lines == 1;
            drop(waiting);
            // The writer may be stuck for as long as its reader likes.
            if is_first {
                shared.complain(TOO_SLOW);
            }
            return;
        }
        let before = waiting.lines.len();
        record.write(report, fair_ns, &mut waiting.lines);
        let is_enough = before < FLUSH_BYTES && waiting.lines.len() >= FLUSH_BYTES;
        // First unlocked, or the writer wakes only to wait again.
        drop(waiting);
        if is_enough {
            shared.is_worth_writing.notify_one();
        }
    }

    /// Opens the file anew after log rotation: lines added before go to the old one, lines added
    /// after to the new one.
    pub fn reopen(&self) {
        let Some(shared) = &self.shared else { return };
        let mut waiting = shared.lock();
        let at = waiting.lines.len();
        waiting.reopen_at.get_or_insert(at);
        drop(waiting);
        shared.is_worth_writing.notify_one();
    }

    /// Lines lost so far, because the destination took none or was too slow.
    pub fn lost_lines(&self) -> u64 {
        self.shared.as_ref().map_or(0, |shared| shared.lost_lines())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost_lines(&self) -> u64 {
        self.lost_lines.load(Ordering::Relaxed) + self.lock().lost_lines
    }

    fn complain(&self, why: &str) {
        let is_worth_saying = self.trouble().is_worth_saying(Instant::now());
        if is_worth_saying {
            let (destination, lost) = (&self.destination, in_words(self.lost_lines()));
            say(format_args!(
                "the access log {destination} cannot be written: {why}; serving on, {lost} lost so far"
            ));
        }
    }

    fn trouble_is_over(&self) {
        let is_over = self.trouble().ends();
        if is_over {
            let (destination, lost) = (&self.destination, in_words(self.lost_lines()));
            say(format_args!(
                "the access log {destination} can be written again; {lost} lost"
            ));
        }
    }
}

/// Lost lines.
fn in_words(lines: u64) -> String {
    match lines {
        1 => "1 line".into(),
        lines => format!("{lines} lines"),
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.is_worth_writing.notify_one();
        if self.has_ended.recv_timeout(CLOSE_WITHIN) == Err(RecvTimeoutError::Timeout) {
            let lost = in_words(self.shared.lost_lines());
            say(format_args!(
                "the reader of the access log does not read: {lost} lost, and the last ones with them"
            ));
        }
    }
}

struct Writer {
    shared: Arc<Shared>,
    output: Output,
}

impl Writer {
    fn run(mut self) {
        let mut lines = Vec::with_capacity(2 * FLUSH_BYTES);
        loop {
            let (reopen_at, is_closed) = self.wait_for_lines(&mut lines);
            let (before, after) = lines.split_at(reopen_at.unwrap_or(lines.len()));
            self.write(before);
            if reopen_at.is_some() {
                self.reopen();
            }
            self.write(after);
            lines.clear();
            if is_closed {
                break;
            }
        }
        self.lose(self.output.cut_lines());
        let lost_lines = self.shared.lost_lines();
        if lost_lines > 0 {
            let (destination, lost) = (&self.shared.destination, in_words(lost_lines));
            say(format_args!(
                "the access log {destination} has lost {lost} in all"
            ));
        }
    }

    /// Swaps the waiting lines for the empty `lines`; says where in them the destination is to be
    /// opened anew, and whether these were the last.
    fn wait_for_lines(&mut self, lines: &mut Vec<u8>) -> (Option<usize>, bool) {
        let goes_on_waiting = |waiting: &mut Waiting| {
            !waiting.is_closed && waiting.reopen_at.is_none() && waiting.lines.len() < FLUSH_BYTES
        };
        let condvar = &self.shared.is_worth_writing;
        let (mut waiting, _) = condvar
            .wait_timeout_while(self.shared.lock(), FLUSH_EVERY, goes_on_waiting)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut waiting.lines, lines);
        let reopen_at = waiting.reopen_at.take();
        let lost_lines = std::mem::take(&mut waiting.lost_lines);
        self.lose(lost_lines);
        let is_closed = waiting.is_closed;
        drop(waiting);
        if lost_lines > 0 {
            self.shared.complain(TOO_SLOW);
        }
        (reopen_at, is_closed)
    }

    fn write(&mut self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        let torn_lines = self.output.forget_torn();
        self.lose(torn_lines);
        match self.output.write(lines) {
            Ok(()) => self.shared.trouble_is_over(),
            Err(Lost { error, lines }) => {
                self.lose(lines);
                self.shared.complain(&without_code(&error));
            }
        }
    }

    fn reopen(&mut self) {
        match Output::open(&self.shared.destination) {
            Ok(Some(output)) => {
                self.lose(self.output.cut_lines());
                self.output = output;
            }
            Ok(None) => {}
            Err(error) => {
                let destination = &self.shared.destination;
                let why = destination.link_refusal();
                let why = why.unwrap_or_else(|| without_code(&error));
                say(format_args!(
                    "the access log {destination} cannot be reopened: {why}; it continues where it went before"
                ));
            }
        }
    }

    fn lose(&self, lines: u64) {
        self.shared.lost_lines.fetch_add(lines, Ordering::Relaxed);
    }
}

/// What was said of a destination that does not take lines.
#[derive(Debug, Default)]
struct Trouble {
    is_said: bool,
    said_at: Option<Instant>,
}

impl Trouble {
    /// Whether a new complaint is one: not while the last one holds, and not too soon after it.
    fn is_worth_saying(&mut self, now: Instant) -> bool {
        let is_recent = self
            .said_at
            .is_some_and(|said_at| now.saturating_duration_since(said_at) < COMPLAIN_EVERY);
        if self.is_said || is_recent {
            return false;
        }
        (self.is_said, self.said_at) = (true, Some(now));
        true
    }

    /// Lines are taken; whether that contradicts what was said.
    fn ends(&mut self) -> bool {
        std::mem::take(&mut self.is_said)
    }
}

/// What the system said, without its number.
fn without_code(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::ResponseFacts;
    use std::path::Path;

    const REPORT: JobReport = JobReport {
        wait_ns: 0,
        service_ns: 0,
        sent_bytes: 0,
        policy: "fair",
        rank_at_start: 0,
        bytes_of_others_meanwhile: 0,
        completed: true,
    };

    fn open(path: &Path) -> io::Result<(AccessLog, Option<Closer>)> {
        AccessLog::open(&Destination::File(path.into()), LogFormat::Json)
    }

    fn write_lines(log: &AccessLog, count: usize, status: u16) {
        let remote = Remote::new("[::1]:1".parse().unwrap(), None);
        let now = Instant::now();
        let mut clock = WallClock::new(now);
        for _ in 0..count {
            let with_response = ResponseFacts {
                status,
                ..ResponseFacts::default()
            };
            let record = log.begin_unreadable(&mut clock, now, &remote).unwrap();
            log.write(&record.with_response(with_response), &REPORT, None);
        }
    }

    fn statuses(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(serde_json::from_str::<serde_json::Value>);
        lines
            .map(|line| line.unwrap()["status"].as_u64().unwrap())
            .collect()
    }

    #[test]
    fn everything_is_written_when_it_closes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for _ in 0..2 {
            let (log, closer) = open(&path).unwrap();
            write_lines(&log, 1000, 400);
            drop(closer);
            assert_eq!(log.lost_lines(), 0);
        }
        assert_eq!(statuses(&path), [400; 2000]);
    }

    #[test]
    fn a_full_disk_loses_lines_not_time() {
        let (log, closer) = open(Path::new("/dev/full")).unwrap();
        write_lines(&log, 100, 400);
        drop(closer);
        assert_eq!(log.lost_lines(), 100);
        write_lines(&log, 100_000, 400);
        assert!(log.shared.as_ref().unwrap().lock().lines.len() <= WAITING_BYTES_MAX + 1000);
        assert!(log.lost_lines() > 100);
    }

    #[test]
    fn lines_before_a_reopening_are_in_the_old_file_and_lines_after_in_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
        let (log, closer) = open(&path).unwrap();
        write_lines(&log, 700, 400);
        std::fs::rename(&path, &moved).unwrap();
        write_lines(&log, 10, 401);
        log.reopen();
        write_lines(&log, 500, 431);
        drop(closer);
        assert_eq!(
            statuses(&moved),
            [[400].repeat(700), [401].repeat(10)].concat()
        );
        assert_eq!(statuses(&path), [431; 500]);
    }

    #[test]
    fn a_file_that_cannot_be_opened_anew_is_written_on() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        std::fs::create_dir(&below).unwrap();
        let (log, closer) = open(&below.join("log")).unwrap();
        let moved = folder.path().join("moved");
        std::fs::rename(&below, &moved).unwrap();
        log.reopen();
        write_lines(&log, 10, 400);
        drop(closer);
        assert_eq!(
            (statuses(&moved.join("log")).len(), log.lost_lines()),
            (10, 0)
        );
    }

    #[test]
    fn a_missing_folder_is_an_error_at_the_start() {
        assert!(open(Path::new("/nonexistent/log")).is_err());
    }

    #[test]
    fn a_log_that_is_off_takes_nothing() {
        let (log, closer) = AccessLog::open(&Destination::Off, LogFormat::Json).unwrap();
        log.reopen();
        assert!(!log.is_on() && closer.is_none() && log.lost_lines() == 0);
    }

    #[test]
    fn trouble_is_said_once_and_once_more_when_it_is_over() {
        let mut trouble = Trouble::default();
        let now = Instant::now();
        assert!(!trouble.ends());
        assert!(trouble.is_worth_saying(now));
        assert!(!trouble.is_worth_saying(now + 2 * COMPLAIN_EVERY));
        assert!(trouble.ends() && !trouble.ends());
        assert!(!trouble.is_worth_saying(now + COMPLAIN_EVERY / 2));
        assert!(!trouble.ends());
        assert!(trouble.is_worth_saying(now + COMPLAIN_EVERY));
    }
}
