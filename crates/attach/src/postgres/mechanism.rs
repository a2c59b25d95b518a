//! The means by which the processor goes to some of the server's processes first.

use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sooner_kernel::{capability, priority};

use super::levels::Level;

/// The most that a nice value says.
const NICE_MOST: i32 = 20;
/// So much is added where a process is lowered: a twelfth of the weight of one that is not. What
/// holds one of the server's own short locks, which none can see, still runs soon. Not 10, which
/// operators give themselves: it is by its value that a lowered process is known.
const NICE_LOWERED: i32 = 11;

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

/// The nice value of a level of `top`, where level 0 has `nice`; above the top there is none, and a
/// gate has that of the top.
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
        // Two levels above 0, and gates, for which there is none above them.
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
