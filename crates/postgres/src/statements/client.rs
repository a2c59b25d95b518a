//! The statements of one client, by its own names.

use super::{ENTRY_BYTES, Statement};
use std::collections::HashMap;
use std::sync::Arc;

/// The statements of one client, by its own names.
#[derive(Debug, Default)]
pub struct ClientStatements {
    by_name: HashMap<Vec<u8>, Kept>,
    /// The one without a name, which many drivers prepare anew for each query.
    unnamed: OwnUnnamed,
    /// Of names and texts, as they were charged.
    kept_bytes: usize,
}

/// A statement that is kept here.
#[derive(Debug)]
struct Kept {
    statement: Arc<Statement>,
    charged_bytes: usize,
}

/// A client's statement without a name.
#[derive(Debug, Default)]
enum OwnUnnamed {
    /// It has none.
    #[default]
    Absent,
    /// It is kept here.
    Kept(Kept),
    /// It is not kept here: only the client's server connection has it.
    PassedOn {
        /// By which it is known from those of other clients.
        number: u64,
        /// Whether the client has used it.
        is_bound: bool,
    },
}

/// What a client's statements may have together: what the gate keeps for it is bounded.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// A client is charged such a part of a text that is there already: the others pay for it, too.
/// When they have gone, it has at most so many times what it is charged.
const SHARED_PART: usize = 4;
/// What the client is told of a parameter: its type.
const TYPE_BYTES: usize = 4;
/// Of a name PostgreSQL looks at so many bytes (NAMEDATALEN without its zero).
const NAME_BYTES: usize = 63;

/// What a client is charged for a statement that it prepares now.
fn charge(name: &[u8], statement: &Statement) -> usize {
    let text_bytes = statement.text.kept_bytes();
    // Each statement of the text counts, and this is one.
    let is_shared = Arc::strong_count(&statement.text) > 1;
    let part = if is_shared { SHARED_PART } else { 1 };
    ENTRY_BYTES + name.len() + told_bytes_max(statement) + text_bytes / part
}

/// What the client may be told of a statement's parameters: each is declared, or is in the text.
fn told_bytes_max(statement: &Statement) -> usize {
    let sql = statement.sql().iter();
    let parameters = sql.filter(|byte| **byte == b'$').count();
    statement.types().len() + TYPE_BYTES * parameters
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
        let charged_bytes = charge(key(name), &statement);
        self.kept_bytes += charged_bytes;
        let kept = Kept {
            statement,
            charged_bytes,
        };
        match name {
            b"" => self.unnamed = OwnUnnamed::Kept(kept),
            _ => drop(self.by_name.insert(key(name).to_vec(), kept)),
        }
        Ok(())
    }

    /// Whether there is room for one more. There always is for the one without a name, of which
    /// there are no two.
    pub fn has_room(&self, name: &[u8], statement: &Statement) -> bool {
        name.is_empty() || self.kept_bytes + charge(key(name), statement) <= KEPT_BYTES_MAX
    }

    /// It prepares one without a name that is not kept here; `number` is that statement's alone.
    pub fn pass_on_unnamed(&mut self, number: u64) {
        self.close(b"");
        self.unnamed = OwnUnnamed::PassedOn {
            number,
            is_bound: false,
        };
    }

    /// The number of its statement without a name, where that is not kept here.
    pub fn passed_on(&self) -> Option<u64> {
        match &self.unnamed {
            OwnUnnamed::PassedOn { number, .. } => Some(*number),
            OwnUnnamed::Absent | OwnUnnamed::Kept(_) => None,
        }
    }

    /// It binds one of this name.
    pub fn note_bound(&mut self, name: &[u8]) {
        if let (b"", OwnUnnamed::PassedOn { is_bound, .. }) = (name, &mut self.unnamed) {
            *is_bound = true;
        }
    }

    /// Whether it has prepared one without a name that is not kept here, and has yet to bind it:
    /// drivers prepare in one batch and bind in the next. What was bound is not used again.
    pub fn awaits_bind(&self) -> bool {
        let unnamed = &self.unnamed;
        matches!(unnamed, OwnUnnamed::PassedOn { is_bound, .. } if !is_bound)
    }

    /// It means the statement of this name.
    pub fn named(&self, name: &[u8]) -> Result<&Arc<Statement>, Refused> {
        let found = match (name, &self.unnamed) {
            (b"", OwnUnnamed::Kept(kept)) => Some(kept),
            (b"", _) => None,
            _ => self.by_name.get(key(name)),
        };
        found.map(|kept| &kept.statement).ok_or(Refused::Unknown)
    }

    /// What the client calls this statement, or one that it would be given for it.
    pub fn name_of(&self, statement: &Statement) -> Option<&[u8]> {
        let named = self.by_name.iter();
        let named = named.map(|(name, kept)| (name.as_slice(), &kept.statement));
        let unnamed = self.named(b"").into_iter();
        let mut named = unnamed.map(|own| (&b""[..], own)).chain(named);
        let found = named.clone().find(|(_, own)| ***own == *statement);
        let found = found.or_else(|| named.find(|(_, own)| own.is_equal(statement)));
        found.map(|(name, _)| name)
    }

    /// It needs it no more; what it had. That there was none is no mistake.
    pub fn close(&mut self, name: &[u8]) -> Option<Arc<Statement>> {
        let had = match name {
            b"" => match std::mem::take(&mut self.unnamed) {
                OwnUnnamed::Kept(kept) => Some(kept),
                OwnUnnamed::Absent | OwnUnnamed::PassedOn { .. } => None,
            },
            _ => self.by_name.remove(key(name)),
        }?;
        assert!(
            had.charged_bytes <= self.kept_bytes,
            "released more than was kept"
        );
        self.kept_bytes -= had.charged_bytes;
        Some(had.statement)
    }

    /// It needs none of those with a name any more (`DEALLOCATE ALL`, `DISCARD ALL`): in PostgreSQL
    /// the one without stays.
    pub fn close_named(&mut self) {
        self.by_name = HashMap::new();
        self.kept_bytes = match &self.unnamed {
            OwnUnnamed::Kept(kept) => kept.charged_bytes,
            OwnUnnamed::Absent | OwnUnnamed::PassedOn { .. } => 0,
        };
    }

    /// Whether it has one with a name.
    pub fn has_named(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// How many it has that are kept here.
    pub fn len(&self) -> usize {
        self.by_name.len() + usize::from(matches!(self.unnamed, OwnUnnamed::Kept(_)))
    }

    /// Whether it has none of these.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it is charged for.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }
}
