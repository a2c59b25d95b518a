//! Sums over all that came later, kept while things are added (Fenwick 1994).

/// Amounts by place.
pub struct Sums {
    /// Each of them the sum of some places that end at its own, from 1 on.
    parts: Vec<u128>,
    all: u128,
}

impl Sums {
    /// Nothing yet, in so many places.
    pub fn new(places: usize) -> Self {
        Self {
            parts: vec![0; places + 1],
            all: 0,
        }
    }

    /// So much more in a place.
    pub fn add(&mut self, place: usize, amount: u64) {
        self.all += u128::from(amount);
        let mut at = place + 1;
        while let Some(part) = self.parts.get_mut(at) {
            *part += u128::from(amount);
            at += at & at.wrapping_neg();
        }
    }

    /// What is in all places behind this one.
    pub fn behind(&self, place: usize) -> u128 {
        let mut until = 0;
        let mut at = place + 1;
        while at > 0 {
            until += self.parts[at];
            at -= at & at.wrapping_neg();
        }
        self.all - until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_is_summed() {
        let mut sums = Sums::new(11);
        for place in [3, 0, 10, 7, 3] {
            sums.add(place, 1 << place);
        }
        let behind: Vec<u128> = [0, 2, 3, 6, 7, 9, 10]
            .map(|place| sums.behind(place))
            .into();
        assert_eq!(behind, [1168, 1168, 1152, 1152, 1024, 1024, 0]);
    }
}
