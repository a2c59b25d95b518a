//! The statements of one client, by its own names.

use super::{ENTRY_BYTES, Statement};
use std::collections::HashMap;
use std::sync::Arc;

/// The statements of one client, by its own names.
#[derive(Debug, Default)]
pub struct ClientStatements {
    by_name: HashMap<Vec<u8>, Arc<Statement>>,
    /// The one without a name, which many drivers prepare anew for each query.
    unnamed: Option<Arc<Statement>>,
    /// Of names and texts, as if no other client had the same.
    kept_bytes: usize,
}

/// What a client's statements may have together: what the gate keeps for it is bounded.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Of a name PostgreSQL looks at so many bytes (NAMEDATALEN without its zero).
const NAME_BYTES: usize = 63;

fn entry_bytes(name: &[u8], statement: &Statement) -> usize {
    // The client was told at most one type for each byte or two of its text.
    ENTRY_BYTES + name.len() + 3 * statement.text.parse_rest.len()
}

fn key(name: &[u8]) -> &[u8] {
    &name[..name.len().min(NAME_BYTES)]
}

/// Why a client's statement is refused, as PostgreSQL would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The name is taken (42P05).
    Exists,
    /// There is none of this name (26000).
    Unknown,
}

impl ClientStatements {
    /// It prepares a statement; the one without a name takes the place of the last.
    pub fn prepare(&mut self, name: &[u8], statement: Arc<Statement>) -> Result<(), Refused> {
        if !name.is_empty() && self.by_name.contains_key(key(name)) {
            return Err(Refused::Exists);
        }
        self.close(name);
        self.kept_bytes += entry_bytes(key(name), &statement);
        match name {
            b"" => self.unnamed = Some(statement),
            _ => drop(self.by_name.insert(key(name).to_vec(), statement)),
        }
        Ok(())
    }

    /// Whether there is room for one more of this length.
    pub fn has_room(&self, name_and_rest_bytes: usize) -> bool {
        self.kept_bytes + ENTRY_BYTES + 3 * name_and_rest_bytes <= KEPT_BYTES_MAX
    }

    /// It means the statement of this name.
    pub fn named(&self, name: &[u8]) -> Result<&Arc<Statement>, Refused> {
        let found = match name {
            b"" => self.unnamed.as_ref(),
            _ => self.by_name.get(key(name)),
        };
        found.ok_or(Refused::Unknown)
    }

    /// What the client calls this statement, or one that it would be given for it.
    pub fn name_of(&self, statement: &Statement) -> Option<&[u8]> {
        let named = self.by_name.iter();
        let named = named.map(|(name, own)| (name.as_slice(), own));
        let mut named = self.unnamed.iter().map(|own| (&b""[..], own)).chain(named);
        let found = named.clone().find(|(_, own)| ***own == *statement);
        let found = found.or_else(|| named.find(|(_, own)| own.is_equal(statement)));
        found.map(|(name, _)| name)
    }

    /// It needs it no more; what it had. That there was none is no mistake.
    pub fn close(&mut self, name: &[u8]) -> Option<Arc<Statement>> {
        let had = match name {
            b"" => self.unnamed.take(),
            _ => self.by_name.remove(key(name)),
        }?;
        let entry_bytes = entry_bytes(key(name), &had);
        assert!(
            entry_bytes <= self.kept_bytes,
            "released more than was kept"
        );
        self.kept_bytes -= entry_bytes;
        Some(had)
    }

    /// It needs none of those with a name any more (`DEALLOCATE ALL`, `DISCARD ALL`): in PostgreSQL
    /// the one without stays.
    pub fn close_named(&mut self) {
        let unnamed = self.unnamed.take();
        *self = Self::default();
        if let Some(statement) = unnamed {
            self.kept_bytes = entry_bytes(b"", &statement);
            self.unnamed = Some(statement);
        }
    }

    /// Whether it has one with a name.
    pub fn has_named(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// How many it has.
    pub fn len(&self) -> usize {
        self.by_name.len() + usize::from(self.unnamed.is_some())
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are kept for it.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }
}
