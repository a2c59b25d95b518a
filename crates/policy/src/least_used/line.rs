//! Those of one kind who are here, networks or clients, in the order of what they had.

use crate::ClientId;
use alloc::collections::{BTreeMap, BTreeSet};

/// Who is here, and who goes first of those that can: who had the least, and of equals who came
/// first.
#[derive(Clone, Debug)]
pub(super) struct Line<T> {
    pub(super) present: BTreeMap<ClientId, Present<T>>,
    pub(super) places: BTreeSet<Place>,
}

/// What one had, when it came, and who it is.
pub(super) type Place = (u128, u64, ClientId);

#[derive(Clone, Debug)]
pub(super) struct Present<T> {
    inner: T,
    came: u64,
    /// What it had when it was put in its place; `None` while it cannot go.
    had: Option<u128>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self {
            present: BTreeMap::new(),
            places: BTreeSet::new(),
        }
    }
}

impl<T> Line<T> {
    pub(super) fn get(&mut self, id: ClientId) -> Option<&mut T> {
        self.present.get_mut(&id).map(|present| &mut present.inner)
    }

    pub(super) fn entry(&mut self, id: ClientId, came: u64, new: impl FnOnce() -> T) -> &mut T {
        let new = || Present {
            inner: new(),
            came,
            had: None,
        };
        &mut self.present.entry(id).or_insert_with(new).inner
    }

    /// It had so much, and can go; where that is `None` it cannot.
    pub(super) fn put(&mut self, id: ClientId, had: Option<u128>) {
        let Some(present) = self.present.get_mut(&id) else {
            return;
        };
        let came = present.came;
        if let Some(before) = core::mem::replace(&mut present.had, had) {
            let was_there = self.places.remove(&(before, came, id));
            assert!(was_there, "who can go is found where it was put");
        }
        self.places.extend(had.map(|had| (had, came, id)));
    }

    pub(super) fn remove(&mut self, id: ClientId) {
        self.put(id, None);
        self.present.remove(&id);
    }

    pub(super) fn first(&mut self) -> Option<&mut T> {
        let &(.., id) = self.places.first()?;
        self.get(id)
    }
}
