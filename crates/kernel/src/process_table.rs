//! Other processes, as /proc shows them to every user.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::nanoseconds;
use crate::raw;

/// The children of some hundreds of programs fit.
const CHILDREN_BYTES: usize = 4096;

/// The numbers of all processes of this PID namespace.
pub fn all() -> io::Result<Vec<u32>> {
    let entries = fs::read_dir("/proc")?;
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(entries.filter_map(number).collect())
}

/// The name of its program, which the process may have changed; at most 15 bytes.
pub fn name(pid: u32) -> io::Result<String> {
    Ok(text(pid, "comm")?.trim_end().to_owned())
}

/// Whether what a process calls itself begins so (`/proc/PID/cmdline`); false where that cannot be
/// read.
pub fn is_called(pid: u32, beginning: &str) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline"));
    words.is_ok_and(|words| words.starts_with(beginning.as_bytes()))
}

/// Its parent.
pub fn parent(pid: u32) -> io::Result<u32> {
    status(pid, "PPid", |value| value.parse().ok())
}

/// When it began, in ticks of the system's clock: with its number this is one process and no other.
pub fn began_ticks(pid: u32) -> io::Result<u64> {
    Ok(birth(pid)?.began_ticks)
}

/// For how long it has been there, to a tick: 10 ms on most machines.
pub fn age(pid: u32) -> io::Result<Duration> {
    let began = Duration::from_secs(began_ticks(pid)?) / raw::ticks_per_second() as u32;
    let now = Duration::from_nanos(nanoseconds(clock_gettime(ClockId::Boottime)));
    Ok(now.saturating_sub(began))
}

/// Where a process comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Birth {
    /// Its parent now.
    pub parent: u32,
    /// Its session; 0 where that was begun outside this PID namespace.
    pub session: u32,
    /// When it began, in ticks of the system's clock.
    pub began_ticks: u64,
}

