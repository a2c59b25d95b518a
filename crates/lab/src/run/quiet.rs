//! Measuring on a machine that others share: a quiet moment is waited for, and what a hypervisor
//! took away is written down.
//!
//! A hypervisor that takes processor time away makes generator and servers late together, and says
//! nothing about either.

use std::fs;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the machine is watched before it counts as quiet.
const WATCH: Duration = Duration::from_secs(5);
/// The share of one core's time that may be taken away meanwhile.
const STOLEN_SHARE_MAX: f64 = 0.02;
/// How often a run's losses are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long a quiet moment is waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// Returns when the hypervisor takes no processor time away, or patience ends.
pub async fn wait() {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let before = stolen_cpu_seconds();
        sleep(WATCH).await;
        if (stolen_cpu_seconds() - before) / WATCH.as_secs_f64() <= STOLEN_SHARE_MAX {
            return;
        }
    }
}

/// Returns when more than `stolen_max_s` processor seconds were taken away since this began.
pub async fn until_robbed(stolen_max_s: f64) {
    let before = stolen_cpu_seconds();
    while stolen_cpu_seconds() - before <= stolen_max_s {
        sleep(LOOK).await;
    }
}

/// Processor seconds that a hypervisor gave to others since the machine started, over all cores; 0
/// where the kernel does not say.
pub fn stolen_cpu_seconds() -> f64 {
    stolen_of(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// Seconds since the machine started in which something could run and waited for a processor; 0
/// where the kernel does not say.
pub fn cpu_pressure_seconds() -> f64 {
    pressure_of(&fs::read_to_string("/proc/pressure/cpu").unwrap_or_default())
}

/// From the text of /proc/pressure/cpu: the total of its line `some`, in microseconds.
fn pressure_of(text: &str) -> f64 {
    let some = text.lines().find(|line| line.starts_with("some "));
    let total = some.and_then(|line| line.rsplit_once("total=")?.1.parse::<f64>().ok());
    total.unwrap_or(0.0) / 1e6
}

/// From the text of /proc/stat: the eighth figure of its first line, in hundredths of a second
/// (proc(5)).
fn stolen_of(stat: &str) -> f64 {
    let ticks = stat.split_whitespace().nth(8);
    ticks
        .and_then(|ticks| ticks.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_figure() {
        assert_eq!(
            stolen_of("cpu  10 20 30 40 50 60 70 1234 0 0\ncpu0 1 2"),
            12.34
        );
        assert_eq!(stolen_of(""), 0.0);
    }

    #[test]
    fn pressure_is_the_total_of_some() {
        let text =
            "some avg10=1.52 avg60=8.12 avg300=11.26 total=7454724\nfull avg10=0.00 total=5\n";
        assert_eq!(pressure_of(text), 7.454724);
        assert_eq!(pressure_of(""), 0.0);
    }
}
