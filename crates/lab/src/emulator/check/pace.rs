//! Sending at a rate: each packet has its time from the start on, and a late one does not shift
//! those after it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use sooner_kernel::clock::monotonic_ns;

/// How long a pause goes on when everything is to end.
const SLICE: Duration = Duration::from_millis(50);

/// Times at equal distances.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    start_ns: u64,
    per_sec: f64,
}

impl Pace {
    /// Begins now; `per_sec` is above 0.
    pub fn start(per_sec: f64) -> Pace {
        Pace {
            start_ns: monotonic_ns(),
            per_sec,
        }
    }

    /// When number `n` (from 0) is due.
    fn due_ns(&self, n: u64) -> u64 {
        self.start_ns + (n as f64 * 1e9 / self.per_sec) as u64
    }

    /// Sleeps until number `n` is due; gives by how many nanoseconds that is exceeded.
    pub fn wait_for(&self, n: u64) -> u64 {
        let due_ns = self.due_ns(n);
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= due_ns {
                return now_ns - due_ns;
            }
            thread::sleep(Duration::from_nanos(due_ns - now_ns));
        }
    }
}

/// Fails once `interrupted` is set.
pub fn go_on(interrupted: &AtomicBool) -> Result<()> {
    if interrupted.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

/// Sleeps, but not on when interrupted.
pub fn pause(duration: Duration, interrupted: &AtomicBool) -> Result<()> {
    let mut left = duration;
    while !left.is_zero() {
        go_on(interrupted)?;
        let slice = left.min(SLICE);
        thread::sleep(slice);
        left -= slice;
    }
    go_on(interrupted)
}
