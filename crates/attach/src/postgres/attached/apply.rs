//! Levels as they are put onto processes, by number, which may mean another process any moment.

use std::io;

use super::Attached;
use crate::postgres::levels::Change;
use crate::process_id::{ProcessId, is_gone};

impl Attached<'_> {
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
        let Change { process, level } = change;
        let (mechanism, usual) = (self.mechanism, self.leftovers.usual);
        let top = self.levels.top();
        let family = &self.family;
        let is_it = || match level {
            0 => process.is_there(),
            _ => family.has(process),
        };
        let done = set_one(level > 0, &is_it, &|is_up| {
            let level = if is_up { level } else { 0 };
            mechanism.apply(process.pid, level, top, usual)
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
