//! How long the server's processes ran and waited for a processor, as the kernel counts it, and
//! which of them are on one or in line for one.
//!
//! Both files may be read by every user, unless /proc is mounted with hidepid.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Nanoseconds of a process since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// On a processor.
    pub run_ns: u64,
    /// In line for one.
    pub wait_ns: u64,
}

#[derive(Debug)]
struct Process {
    schedstat: File,
    stat: File,
    last: Times,
}

/// Processes that are looked at again and again, by their number in this PID namespace.
#[derive(Debug, Default)]
pub struct Processes {
    open: HashMap<u32, Process>,
}

/// What a process had since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Since the last look, or since its beginning where `is_new`.
    pub since: Times,
    /// Whether it was not looked at before.
    pub is_new: bool,
}

impl Processes {
    /// Looks at one; an error where it is gone or hidden.
    pub fn look(&mut self, pid: u32) -> io::Result<Look> {
        let is_new = !self.open.contains_key(&pid);
        let process = match self.open.entry(pid) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(Process {
                schedstat: File::open(format!("/proc/{pid}/schedstat"))?,
                stat: File::open(format!("/proc/{pid}/stat"))?,
                last: Times::default(),
            }),
        };
        let read = read(&process.schedstat).and_then(|text| times(&text));
        let Ok(now) = read else {
            self.open.remove(&pid);
            return Err(io::ErrorKind::NotFound.into());
        };
        let last = std::mem::replace(&mut process.last, now);
        Ok(Look {
            since: Times {
                run_ns: now.run_ns.saturating_sub(last.run_ns),
                wait_ns: now.wait_ns.saturating_sub(last.wait_ns),
            },
            is_new,
        })
    }

    /// Whether one that was looked at is on a processor, or in line for one.
    pub fn is_on_processor(&self, pid: u32) -> bool {
        let process = self.open.get(&pid);
        let text = process.and_then(|process| read(&process.stat).ok());
        text.is_some_and(|text| state(&text) == Some('R'))
    }

    /// Forgets those that `keeps` does not want.
    pub fn retain(&mut self, keeps: impl Fn(u32) -> bool) {
        self.open.retain(|pid, _| keeps(*pid));
    }
}

/// Of a process that is looked at once.
pub fn times_of(pid: u32) -> io::Result<Times> {
    times(&std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?)
}

fn read(file: &File) -> io::Result<String> {
    let mut buffer = [0; 512];
    let length = file.read_at(&mut buffer, 0)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

fn times(text: &str) -> io::Result<Times> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(run_ns)), Some(Ok(wait_ns))) => Ok(Times { run_ns, wait_ns }),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The third field of /proc/PID/stat, behind the name in parentheses, which may be anything.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_testbed::OwnedChild;
    use std::process::Command;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    #[test]
    fn a_name_does_not_hide_the_state() {
        assert_eq!(state("7 (a) S b)) R 1 7"), Some('R'));
        assert_eq!(state("7 (postgres"), None);
    }

    #[test]
    fn a_process_that_works_is_seen_to_run() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let child = OwnedChild::spawn(&mut command).unwrap();
        let mut processes = Processes::default();
        assert!(processes.look(child.id()).unwrap().is_new);
        let begin = Instant::now();
        let (mut had_ns, mut is_on) = (0, false);
        while (had_ns < 20_000_000 || !is_on) && begin.elapsed() < Duration::from_secs(30) {
            sleep(Duration::from_millis(10));
            let look = processes.look(child.id()).unwrap();
            had_ns += look.since.run_ns + look.since.wait_ns;
            is_on |= processes.is_on_processor(child.id());
        }
        assert!(had_ns >= 20_000_000 && is_on, "{had_ns}");
        assert!(processes.look(u32::MAX).is_err());
    }
}
