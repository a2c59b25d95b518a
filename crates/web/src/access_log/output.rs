//! Where lines end up: a file, standard output or a pipe with a name. A line that was cut by an
//! error is completed first thing afterwards.

use super::config::Destination;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Addresses of visitors and what they requested are not for every user of the machine; a group may
/// read them.
const FILE_MODE: u32 = 0o640;

/// An open destination.
#[derive(Debug)]
pub struct Output<W = File> {
    out: W,
    /// How long a file is by now, bytes; `None` for what is none.
    length_of: fn(&W) -> Option<u64>,
    /// The rest of a line of which the beginning is written.
    cut: Vec<u8>,
    /// How long the file was then.
    cut_at_bytes: Option<u64>,
}

/// Lines that could not be written.
#[derive(Debug)]
pub struct Lost {
    /// Why.
    pub error: io::Error,
    /// How many of those that were given.
    pub lines: u64,
}

impl Output {
    /// Opens the destination without waiting; `None` for none.
    pub fn open(destination: &Destination) -> io::Result<Option<Self>> {
        let file = match destination {
            Destination::Off => return Ok(None),
            // The descriptor itself: std's buffer would keep a line that failed, and write it
            // twice.
            Destination::Stdout => File::from(io::stdout().as_fd().try_clone_to_owned()?),
            Destination::File(path) => open_file(path)?,
        };
        Ok(Some(Self::new(file, length_of_file)))
    }
}

fn length_of_file(file: &File) -> Option<u64> {
    let found = file.metadata().ok()?;
    found.is_file().then_some(found.len())
}

/// A pipe without a reader must not hold up the start: opened for both directions, it opens at
/// once, and keeps what is written for a later reader.
fn open_file(path: &Path) -> io::Result<File> {
    if is_pipe(path) {
        OpenOptions::new().read(true).write(true).open(path)
    } else {
        let flags = if may_be_planted(path) {
            OFlags::NOFOLLOW
        } else {
            OFlags::empty()
        };
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(FILE_MODE)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
    }
}

fn is_pipe(path: &Path) -> bool {
    let found = path.metadata();
    found.is_ok_and(|found| found.file_type().is_fifo())
}

/// Whether `path` is a link that is not followed now.
pub fn is_refused_link(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| found.is_symlink()) && may_be_planted(path) && !is_pipe(path)
}

/// Whether another user could have put a link there for root to follow: logs lie in folders that
/// the user may write whom root becomes.
fn may_be_planted(path: &Path) -> bool {
    rustix::process::geteuid().is_root() && !path.starts_with("/dev")
}

impl<W: Write> Output<W> {
    fn new(out: W, length_of: fn(&W) -> Option<u64>) -> Self {
        Self {
            out,
            length_of,
            cut: Vec::new(),
            cut_at_bytes: None,
        }
    }

    /// Where the file has been emptied since, the beginning of a line that was cut is gone, and its
    /// rest goes too; how many lines are lost with that.
    pub fn forget_torn(&mut self) -> u64 {
        let is_shorter = (self.length_of)(&self.out) < self.cut_at_bytes;
        if self.cut.is_empty() || !is_shorter {
            return 0;
        }
        self.cut.clear();
        1
    }

    /// Writes whole lines. After an error those that were not begun are lost, and the one that was
    /// begun is ended by the next call.
    pub fn write(&mut self, lines: &[u8]) -> Result<(), Lost> {
        let cut = std::mem::take(&mut self.cut);
        if let (written, Err(error)) = write_until_error(&mut self.out, &cut) {
            self.keep_rest(&cut[written..]);
            let lines = count(lines);
            return Err(Lost { error, lines });
        }
        let (written, result) = write_until_error(&mut self.out, lines);
        result.map_err(|error| {
            let whole = end_of_line(lines, written);
            self.keep_rest(&lines[written..whole]);
            let lines = count(&lines[whole..]);
            Lost { error, lines }
        })
    }

