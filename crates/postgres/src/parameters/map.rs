//! Run-time parameters by name: many clients have the same ones, which are kept once.

use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Settings by name, as bytes of the client's encoding. Copies are one until either changes, and
/// those are compared at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Arc<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Parameters {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes two that are equal one. The lower address stays, so that many become one whichever
    /// meet.
    pub fn unite(&mut self, other: &mut Self) {
        if self != other {
            return;
        }
        match Arc::as_ptr(&self.0).cmp(&Arc::as_ptr(&other.0)) {
            Ordering::Less => other.0 = self.0.clone(),
            Ordering::Greater => self.0 = other.0.clone(),
            Ordering::Equal => {}
        }
    }
}

impl FromIterator<(Vec<u8>, Vec<u8>)> for Parameters {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Vec<u8>)>>(settings: I) -> Self {
        Self(Arc::new(settings.into_iter().collect()))
    }
}

impl<'a> IntoIterator for &'a Parameters {
    type Item = (&'a Vec<u8>, &'a Vec<u8>);
    type IntoIter = btree_map::Iter<'a, Vec<u8>, Vec<u8>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Deref for Parameters {
    type Target = BTreeMap<Vec<u8>, Vec<u8>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Parameters {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(value: &[u8]) -> Parameters {
        Parameters::from_iter([(b"DateStyle".to_vec(), value.to_vec())])
    }

    #[test]
    fn settings_that_are_equal_become_one_until_either_changes() {
        let mut copies = [settings(b"ISO"), settings(b"ISO"), settings(b"ISO")];
        for (one, other) in [(0, 1), (1, 2), (0, 2)] {
            let [one, other] = copies.get_disjoint_mut([one, other]).unwrap();
            one.unite(other);
            assert!(Arc::ptr_eq(&one.0, &other.0));
        }
        copies[0].insert(b"DateStyle".to_vec(), b"German".to_vec());
        assert_eq!(
            copies,
            [settings(b"German"), settings(b"ISO"), settings(b"ISO")]
        );
    }

    #[test]
    fn settings_that_differ_stay_apart() {
        let (mut one, mut other) = (settings(b"ISO"), settings(b"German"));
        one.unite(&mut other);
        assert_eq!((one, other), (settings(b"ISO"), settings(b"German")));
    }
}
