//! Log files, pipes and standard input, each opened and read once, together in the order of time.

use crate::decode::{Decoded, decoded};
use crate::line::{Entry, LineReader, NoEntry};
use crate::lines::Lines;
use crate::taken::TimeTaken;
use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes of a file that are looked through for its first entry.
const AHEAD_BYTES: usize = 1 << 20;
/// So many files stay open until their turn, which survives their being renamed meanwhile; of more
/// only the paths are kept.
const HELD_MAX: usize = 200;
/// Entries between two words on progress.
const PROGRESS_ENTRIES: u32 = 4096;
/// Stands for standard input.
const STANDARD_INPUT: &str = "-";

/// A log that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Opening or reading failed.
    #[error("{name}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// It is in a form that is not read.
    #[error(
        "{name} is {form}, which Sooner does not read; use: {program} {name} | sooner {command} -"
    )]
    Form {
        /// The file.
        name: String,
        /// The form's name.
        form: &'static str,
        /// What reads it.
        program: &'static str,
        /// What reads the log then.
        command: &'static str,
    },
    /// Standard input was given more than once.
    #[error("-: standard input can be read once; give it once")]
    Twice,
}

impl LogError {
    /// The same, as this command of Sooner's says it.
    pub fn for_command(self, command: &'static str) -> Self {
        match self {
            Self::Form {
                name,
                form,
                program,
                ..
            } => Self::Form {
                name,
                form,
                program,
                command,
            },
            other => other,
        }
    }
}

/// Takes what logs have, in the order of time.
pub trait Sink {
    /// A request.
    fn add(&mut self, entry: Entry);
    /// A line that is none: the log's name, its number, its bytes, and why.
    fn add_other(&mut self, name: &str, number: u64, line: &[u8], reason: NoEntry);
    /// A log broke off behind this line.
    fn add_broken(&mut self, name: &str, line: u64, error: &io::Error);
    /// A log was given more than once, and is read once.
    fn add_repeated(&mut self, name: &str);
}

/// Logs, each looked at for its first entry.
pub struct Logs {
    logs: Vec<Log>,
    stored_bytes: u64,
    repeated: Vec<String>,
    read_bytes: Rc<Cell<u64>>,
}

/// One log that has been looked at.
struct Log {
    name: String,
    first_ns: u64,
    reader: LineReader,
    /// Opened again where it can be: many open files would take memory.
    content: Content,
}

enum Content {
    Held(File),
    File(PathBuf),
    Opened(Box<Opened>),
}

/// A log that is being read.
struct Opened {
    name: String,
    lines: Lines<'static>,
    reader: LineReader,
    /// What was read before its turn.
    ahead: VecDeque<Outcome>,
    next: Option<Entry>,
}

/// What one line gave.
enum Outcome {
    Entry(Entry),
    Other(u64, Vec<u8>, NoEntry),
    Broken(u64, io::Error),
}

