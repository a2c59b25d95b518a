//! What the kernel says of a process.

use std::fs;

const TICKS_PER_SEC: f64 = 100.0;

/// CPU seconds of a process and its children that run.
pub fn cpu_seconds(pid: u32) -> f64 {
    // utime and stime.
    seconds_in(&pid.to_string(), 14) + children(pid).into_iter().map(cpu_seconds).sum::<f64>()
}

/// CPU seconds of all children of this process that have ended, and of theirs.
pub fn ended_children_cpu_seconds() -> f64 {
    // cutime and cstime.
    seconds_in("self", 16)
}

/// CPU seconds of the whole machine in which it was not idle, of all processors together; what a hypervisor took is not counted.
pub fn busy_cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|ticks| ticks.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq (proc(5))
    [0, 1, 2, 5, 6]
        .iter()
        .filter_map(|field| ticks.get(*field))
        .sum::<f64>()
        / TICKS_PER_SEC
}

/// Two neighbouring fields of /proc/PID/stat, the first of them the `first`th, counted from 1 (proc(5)).
fn seconds_in(process: &str, first: usize) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field, in parentheses, may hold spaces.
    let behind_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields = behind_name.split(' ').skip(first - 3).take(2);
    let ticks: f64 = fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SEC
}

/// Resident memory of a process and its children, KiB; what they share is counted once for each.
pub fn resident_kib(pid: u32) -> f64 {
    status_kib(pid, "VmRSS:") + children(pid).into_iter().map(resident_kib).sum::<f64>()
}

/// The most that a process had resident since the last `forget_peak`, KiB.
pub fn peak_kib(pid: u32) -> f64 {
    status_kib(pid, "VmHWM:")
}

/// From now on the peak is looked for anew.
pub fn forget_peak(pid: u32) -> std::io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

fn status_kib(pid: u32, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or(f64::NAN)
}

/// How many descriptors a process has open.
pub fn descriptors(pid: u32) -> f64 {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(f64::NAN, |entries| entries.count() as f64)
}

fn children(pid: u32) -> Vec<u32> {
    let children =
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}
