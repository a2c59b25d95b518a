//! How long a job will stay inside, from how long others like it did.
//!
//! Jobs alike have the same key. A key seen for the first time is expected to be like all others:
//! the mean of the recent past. The table is bounded, because clients choose the keys.

use crate::second_chance::SecondChance;

/// The samples a key's mean remembers, unless the caller says how many.
pub const KEY_MEMORY: u64 = 8;
/// The samples the mean of everything remembers.
const OVERALL_MEMORY: u64 = 64;

/// What a mean that was scaled counts as.
const SCALED_SAMPLES: u64 = 16;

/// A mean of the recent past: of all samples while they are few, then exponentially weighted.
#[derive(Clone, Copy, Debug)]
pub struct Mean {
    value: u64,
    samples: u64,
    memory: u64,
}

impl Mean {
    /// No samples yet; each new one will weigh at least 1/`memory`.
    pub fn new(memory: u64) -> Self {
        Self {
            value: 0,
            samples: 0,
            memory: memory.max(1),
        }
    }

    /// One more sample.
    pub fn add(&mut self, sample: u64) {
        self.samples = (self.samples + 1).min(self.memory);
        if sample >= self.value {
            self.value += (sample - self.value) / self.samples;
        } else {
            self.value -= (self.value - sample) / self.samples;
        }
    }

    /// From now on everything takes `factor` times as long, as far as is known: what comes next
    /// counts as if there had been few samples.
    pub fn scale(&mut self, factor: f64) {
        self.value = (self.value as f64 * factor) as u64;
        self.samples = self.samples.min(SCALED_SAMPLES);
    }

    /// Whether there were more samples than what was scaled counts as: then it is known, and not
    /// only believed.
    pub fn is_known(&self) -> bool {
        self.samples > SCALED_SAMPLES
    }

    /// The mean; `None` before the first sample.
    pub fn get(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.value)
    }
}

/// Expected times by key, for at most a given number of keys.
#[derive(Debug)]
pub struct Estimates {
    key_memory: u64,
    means: SecondChance<Mean>,
    overall: Mean,
}

impl Estimates {
    /// A table of at most `keys_max` keys.
    pub fn new(keys_max: usize) -> Self {
        Self::with_memory(keys_max, KEY_MEMORY)
    }

    /// The same, with means of the last `key_memory` samples.
    pub fn with_memory(keys_max: usize, key_memory: u64) -> Self {
        Self {
            key_memory,
            means: SecondChance::new(keys_max),
            overall: Mean::new(OVERALL_MEMORY),
        }
    }

    /// The time a job of `key` is expected to take, ns; `None` before the first observation of any
    /// job.
    pub fn expected_ns(&mut self, key: &str) -> Option<u64> {
        match self.means.get(key) {
            Some(mean) => mean.get(),
            None => self.overall.get(),
        }
    }

    /// The mean of all recent jobs, ns.
    pub fn overall_ns(&self) -> Option<u64> {
        self.overall.get()
    }

    /// A job of `key` took `service_ns`.
    pub fn observe(&mut self, key: &str, service_ns: u64) {
        self.overall.add(service_ns);
        let memory = self.key_memory;
        let (mean, _) = self.means.entry(key, || Mean::new(memory));
        mean.add(service_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_starts_at_the_first_sample_and_then_follows() {
        let mut mean = Mean::new(4);
        assert_eq!(mean.get(), None);
        mean.add(100);
        assert_eq!(mean.get(), Some(100));
        mean.add(200);
        assert_eq!(mean.get(), Some(150));
        for _ in 0..40 {
            mean.add(1000);
        }
        assert!(mean.get() > Some(990));
        mean.add(0);
        assert!((700..800).contains(&mean.get().unwrap()));
        mean.add(u64::MAX);
        mean.add(u64::MAX);
    }

    #[test]
    fn an_unknown_key_is_expected_to_be_like_the_others() {
        let mut estimates = Estimates::new(8);
        assert_eq!(estimates.expected_ns("a"), None);
        estimates.observe("a", 10);
        estimates.observe("b", 30);
        assert_eq!(estimates.expected_ns("a"), Some(10));
        assert_eq!(estimates.expected_ns("b"), Some(30));
        assert_eq!(estimates.expected_ns("c"), Some(20));
    }

    #[test]
    fn what_is_used_stays_however_many_keys_come() {
        let mut estimates = Estimates::new(4);
        estimates.observe("often", 7);
        for stranger in 0..1000 {
            estimates.observe(&format!("once {stranger}"), 1_000_000);
            assert_eq!(estimates.expected_ns("often"), Some(7));
        }
        assert_eq!(estimates.means.iter().count(), 4);
    }
}
