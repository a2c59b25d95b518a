//! A process of ours with everything it starts: asked to end when dropped, then made to.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

/// How long a process may take to end after it was asked.
const END_WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// No more of what a process wrote to standard error is kept.
const MESSAGE_BYTES_MAX: u64 = 16 * 1024;

/// A process that leads a group of its own, so that Ctrl-C reaches only us and its children end with it.
#[derive(Debug)]
pub struct OwnedChild {
    child: Child,
    /// What asks it to end.
    end_signal: Signal,
    /// Whether it has ended and its number may be another process's by now.
    is_collected: bool,
    message: Option<JoinHandle<String>>,
    /// Its lines; in a mutex that nobody waits for, so that whoever has a child can be shared between threads.
    lines: Mutex<Receiver<String>>,
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
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            // Ends with the pipe; whoever has let go of the lines does not keep the process from writing.
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    sender.send(line).ok();
                }
            });
        }
        let message = child
            .stderr
            .take()
            .map(|from| thread::spawn(|| first_bytes(from)));
        Ok(OwnedChild {
            child,
            end_signal: Signal::TERM,
            is_collected: false,
            message,
            lines: Mutex::new(lines),
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

    /// The beginning of what it wrote to standard error, once it has ended.
    pub fn message(&mut self) -> String {
        let message = self.message.take().map(JoinHandle::join);
        message.and_then(Result::ok).unwrap_or_default()
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

/// Reads to the end, so that the writer never blocks, and keeps the beginning.
fn first_bytes(mut from: impl Read) -> String {
    let mut kept = Vec::new();
    // What could be read is still worth showing.
    (&mut from)
        .take(MESSAGE_BYTES_MAX)
        .read_to_end(&mut kept)
        .ok();
    io::copy(&mut from, &mut io::sink()).ok();
    String::from_utf8_lossy(&kept).trim().into()
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
    fn its_children_end_with_it() {
        let mut child = shell("sleep 100 & echo $!; wait");
        let grandchild: i32 = child.next_line(END_WAIT).unwrap().parse().unwrap();
        child.end();
        let grandchild = Pid::from_raw(grandchild).unwrap();
        let start = Instant::now();
        // Somebody else has to collect it, which takes a moment.
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