    fn keep_rest(&mut self, rest: &[u8]) {
        self.cut = rest.to_vec();
        self.cut_at_bytes = (self.length_of)(&self.out);
    }

    /// Lines that were begun and will not be ended when this goes: at most one.
    pub fn cut_lines(&self) -> u64 {
        u64::from(!self.cut.is_empty())
    }
}

/// As far as it goes: the bytes written, and what stopped it.
fn write_until_error(out: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match out.write(&bytes[written..]) {
            Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// The end of the line that `at` is within; `at` itself between lines.
fn end_of_line(lines: &[u8], at: usize) -> usize {
    if at == 0 || lines[at - 1] == b'\n' {
        return at;
    }
    let rest = lines[at..].iter().position(|&byte| byte == b'\n');
    rest.map_or(lines.len(), |length| at + length + 1)
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A disk that takes so many bytes and then fails.
    #[derive(Default)]
    struct Disk {
        free_bytes: usize,
        holds: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.free_bytes);
            if taken == 0 && !bytes.is_empty() {
                return Err(ErrorKind::StorageFull.into());
            }
            self.free_bytes -= taken;
            self.holds.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn every_line_is_whole_or_lost_wherever_the_disk_fills_up(writes in proptest::collection::vec((0_usize..5, 0_usize..40), 1..30)) {
            let mut output = Output::new(Disk::default(), |disk| Some(disk.holds.len() as u64));
            let (mut given, mut lost) = (0, 0);
            for (lines, free_bytes) in writes {
                output.out.free_bytes = free_bytes;
                let text = "a line\n".repeat(lines);
                given += lines as u64;
                lost += output.write(text.as_bytes()).err().map_or(0, |lost| lost.lines);
            }
            output.out.free_bytes = 100;
            prop_assert!(output.write(b"").is_ok());
            prop_assert_eq!(output.cut_lines(), 0);
            let holds = String::from_utf8(output.out.holds).unwrap();
            prop_assert!(holds.lines().all(|line| line == "a line"));
            prop_assert_eq!(holds.lines().count() as u64 + lost, given);
        }
    }

    #[test]
    fn the_rest_of_a_line_does_not_outlive_its_beginning() {
        let mut output = Output::new(Disk::default(), |disk| Some(disk.holds.len() as u64));
        output.out.free_bytes = 10;
        assert!(output.write(b"first\nsecond\n").is_err());
        assert_eq!(output.forget_torn(), 0);
        // As copytruncate does, and `: > log`.
        output.out.holds.clear();
        output.out.free_bytes = 100;
        assert_eq!((output.forget_torn(), output.forget_torn()), (1, 0));
        output.write(b"third\n").unwrap();
        assert_eq!(output.out.holds, b"third\n");
    }

    #[test]
    fn a_new_file_is_not_for_every_user_and_one_that_is_there_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        let open = || Output::open(&Destination::File(path.clone())).unwrap();
        open();
        assert_eq!(mode() & !0o640, 0);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        open();
        assert_eq!(mode(), 0o666);
    }

    #[test]
    fn a_pipe_whose_reader_is_gone_takes_nothing_and_breaks_nothing() {
        let (reader, writer) = io::pipe().unwrap();
        let mut output = Output::new(writer, |_| None);
        output.write(b"one\n").unwrap();
        drop(reader);
        let lost = output.write(b"two\nthree\n").err().unwrap();
        assert_eq!((lost.lines, lost.error.kind()), (2, ErrorKind::BrokenPipe));
    }

    #[test]
    fn a_pipe_without_a_reader_does_not_hold_up_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let mut output = Output::open(&Destination::File(path.clone()))
            .unwrap()
            .unwrap();
        output.write(b"for a next reader\n").unwrap();
        let mut reader = File::open(path).unwrap();
        let mut read = [0; 18];
        io::Read::read_exact(&mut reader, &mut read).unwrap();
        assert_eq!(&read, b"for a next reader\n");
    }
}
