//! What this process uses of the machine, as `/proc` tells it.

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// A reading; what cannot be read is 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessReading {
    /// Memory in RAM, bytes.
    pub resident_bytes: u64,
    /// Descriptors that are open.
    pub open_descriptors: u64,
    /// Descriptors that may be open.
    pub descriptors_max: u64,
    /// Processor time of all threads, user and kernel, s.
    pub cpu_seconds: f64,
}

impl ProcessReading {
    /// Asks the kernel.
    pub fn now() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Self {
            resident_bytes: fs::read_to_string("/proc/self/status")
                .ok()
                .and_then(|status| resident_bytes(&status))
                .unwrap_or(0),
            open_descriptors: open_descriptors(),
            descriptors_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
            cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        }
    }
}

/// Out of `/proc/self/status`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Since Linux 6.2 the folder's length is their number; before, they have to be counted, which
/// takes a while when there are many.
fn open_descriptors() -> u64 {
    const FOLDER: &str = "/proc/self/fd";
    match fs::metadata(FOLDER).map_or(0, |folder| folder.len()) {
        0 => fs::read_dir(FOLDER).map_or(0, |entries| entries.count() as u64),
        counted => counted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_something_plausible() {
        let reading = ProcessReading::now();
        assert!(reading.resident_bytes > 100_000 && reading.cpu_seconds > 0.0);
        assert!((3..=reading.descriptors_max).contains(&reading.open_descriptors));
    }

    #[test]
    fn finds_the_line() {
        assert_eq!(
            resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(resident_bytes("VmRSS: many"), None);
    }
}
