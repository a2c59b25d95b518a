//! Child processes that do not outlive their handle.
//!
//! [`OwnedChild`] leads a group of its own, is asked to end when dropped and then made to; what it
//! writes is read by threads, so that it never waits for a reader. [`ChildGuard`] only kills a
//! child with streams that its owner reads.

pub mod waiting;

use std::io::{self, BufRead, BufReader, Read};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

/// How long a process may take to end after it was asked.
const END_WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// No more of what a process wrote to standard error is kept for a reader.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// A process that leads a group of its own, so that Ctrl-C reaches only us and its children end
/// with it.
#[derive(Debug)]
pub struct OwnedChild {
    child: Child,
    /// What asks it to end.
    end_signal: Signal,
    /// Whether it has ended and its number may be another process's by now.
    is_collected: bool,
    /// Lines of standard output; in a mutex that no thread waits for, so that a child's owner can
    /// be shared between threads.
    lines: Mutex<Receiver<String>>,
    /// Lines of standard error.
    messages: Mutex<Receiver<String>>,
    /// Bytes of standard error that are not read yet.
    unread_bytes: Arc<AtomicUsize>,
}

impl OwnedChild {
    /// Starts it, reading all that it writes.
    pub fn spawn(command: &mut Command) -> io::Result<OwnedChild> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let ((told, lines), (complained, messages)) = (channel(), channel());
        let unread_bytes = Arc::new(AtomicUsize::new(0));
        if let Some(stdout) = child.stdout.take() {
            // Ends with the pipe; a receiver that is gone does not keep the process from writing.
            thread::spawn(move || {
                each_line(stdout, |line| {
                    told.send(line).ok();
                });
            });
        }
        if let Some(stderr) = child.stderr.take() {
            let unread_bytes = Arc::clone(&unread_bytes);
            thread::spawn(move || {
                each_line(stderr, |line| keep(line, &complained, &unread_bytes));
            });
        }
        Ok(OwnedChild {
            child,
            end_signal: Signal::TERM,
            is_collected: false,
            lines: Mutex::new(lines),
            messages: Mutex::new(messages),
            unread_bytes,
        })
    }

    /// From now on it is asked to end by `signal`; before by SIGTERM.
    pub fn end_by(&mut self, signal: Signal) {
        self.end_signal = signal;
    }

    /// Its process id, and its group's.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line it writes to standard output; disconnected when it has closed it.
    pub fn next_line(&mut self, wait: Duration) -> Result<String, RecvTimeoutError> {
        let lines = self.lines.get_mut();
        lines
            .unwrap_or_else(PoisonError::into_inner)
            .recv_timeout(wait)
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&self) -> bool {
        // Left uncollected, so that its number stays its own, and its group's.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.is_collected
            || self
                .pid()
                .is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), look), Ok(None)))
    }

    /// Asks it to end, kills it when it does not, then what is left of its group; how it ended.
    pub fn end(&mut self) -> Option<ExitStatus> {
        if let Some(pid) = self.pid().filter(|_| !self.is_collected) {
            // It may have ended just now, which is what is wanted.
            kill_process(pid, self.end_signal).ok();
            let asked = Instant::now();
            while !self.has_ended() && asked.elapsed() < END_WAIT {
                thread::sleep(PAUSE);
            }
            kill_process_group(pid, Signal::KILL).ok();
        }
        self.is_collected = true;
        self.child.wait().ok()
    }

    /// The next line it writes to standard error; disconnected when it has closed it.
    pub fn next_message(&mut self, wait: Duration) -> Result<String, RecvTimeoutError> {
        let messages = self.messages.get_mut();
        let messages = messages.unwrap_or_else(PoisonError::into_inner);
        let line = messages.recv_timeout(wait)?;
        self.unread_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        Ok(line)
    }

    /// The beginning of what it wrote to standard error and was not read yet, once it has closed
    /// it.
    pub fn message(&mut self) -> String {
        let messages = self.messages.get_mut();
        let messages = messages.unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<String> = messages.iter().collect();
        lines.join("\n").trim().into()
    }

    /// Sends it a signal, which it survives or not.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match self.pid().filter(|_| !self.is_collected) {
            Some(pid) => Ok(kill_process(pid, signal)?),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()).ok()?)
    }
}

impl Drop for OwnedChild {
    fn drop(&mut self) {
        self.end();
    }
}

/// A child that is killed when dropped; its streams are its owner's to read.
#[derive(Debug)]
pub struct ChildGuard(pub Child);

impl ChildGuard {
    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.0), signal)?)
    }

    /// Sends it a signal and waits for its end.
    pub fn end(mut self, signal: Signal) -> io::Result<ExitStatus> {
        self.signal(signal)?;
        self.0.wait()
    }

    /// Waits for its end; what it wrote to its piped standard output.
    pub fn output(mut self) -> io::Result<Vec<u8>> {
        let mut written = Vec::new();
        if let Some(mut stdout) = self.0.stdout.take() {
            stdout.read_to_end(&mut written)?;
        }
        self.0.wait()?;
        Ok(written)
    }
}

impl Deref for ChildGuard {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for ChildGuard {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Both fail where it has ended and was waited for.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Reads to the end, so that the writer never blocks.
fn each_line(from: impl Read, mut take: impl FnMut(String)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while matches!(from.read_until(b'\n', &mut line), Ok(1..)) {
        take(String::from_utf8_lossy(&line).trim_end().into());
        line.clear();
    }
}

/// Keeps a line for a reader, unless too many are kept.
fn keep(line: String, complained: &Sender<String>, unread_bytes: &AtomicUsize) {
    if unread_bytes.load(Ordering::Relaxed) < MESSAGE_BYTES_MAX {
        unread_bytes.fetch_add(line.len(), Ordering::Relaxed);
        complained.send(line).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> OwnedChild {
        OwnedChild::spawn(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn lines_and_message_are_kept() {
        let mut child = shell("echo one; echo two; echo wrong >&2; exit 3");
        assert_eq!(child.next_line(END_WAIT).unwrap(), "one");
        assert_eq!(child.next_line(END_WAIT).unwrap(), "two");
        assert!(child.next_line(END_WAIT).is_err());
        assert_eq!(child.message(), "wrong");
        while !child.has_ended() {
            thread::sleep(PAUSE);
        }
        assert_eq!(child.end().unwrap().code(), Some(3));
        assert!(child.has_ended());
    }

    #[test]
    fn messages_are_read_line_by_line() {
        let mut child = shell("echo ready >&2; read line; echo never");
        assert_eq!(child.next_message(END_WAIT).unwrap(), "ready");
        child.end();
        assert_eq!(child.message(), "");
    }

    #[test]
    fn a_child_that_complains_much_is_not_held_up() {
        let mut child = shell("head -c 1000000 /dev/zero | tr '\\0' '\\n' >&2; echo done");
        assert_eq!(child.next_line(END_WAIT).unwrap(), "done");
        child.end();
    }

    #[test]
    fn its_children_end_with_it() {
        let mut child = shell("sleep 100 & echo $!; wait");
        let grandchild: i32 = child.next_line(END_WAIT).unwrap().parse().unwrap();
        child.end();
        let grandchild = Pid::from_raw(grandchild).unwrap();
        let start = Instant::now();
        // Its new parent collects it, which takes a moment.
        while is_running(grandchild) {
            assert!(start.elapsed() < Duration::from_secs(10));
            thread::sleep(PAUSE);
        }
    }

    fn is_running(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }
}
