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
use sooner_kernel::{capability, priority};
use tokio::time::sleep;

use super::connection::{ConnectError, Connection, Login};
use super::levels::{Level, Levels};
use super::processor::times_of;

/// The most that a nice value says.
const NICE_MOST: i32 = 20;
/// So much is added where a process is lowered: a twelfth of the weight of one that is not. What
/// holds one of the server's own short locks, which none can see, still runs soon. Not 10, which
/// operators give themselves: it is by its value that a lowered process is known.
const NICE_LOWERED: i32 = 11;
/// Until both run, and for how long they are compared.
pub(crate) const SETTLE: Duration = Duration::from_millis(40);
pub(crate) const COMPARED: Duration = Duration::from_millis(160);
/// Of the processor, what the one that goes first must get.
pub(crate) const WORKS_MIN: f64 = 0.75;
/// Keeps a processor busy for so long, without a table and without memory.
const WORK: &str = "WITH RECURSIVE work (n) AS (SELECT 1 UNION ALL \
    SELECT n OPERATOR(pg_catalog.+) 1 FROM work WHERE pg_catalog.clock_timestamp() \
    OPERATOR(pg_catalog.<) (pg_catalog.statement_timestamp() OPERATOR(pg_catalog.+) \
    '300 ms'::pg_catalog.interval)) SELECT pg_catalog.max(n) FROM work";

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

    /// The nice value of a level of `top`, or of a process that is lowered, where level 0 has
    /// `usual`. Not of real time.
    fn nice(level: Level, top: u8, usual: i32) -> i32 {
        match u8::try_from(level) {
            Ok(level) => nice_at(level, top, usual),
            Err(_) => lowered(usual),
        }
    }

    /// Puts a process at a level of `top` or below all in one step; where this is real time that is
    /// refused.
    pub fn set(self, pid: u32, level: Level, top: u8, usual: i32) -> io::Result<()> {
        let nice = Mechanism::nice(level, top, usual);
        match self {
            Mechanism::RoundRobin => Err(io::ErrorKind::Unsupported.into()),
            Mechanism::Autogroup => priority::set_autogroup(pid, nice),
            Mechanism::Nice => priority::set_nice(pid, nice),
        }
    }

    /// Puts a process at a level of `top`; at 0 it is as it was, with its usual value.
    pub fn apply(self, pid: u32, level: u8, top: u8, usual: i32) -> io::Result<()> {
        match (self, level) {
            (Mechanism::RoundRobin, 0) => priority::set_ordinary(pid, usual),
            (Mechanism::RoundRobin, level) => priority::set_round_robin(pid, level),
            (Mechanism::Autogroup, _) => priority::set_autogroup(pid, nice_at(level, top, usual)),
            (Mechanism::Nice, _) => priority::set_nice(pid, nice_at(level, top, usual)),
        }
    }

    /// Those that can put a process behind others, the first that is tried first.
    pub const LOWERING: [Mechanism; 2] = [Mechanism::Autogroup, Mechanism::Nice];

    /// Lowers a process with this usual value, or takes that back.
    ///
    /// # Panics
    /// If this is real time, which puts no process behind others.
    pub fn lower(self, pid: u32, is_down: bool, usual: i32) -> io::Result<()> {
        let nice = if is_down { lowered(usual) } else { usual };
        match self {
            Mechanism::RoundRobin => panic!("real time does not lower"),
            Mechanism::Autogroup => priority::set_autogroup(pid, nice),
            Mechanism::Nice => priority::set_nice(pid, nice),
        }
    }

    /// Takes a process that was lowered from `usual` back to `target`; leaves one that is not
    /// lowered, and never lowers one further.
    pub fn take_back_lowering(self, pid: u32, usual: i32, target: i32) -> io::Result<()> {
        let found = self.usual_of(pid)?;
        match found == lowered(usual) && target < found {
            true => self.lower(pid, false, target),
            false => Ok(()),
        }
    }

    /// What it changes of a process: a nice value, or the number of an ordinary policy; an error
    /// where it cannot be put back.
    pub fn usual_of(self, pid: u32) -> io::Result<i32> {
        match self {
            Mechanism::RoundRobin => priority::ordinary(pid),
            Mechanism::Autogroup => priority::autogroup(pid),
            Mechanism::Nice => priority::nice(pid),
        }
    }

    /// The same of a record that is not trusted: nothing that puts a process behind others.
    pub fn usual_without_trust(self, usual: i32) -> i32 {
        match self {
            Mechanism::RoundRobin if usual == priority::BATCH => usual,
            Mechanism::RoundRobin => 0,
            Mechanism::Autogroup | Mechanism::Nice => usual.min(0),
        }
    }

    /// Puts a process back that has a level of `top`, or one above; leaves it where it has none.
    pub fn put_back(self, pid: u32, top: u8, usual: i32) -> io::Result<()> {
        let is_raised = match self {
            Mechanism::RoundRobin => priority::has_round_robin(pid)?,
            _ => is_of_a_level(self.usual_of(pid)?, top, usual),
        };
        match is_raised {
            true => self.apply(pid, 0, top, usual),
            false => Ok(()),
        }
    }
}

