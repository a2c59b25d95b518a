//! How much processor time requests use: counted in steps of a quarter of an octave.

/// Steps in an octave, and of all: 1 us to more than a day.
const STEPS_OF_OCTAVE: f64 = 4.0;
/// How many steps there are.
pub const STEPS: usize = 148;
/// What a request counts where its neighbours get something as well: half, and a quarter for each.
pub const WEIGHT: u32 = 4;

/// What was counted.
#[derive(Debug, Clone)]
pub struct Law {
    counts: [u32; STEPS],
    total: u64,
}

impl Default for Law {
    fn default() -> Law {
        Law {
            counts: [0; STEPS],
            total: 0,
        }
    }
}

impl Law {
    /// A request used so much, ns.
    pub fn note(&mut self, used_ns: u64) {
        self.add(step_of(used_ns), 1);
    }

    /// The same, of which the steps beside it have a part: few requests tell of their like. Counts
    /// [`WEIGHT`].
    pub fn note_smoothly(&mut self, used_ns: u64) {
        let step = step_of(used_ns);
        self.add(step, WEIGHT / 2);
        self.add(step.saturating_sub(1), WEIGHT / 4);
        self.add((step + 1).min(STEPS - 1), WEIGHT / 4);
    }

    fn add(&mut self, step: usize, count: u32) {
        self.counts[step] += count;
        self.total += u64::from(count);
    }

    /// What was counted weighs half from now on.
    pub fn halve(&mut self) {
        self.counts.iter_mut().for_each(|count| *count /= 2);
        self.total = self.counts.iter().map(|count| u64::from(*count)).sum();
    }

    /// By step.
    pub fn counts(&self) -> &[u32; STEPS] {
        &self.counts
    }

    /// All that was counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The share of a step, 0 to 1.
    pub fn share(&self, step: usize) -> f64 {
        f64::from(self.counts[step]) / self.total.max(1) as f64
    }

    /// How far two requests lie apart in the mean, halved, in steps.
    pub fn spread_steps(&self) -> f64 {
        let mut below = 0.0;
        let steps = (0..STEPS).map(|step| {
            below += self.share(step);
            below * (1.0 - below)
        });
        steps.sum()
    }

    /// So much or less is used by this share of the requests, ns, rounded up to the end of a step;
    /// none before the first.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        let step = self.counts.iter().position(|count| {
            sum += u64::from(*count);
            sum >= wanted
        });
        step.map(end_of)
    }

    /// The mean, ns; 0 before the first.
    pub fn mean_ns(&self) -> f64 {
        self.moment(1)
    }

    /// The squared coefficient of variation.
    pub fn variation(&self) -> f64 {
        let mean = self.moment(1).max(1.0);
        self.moment(2) / (mean * mean) - 1.0
    }

    fn moment(&self, power: i32) -> f64 {
        let steps = self.counts.iter().enumerate();
        let sum = steps.map(|(step, count)| f64::from(*count) * (end_of(step) as f64).powi(power));
        sum.sum::<f64>() / self.total.max(1) as f64
    }
}

/// The step of what was used.
pub fn step_of(used_ns: u64) -> usize {
    let octaves = (used_ns as f64 / 1000.0).max(1.0).log2();
    ((octaves * STEPS_OF_OCTAVE) as usize).min(STEPS - 1)
}

/// Where a step ends, ns.
pub fn end_of(step: usize) -> u64 {
    (1000.0 * ((step + 1) as f64 / STEPS_OF_OCTAVE).exp2()) as u64
}

/// How badly a law that has this share in each step foretells what came, in steps: 0 where it had
/// all at that step. What is near counts for something, which it does not by likelihood. Lowest in
/// the mean for the true law (the continuous ranked probability score, Matheson and Winkler 1976).
pub fn ranked_loss(share: impl Fn(usize) -> f64, came: usize) -> f64 {
    let mut below = 0.0;
    let steps = (0..STEPS).map(|step| {
        below += share(step);
        let wanted = f64::from(u8::from(step >= came));
        (below - wanted).powi(2)
    });
    steps.sum()
}