/// All with one look; not found where the process has ended and its parent has not asked yet.
pub fn birth(pid: u32) -> io::Result<Birth> {
    let text = text(pid, "stat")?;
    // Behind the name, which may hold anything: the third field and so on.
    let (_, fields) = text.rsplit_once(')').unwrap_or_default();
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let parent = fields.next().and_then(|parent| parent.parse().ok());
    let session = fields.nth(1).and_then(|session| session.parse().ok());
    let began = fields.nth(15).and_then(|began| began.parse().ok());
    match (parent, session, began) {
        (Some(parent), Some(session), Some(began_ticks)) => Ok(Birth {
            parent,
            session,
            began_ticks,
        }),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The processes that have this parent, as the kernel lists them by its threads: of no other
/// process is anything read, unless the kernel keeps no such lists. One may be missing while others
/// end; none where the parent is gone.
pub fn children(parent_pid: u32) -> io::Result<Vec<u32>> {
    if !lists_children() {
        return children_among_all(parent_pid);
    }
    let threads = match fs::read_dir(format!("/proc/{parent_pid}/task")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        threads => threads?,
    };
    let mut children = Vec::new();
    for thread in threads {
        // One that ends meanwhile leaves its children to another thread.
        let list = thread.and_then(|thread| read_at_once(&thread.path().join("children")));
        let list = list.unwrap_or_default();
        let numbers = list.split_ascii_whitespace();
        children.extend(numbers.filter_map(|number| number.parse::<u32>().ok()));
    }
    Ok(children)
}

/// The kernel goes on by position at each read: a child that ends between two of them would hide
/// another one.
fn read_at_once(path: &Path) -> io::Result<String> {
    let mut list = String::with_capacity(CHILDREN_BYTES);
    File::open(path)?.read_to_string(&mut list)?;
    Ok(list)
}

/// Whether the kernel was built with `CONFIG_PROC_CHILDREN`.
fn lists_children() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

/// The same by a look at all processes of the machine, which misses none.
pub fn children_among_all(parent_pid: u32) -> io::Result<Vec<u32>> {
    let mut all = all()?;
    all.retain(|pid| parent(*pid).is_ok_and(|parent| parent == parent_pid));
    Ok(all)
}

/// Its number in the innermost of its PID namespaces.
pub fn innermost_number(pid: u32) -> io::Result<i32> {
    status(pid, "NSpid", |value| {
        value.split_ascii_whitespace().next_back()?.parse().ok()
    })
}

fn status<T>(pid: u32, key: &str, read: impl Fn(&str) -> Option<T>) -> io::Result<T> {
    let text = text(pid, "status")?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let value = lines.find(|(name, _)| *name == key);
    let value = value.and_then(|(_, value)| read(value.trim()));
    value.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// What a file says of a process; its name may be in any encoding, or cut within a letter.
fn text(pid: u32, file: &str) -> io::Result<String> {
    let bytes = fs::read(format!("/proc/{pid}/{file}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// More than a count of reads takes by itself.
    const OTHERS: u64 = 32;

    fn sleeps() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn children_are_found_whichever_thread_began_them() {
        let own = std::process::id();
        let first = sleeps();
        let second = std::thread::scope(|scope| {
            let begin = || {
                let second = sleeps();
                for found in [children(own).unwrap(), children_among_all(own).unwrap()] {
                    assert!(found.contains(&first.id()) && found.contains(&second.id()));
                }
                second
            };
            scope.spawn(begin).join().unwrap()
        });
        assert!(children(first.id()).unwrap().is_empty());
        let gone = first.id();
        [first, second].into_iter().for_each(end);
        assert!(!children(own).unwrap().contains(&gone));
        assert!(children(u32::MAX).unwrap().is_empty());
    }

    /// Reads of this thread so far; none where the kernel does not count them.
    fn reads() -> Option<u64> {
        let text = fs::read_to_string("/proc/thread-self/io").ok()?;
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix("syscr: "))?;
        count.parse().ok()
    }

    #[test]
    fn a_look_at_children_reads_of_no_other_process() {
        if !lists_children() || reads().is_none() {
            return;
        }
        let others: Vec<Child> = (0..OTHERS).map(|_| sleeps()).collect();
        let before = reads().unwrap();
        assert!(children(others[0].id()).unwrap().is_empty());
        let count = reads().unwrap() - before;
        others.into_iter().for_each(end);
        assert!(count < OTHERS, "{count} reads");
    }

    #[test]
    fn a_name_in_another_encoding_hides_nothing() {
        let look = || {
            rustix::thread::set_name(c"J\xf6rg) 7").unwrap();
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            let own = own.cast_unsigned();
            assert_eq!(name(own).unwrap(), "J\u{fffd}rg) 7");
            assert_eq!(parent(own).unwrap(), std::os::unix::process::parent_id());
            assert_eq!(birth(own).unwrap().parent, parent(own).unwrap());
        };
        std::thread::spawn(look).join().unwrap();
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = std::process::id();
        assert!(all().unwrap().contains(&own));
        assert_eq!(parent(own).unwrap(), std::os::unix::process::parent_id());
        assert_eq!(innermost_number(own).unwrap(), own.cast_signed());
        assert!(!name(own).unwrap().is_empty());
        assert!(parent(u32::MAX).is_err());
        assert_eq!(birth(own).unwrap().parent, parent(own).unwrap());
        assert!(began_ticks(own).unwrap() >= began_ticks(1).unwrap());
        assert!(children(parent(own).unwrap()).unwrap().contains(&own));
    }

    #[test]
    fn a_session_has_the_number_of_its_first_process() {
        let mut child = std::process::Command::new("setsid")
            .args(["sleep", "60"])
            .spawn()
            .unwrap();
        let begin = std::time::Instant::now();
        while birth(child.id()).unwrap().session != child.id() {
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn one_that_has_ended_is_not_there() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let is_zombie = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            stat.contains(") Z ")
        };
        while !is_zombie() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let error = birth(child.id()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        child.wait().unwrap();
    }

    #[test]
    fn the_first_process_is_the_oldest() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let [first, own, last] = [1, std::process::id(), child.id()].map(|pid| age(pid).unwrap());
        assert!(first >= own && own >= last);
        // In seconds, whatever a tick is: the machine runs for longer than a moment.
        let up_s = fs::read_to_string("/proc/uptime").unwrap();
        let up_s: f64 = up_s.split(' ').next().unwrap().parse().unwrap();
        assert!(last.as_secs_f64() < up_s / 2.0 + 60.0, "{last:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
