//! Processor time and memory of a process and its descendants, from /proc.

use std::fs;

/// What /proc counts processor time in (`USER_HZ`): a hundredth of a second on every Linux that Rust compiles for.
const TICKS_PER_SEC: f64 = 100.0;

/// What /proc/PID/stat says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Processor time of the process and of its children that have ended and were waited for, in clock ticks.
    pub cpu_ticks: u64,
}

/// What a process and its descendants have used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time, user and kernel.
    pub cpu_s: f64,
    /// Resident memory; what processes share is counted for each of them.
    pub resident_bytes: u64,
}

/// What the process and its descendants that run have used; zero for what is gone.
pub fn usage(pid: u32) -> Usage {
    let read = |pid: u32, file: &str| {
        fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
    };
    let mut usage = Usage::default();
    let mut to_do = vec![pid];
    while let Some(pid) = to_do.pop() {
        let ticks = stat(&read(pid, "stat")).map_or(0, |stat| stat.cpu_ticks);
        usage.cpu_s += ticks as f64 / TICKS_PER_SEC;
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

/// Reads the text of /proc/PID/stat; the name in parentheses may hold anything.
pub fn stat(text: &str) -> Option<Stat> {
    let (_, behind_name) = text.rsplit_once(") ")?;
    // utime, stime, cutime and cstime are the 14th to 17th field; the state, first here, is the 3rd.
    let times: Vec<u64> = behind_name
        .split(' ')
        .skip(11)
        .take(4)
        .map_while(|ticks| ticks.parse().ok())
        .collect();
    let cpu_ticks = times
        .iter()
        .fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
    (times.len() == 4).then_some(Stat { cpu_ticks })
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
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 200 0 0 7 5 3 1 20 0 1 0 100 0 0";
        assert_eq!(stat(text), Some(Stat { cpu_ticks: 16 }));
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
    fn a_child_counts_for_its_parent() {
        let own = usage(std::process::id());
        assert!(own.resident_bytes > 0);
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let alone = usage(child.id());
        // as a child of this process it is counted with it, unless another thread started it
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(alone.cpu_s >= 0.0);
        assert_eq!(usage(child.id()), Usage::default());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, numbers in "1 \\(x\\) S( [0-9]{1,25}){0,20}") {
            let _ = (stat(&text), stat(&numbers), resident_bytes_of(&text));
        }
    }
}
