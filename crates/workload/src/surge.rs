//! SURGE: web users as Barford and Crovella (SIGMETRICS 1998) measured and modelled them, with the
//! sizes of Table 1 of Crovella, Frangioso and Harchol-Balter (1999).
//!
//! A user equivalent asks for a page's own file, then for the files embedded in it with short
//! pauses between (active OFF), then thinks (inactive OFF). Which file is next comes from one
//! stream for all users ([`References`]), in which files are as popular as Zipf says and come back
//! as soon as the published stack distances say. The files ([`FileSet`]) are matched to their
//! popularity so that both the files and the requests have the sizes of Table 1. Everything follows
//! from a seed. [`check`] draws all of it and compares with what was published.
//!
//! What the literature leaves open, and what is done here: a page has at least one embedded file
//! (the Pareto number rounded down); any file may be a page's own or an embedded one; Weibull's
//! first parameter is its scale.

pub mod check;
mod files;
mod open;
mod references;
mod users;

pub use files::FileSet;
pub use open::{ROUNDS, trace};
pub use references::References;
pub use users::{Page, REQUESTS_PER_PAGE_MAX, User};

use crate::sizes::{Distribution, Law};

/// Most files of a set.
pub const FILES_MAX: u32 = 100_000;

/// Most requests of a round, about 100 MB of them.
pub const ROUND_MAX: f64 = 4e6;

/// The parameters; the default is what was published.
#[derive(Debug, Clone, PartialEq)]
pub struct SurgeModel {
    /// Sizes in bytes, of files and of requests.
    pub sizes: Distribution,
    /// Number of files.
    pub files: u32,
    /// Smallest file in bytes.
    pub smallest_bytes: u64,
    /// Largest file in bytes.
    pub largest_bytes: u64,
    /// Exponent of Zipf's law: the file of rank r gets requests in proportion to r^-exponent.
    pub zipf_exponent: f64,
    /// μ of the lognormal stack distances.
    pub locality_mu: f64,
    /// σ of the lognormal stack distances.
    pub locality_sigma: f64,
    /// Number of files embedded in a page, before it is rounded down.
    pub embedded: Distribution,
    /// Pause before an embedded file in seconds.
    pub active_off_s: Distribution,
    /// Pause after a page in seconds.
    pub inactive_off_s: Distribution,
}

/// Parameters that no file set can be made with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SurgeError {
    /// Too few or too many files.
    #[error("a set of {0} files; give 2 to {FILES_MAX}")]
    Files(u32),
    /// The range of sizes holds (almost) none of the law.
    #[error(
        "files of {smallest_bytes} to {largest_bytes} bytes have a share of {share} of the sizes; give a range with most of them"
    )]
    Range {
        /// Smallest file in bytes.
        smallest_bytes: u64,
        /// Largest file in bytes.
        largest_bytes: u64,
        /// Share of the law between them.
        share: f64,
    },
    /// Not an exponent of popularity.
    #[error("a popularity exponent of {0}; give 0 to 1.5")]
    Exponent(f64),
    /// A round that is too long to be kept.
    #[error(
        "a round of {0} requests, in which the least popular file is asked for once; give fewer files or a smaller exponent"
    )]
    Round(f64),
    /// Not the parameters of a stack distance.
    #[error("stack distances with mu {mu} and sigma {sigma}; give mu 0 to 5 and sigma 0.1 to 2")]
    Locality {
        /// μ.
        mu: f64,
        /// σ.
        sigma: f64,
    },
}

impl Default for SurgeModel {
    fn default() -> Self {
        // Written-down constants in range: making them cannot fail, and the tests do it.
        let of = |law| Distribution::new(law).unwrap_or_else(|_| Distribution::surge());
        Self {
            sizes: Distribution::surge(),
            files: 2000,
            smallest_bytes: 186,
            largest_bytes: 121_000_000,
            zipf_exponent: 1.0,
            locality_mu: 1.5,
            locality_sigma: 0.80,
            embedded: of(Law::Pareto {
                k: 1.0,
                alpha: 2.43,
            }),
            active_off_s: of(Law::Weibull {
                scale: 1.46,
                shape: 0.382,
            }),
            inactive_off_s: of(Law::Pareto { k: 1.0, alpha: 1.5 }),
        }
    }
}

impl SurgeModel {
    /// Says what is wrong with the parameters.
    fn checked(&self) -> Result<(), SurgeError> {
        if !(2..=FILES_MAX).contains(&self.files) {
            return Err(SurgeError::Files(self.files));
        }
        let cdf = |bytes: u64| self.sizes.cdf(bytes as f64);
        let (smallest_bytes, largest_bytes) = (self.smallest_bytes, self.largest_bytes);
        let share = cdf(largest_bytes) - cdf(smallest_bytes);
        if smallest_bytes == 0 || share.is_nan() || share < 0.5 {
            return Err(SurgeError::Range {
                smallest_bytes,
                largest_bytes,
                share,
            });
        }
        if !(0.0..=1.5).contains(&self.zipf_exponent) {
            return Err(SurgeError::Exponent(self.zipf_exponent));
        }
        let round: f64 = self.requests_per_round().iter().sum();
        if round > ROUND_MAX {
            return Err(SurgeError::Round(round.round()));
        }
        let (mu, sigma) = (self.locality_mu, self.locality_sigma);
        if !(0.0..=5.0).contains(&mu) || !(0.1..=2.0).contains(&sigma) {
            return Err(SurgeError::Locality { mu, sigma });
        }
        Ok(())
    }

    /// Expected requests of each file, most popular first, in a round: as many as it takes for the
    /// least popular to get one.
    fn requests_per_round(&self) -> Vec<f64> {
        let files = f64::from(self.files);
        (1..=self.files)
            .map(|rank| (files / f64::from(rank)).powf(self.zipf_exponent))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_what_was_published() {
        let model = SurgeModel::default();
        assert_eq!(model.embedded.to_string(), "pareto:k=1,alpha=2.43");
        assert_eq!(
            model.active_off_s.to_string(),
            "weibull:scale=1.46,shape=0.382"
        );
        assert_eq!(model.inactive_off_s.to_string(), "pareto:k=1,alpha=1.5");
        assert_eq!(model.checked(), Ok(()));
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let problem = |change: fn(&mut SurgeModel)| {
            let mut model = SurgeModel::default();
            change(&mut model);
            model.checked().expect_err("impossible").to_string()
        };
        assert_eq!(
            problem(|model| model.files = 1),
            "a set of 1 files; give 2 to 100000"
        );
        assert!(problem(|model| model.largest_bytes = 100).contains("files of 186 to 100 bytes"));
        assert!(problem(|model| model.smallest_bytes = 0).contains("files of 0 to"));
        assert!(problem(|model| model.zipf_exponent = f64::NAN).contains("exponent of NaN"));
        let long = |model: &mut SurgeModel| (model.files, model.zipf_exponent) = (100_000, 1.5);
        assert!(problem(long).contains("give fewer files"));
        assert!(problem(|model| model.locality_sigma = 0.0).contains("sigma 0;"));
    }
}
