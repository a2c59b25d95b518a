//! Random values as TPC-C has them (clauses 2.1.6 and 4.3.2).

use sooner_workload::Rng;

use crate::draw::{between, text};

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];
/// The constants of a run; those of the data and of the transactions may be the same where nothing
/// is published.
const C_LAST: u64 = 123;
const C_CUSTOMER: u64 = 259;
const C_ITEM: u64 = 4211;

/// Not uniform: some values far more often than others (clause 2.1.6).
fn uneven(random: &mut Rng, a: u64, c: u64, low: u64, high: u64) -> u64 {
    let both = between(random, 0, a) | between(random, low, high);
    (both + c) % (high - low + 1) + low
}

/// A customer's number, from 1.
pub fn customer(random: &mut Rng, customers: u64) -> u64 {
    uneven(random, 1023.min(customers), C_CUSTOMER, 1, customers)
}

/// An item's number, from 1.
pub fn item(random: &mut Rng, items: u64) -> u64 {
    uneven(random, 8191.min(items), C_ITEM, 1, items)
}

/// A last name by its number, 0 to 999.
pub fn last_name(number: u64) -> String {
    let syllable = |digit: u64| SYLLABLES[(digit % 10) as usize];
    [number / 100, number / 10, number].map(syllable).concat()
}

/// The last name that a transaction looks for, where there are `customers` in a district.
pub fn asked_last_name(random: &mut Rng, customers: u64) -> String {
    let names = customers.clamp(1, 1000);
    last_name(uneven(random, 255.min(names), C_LAST, 0, names - 1))
}

/// Like a text, and one in ten has `ORIGINAL` in it.
pub fn data(random: &mut Rng) -> String {
    let text = text(random, 26, 50);
    match random.below(10) {
        0 => format!("{}ORIGINAL{}", &text[..9], &text[17..]),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_three_syllables() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn some_are_asked_for_far_more_often_than_others() {
        let mut random = Rng::new(1, 1);
        let mut counts = vec![0u32; 3001];
        for _ in 0..300_000 {
            counts[customer(&mut random, 3000) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        counts.sort_unstable();
        let upper: u32 = counts[2700..].iter().sum();
        // A tenth of the customers; a tenth of the questions if all were alike.
        assert!(upper > 60_000, "{upper}");
        for customers in [1, 7, 100] {
            let one = customer(&mut random, customers);
            assert!((1..=customers).contains(&one));
        }
    }
}