/// The nice value of one that is lowered.
fn lowered(usual: i32) -> i32 {
    (usual + NICE_LOWERED).min(NICE_MOST - 1)
}

/// The nice value of a level of `top`, where level 0 has `nice`.
fn nice_at(level: u8, top: u8, nice: i32) -> i32 {
    let share = f64::from(level) / f64::from(top.max(1));
    let room = f64::from(nice + NICE_MOST);
    (nice - (room * share).round() as i32).max(-NICE_MOST)
}

/// Whether this is the nice value of a level above 0. Without a `top` any that is higher is.
fn is_of_a_level(found: i32, top: u8, nice: i32) -> bool {
    let mut levels = 1..=top.saturating_add(1);
    found < nice && (top == 0 || levels.any(|level| nice_at(level, top, nice) == found))
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
    /// Whether the trial lowered one of the two, and raised none.
    #[serde(default)]
    pub lowers: bool,
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
        if self.lowers {
            f.write_str("lowering by ")?;
        }
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

/// Why one is not chosen unless the operator names it; none where nothing speaks against it.
pub fn objection(mechanism: Mechanism) -> Option<&'static str> {
    let (is_bounded, is_admin) = (
        priority::real_time_is_bounded(),
        capability::has_sys_admin(),
    );
    objection_where(mechanism, is_bounded, is_admin)
}

fn objection_where(mechanism: Mechanism, is_bounded: bool, is_admin: bool) -> Option<&'static str> {
    match mechanism {
        Mechanism::RoundRobin if !is_bounded => Some(
            "kernel.sched_rt_runtime_us is -1: a session that computes leaves nothing to others",
        ),
        Mechanism::Autogroup if !is_admin => {
            Some("without CAP_SYS_ADMIN the kernel takes one change in 100 ms")
        }
        _ => None,
    }
}

/// Tries with two sessions of our own, which it ends: to raise, where that is wanted, by the one
/// that is named or by all that nothing speaks against; and to lower, where that is, by what can.
pub async fn test(
    login: &Login,
    named: Option<Mechanism>,
    levels: &Levels,
) -> Result<Vec<Trial>, ConnectError> {
    let (first, second) = (login.connect().await?, login.connect().await?);
    let raising = named.map_or(Mechanism::ALL.to_vec(), |one| vec![one]);
    let raising = raising.into_iter().filter(|_| levels.raises());
    let raising = raising.map(|one| (one, false));
    let lowering = Mechanism::LOWERING.into_iter().filter(|_| levels.lowers());
    let mut trials = Vec::new();
    for (mechanism, lowers) in raising.chain(lowering.map(|one| (one, true))) {
        let is_named = named == Some(mechanism);
        let tried = match objection(mechanism) {
            Some(words) if !is_named => Err(io::Error::other(words)),
            // The other way round, so that the one that came first has no advantage.
            _ if lowers => compete(mechanism, &second, &first, lowers).await?,
            _ => compete(mechanism, &first, &second, lowers).await?,
        };
        let (share, refused) = match tried {
            Ok(share) => (Some(share), None),
            Err(error) => (None, Some(error.to_string())),
        };
        trials.push(Trial {
            mechanism,
            lowers,
            share,
            refused,
        });
    }
    Ok(trials)
}

