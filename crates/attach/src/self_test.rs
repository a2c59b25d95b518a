//! The self-test of what gives some processes the processor first: two of our own compete for one
//! processor for a moment, and what each gets is the answer.

use std::io;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::postgres::processor::times_of;

/// Until both run, and for how long they are compared.
const SETTLE: Duration = Duration::from_millis(40);
const COMPARED: Duration = Duration::from_millis(160);
/// Of the processor, what the one that goes first must get.
const WORKS_MIN: f64 = 0.75;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What the one that goes first got of the processor, 0 to 1; none where the system refused.
    pub share: Option<f64>,
    /// Why it refused.
    pub refused: Option<String>,
}

impl Outcome {
    /// Whether what was tried has the effect it should have.
    pub fn works(&self) -> bool {
        self.share.is_some_and(|share| share >= WORKS_MIN)
    }
}

impl From<io::Result<f64>> for Outcome {
    fn from(measured: io::Result<f64>) -> Self {
        let (share, refused) = match measured {
            Ok(share) => (Some(share), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { share, refused }
    }
}

/// Makes a change once both processes run, and returns which part each then gets of the time that
/// both have together. Both must be on one processor: see [`stay_on_one()`].
pub(crate) async fn compare(
    pids: [u32; 2],
    change: impl FnOnce() -> io::Result<()>,
) -> io::Result<[f64; 2]> {
    let times = || io::Result::Ok([times_of(pids[0])?, times_of(pids[1])?]);
    sleep(SETTLE).await;
    change()?;
    let begin = times()?;
    sleep(COMPARED).await;
    let end = times()?;
    let had = [0, 1].map(|at| (end[at].run_ns - begin[at].run_ns) as f64);
    let all = (had[0] + had[1]).max(1.0);
    Ok(had.map(|one| one / all))
}

/// Lets a process run on the last of its processors only.
pub(crate) fn stay_on_one(pid: u32) -> io::Result<()> {
    let pid = Pid::from_raw(pid.cast_signed());
    let allowed = sched_getaffinity(pid)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu));
    let mut one = CpuSet::new();
    one.set(last.unwrap_or(0));
    Ok(sched_setaffinity(pid, &one)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_most_of_a_processor_counts_as_going_first() {
        let works = |measured| Outcome::from(measured).works();
        assert!(works(Ok(0.9)) && !works(Ok(0.5)));
        let refused = Outcome::from(Err(io::ErrorKind::PermissionDenied.into()));
        assert!(!refused.works());
        assert_eq!(refused.refused.as_deref(), Some("permission denied"));
    }
}
