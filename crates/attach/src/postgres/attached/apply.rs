//! Levels as they are put onto processes, by number, which may mean another process any moment.

use std::cell::Cell;
use std::io;

use super::Attached;
use crate::postgres::leftovers::Lowering;
use crate::postgres::levels::{Change, Level};
use crate::postgres::mechanism::Mechanism;
use crate::process_id::{ProcessId, is_gone};

/// By which means processes are raised and lowered, and what they have otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    raising: (Mechanism, i32),
    lowering: Option<Lowering>,
    top: u8,
}

impl Means {
    /// From one level to another. The error comes with the level at which the process is then.
    pub(super) fn set(
        &self,
        pid: u32,
        from: Level,
        level: Level,
    ) -> Result<(), (Level, io::Error)> {
        let (raising, usual) = self.raising;
        match self.lowering {
            // One value says both, and the kernel may take one change in a while only.
            Some(lowering) if lowering.mechanism == raising => {
                let set = raising.set(pid, level, self.top, usual);
                set.map_err(|error| (from, error))
            }
            Some(lowering) if from < 0 || level < 0 => {
                let lower = |is_down| lowering.mechanism.lower(pid, is_down, lowering.usual);
                let raise =
                    |level: Level| raising.apply(pid, level.cast_unsigned(), self.top, usual);
                if from < 0 {
                    lower(false).map_err(|error| (from, error))?;
                } else if from > 0 {
                    raise(0).map_err(|error| (from, error))?;
                }
                match level {
                    0 => Ok(()),
                    level if level < 0 => lower(true),
                    level => raise(level),
                }
                .map_err(|error| (0, error))
            }
            _ => {
                let set = raising.apply(pid, level.cast_unsigned(), self.top, usual);
                set.map_err(|error| (from, error))
            }
        }
    }
}

impl Attached<'_> {
    pub(super) fn means(&self) -> Means {
        Means {
            raising: (self.mechanism, self.leftovers.usual),
            lowering: self.leftovers.lowering,
            top: self.levels.top(),
        }
    }

    /// Gives each process the level that it is to have now.
    pub(super) fn apply_changes(&mut self) {
        for change in self.standings.changes() {
            self.apply(change);
        }
    }

    /// Gives one process the level that it is to have; whether it is there.
    pub(super) fn settle(&mut self, process: ProcessId) -> bool {
        match self.standings.change(process) {
            Some(change) => self.apply(change),
            None => self.family.has(process),
        }
    }

    /// Whether the process is there.
    pub(super) fn apply(&mut self, change: Change) -> bool {
        let Change { process, level, .. } = change;
        let means = self.means();
        let family = &self.family;
        let is_it = || match level {
            0 => process.is_there(),
            _ => family.has(process),
        };
        let reached = Cell::new(change.from);
        let set = |from, level| {
            let set = means.set(process.pid, from, level);
            set.map_err(|(now, error)| {
                reached.set(now);
                error
            })
        };
        let done = set_one(level != 0, &is_it, &|is_set| match is_set || level == 0 {
            true => set(change.from, level),
            // It was another process: what it was given is taken from it.
            false => set(level, 0),
        });
        self.count(&done);
        match done {
            Ok(()) => self.standings.done(change),
            Err(error) if is_gone(&error) => {
                self.standings.forget(process);
                return false;
            }
            Err(_) => {
                self.standings.done_in_part(process, reached.get());
                self.standings.refused(change);
            }
        }
        true
    }

    pub(super) fn count(&mut self, done: &io::Result<()>) {
        match done {
            Ok(()) => self.changes += 1,
            Err(error) if is_gone(error) => {}
            Err(_) => self.refused += 1,
        }
    }
}

/// Sets the process that `is_it` means, and no other that got its number meanwhile: that one is put
/// back.
pub(super) fn set_one(
    is_up: bool,
    is_it: &dyn Fn() -> bool,
    set: &dyn Fn(bool) -> io::Result<()>,
) -> io::Result<()> {
    if !is_it() {
        return Err(io::ErrorKind::NotFound.into());
    }
    set(is_up)?;
    if is_up && !is_it() {
        // Gone as well, or another one.
        let _ = set(false);
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    #[test]
    fn a_process_that_got_the_number_of_another_one_does_not_stay_raised() {
        let calls = RefCell::new(Vec::new());
        let set = |is_up| {
            calls.borrow_mut().push(is_up);
            Ok(())
        };
        // Another one already; the right one; another one meanwhile.
        assert!(is_gone(&set_one(true, &|| false, &set).unwrap_err()));
        assert!(calls.borrow().is_empty());
        set_one(true, &|| true, &set).unwrap();
        assert_eq!(*calls.borrow(), [true]);
        let looks = Cell::new(0);
        let at_first = || looks.replace(looks.get() + 1) == 0;
        assert!(is_gone(&set_one(true, &at_first, &set).unwrap_err()));
        assert_eq!(*calls.borrow(), [true, true, false]);
    }
}
