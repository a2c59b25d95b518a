//! Values that every kit draws.

use sooner_workload::Rng;

/// From `low` to `high`, both included.
pub fn between(random: &mut Rng, low: u64, high: u64) -> u64 {
    low + random.below(high - low + 1)
}

/// Letters and digits, between so many and so many.
pub fn text(random: &mut Rng, least: u64, most: u64) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let length = between(random, least, most);
    let letter = |_| char::from(LETTERS[random.below(LETTERS.len() as u64) as usize]);
    (0..length).map(letter).collect()
}
