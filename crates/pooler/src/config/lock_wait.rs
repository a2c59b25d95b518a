//! `wait_target`, `preempt` and `victim` of a class: how long its transactions wait for a lock
//! before those that matter less make room.

use super::{ClassTable, Config};
use serde::Deserialize;
use sooner_config::classes::{priorities, time_ns};
use sooner_config::{Misconfigured, Spanned};
use sooner_postgres::preemption::{Choice, Preempt};
use std::time::Duration;

/// From whom locks are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PreemptName {
    /// From none: it is only counted what `waiting` would have done.
    Track,
    /// From those that wait themselves, for a lock or for their client.
    #[default]
    Waiting,
    /// From all.
    Always,
}

/// Which of those that are in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VictimName {
    /// Those that have the lock.
    #[default]
    Holder,
    /// The one that holds the fewest locks: to be compared with.
    FewestLocks,
    /// The one that began last: to be compared with.
    Youngest,
}

/// What becomes of a transaction's wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// It may be so long.
    pub target: Duration,
    /// Whether it is only counted what would be done.
    pub only_tracks: bool,
    /// Who makes room then.
    pub preempt: (Preempt, Choice),
}

/// The longest wait for a lock that can be asked for, ns: an hour.
const TARGET_NS_MAX: u64 = 3_600_000_000_000;
/// The shortest, ns: looking takes that long.
const TARGET_NS_MIN: u64 = 1_000_000;

impl ClassTable {
    pub(super) fn check_lock_wait(&self) -> Result<(), Misconfigured> {
        let Some(target) = &self.wait_target else {
            let words =
                "has no effect without wait_target; add for example wait_target = \"200ms\"";
            return match (&self.preempt, &self.victim) {
                (Some(preempt), _) => Err(Misconfigured::at(preempt, "class.preempt", words)),
                (_, Some(victim)) => Err(Misconfigured::at(victim, "class.victim", words)),
                _ => Ok(()),
            };
        };
        wait_ns(target)?;
        if *self.priority.get_ref() == *priorities().end() {
            let words = "no class has a lower priority than 200, so none makes room; give this class a smaller number";
            return Err(Misconfigured::at(target, "class.wait_target", words));
        }
        Ok(())
    }

    /// What becomes of its transactions' waits for locks, if anything does.
    pub fn lock_wait(&self) -> Option<LockWait> {
        // It was read before.
        let target_ns = wait_ns(self.wait_target.as_ref()?).ok()?;
        let preempt = self.preempt.as_ref().map(|name| *name.get_ref());
        let preempt = preempt.unwrap_or_default();
        let choice = match self.victim.as_ref().map(|name| *name.get_ref()) {
            None | Some(VictimName::Holder) => Choice::Holders,
            Some(VictimName::FewestLocks) => Choice::FewestLocks,
            Some(VictimName::Youngest) => Choice::Youngest,
        };
        let from = match preempt {
            PreemptName::Always => Preempt::Always,
            PreemptName::Waiting | PreemptName::Track => Preempt::Waiting,
        };
        Some(LockWait {
            target: Duration::from_nanos(target_ns),
            only_tracks: preempt == PreemptName::Track,
            preempt: (from, choice),
        })
    }
}

impl Config {
    /// Whether any class's waits for locks are looked at.
    pub fn watches_locks(&self) -> bool {
        self.class.iter().any(|class| class.wait_target.is_some())
    }
}

fn wait_ns(target: &Spanned<String>) -> Result<u64, Misconfigured> {
    let wrong = |words: String| Misconfigured::at(target, "class.wait_target", words);
    let ns = time_ns(target.get_ref()).map_err(wrong)?;
    if !(TARGET_NS_MIN..=TARGET_NS_MAX).contains(&ns) {
        return Err(wrong("a wait for a lock is from 1ms to 60min".into()));
    }
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(keys: &str) -> Result<Option<LockWait>, String> {
        let text = format!("[[class]]\nname = \"a\"\npriority = 1\n{keys}\n");
        let config = Config::parse(&text).map_err(|error| error.to_string())?;
        let class = &config.class[0];
        class.check_lock_wait().map_err(|error| error.to_string())?;
        Ok(class.lock_wait())
    }

    #[test]
    fn a_wait_has_a_target_and_a_way() {
        let wait = class("wait_target = \"200ms\"").unwrap().unwrap();
        assert_eq!(wait.target, Duration::from_millis(200));
        assert_eq!(wait.preempt, (Preempt::Waiting, Choice::Holders));
        assert!(!wait.only_tracks);
        let all = "wait_target = \"2s\"\npreempt = \"always\"\nvictim = \"fewest-locks\"";
        let wait = class(all).unwrap().unwrap();
        assert_eq!(wait.preempt, (Preempt::Always, Choice::FewestLocks));
        let wait = class("wait_target = \"2s\"\npreempt = \"track\"")
            .unwrap()
            .unwrap();
        assert!(wait.only_tracks);
        assert_eq!(class("").unwrap(), None);
    }

    #[test]
    fn what_cannot_be_meant_is_answered_with_what_is_right() {
        for (keys, says) in [
            (
                "preempt = \"always\"",
                "class.preempt: has no effect without wait_target",
            ),
            (
                "victim = \"youngest\"",
                "class.victim: has no effect without wait_target",
            ),
            ("wait_target = \"200\"", "has no unit"),
            ("wait_target = \"10us\"", "from 1ms to 60min"),
            ("wait_target = \"1s\"\npreempt = \"never\"", "preempt"),
            ("wait_target = 200", "class.wait_target"),
        ] {
            let error = class(keys).unwrap_err();
            assert!(error.contains(says), "{keys}: {error}");
        }
        let text = "[[class]]\nname = \"a\"\npriority = 200\nwait_target = \"1s\"\n";
        let config = Config::parse(text).unwrap();
        let error = config.class[0].check_lock_wait().unwrap_err().to_string();
        assert!(error.contains("smaller number"), "{error}");
    }
}
