//! How much clients have had lately: what was long ago counts for little, half as much after each
//! half-life.
//!
//! All that was had shrinks at the same pace, so that clients need no look while time goes by: what
//! is had later is counted as more instead. The growth within a half-life is a straight line, at
//! most 6.2 % above the exponential, and the same for all.

use crate::{ClientId, Time};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// After so many half-lives all counts shrink by as many bits.
const PERIOD_HALF_LIVES: u64 = 32;
/// Fixed-point bits of a count.
const FRACTION_BITS: u32 = 16;
/// More who have no job are not remembered: those who had the least are forgotten first.
const REMEMBERED_MAX: usize = 16_384;

/// What a unit of service counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inflation {
    half_life_ns: u64,
    /// Counts are what they would be then.
    epoch: Time,
    /// Whole half-lives from there to what was counted last.
    grown_bits: u32,
}

impl Inflation {
    pub(super) fn new(half_life_ns: u64) -> Self {
        Self {
            half_life_ns: half_life_ns.max(1),
            epoch: Time::ZERO,
            grown_bits: 0,
        }
    }

    /// By how many bits all counts have to shrink before something is counted now.
    pub(super) fn shrinks_by(&mut self, now: Time) -> u32 {
        let periods = now.since(self.epoch) / self.half_life_ns / PERIOD_HALF_LIVES;
        let half_lives = periods * PERIOD_HALF_LIVES;
        self.epoch = self.epoch.after(half_lives * self.half_life_ns);
        self.grown_bits = (now.since(self.epoch) / self.half_life_ns) as u32;
        u32::try_from(half_lives).unwrap_or(u32::MAX)
    }

    /// What `count` is worth at the last whole half-life.
    pub(super) fn amount(&self, count: u128) -> u64 {
        u64::try_from(count >> (FRACTION_BITS + self.grown_bits)).unwrap_or(u64::MAX)
    }

    /// What `amount` counts now.
    pub(super) fn count(&self, amount: u64, now: Time) -> u128 {
        let since_ns = now.since(self.epoch);
        let half_lives = since_ns / self.half_life_ns;
        assert!(half_lives < PERIOD_HALF_LIVES, "counts have shrunk before");
        let rest = u128::from(since_ns % self.half_life_ns);
        let part = (rest << FRACTION_BITS) / u128::from(self.half_life_ns);
        (u128::from(amount) * ((1 << FRACTION_BITS) + part)) << half_lives
    }
}

/// Counts by client.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    known: BTreeMap<ClientId, Known>,
    /// Those without a job, by what they had.
    absent: BTreeSet<(u128, ClientId)>,
    /// Those with one.
    present: BTreeSet<ClientId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    had: u128,
    jobs: usize,
}

impl Usage {
    /// What a client had.
    pub(super) fn had(&self, client: ClientId) -> u128 {
        self.known.get(&client).map_or(0, |known| known.had)
    }

    /// A job of it comes.
    pub(super) fn enter(&mut self, client: ClientId) {
        self.change(client, |known| known.jobs += 1);
    }

    /// A job of it leaves.
    pub(super) fn leave(&mut self, client: ClientId) {
        self.change(client, |known| {
            assert!(known.jobs > 0, "who leaves was there");
            known.jobs -= 1;
        });
    }

    /// It had so much more.
    pub(super) fn add(&mut self, client: ClientId, count: u128) {
        self.change(client, |known| known.had = known.had.saturating_add(count));
    }

    /// It had so much less than was counted.
    pub(super) fn take_off(&mut self, client: ClientId, count: u128) {
        self.change(client, |known| known.had = known.had.saturating_sub(count));
    }

    fn change(&mut self, client: ClientId, change: impl FnOnce(&mut Known)) {
        let known = self.known.entry(client).or_default();
        let was_present = known.jobs > 0;
        if !was_present {
            self.absent.remove(&(known.had, client));
        }
        change(known);
        let is_present = known.jobs > 0;
        if !is_present {
            self.absent.insert((known.had, client));
        }
        match (was_present, is_present) {
            (false, true) => drop(self.present.insert(client)),
            (true, false) => drop(self.present.remove(&client)),
            _ => {}
        }
        while self.absent.len() > REMEMBERED_MAX
            && let Some((_, forgotten)) = self.absent.pop_first()
        {
            self.known.remove(&forgotten);
        }
    }

    /// The same counts where none of them has a job. A time that grows with those that have one, and
    /// not with all that are remembered.
    pub(super) fn without_jobs(mut self) -> Self {
        let ids: Vec<ClientId> = self.present.iter().copied().collect();
        for id in ids {
            self.change(id, |known| known.jobs = 0);
        }
        assert!(self.present.is_empty(), "all have left");
        self
    }

    /// All counts shrink by so many bits.
    pub(super) fn shrink(&mut self, bits: u32) {
        let shrunk = |had: u128| had.checked_shr(bits).unwrap_or(0);
        for known in self.known.values_mut() {
            known.had = shrunk(known.had);
        }
        let absent = core::mem::take(&mut self.absent);
        self.absent = absent
            .into_iter()
            .map(|(had, client)| (shrunk(had), client))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_LIFE_NS: u64 = 1_000_000;

    fn at(half_lives_tenths: u64) -> Time {
        Time::from_ns(HALF_LIFE_NS / 10 * half_lives_tenths)
    }

    #[test]
    fn what_was_had_counts_half_after_a_half_life() {
        let mut inflation = Inflation::new(HALF_LIFE_NS);
        let mut earlier = inflation.count(1000, at(0));
        for half_lives in 1..200 {
            let now = at(10 * half_lives);
            earlier >>= inflation.shrinks_by(now);
            let later = inflation.count(1000, now);
            if half_lives < 20 {
                assert_eq!(later, earlier << half_lives, "{half_lives}");
            }
            assert!(later > earlier);
        }
        assert_eq!(inflation.amount(inflation.count(1000, at(1990))), 1000);
        let halfway = inflation.count(1000, at(1995));
        assert_eq!(halfway, inflation.count(1500, at(1990)));
    }

    #[test]
    fn a_long_silence_forgets_all_and_nothing_overflows() {
        let mut inflation = Inflation::new(1);
        let mut usage = Usage::default();
        usage.add(ClientId(1), inflation.count(u64::MAX, Time::from_ns(31)));
        usage.add(ClientId(1), inflation.count(u64::MAX, Time::from_ns(31)));
        let bits = inflation.shrinks_by(Time::from_ns(u64::MAX));
        usage.shrink(bits);
        assert_eq!(usage.had(ClientId(1)), 0);
        inflation.count(u64::MAX, Time::from_ns(u64::MAX));
    }

    #[test]
    fn those_who_had_the_least_are_forgotten_first() {
        let mut usage = Usage::default();
        usage.add(ClientId(0), 1_000_000);
        usage.enter(ClientId(1));
        for stranger in 2..3 * REMEMBERED_MAX as u64 {
            usage.add(ClientId(stranger), 10 + u128::from(stranger % 7));
        }
        assert_eq!(usage.had(ClientId(0)), 1_000_000);
        assert_eq!(usage.known.len(), REMEMBERED_MAX + 1);
        assert!(usage.known.contains_key(&ClientId(1)), "it has a job");
    }
}
