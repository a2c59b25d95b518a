//! What looking costs, and what the machine's processors do meanwhile.

use std::fs;
use std::io;
use std::time::Duration;

use serde::Serialize;
use sooner_kernel::process::thread_cpu_time_ns;

use super::processor::{Times, times_of};

/// Looks are no closer and no further apart than this.
const INTERVAL_MIN: Duration = Duration::from_millis(5);
const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The kernel does not show processes.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read /proc/{pid}/schedstat: {source}; /proc is mounted with hidepid, or the kernel counts no processor times"
)]
pub struct MeterError {
    pid: u32,
    source: io::Error,
}

/// What the processors of the machine did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Processors {
    /// How many.
    pub count: usize,
    /// How much of their time they were busy, 0 to 1.
    pub busy_share: f64,
    /// How much of it clients' sessions of this server had, 0 to 1.
    pub sessions_share: f64,
}

/// What looking cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Looks.
    pub looks: u64,
    /// Between two, on average, ms.
    pub interval_ms: f64,
    /// Processor time of a look in this process, ms.
    pub own_look_ms: f64,
    /// Processor time of a look in the server, ms.
    pub server_look_ms: f64,
    /// Of all processors' time, 0 to 1.
    pub share: f64,
}

/// Figures since it was made.
#[derive(Debug)]
pub struct Meter {
    /// The server's process that answers.
    pid: u32,
    server: Times,
    server_last: Times,
    thread_ns: u64,
    ticks: Ticks,
    processors: usize,
}

/// Of all processors.
#[derive(Debug, Clone, Copy, Default)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Meter {
    /// Of this thread, and of the server's process `pid`, which answers it.
    pub fn start(pid: u32) -> Result<Meter, MeterError> {
        let server = times_of(pid).map_err(|source| MeterError { pid, source })?;
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        Ok(Meter {
            pid,
            server,
            server_last: server,
            thread_ns: thread_cpu_time_ns(),
            ticks: ticks(&stat),
            processors: processors(&stat),
        })
    }

    /// How long to wait before the next look, so that all of them cost this share of all
    /// processors' time.
    pub fn interval(&self, cost_share: f64, looks: u64) -> Duration {
        let each = Duration::from_nanos(self.cost_ns() / looks.max(1));
        self.spread(each, cost_share)
            .clamp(INTERVAL_MIN, INTERVAL_MAX)
    }

    /// How far apart things are that cost so much each, so that all of them cost this share.
    pub fn spread(&self, each: Duration, cost_share: f64) -> Duration {
        each.div_f64(cost_share * self.processors as f64)
    }

    /// Processor time so far, nanoseconds.
    pub fn cost_ns(&self) -> u64 {
        let (own_ns, server_ns) = self.costs_ns();
        own_ns + server_ns
    }

    /// Processor time of this thread so far, nanoseconds; costs no more than a look at a clock.
    pub fn own_ns(&self) -> u64 {
        thread_cpu_time_ns() - self.thread_ns
    }

    /// Processor time of the server's process since this was asked last, nanoseconds.
    pub fn server_since_ns(&mut self) -> u64 {
        let server = times_of(self.pid).unwrap_or(self.server_last);
        let last = std::mem::replace(&mut self.server_last, server);
        server.run_ns.saturating_sub(last.run_ns)
    }

    /// Of so many looks in so many seconds.
    pub fn cost(&self, looks: u64, seconds: f64) -> Cost {
        let (own_ns, server_ns) = self.costs_ns();
        let of_each = |ns: u64| ns as f64 / 1e6 / looks.max(1) as f64;
        Cost {
            looks,
            interval_ms: 1e3 * seconds / looks.max(1) as f64,
            own_look_ms: of_each(own_ns),
            server_look_ms: of_each(server_ns),
            share: (own_ns + server_ns) as f64 / 1e9 / seconds / self.processors as f64,
        }
    }

    /// What the processors did, where sessions had so many of them.
    pub fn processors(&self, sessions: f64) -> Processors {
        let now = ticks(&fs::read_to_string("/proc/stat").unwrap_or_default());
        let all = now.all.saturating_sub(self.ticks.all).max(1);
        Processors {
            count: self.processors,
            busy_share: now.busy.saturating_sub(self.ticks.busy) as f64 / all as f64,
            sessions_share: sessions / self.processors as f64,
        }
    }

    /// Of this thread and of the server's process.
    fn costs_ns(&self) -> (u64, u64) {
        let server = times_of(self.pid).unwrap_or(self.server);
        (
            self.own_ns(),
            server.run_ns.saturating_sub(self.server.run_ns),
        )
    }
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; what
/// follows is in the first two.
fn ticks(stat: &str) -> Ticks {
    let words = stat.lines().next().unwrap_or_default();
    let words = words.split_ascii_whitespace().skip(1);
    let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).take(8).collect();
    let all = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    Ticks {
        busy: all - idle,
        all,
    }
}

/// How many the machine has, whichever of them this process may use.
fn processors(stat: &str) -> usize {
    let of_one = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    stat.lines().filter(of_one).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_processors_and_those_that_wait_for_a_disk_are_not_busy() {
        let ticks = ticks("cpu  10 1 5 100 20 1 2 3 7 7\ncpu0 1 1 1 1\n");
        assert_eq!((ticks.busy, ticks.all), (22, 142));
        let stat = "cpu  10 1\ncpu0 1 1\ncpu1 1 1\nintr 5\n";
        assert_eq!([processors(stat), processors("")], [2, 1]);
    }
}