/// What two names of the same file have in common.
#[cfg(unix)]
fn identity(_: &Path, metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// What two names of the same file have in common.
#[cfg(not(unix))]
fn identity(path: &Path, _: &Metadata) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

impl Logs {
    /// Looks at the beginning of each; `-` is standard input. A file that is given twice is read
    /// once.
    pub fn open(paths: &[PathBuf], taken: TimeTaken) -> Result<Self, LogError> {
        Self::open_for(paths, &LineReader::new(taken))
    }

    /// The same; entries then have what was requested.
    pub fn open_with_requests(paths: &[PathBuf], taken: TimeTaken) -> Result<Self, LogError> {
        Self::open_for(paths, &LineReader::new(taken).with_requests())
    }

    fn open_for(paths: &[PathBuf], reader: &LineReader) -> Result<Self, LogError> {
        let mut logs = Self::none();
        let mut seen = HashSet::new();
        let mut reads_standard_input = false;
        for path in paths {
            let name = path.display().to_string();
            let failed = |source| LogError::Read {
                name: name.clone(),
                source,
            };
            if path.as_os_str() == STANDARD_INPUT {
                if std::mem::replace(&mut reads_standard_input, true) {
                    return Err(LogError::Twice);
                }
                logs.add(name, io::stdin(), u64::MAX, reader)?;
                continue;
            }
            let file = File::open(path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_dir() {
                return Err(failed(io::ErrorKind::IsADirectory.into()));
            }
            if !metadata.is_file() {
                logs.add(name, file, u64::MAX, reader)?;
                continue;
            }
            if !seen.insert(identity(path, &metadata)) {
                logs.repeated.push(name);
                continue;
            }
            logs.stored_bytes += metadata.len();
            let before = logs.read_bytes.get();
            let held = file.try_clone().map_err(failed)?;
            logs.add(name.clone(), file, metadata.len(), reader)?;
            logs.read_bytes.set(before);
            let is_held = logs.logs.len() <= HELD_MAX;
            if let Some(log) = logs.logs.last_mut() {
                log.content = if is_held {
                    Content::Held(held)
                } else {
                    Content::File(path.clone())
                };
            }
        }
        Ok(logs)
    }

    /// Content that is no file, by name.
    pub fn of_streams(
        streams: impl IntoIterator<Item = (String, impl Read + 'static)>,
        taken: TimeTaken,
    ) -> Result<Self, LogError> {
        let mut logs = Self::none();
        let reader = LineReader::new(taken);
        for (name, stream) in streams {
            logs.add(name, stream, u64::MAX, &reader)?;
        }
        Ok(logs)
    }

    fn none() -> Self {
        Self {
            logs: Vec::new(),
            stored_bytes: 0,
            repeated: Vec::new(),
            read_bytes: Rc::default(),
        }
    }

    fn add(
        &mut self,
        name: String,
        source: impl Read + 'static,
        end_bytes: u64,
        reader: &LineReader,
    ) -> Result<(), LogError> {
        let mut opened = open(name.clone(), source, end_bytes, reader, &self.read_bytes)?;
        opened.look_ahead();
        let first = opened.ahead.iter().find_map(|read| match read {
            Outcome::Entry(entry) => Some(entry.stamp_ns),
            _ => None,
        });
        self.logs.push(Log {
            name,
            first_ns: first.unwrap_or(u64::MAX),
            reader: reader.clone(),
            content: Content::Opened(Box::new(opened)),
        });
        Ok(())
    }

    /// Bytes of all files as they are stored; pipes are not counted.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// Reads all of them into `surveyor`, in the order of their times where they overlap;
    /// `progress` is told how many stored bytes were read. A log that breaks off, as a truncated
    /// gzip file does, is counted as far as it goes.
    pub fn read(
        self,
        surveyor: &mut impl Sink,
        mut progress: impl FnMut(u64),
    ) -> Result<(), LogError> {
        for name in &self.repeated {
            surveyor.add_repeated(name);
        }
        let mut waiting = self.logs;
        // The next one last.
        waiting.sort_by_key(|log| std::cmp::Reverse(log.first_ns));
        let mut active: Vec<Opened> = Vec::new();
        loop {
            let earliest = |active: &[Opened]| {
                let times = active
                    .iter()
                    .enumerate()
                    .filter_map(|(place, log)| Some((log.next.as_ref()?.stamp_ns, place)));
                times.min()
            };
            let now = earliest(&active).map_or(u64::MAX, |(at_ns, _)| at_ns);
            while active.is_empty() || waiting.last().is_some_and(|log| log.first_ns <= now) {
                let Some(log) = waiting.pop() else {
                    return Ok(());
                };
                let mut opened = log.opened(&self.read_bytes)?;
                opened.advance(surveyor);
                if opened.next.is_some() {
                    active.push(opened);
                }
            }
            let Some((_, place)) = earliest(&active) else {
                continue;
            };
            // It goes on until another one is earlier.
            let others = active
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != place);
            let until = others
                .filter_map(|(_, log)| log.next.as_ref().map(|entry| entry.stamp_ns))
                .chain(waiting.last().map(|log| log.first_ns))
                .min()
                .unwrap_or(u64::MAX);
            let mut entries = 0_u32;
            while let Some(entry) = active[place].next.take() {
                surveyor.add(entry);
                entries = entries.wrapping_add(1);
                if entries.is_multiple_of(PROGRESS_ENTRIES) {
                    progress(self.read_bytes.get());
                }
                active[place].advance(surveyor);
                if active[place]
                    .next
                    .as_ref()
                    .is_some_and(|entry| entry.stamp_ns > until)
                {
                    break;
                }
            }
            progress(self.read_bytes.get());
            if active[place].next.is_none() {
                active.remove(place);
            }
        }
    }
}

impl Log {
    fn opened(self, read_bytes: &Rc<Cell<u64>>) -> Result<Opened, LogError> {
        match self.content {
            Content::Opened(opened) => Ok(*opened),
            Content::Held(file) => open_again(self.name, Ok(file), &self.reader, read_bytes),
            Content::File(path) => {
                open_again(self.name, File::open(path), &self.reader, read_bytes)
            }
        }
    }
}

fn open_again(
    name: String,
    file: io::Result<File>,
    reader: &LineReader,
    read_bytes: &Rc<Cell<u64>>,
) -> Result<Opened, LogError> {
    let begin = |mut file: File| {
        file.rewind()?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    };
    let (file, bytes) = file.and_then(begin).map_err(|source| LogError::Read {
        name: name.clone(),
        source,
    })?;
    open(name, file, bytes, reader, read_bytes)
}

fn open(
    name: String,
    source: impl Read + 'static,
    end_bytes: u64,
    reader: &LineReader,
    read_bytes: &Rc<Cell<u64>>,
) -> Result<Opened, LogError> {
    let counted = Counted {
        inner: source,
        bytes: Rc::clone(read_bytes),
    };
    let (decoded, is_plain) = decoded(counted).map_err(|source| LogError::Read {
        name: name.clone(),
        source,
    })?;
    match decoded {
        Decoded::Content(content) => Ok(Opened {
            name,
            lines: Lines::new(content, if is_plain { end_bytes } else { u64::MAX }),
            reader: reader.clone(),
            ahead: VecDeque::new(),
            next: None,
        }),
        Decoded::Other(form, program) => Err(LogError::Form {
            name,
            form,
            program,
            command: "advise",
        }),
    }
}

impl Opened {
    /// What the next line that says something gives; none at the end.
    fn read_line(&mut self) -> Option<Outcome> {
        loop {
            let line = match self.lines.next() {
                Ok(line) => line?,
                Err(error) => return Some(Outcome::Broken(self.lines.number(), error)),
            };
            let read = if line.is_long {
                Err(NoEntry::Long)
            } else {
                self.reader.read(line.text)
            };
            match read {
                Ok(None) => {}
                Ok(Some(entry)) => return Some(Outcome::Entry(entry)),
                Err(reason) => {
                    return Some(Outcome::Other(line.number, line.text.to_vec(), reason));
                }
            }
        }
    }

    /// Reads as far as the first entry, and keeps what it read.
    fn look_ahead(&mut self) {
        let mut bytes = 0;
        while bytes < AHEAD_BYTES {
            let Some(read) = self.read_line() else {
                break;
            };
            let is_last = !matches!(read, Outcome::Other(..));
            if let Outcome::Other(_, line, _) = &read {
                bytes += line.len() + 100;
            }
            self.ahead.push_back(read);
            if is_last {
                break;
            }
        }
    }

    /// Goes on to the next entry; what is none is told to `surveyor`.
    fn advance(&mut self, surveyor: &mut impl Sink) {
        self.next = None;
        loop {
            let read = match self.ahead.pop_front() {
                Some(read) => Some(read),
                None => self.read_line(),
            };
            match read {
                None => return,
                Some(Outcome::Entry(entry)) => {
                    self.next = Some(entry);
                    return;
                }
                Some(Outcome::Other(number, line, reason)) => {
                    surveyor.add_other(&self.name, number, &line, reason);
                }
                Some(Outcome::Broken(number, error)) => {
                    surveyor.add_broken(&self.name, number, &error);
                    return;
                }
            }
        }
    }
}

/// Counts what is read.
struct Counted<R> {
    inner: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes.set(self.bytes.get() + n as u64);
        Ok(n)
    }
}
