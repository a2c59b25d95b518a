//! Averages of the recent past.

/// Of all samples while they are few, then exponentially weighted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Average {
    value: f64,
    samples: f64,
    memory: f64,
}

impl Average {
    /// No samples yet; each new one will weigh at least 1/`memory`.
    pub(super) fn new(memory: f64) -> Self {
        Self {
            value: 0.0,
            samples: 0.0,
            memory,
        }
    }

    /// One more sample.
    pub(super) fn add(&mut self, sample: f64) {
        self.samples = (self.samples + 1.0).min(self.memory);
        let weight = 1.0 / self.samples;
        // Not by adding the difference: what is positive stays so, however much the samples differ.
        self.value = (1.0 - weight) * self.value + weight * sample;
    }

    /// From now on it is of the samples of `other`.
    pub(super) fn restart_as(&mut self, other: &Self) {
        self.value = other.value;
        self.samples = other.samples.min(self.memory);
    }

    /// How many samples it is made of, at most its memory.
    pub(super) fn samples(&self) -> f64 {
        self.samples
    }

    /// The average; `None` before the first sample.
    pub(super) fn get(&self) -> Option<f64> {
        (self.samples > 0.0).then_some(self.value)
    }

    /// The average as if `samples` more of `value` had come first.
    pub(super) fn with_before(&self, samples: f64, value: f64) -> f64 {
        (self.samples * self.value + samples * value) / (self.samples + samples)
    }
}

/// Mean and variance of the recent past.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments {
    mean: Average,
    variance: Average,
}

impl Moments {
    /// No samples yet.
    pub(super) fn new(memory: f64) -> Self {
        Self {
            mean: Average::new(memory),
            variance: Average::new(memory),
        }
    }

    /// One more sample.
    pub(super) fn add(&mut self, sample: f64) {
        let before = self.mean.get().unwrap_or(sample);
        self.mean.add(sample);
        let after = self.mean.get().unwrap_or(sample);
        self.variance.add((sample - before) * (sample - after));
    }

    /// The variance as if some samples of this variance had come first.
    pub(super) fn variance_with_before(&self, samples: f64, variance: f64) -> f64 {
        self.variance.with_before(samples, variance)
    }
}
