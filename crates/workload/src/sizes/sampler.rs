//! Numbers drawn from a distribution, without end.

use super::Distribution;
use crate::rng::Rng;

/// Seeded numbers of one distribution; the same distribution, seed and purpose give the same
/// numbers on every machine.
pub struct Sampler {
    distribution: Distribution,
    rng: Rng,
    /// Share of the first of its kinds.
    first_share: f64,
}

impl Sampler {
    /// Numbers of `distribution`; one seed gives independent numbers for each `purpose`.
    pub fn new(distribution: Distribution, seed: u64, purpose: u64) -> Self {
        Self {
            first_share: distribution.kinds().first().map_or(1.0, |kind| kind.share),
            distribution,
            rng: Rng::new(seed, purpose),
        }
    }

    /// The distribution drawn from.
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// The next number.
    pub fn draw(&mut self) -> f64 {
        self.distribution.law.draw(self.rng.uniform())
    }

    /// The next number, the same as [`draw`](Self::draw) gives, and which of the law's
    /// [`kinds`](Distribution::kinds) it is of.
    pub fn draw_kind(&mut self) -> (f64, usize) {
        let uniform = self.rng.uniform();
        let kind = usize::from(uniform >= self.first_share);
        (self.distribution.law.draw(uniform), kind)
    }
}

impl Iterator for Sampler {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        Some(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::ks;

    #[test]
    fn drawn_numbers_follow_their_law() {
        for (purpose, text) in (100..).zip([
            "exp:mean=2",
            "h2:mean=1,c2=16",
            "pareto:k=1,alpha=1.5",
            "bpareto:k=1,p=1e6,alpha=1.1",
            "lognormal:mu=1.5,sigma=0.8",
            "weibull:scale=1.46,shape=0.382",
            "surge",
        ]) {
            let distribution: Distribution = text.parse().expect(text);
            let mut sample: Vec<f64> = Sampler::new(distribution.clone(), 1, purpose)
                .take(20_000)
                .collect();
            let test = ks::test(&mut sample, |x| distribution.cdf(x));
            assert!(test.p_value > 0.001, "{text}: {test:?}");
        }
    }

    #[test]
    fn a_kind_has_its_share_and_its_mean() {
        let law: Distribution = "h2:mean=10,c2=8".parse().expect("a law");
        let mut sampler = Sampler::new(law.clone(), 1, 7);
        let drawn: Vec<(f64, usize)> = (0..200_000).map(|_| sampler.draw_kind()).collect();
        for (index, kind) in law.kinds().into_iter().enumerate() {
            let of_it: Vec<f64> = drawn
                .iter()
                .filter(|one| one.1 == index)
                .map(|one| one.0)
                .collect();
            let share = of_it.len() as f64 / drawn.len() as f64;
            let mean = of_it.iter().sum::<f64>() / of_it.len() as f64;
            assert!(
                (share / kind.share - 1.0).abs() < 0.03,
                "{share} for {kind:?}"
            );
            assert!((mean / kind.mean - 1.0).abs() < 0.03, "{mean} for {kind:?}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |seed, purpose| -> Vec<f64> {
            Sampler::new(Distribution::surge(), seed, purpose)
                .take(3)
                .collect()
        };
        assert_eq!(draw(1, 100), draw(1, 100));
        assert_ne!(draw(1, 100), draw(2, 100));
        assert_ne!(draw(1, 100), draw(1, 101));
    }
}
