//! What the server is to be asked when a turn is over: what the client's commands may have changed
//! in its session.
//!
//! Whether a command did what it says depends on failures, rollbacks and functions. So nothing is
//! counted here: the server says what is there.

use crate::sql::Tie;
use std::collections::BTreeMap;

/// Bytes of names and values that are kept for a client, or waited for.
pub const KEPT_BYTES_MAX: usize = 16 << 10;
/// Of a name or a value beside its text.
pub const ENTRY_BYTES: usize = 64;

/// What ties a client to its server connection, as the server can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ties(u8);

impl Ties {
    /// One more; whether it is new.
    pub fn insert(&mut self, tie: Tie) -> bool {
        let before = self.0;
        self.0 |= 1 << tie as u8;
        self.0 != before
    }

    /// One less.
    pub fn remove(&mut self, tie: Tie) {
        self.0 &= !(1 << tie as u8);
    }

    /// Whether it is one of them.
    pub fn contains(self, tie: Tie) -> bool {
        self.0 & (1 << tie as u8) != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = Tie> {
        Tie::ALL.into_iter().filter(move |tie| self.contains(*tie))
    }

    /// The first of them.
    pub fn first(self) -> Option<Tie> {
        self.iter().next()
    }
}

/// Of a longer value that may hide a reset is not known what it was.
const HIDING_BYTES_MAX: usize = 64;

/// Whether a setting of the transaction hides that the session has reset it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hidden {
    No,
    Yes,
    /// Unless this value was set for the session: that was computed.
    Unless(Vec<u8>),
}

/// What is to be asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PossibleChanges {
    /// Names of settings, in lower case, and whether the last that was said of each is that it is
    /// what it was at first.
    pub parameters: BTreeMap<Vec<u8>, bool>,
    /// Whether some may be what they were at first (RESET).
    pub has_reset: bool,
    /// Settings that were reset and not set again, and whether a setting of the transaction hides
    /// that: when the transaction is over, the server calls what was hidden a setting of the
    /// session. All have names of `parameters`.
    resets: BTreeMap<Vec<u8>, Hidden>,
    /// Whether something failed: a setting may not be what a command says, or no setting at all.
    pub has_failed: bool,
    /// What may be there, or no longer.
    pub ties: Ties,
    /// Whether the server was asked and has not said it.
    pub is_unanswered: bool,
    kept_bytes: usize,
}

impl PossibleChanges {
    /// The server has said what a turn changed, as far as it was asked; whether there was a RESET.
    pub fn end_turn(&mut self) -> bool {
        self.resets.clear();
        std::mem::take(&mut self.has_reset)
    }

    /// A setting that is asked for was reset.
    pub fn note_reset(&mut self, name: &[u8]) {
        if self.parameters.contains_key(name) {
            self.resets.insert(name.to_vec(), Hidden::No);
        }
    }

    /// A setting was set for the session.
    pub fn note_set(&mut self, name: &[u8]) {
        self.resets.remove(name);
    }

    /// A setting was set for the transaction.
    pub fn note_local(&mut self, name: &[u8]) {
        self.note_hiding(name, Hidden::Yes);
    }

    /// A setting was set for the transaction or the session, to this value where that is known.
    pub fn note_either(&mut self, name: &[u8], value: Option<&[u8]>) {
        let known = value.filter(|value| value.len() <= HIDING_BYTES_MAX);
        let unless = |value: &[u8]| Hidden::Unless(value.to_vec());
        self.note_hiding(name, known.map_or(Hidden::Yes, unless));
    }

    fn note_hiding(&mut self, name: &[u8], hidden: Hidden) {
        if let Some(known) = self.resets.get_mut(name) {
            *known = hidden;
        }
    }

    /// Something was rolled back: what was reset may not be.
    pub fn note_undone(&mut self) {
        self.resets.clear();
    }

    /// Settings that are reset, whatever the server says of them.
    pub fn resets(&self) -> impl Iterator<Item = &Vec<u8>> {
        let is_certain = |(_, hidden): &(&Vec<u8>, &Hidden)| !matches!(hidden, Hidden::Unless(_));
        self.resets.iter().filter(is_certain).map(|(name, _)| name)
    }

    /// Whether a setting of this value is reset, though the server calls it one of the session.
    pub fn is_hidden_reset(&self, name: &[u8], value: &[u8]) -> bool {
        match self.resets.get(name) {
            None | Some(Hidden::No) => false,
            Some(Hidden::Yes) => true,
            Some(Hidden::Unless(set)) => set != value,
        }
    }

    /// A setting may have changed; whether there is room to remember that.
    pub fn add(&mut self, name: &[u8], is_reset: bool) -> bool {
        if let Some(known) = self.parameters.get_mut(name) {
            *known = is_reset;
            return true;
        }
        self.kept_bytes += ENTRY_BYTES + name.len();
        let has_room = self.kept_bytes <= KEPT_BYTES_MAX;
        if has_room {
            self.parameters.insert(name.to_vec(), is_reset);
        }
        has_room
    }

    /// These have been answered.
    pub fn remove(&mut self, names: &[Vec<u8>]) {
        for name in names {
            self.resets.remove(name);
            if self.parameters.remove(name).is_some() {
                let entry_bytes = ENTRY_BYTES + name.len();
                assert!(
                    entry_bytes <= self.kept_bytes,
                    "released more than was kept"
                );
                self.kept_bytes -= entry_bytes;
            }
        }
    }
}
