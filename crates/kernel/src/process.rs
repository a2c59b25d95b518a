//! What this process has used of the CPU.

use rustix::time::{ClockId, clock_gettime};

use crate::clock::nanoseconds;

/// CPU time of all threads of this process, nanoseconds, user and kernel.
pub fn cpu_time_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time of the calling thread, nanoseconds, user and kernel.
pub fn thread_cpu_time_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_cpu_time() {
        let (process_ns, thread_ns) = (cpu_time_ns(), thread_cpu_time_ns());
        while thread_cpu_time_ns() < thread_ns + 1_000_000 {}
        assert!(cpu_time_ns() >= process_ns + 1_000_000);
    }
}
