//! Whether the machine did other work meanwhile: what the processors did, less what this process
//! and all that it started did.

use crate::counters::{TICKS_PER_SEC, usage};
use std::fs;
use std::time::Instant;

/// A larger share of the processors in other hands changes who has to wait.
pub const OTHERS_MAX: f64 = 0.1;

/// The beginning of a run.
pub struct Watch {
    at: Instant,
    busy_s: Option<f64>,
    own_s: f64,
}

impl Watch {
    /// From now on.
    pub fn start() -> Self {
        Self {
            at: Instant::now(),
            busy_s: now().map(|all| all.busy_s),
            own_s: own_s(),
        }
    }

    /// The share of all processors that others had since then, a hypervisor's included; `None`
    /// where the kernel does not say.
    pub fn others_share(&self) -> Option<f64> {
        let own_s = own_s() - self.own_s;
        let all = now()?;
        let others_s = all.busy_s - self.busy_s? - own_s;
        let passed_s = self.at.elapsed().as_secs_f64() * all.processors as f64;
        Some((others_s / passed_s).max(0.0))
    }
}

/// What the processors have done.
#[derive(Debug, PartialEq)]
struct Processors {
    processors: usize,
    busy_s: f64,
}

fn now() -> Option<Processors> {
    read(&fs::read_to_string("/proc/stat").ok()?)
}

fn own_s() -> f64 {
    usage(std::process::id()).cpu_s
}

/// Reads /proc/stat (proc(5)): all but the fourth and fifth figure, which are idle, and guests,
/// which are in the first two.
fn read(stat: &str) -> Option<Processors> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .map_while(|ticks| ticks.parse().ok())
        .collect();
    let [user, nice, system, _, _, irq, softirq, stolen, ..] = ticks[..] else {
        return None;
    };
    let is_one = |line: &&str| {
        let number = line
            .strip_prefix("cpu")
            .and_then(|rest| rest.bytes().next());
        number.is_some_and(|byte| byte.is_ascii_digit())
    };
    let busy = [user, nice, system, irq, softirq, stolen];
    Some(Processors {
        processors: stat.lines().filter(is_one).count().max(1),
        busy_s: busy.iter().sum::<u64>() as f64 / TICKS_PER_SEC,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_idle_and_what_is_a_guests_does_not_count() {
        let text = "cpu  100 20 30 4000 50 6 7 80 90 10\ncpu0 1 1 1\ncpu1 1 1 1\nintr 5\n";
        let expected = Processors {
            processors: 2,
            busy_s: 2.43,
        };
        assert_eq!(read(text), Some(expected));
        assert_eq!(read("intr 5\n"), None);
        assert_eq!(read("cpu  1 2 3\n"), None);
    }

    #[test]
    fn own_work_is_not_others() {
        let watch = Watch::start();
        while own_s() - watch.own_s < 0.1 {
            std::hint::spin_loop();
        }
        let all = watch.busy_s.and_then(|before| Some(now()?.busy_s - before));
        let (Some(all_s), Some(share)) = (all, watch.others_share()) else {
            return;
        };
        let processors = now().unwrap().processors as f64;
        let others_s = share * watch.at.elapsed().as_secs_f64() * processors;
        // This thread had some of it, in ticks of a hundredth.
        assert!(others_s < all_s - 0.02, "{others_s} of {all_s}");
    }
}
