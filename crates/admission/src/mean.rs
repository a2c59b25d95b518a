//! The mean of the recent past.

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
}
