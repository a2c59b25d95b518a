//! A table by name of bounded size, for names that clients choose: one that comes again and again
//! stays, one that came once and never again goes first (second chance).

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Values by name.
#[derive(Debug)]
pub struct SecondChance<T, K = Arc<str>> {
    names_max: usize,
    slots: Vec<Slot<T, K>>,
    slot_of: HashMap<K, usize>,
    /// The slot that is looked at first when one has to go.
    hand: usize,
}

#[derive(Debug)]
struct Slot<T, K> {
    name: K,
    value: T,
    /// Whether it came again since the hand was here.
    is_used: bool,
}

impl<T> SecondChance<T> {
    /// For at most so many names, and at least one.
    pub fn new(names_max: usize) -> Self {
        Self::of_keys(names_max)
    }

    /// All that there is, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.slots.iter().map(|slot| (&*slot.name, &slot.value))
    }
}

impl<T, K: Clone + Eq + Hash> SecondChance<T, K> {
    /// The same where names are no text.
    pub fn of_keys(names_max: usize) -> Self {
        Self {
            names_max: names_max.max(1),
            slots: Vec::new(),
            slot_of: HashMap::new(),
            hand: 0,
        }
    }

    /// The value of a name, which has come again.
    pub fn get<Q>(&mut self, name: &Q) -> Option<&mut T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let slot = &mut self.slots[*self.slot_of.get(name)?];
        slot.is_used = true;
        Some(&mut slot.value)
    }

    /// The same, a new one where there is none; and the value that had to go for it.
    pub fn entry<Q>(&mut self, name: &Q, new: impl FnOnce() -> T) -> (&mut T, Option<T>)
    where
        K: Borrow<Q> + for<'a> From<&'a Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(&index) = self.slot_of.get(name) {
            let slot = &mut self.slots[index];
            slot.is_used = true;
            return (&mut slot.value, None);
        }
        let name = K::from(name);
        let slot = Slot {
            name: name.clone(),
            value: new(),
            is_used: false,
        };
        let (index, gone) = self.place(slot);
        self.slot_of.insert(name, index);
        (&mut self.slots[index].value, gone)
    }

    fn place(&mut self, slot: Slot<T, K>) -> (usize, Option<T>) {
        if self.slots.len() < self.names_max {
            self.slots.push(slot);
            return (self.slots.len() - 1, None);
        }
        let index = self.least_used();
        let gone = std::mem::replace(&mut self.slots[index], slot);
        self.slot_of.remove(&gone.name);
        (index, Some(gone.value))
    }

    /// The first slot from the hand on with a name that has not come again since the hand was
    /// there; ends after one round at the latest.
    fn least_used(&mut self) -> usize {
        loop {
            let index = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            if !std::mem::take(&mut self.slots[index].is_used) {
                return index;
            }
        }
    }

    /// All values, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().map(|slot| &mut slot.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_stays_however_many_names_come() {
        let mut table = SecondChance::new(4);
        table.entry("often", || 7);
        let mut gone = 0;
        for stranger in 0..1000 {
            let (_, went) = table.entry(&format!("once {stranger}"), || stranger + 10);
            gone += usize::from(went.is_some());
            assert_eq!(table.get("often"), Some(&mut 7));
        }
        assert_eq!(
            (table.iter().count(), table.slot_of.len(), gone),
            (4, 4, 997)
        );
        assert_eq!(table.get("once 0"), None);
    }
}
