//! The means by which the processor goes to some of the server's processes first, and a test of
//! which of them has an effect here.
//!
//! Which one has follows from the kernel's settings and from the server's control group: a nice
//! value does nothing between sessions that autogroups weigh, and real time is refused in a control
//! group without a budget. So two sessions of our own compete for one processor for a moment, and
//! what each gets is the answer.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use sooner_kernel::priority;
use tokio::time::sleep;

use super::connection::{ConnectError, Connection, Login};
use super::processor::times_of;

/// The most that a nice value says.
const NICE_MOST: i32 = 20;
/// Until both run, and for how long they are compared.
const SETTLE: Duration = Duration::from_millis(40);
const COMPARED: Duration = Duration::from_millis(160);
/// Of the processor, what the one that goes first must get.
const WORKS_MIN: f64 = 0.75;
/// Keeps a processor busy for so long, without a table and without memory.
const WORK: &str = "WITH RECURSIVE work (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM work \
    WHERE clock_timestamp() < statement_timestamp() + interval '300 ms') SELECT max(n) FROM work";

/// A means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Real time, round robin.
    RoundRobin,
    /// The nice value of the session's autogroup.
    Autogroup,
    /// The process's nice value.
    Nice,
}

impl Mechanism {
    /// All, the strongest first.
    pub const ALL: [Mechanism; 3] = [Mechanism::RoundRobin, Mechanism::Autogroup, Mechanism::Nice];

    /// Puts a process at a level of `top`; at 0 it is as the server started it, with nice value
    /// `nice`.
    pub fn apply(self, pid: u32, level: u8, top: u8, nice: i32) -> io::Result<()> {
        let share = f64::from(level) / f64::from(top.max(1));
        match (self, level) {
            (Mechanism::RoundRobin, 0) => priority::set_ordinary(pid),
            (Mechanism::RoundRobin, level) => priority::set_round_robin(pid, level),
            (Mechanism::Autogroup, _) => {
                let nice = -(f64::from(NICE_MOST) * share).round() as i32;
                priority::set_autogroup(pid, nice.max(-NICE_MOST))
            }
            (Mechanism::Nice, _) => {
                let room = f64::from(nice + NICE_MOST);
                let nice = nice - (room * share).round() as i32;
                priority::set_nice(pid, nice.max(-NICE_MOST))
            }
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mechanism::RoundRobin => "round-robin",
            Mechanism::Autogroup => "autogroup",
            Mechanism::Nice => "nice",
        })
    }
}

impl FromStr for Mechanism {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Mechanism::ALL.into_iter();
        all.find(|own| own.to_string() == text)
            .ok_or_else(|| "round-robin, autogroup or nice".into())
    }
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Of which.
    pub mechanism: Mechanism,
    /// What the one that went first got of the processor, 0 to 1; none where the system refused.
    pub share: Option<f64>,
    /// Why it refused.
    pub refused: Option<String>,
}

impl Trial {
    /// Whether it has the effect it should have.
    pub fn works(&self) -> bool {
        self.share.is_some_and(|share| share >= WORKS_MIN)
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trial { mechanism, .. } = self;
        match (self.share, &self.refused) {
            (Some(share), _) if self.works() => write!(
                f,
                "{mechanism} works ({:.0} % of a processor)",
                100.0 * share
            ),
            (Some(share), _) => write!(f, "{mechanism} has no effect ({:.0} %)", 100.0 * share),
            (None, Some(words)) => write!(f, "{mechanism} is refused ({words})"),
            (None, None) => write!(f, "{mechanism} was not tried"),
        }
    }
}

/// Tries all of `wanted` with two sessions of our own, which it ends.
pub async fn test(login: &Login, wanted: &[Mechanism]) -> Result<Vec<Trial>, ConnectError> {
    let (first, second) = (login.connect().await?, login.connect().await?);
    let mut trials = Vec::new();
    for mechanism in wanted {
        let tried = compete(*mechanism, &first, &second).await?;
        let (share, refused) = match tried {
            Ok(share) => (Some(share), None),
            Err(error) => (None, Some(error.to_string())),
        };
        trials.push(Trial {
            mechanism: *mechanism,
            share,
            refused,
        });
    }
    Ok(trials)
}

/// Both work on one processor, the first one goes first: what it gets.
async fn compete(
    mechanism: Mechanism,
    first: &Connection,
    second: &Connection,
) -> Result<io::Result<f64>, ConnectError> {
    let pids = [first.own_process, second.own_process];
    if let Err(error) = pids.iter().try_for_each(|pid| stay_on_one(*pid)) {
        return Ok(Err(error));
    }
    let nice = priority::nice(first.first_process).unwrap_or(0);
    let measured = async {
        sleep(SETTLE).await;
        mechanism.apply(pids[0], 1, 1, nice)?;
        let begin = [times_of(pids[0])?, times_of(pids[1])?];
        sleep(COMPARED).await;
        let end = [times_of(pids[0])?, times_of(pids[1])?];
        mechanism.apply(pids[0], 0, 1, nice)?;
        let had = |at: usize| (end[at].run_ns - begin[at].run_ns) as f64;
        Ok(had(0) / (had(0) + had(1)).max(1.0))
    };
    let (one, other, share) = tokio::join!(
        first.client.query_one(WORK, &[]),
        second.client.query_one(WORK, &[]),
        measured
    );
    one.and(other)?;
    Ok(share)
}

/// Lets a process run on the last of its processors only.
fn stay_on_one(pid: u32) -> io::Result<()> {
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
    fn a_mechanism_is_read_as_it_is_written() {
        for mechanism in Mechanism::ALL {
            assert_eq!(mechanism.to_string().parse(), Ok(mechanism));
        }
        assert!("fifo".parse::<Mechanism>().is_err());
    }
}
