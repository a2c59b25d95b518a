//! Processes of others by number and beginning, so that a number that is used anew is another one.

use std::io;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sooner_kernel::process_table::{self, Birth};

/// A process by its number and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// In ticks.
    pub began: u64,
}

impl ProcessId {
    /// Of a process that runs.
    pub fn of(pid: u32) -> io::Result<ProcessId> {
        let began = process_table::began_ticks(pid)?;
        Ok(ProcessId { pid, began })
    }

    /// Of a process that is a child of `parent`; none of any other.
    pub fn of_child(pid: u32, parent: u32) -> Option<ProcessId> {
        let birth = process_table::birth(pid).ok()?;
        (birth.parent == parent).then_some(ProcessId {
            pid,
            began: birth.began_ticks,
        })
    }

    /// Whether it still runs; one that cannot be looked at, for want of descriptors, does.
    pub fn is_there(self) -> bool {
        match process_table::birth(self.pid) {
            Ok(birth) => birth.began_ticks == self.began,
            Err(error) => !is_gone(&error),
        }
    }

    /// Whether it still runs, as a child of `parent`.
    pub fn is_child_of(self, parent: u32) -> bool {
        self.birth().is_some_and(|birth| birth.parent == parent)
    }

    fn birth(self) -> Option<Birth> {
        let birth = process_table::birth(self.pid).ok()?;
        (birth.began_ticks == self.began).then_some(birth)
    }
}

/// Whether an error says that the process is gone.
pub fn is_gone(error: &io::Error) -> bool {
    let gone = Errno::SRCH.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_another_process_got_is_another_process() {
        let own = ProcessId::of(std::process::id()).unwrap();
        let parent = process_table::parent(own.pid).unwrap();
        assert!(own.is_child_of(parent) && !own.is_child_of(own.pid));
        let before = ProcessId {
            began: own.began - 1,
            ..own
        };
        assert!(!before.is_there() && !before.is_child_of(parent));
        assert_eq!(ProcessId::of_child(own.pid, parent), Some(own));
        assert_eq!(ProcessId::of_child(own.pid, own.pid), None);
    }
}
