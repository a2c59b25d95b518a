//! From levels to nice values, and to real time where the operator wants that.
//!
//! Nice values weigh the threads of one group against each other. Where the server has no group of
//! its own they weigh against every process of the machine, so that the range is smaller there.

use std::io;

use serde::{Deserialize, Serialize};
use sooner_kernel::priority;
use sooner_processor::LEVEL_COUNT;

/// Nice values of the levels between workers of one group.
const IN_A_GROUP: [i32; LEVEL_COUNT] = [-20, -2, 15];
/// The same where they count against everything: the top level gets four fifths beside one other.
const BESIDE_ALL: [i32; LEVEL_COUNT] = [-6, 5, 15];
/// Real time of the top level, the lowest there is.
const REAL_TIME: u8 = 1;

/// What a worker had before, and gets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usual {
    /// Its nice value.
    pub nice: i32,
    /// Its policy: an ordinary one.
    pub policy: i32,
    /// Whether what it begins does not get its priority.
    pub is_alone: bool,
}

impl Usual {
    /// As a thread has it now; an error where it has real time already.
    pub fn of(thread: u32) -> io::Result<Usual> {
        Ok(Usual {
            nice: priority::nice(thread)?,
            policy: priority::ordinary(thread)?,
            is_alone: priority::is_alone(thread)?,
        })
    }
}

/// What each level has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelValues {
    /// Nice values, the top first.
    pub nice: [i32; LEVEL_COUNT],
    /// Whether the top level has real time instead.
    pub real_time: bool,
}

impl LevelValues {
    /// For workers that have a group of their own, or have not.
    pub fn new(has_group: bool, real_time: bool) -> LevelValues {
        LevelValues {
            nice: match has_group {
                true => IN_A_GROUP,
                false => BESIDE_ALL,
            },
            real_time,
        }
    }

    /// Puts a thread on a level. What it begins is at most ordinary.
    pub fn apply(&self, thread: u32, level: u8, usual: Usual) -> io::Result<()> {
        if level == 0 && self.real_time {
            return priority::set_round_robin(thread, REAL_TIME);
        }
        let at = usize::from(level);
        priority::set_ordinary_alone(thread, usual.policy, self.nice[at])
    }

    /// Puts a thread before all that have real time here.
    pub fn apply_front(thread: u32) -> io::Result<()> {
        priority::set_round_robin(thread, REAL_TIME + 1)
    }

    /// Gives a thread back what it had, where it has something of a level; leaves it where another
    /// one has set it.
    pub fn put_back(&self, thread: u32, usual: Usual) -> io::Result<()> {
        let has_real_time = self.real_time && priority::has_round_robin(thread)?;
        let nice = match self.nice.contains(&priority::nice(thread)?) {
            true => usual.nice,
            false => priority::nice(thread)?,
        };
        if has_real_time || priority::is_alone(thread)? {
            priority::set_ordinary_alone(thread, usual.policy, nice)?;
        }
        if !usual.is_alone && priority::is_alone(thread)? {
            priority::set_ordinary(thread, usual.policy)?;
        }
        if self.nice.contains(&priority::nice(thread)?) {
            priority::set_nice(thread, usual.nice)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_thread_gets_back_what_it_had() {
        let mut child = Command::new("nice")
            .args(["-n", "3", "sleep", "60"])
            .spawn()
            .unwrap();
        let pid = child.id();
        // Until it is the other program.
        while priority::nice(pid).unwrap() != 3 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let usual = Usual::of(pid).unwrap();
        for values in [
            LevelValues::new(true, false),
            LevelValues::new(false, false),
        ] {
            for (level, nice) in (0..).zip(values.nice) {
                match values.apply(pid, level, usual) {
                    Ok(()) => assert_eq!(priority::nice(pid).unwrap(), nice),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
                }
            }
            // Without privilege it stays as it is.
            let _ = values.put_back(pid, usual);
            assert!(usual == Usual::of(pid).unwrap() || !sooner_kernel::capability::has_sys_nice());
        }
        if sooner_kernel::capability::has_sys_nice() {
            // Another one's value stays.
            priority::set_nice(pid, 7).unwrap();
            LevelValues::new(true, false).put_back(pid, usual).unwrap();
            assert_eq!(priority::nice(pid).unwrap(), 7);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
