//! Processor time and memory of a process and its descendants, from /proc.

use std::fs;

/// What /proc counts processor time in (`USER_HZ`): a hundredth of a second on every Linux that
/// Rust compiles for.
pub const TICKS_PER_SEC: f64 = 100.0;

/// Processor time in /proc/PID/stat, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Of the process, whole ticks only: a process that has worked for less has 0.
    pub own_ticks: u64,
    /// Of its children that have ended and were waited for.
    pub children_ticks: u64,
}

/// What a process and its descendants have used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time, user and kernel.
    pub cpu_s: f64,
    /// Time that threads which could run waited for a processor.
    pub cpu_wait_s: f64,
    /// How often a thread got a processor.
    pub slices: u64,
    /// Resident memory; what processes share is counted for each of them.
    pub resident_bytes: u64,
}

/// What the process and its descendants that run have used; zero for what is gone.
pub fn usage(pid: u32) -> Usage {
    let mut usage = Usage::default();
    let mut to_do = vec![pid];
    while let Some(pid) = to_do.pop() {
        let [run_ns, wait_ns, slices] = threads(pid);
        usage.cpu_s += cpu_s(pid, run_ns);
        usage.cpu_wait_s += wait_ns as f64 / 1e9;
        usage.slices += slices;
        usage.resident_bytes += resident_bytes_of(&read(pid, "status")).unwrap_or(0);
        // Servers start their processes from the first thread.
        let children = read(pid, &format!("task/{pid}/children"));
        to_do.extend(
            children
                .split_whitespace()
                .filter_map(|child| child.parse::<u32>().ok()),
        );
    }
    usage
}

/// Ticks are too coarse for hundreds of processes that work a millisecond each; nanoseconds are
/// told of the threads there are, and forget those that have ended. Neither tells too much, so the
/// larger is nearer.
fn cpu_s(pid: u32, run_ns: u64) -> f64 {
    let ticks = stat(&read(pid, "stat")).unwrap_or(Stat {
        own_ticks: 0,
        children_ticks: 0,
    });
    let own_s = (run_ns as f64 / 1e9).max(ticks.own_ticks as f64 / TICKS_PER_SEC);
    own_s + ticks.children_ticks as f64 / TICKS_PER_SEC
}

/// For how long the threads of a process have run and have waited for a processor, ns, and how often
/// they got one.
fn threads(pid: u32) -> [u64; 3] {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let all = threads.filter_map(|thread| {
        schedstat(&fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default())
    });
    all.fold([0; 3], |sums, own| {
        std::array::from_fn(|at| u64::saturating_add(sums[at], own[at]))
    })
}

fn read(pid: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// Reads the text of /proc/PID/stat; the name in parentheses may hold anything.
pub fn stat(text: &str) -> Option<Stat> {
    let (_, behind_name) = text.rsplit_once(") ")?;
    // utime, stime, cutime and cstime are the 14th to 17th field; the state, first here, is the
    // 3rd.
    let times: Vec<u64> = behind_name
        .split(' ')
        .skip(11)
        .take(4)
        .map_while(|ticks| ticks.parse().ok())
        .collect();
    let [user, system, children_user, children_system] = times[..] else {
        return None;
    };
    Some(Stat {
        own_ticks: user.saturating_add(system),
        children_ticks: children_user.saturating_add(children_system),
    })
}

/// Reads the text of a thread's schedstat: for how long it has run and has waited for a processor,
/// ns, and how often it got one.
pub fn schedstat(text: &str) -> Option<[u64; 3]> {
    let mut numbers = text
        .split_whitespace()
        .map_while(|number| number.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

/// Reads the resident memory from the text of /proc/PID/status.
pub fn resident_bytes_of(text: &str) -> Option<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?
        .trim();
    let kib: u64 = value.strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 200 0 0 7 5 3 1 20 0 1 0 100 0 0";
        let expected = Stat {
            own_ticks: 12,
            children_ticks: 4,
        };
        assert_eq!(stat(text), Some(expected));
        assert_eq!(stat("42 (a) S 1"), None);
    }

    #[test]
    fn memory_is_found_by_name() {
        assert_eq!(
            resident_bytes_of("Name: x\nVmRSS:\t    12 kB\n"),
            Some(12_288)
        );
        assert_eq!(resident_bytes_of("Name: x\n"), None);
    }

    #[test]
    fn children_count_for_their_parent_and_what_is_gone_for_nobody() {
        let mut shell = Command::new("sh");
        // a child that has worked, if for far less than a tick
        let mut parent = shell.args(["-c", "(echo; exec sleep 100) & wait"]);
        parent = parent.stdout(std::process::Stdio::piped());
        let mut parent = parent.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(parent.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let children = read(parent.id(), &format!("task/{0}/children", parent.id()));
        let child: u32 = children.trim().parse().unwrap();
        // The kernel books what a process has run when it stops running.
        while usage(child).cpu_s == 0.0 {
            std::thread::yield_now();
        }
        let (one, both) = (usage(child), usage(parent.id()));
        assert!(both.cpu_s > one.cpu_s, "{both:?} {one:?}");
        assert!(both.resident_bytes > one.resident_bytes);
        Command::new("kill")
            .arg(child.to_string())
            .status()
            .unwrap();
        parent.wait().unwrap();
        assert_eq!(usage(parent.id()), Usage::default());
    }

    #[test]
    fn time_on_a_processor_is_the_first_number() {
        assert_eq!(
            schedstat("318613662 1679463997 550\n"),
            Some([318_613_662, 1_679_463_997, 550])
        );
        assert_eq!(schedstat("7 5"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, numbers in "1 \\(x\\) S( [0-9]{1,25}){0,20}") {
            let _ = (stat(&text), stat(&numbers), resident_bytes_of(&text), schedstat(&text));
        }
    }
}
