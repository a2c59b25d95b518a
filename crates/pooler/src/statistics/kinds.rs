//! Tallies by kind of transaction, of those that come often; the counts of one that goes are among
//! the others' from then on.

use super::{LeaseUsage, NAMES_MAX, OTHERS, Tally};
use sooner_admission::SecondChance;

/// The kinds that come often, and together those that went.
pub struct Kinds {
    own: SecondChance<Kind>,
    others: Tally,
}

#[derive(Default)]
struct Kind {
    tally: Tally,
    /// A first statement of it, without its constants.
    shape: Option<String>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self {
            own: SecondChance::new(NAMES_MAX),
            others: Tally::default(),
        }
    }
}

impl Kinds {
    /// A turn of a kind is over.
    pub(super) fn add(&mut self, name: &str, shape: Option<&str>, usage: &LeaseUsage) {
        let (kind, gone) = self.own.entry(name, Kind::default);
        kind.tally.add(usage);
        if kind.shape.is_none() {
            kind.shape = shape.map(str::to_owned);
        }
        if let Some(gone) = gone {
            self.others.take_over(gone.tally);
        }
    }

    /// A minute has passed.
    pub(super) fn minute_passed(&mut self) {
        let own = self.own.values_mut().map(|kind| &mut kind.tally);
        own.chain([&mut self.others]).for_each(Tally::minute_passed);
    }

    /// All of them by name, with a first statement of each, and behind them those that went, if any
    /// did.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>, &Tally)> {
        let own = self.own.iter();
        let mut own: Vec<_> = own
            .map(|(name, kind)| (name, kind.shape.as_deref(), &kind.tally))
            .collect();
        own.sort_unstable_by_key(|&(name, ..)| name);
        let others = (self.others.sums.turns > 0).then_some((OTHERS, None, &self.others));
        own.into_iter().chain(others)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Phase;
    use super::*;

    fn took(inside_us: u64) -> LeaseUsage {
        LeaseUsage {
            is_transaction: true,
            inside_us,
            ..LeaseUsage::default()
        }
    }

    fn turns(kinds: &Kinds) -> u64 {
        kinds.iter().map(|(_, _, tally)| tally.sums.turns).sum()
    }

    #[test]
    fn what_comes_late_and_often_is_listed_with_its_statement() {
        let mut kinds = Kinds::default();
        let add = |kinds: &mut Kinds, number: usize| {
            let shape = format!("select {number}");
            kinds.add(&format!("kind {number}"), Some(&shape), &took(10));
        };
        let numbers = (0..300).chain((0..10).flat_map(|_| 280..300));
        for (turn, number) in (1..).zip(numbers) {
            add(&mut kinds, number);
            assert_eq!(turns(&kinds), turn);
        }
        assert_eq!(kinds.iter().count(), NAMES_MAX + 1);
        for number in 280..300 {
            let name = format!("kind {number}");
            let (_, shape, tally) = kinds.iter().find(|(kind, ..)| *kind == name).unwrap();
            assert_eq!(shape, Some(format!("select {number}").as_str()));
            assert_eq!(tally.sums.turns, 11);
        }
        let (name, shape, tally) = kinds.iter().last().unwrap();
        assert_eq!((name, shape), (OTHERS, None));
        assert_eq!(tally.sums.turns, (300 - NAMES_MAX) as u64);
    }

    #[test]
    fn what_comes_often_stays_whatever_else_comes() {
        let mut kinds = Kinds::default();
        kinds.add("often", None, &took(10));
        for stranger in 0..10 * NAMES_MAX {
            kinds.add(&format!("once {stranger}"), None, &took(10));
            kinds.add("often", Some("select ?"), &took(10));
        }
        let (_, shape, tally) = kinds.iter().find(|(kind, ..)| *kind == "often").unwrap();
        assert_eq!(shape, Some("select ?"));
        assert_eq!(tally.sums.turns, 1 + 10 * NAMES_MAX as u64);
        assert_eq!(kinds.iter().count(), NAMES_MAX + 1);
    }

    #[test]
    fn the_others_have_sums_minutes_and_times_of_what_went() {
        let mut kinds = Kinds::default();
        for number in 0..NAMES_MAX {
            kinds.add(&format!("early {number}"), None, &took(1000));
        }
        kinds.minute_passed();
        for number in 0..NAMES_MAX {
            kinds.add(&format!("late {number}"), None, &took(1000));
        }
        let others = &kinds.others;
        assert_eq!(others.sums.turns, NAMES_MAX as u64);
        assert_eq!(others.minute.turns, NAMES_MAX as u64);
        assert_eq!(others.sums.inside_us, 1000 * NAMES_MAX as u64);
        let half_us = others.quantile_us(Phase::Inside, 0.5).unwrap();
        assert!(half_us.abs_diff(1000) <= 10, "{half_us}");
        kinds.minute_passed();
        // Nothing of what went came in the minute that passed.
        assert_eq!(kinds.others.minute.turns, 0);
        assert_eq!(turns(&kinds), 2 * NAMES_MAX as u64);
    }
}
