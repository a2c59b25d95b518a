//! Log files: plain, gzip or zstd by their first bytes, in the order of their first line.

use crate::line::{self, Entry, TimeTaken};
use crate::survey::Surveyor;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of a line that are looked at; the rest of a longer one is passed over.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Lines of a file that are looked through for its first entry.
const LINES_AHEAD: usize = 100;

/// A log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct LogError {
    path: PathBuf,
    source: io::Error,
}

/// Log files in the order of time.
pub struct Logs {
    paths: Vec<PathBuf>,
    taken: TimeTaken,
}

impl Logs {
    /// Looks at each file's beginning, and puts them in order.
    pub fn open(paths: &[PathBuf], taken: TimeTaken) -> Result<Self, LogError> {
        let mut begun = Vec::with_capacity(paths.len());
        for path in paths {
            let first = first_entry(path, taken).map_err(|source| LogError {
                path: path.clone(),
                source,
            })?;
            begun.push((
                first.map_or(f64::INFINITY, |entry| entry.at_s),
                path.clone(),
            ));
        }
        begun.sort_by(|left, right| left.0.total_cmp(&right.0));
        Ok(Self {
            paths: begun.into_iter().map(|(_, path)| path).collect(),
            taken,
        })
    }

    /// Bytes of all files as they are stored.
    pub fn stored_bytes(&self) -> u64 {
        let sizes = self.paths.iter().filter_map(|path| path.metadata().ok());
        sizes.map(|metadata| metadata.len()).sum()
    }

    /// Reads all of them into `surveyor`; `progress` is told how many stored bytes were read. A file that breaks off, as a truncated gzip file does, is counted as far as
    /// it goes.
    pub fn read(
        &self,
        surveyor: &mut Surveyor,
        mut progress: impl FnMut(u64),
    ) -> Result<(), LogError> {
        let mut before = 0;
        for path in &self.paths {
            let failed = |source| LogError {
                path: path.clone(),
                source,
            };
            let file = File::open(path).map_err(failed)?;
            let mut counted = 0;
            let mut told = |bytes: usize| {
                counted += bytes as u64;
                progress(before + counted);
            };
            let mut lines = Lines::new(
                decoded(Counting {
                    inner: file,
                    told: &mut told,
                })
                .map_err(failed)?,
            );
            loop {
                match lines.next() {
                    Ok(Some((number, line))) => match line::read(line, self.taken) {
                        Ok(entry) => surveyor.add(entry),
                        Err(reason) => surveyor.add_other(path, number, line, reason),
                    },
                    Ok(None) => break,
                    Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                        return Err(failed(error));
                    }
                    Err(error) => {
                        surveyor.add_broken(path, lines.number, &error);
                        break;
                    }
                }
            }
            drop(lines);
            before += counted;
        }
        Ok(())
    }
}

fn first_entry(path: &Path, taken: TimeTaken) -> io::Result<Option<Entry>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut lines = Lines::new(decoded(file)?);
    for _ in 0..LINES_AHEAD {
        match lines.next() {
            Ok(Some((_, line))) => {
                if let Ok(entry) = line::read(line, taken) {
                    return Ok(Some(entry));
                }
            }
            // What is wrong with it is said when it is read.
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// The content, decompressed where the first bytes say that it is compressed.
fn decoded<'a>(file: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut reader = BufReader::with_capacity(1 << 17, file);
    let head = reader.fill_buf()?;
    Ok(match head {
        [0x1f, 0x8b, ..] => Box::new(BufReader::with_capacity(
            1 << 17,
            MultiGzDecoder::new(reader),
        )),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder =
                ruzstd::decoding::StreamingDecoder::new(reader).map_err(io::Error::other)?;
            Box::new(BufReader::with_capacity(1 << 17, decoder))
        }
        _ => Box::new(reader),
    })
}

/// Tells how much was read.
struct Counting<'a, R> {
    inner: R,
    told: &'a mut dyn FnMut(usize),
}

impl<R: Read> Read for Counting<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        (self.told)(n);
        Ok(n)
    }
}

/// Lines without their end, each cut to what is looked at.
struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    fn new(reader: Box<dyn BufRead + 'a>) -> Self {
        Self {
            reader,
            line: Vec::new(),
            number: 0,
        }
    }

    fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        self.line.clear();
        let most = LINE_BYTES_MAX as u64;
        let n = self
            .reader
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut self.line)?;
        if n == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if n == LINE_BYTES_MAX {
            self.reader.skip_until(b'\n')?;
        }
        self.number += 1;
        Ok(Some((self.number, &self.line)))
    }
}
