//! Levels as they are put onto processes, by number, which may mean another process any moment.

use std::io;

use super::Attached;
use crate::postgres::levels::{Change, Level};
use crate::postgres::mechanism::Mechanism;
use crate::process_id::{ProcessId, is_gone};

/// By which means processes are raised and lowered, and what they have otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    raising: (Mechanism, i32),
    lowering: Option<(Mechanism, i32)>,
    top: u8,
}

impl Means {
    /// From one level to another. Where it is not known that the process is lowered no more, that is
    /// taken back.
    pub(super) fn set(&self, pid: u32, from: Level, level: Level) -> io::Result<()> {
        let (mechanism, usual) = self.raising;
        if let Some((lowering, usual)) = self.lowering
            && from < 0
            && level >= 0
        {
            lowering.lower(pid, false, usual)?;
        }
        if from > 0 || level > 0 {
            mechanism.apply(pid, level.max(0).cast_unsigned(), self.top, usual)?;
        }
        match self.lowering {
            Some((lowering, usual)) if level < 0 => lowering.lower(pid, true, usual),
            _ => Ok(()),
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
        let done = set_one(level != 0, &is_it, &|is_it| match (is_it, level) {
            (false, level) if level != 0 => means.set(process.pid, level, 0),
            _ => means.set(process.pid, change.from, level),
        });
        self.count(&done);
        match done {
            Ok(()) => self.standings.done(change),
            Err(error) if is_gone(&error) => {
                self.standings.forget(process);
                return false;
            }
            Err(_) => self.standings.refused(change),
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