/// Both work on one processor; the one that is `changed` is raised, or is lowered: what the one gets
/// that goes first.
async fn compete(
    mechanism: Mechanism,
    changed: &Connection,
    other: &Connection,
    lowers: bool,
) -> Result<io::Result<f64>, ConnectError> {
    let pids = [changed.own_process, other.own_process];
    if let Err(error) = pids.iter().try_for_each(|pid| stay_on_one(*pid)) {
        return Ok(Err(error));
    }
    // Of two that have real time the one that was there first gets all, whatever is tried.
    let usual = match priority::ordinary(pids[0]).and_then(|_| mechanism.usual_of(pids[0])) {
        Ok(usual) => usual,
        Err(error) => return Ok(Err(error)),
    };
    let measured = async {
        sleep(SETTLE).await;
        let set = |is_on| match lowers {
            true => mechanism.lower(pids[0], is_on, usual),
            false => mechanism.apply(pids[0], u8::from(is_on), 1, usual),
        };
        set(true)?;
        let begin = [times_of(pids[0])?, times_of(pids[1])?];
        sleep(COMPARED).await;
        let end = [times_of(pids[0])?, times_of(pids[1])?];
        set(false)?;
        let had = |at: usize| (end[at].run_ns - begin[at].run_ns) as f64;
        let first = had(usize::from(lowers));
        Ok(first / (had(0) + had(1)).max(1.0))
    };
    let (one, another, share) = tokio::join!(
        changed.client.query_one(WORK, &[]),
        other.client.query_one(WORK, &[]),
        measured
    );
    one.and(another)?;
    Ok(share)
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
    fn a_mechanism_is_read_as_it_is_written() {
        for mechanism in Mechanism::ALL {
            assert_eq!(mechanism.to_string().parse(), Ok(mechanism));
        }
        assert!("fifo".parse::<Mechanism>().is_err());
    }

    #[test]
    fn only_values_of_levels_are_put_back() {
        // Two levels above 0, and gates above them.
        assert_eq!(
            [0, 1, 2, 3].map(|level| nice_at(level, 2, 0)),
            [0, -10, -20, -20]
        );
        assert_eq!([0, 1].map(|level| nice_at(level, 1, 5)), [5, -20]);
        let is_raised = [5, 0, -5, -10, -20].map(|found| is_of_a_level(found, 2, 0));
        assert_eq!(is_raised, [false, false, false, true, true]);
        // A record that does not say how many.
        assert!(is_of_a_level(-5, 0, 0) && !is_of_a_level(5, 0, 0));
    }

    #[test]
    fn one_that_is_lowered_stays_in_the_range_of_nice_values() {
        assert_eq!([-5, 0, 8, 15].map(lowered), [6, 11, 19, 19]);
        let nice = [-1, 0, 1, 2].map(|level| Mechanism::nice(level, 2, 0));
        assert_eq!(nice, [11, 0, -10, -20]);
    }

    #[test]
    fn a_record_of_another_user_puts_none_behind_others() {
        let of = |mechanism: Mechanism| [-5, 0, 3, 5].map(|one| mechanism.usual_without_trust(one));
        assert_eq!(of(Mechanism::Nice), [-5, 0, 0, 0]);
        // Of policies 3 is that of batches, and 5 the one of what runs when all others are idle.
        assert_eq!(of(Mechanism::RoundRobin), [0, 0, 3, 0]);
    }

    #[test]
    fn what_could_harm_or_is_slow_has_to_be_named() {
        let has_one = |bounded, admin| {
            Mechanism::ALL.map(|one| objection_where(one, bounded, admin).is_some())
        };
        assert_eq!(has_one(true, true), [false, false, false]);
        assert_eq!(has_one(false, true), [true, false, false]);
        assert_eq!(has_one(true, false), [false, true, false]);
    }
}
