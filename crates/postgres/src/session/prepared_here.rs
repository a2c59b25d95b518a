//! What statements leave behind that only the client's own server connection knows: those prepared
//! by SQL, and those that the protocol prepares beside them.
//!
//! Such a client keeps its connection until the server says that it has no such statement any more.
//! What is kept for a name that was deallocated costs a question of the server at most.

use super::changes::{ENTRY_BYTES, KEPT_BYTES_MAX};
use crate::sql::SessionChange;
use std::collections::BTreeMap;

/// Of a name PostgreSQL looks at so many bytes (NAMEDATALEN without its zero).
const NAME_BYTES: usize = 63;

/// By the names of the statements.
#[derive(Debug, Default)]
pub struct PreparedHere {
    by_name: BTreeMap<Vec<u8>, Vec<SessionChange<'static>>>,
    kept_bytes: usize,
}

fn key(name: &[u8]) -> &[u8] {
    &name[..name.len().min(NAME_BYTES)]
}

impl PreparedHere {
    /// A statement of this name leaves this behind; whether there is room to remember it.
    pub fn add(&mut self, name: &[u8], change: &SessionChange<'_>) -> bool {
        let known = self.of(name);
        if known.contains(change) {
            return true;
        }
        self.kept_bytes += 2 * ENTRY_BYTES + key(name).len() + change.text_bytes();
        let has_room = self.kept_bytes <= KEPT_BYTES_MAX;
        if has_room {
            let known = self.by_name.entry(key(name).to_vec()).or_default();
            known.push(change.clone().into_owned());
        }
        has_room
    }

    /// What the statement of this name leaves behind.
    pub fn of(&self, name: &[u8]) -> &[SessionChange<'static>] {
        self.by_name.get(key(name)).map_or(&[], Vec::as_slice)
    }

    /// There is no such statement any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::session_changes;

    #[test]
    fn what_is_kept_is_bounded_and_kept_once() {
        let mut prepared = PreparedHere::default();
        let changes = session_changes(b"SELECT set_config('a', 'x', false)");
        let name = "n".repeat(70);
        for _ in 0..10_000 {
            assert!(prepared.add(name.as_bytes(), &changes[0]));
        }
        assert_eq!(prepared.of(&name.as_bytes()[..63]), changes);
        let refused = (0..1000).find(|number: &u32| {
            let name = number.to_string();
            !prepared.add(name.as_bytes(), &changes[0])
        });
        assert!(refused.is_some_and(|count| count > 50), "{refused:?}");
        prepared.clear();
        assert!(prepared.of(name.as_bytes()).is_empty());
    }
}
