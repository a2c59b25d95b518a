//! Does SURGE do what was published? Draws every quantity, estimates its parameters and tests its
//! law.
//!
//! What is drawn from a law must pass its tests: the published parameter lies in the 99.9 %
//! interval of the estimate, and chance gives as large a deviation more than once in a thousand.
//! What cannot follow its law exactly has a stated bound instead: the requested sizes, because 2000
//! files of unequal popularity make steps, and the stack distances, because they must agree with
//! the popularity.

mod distances;
mod rows;

pub use rows::Row;

use super::{FileSet, References, SurgeError, SurgeModel, User};
use crate::fit::{chi_square, ks, parameters};
use crate::sizes::special::normal_cdf;
use crate::sizes::{Distribution, Law, Sampler};
use rows::Rows;

/// Fewest numbers drawn of each quantity: with fewer, a wrong parameter may go unnoticed.
pub const DRAWS_MIN: u64 = 10_000;
/// Most numbers drawn of each quantity, about 100 MB of them.
pub const DRAWS_MAX: u64 = 10_000_000;

/// How far the requests' sizes may be from their law beyond half the share of the most popular
/// file.
const STEPS_MAX: f64 = 0.005;
/// Published mean of the sizes in bytes.
const MEAN_BYTES: f64 = 11_108.0;
/// How far the mean of the requests' sizes may be from it, as a share: one file of 2000 carries
/// half of their bytes.
const MEAN_SHARE_MAX: f64 = 0.25;
/// How far the distribution of the stack distances may be from the published one.
const LOCALITY_DISTANCE_MAX: f64 = 0.06;
/// How far an estimated parameter of the stack distances may be from the published one, as a share.
const LOCALITY_SHARE_MAX: f64 = 0.06;
/// Users among whom the pauses are drawn.
const USERS: u32 = 100;
/// Names the random stream of the sizes.
const PURPOSE_SIZES: u64 = 0x5352_0003;
/// Longest stack distance and most embedded files that are counted by themselves.
const COUNTED_MAX: usize = 100_000;

/// A comparison that cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CheckError {
    /// Too few or too many numbers.
    #[error("{0} draws; give {DRAWS_MIN} to {DRAWS_MAX}")]
    Draws(u64),
    /// The parameters are impossible.
    #[error(transparent)]
    Surge(#[from] SurgeError),
}

/// Draws `draws` numbers of every quantity of `model` (counts of whole rounds, where those are
/// more) and compares them with what was published.
pub fn check(model: &SurgeModel, seed: u64, draws: u64) -> Result<Vec<Row>, CheckError> {
    if !(DRAWS_MIN..=DRAWS_MAX).contains(&draws) {
        return Err(CheckError::Draws(draws));
    }
    let files = FileSet::new(model, seed)?;
    let published = SurgeModel::default();
    let mut rows = Rows::default();
    rows.sizes(model, seed, draws);
    rows.files(&files, &published);
    rows.references(model, &published, seed, draws);
    rows.users(model, &published, seed, draws);
    Ok(rows.0)
}

impl Rows {
    fn sizes(&mut self, model: &SurgeModel, seed: u64, draws: u64) {
        let quantity = "sizes";
        let published = Distribution::surge();
        let Law::LognormalPareto {
            mu,
            sigma,
            cut,
            p,
            alpha,
            ..
        } = *published.law()
        else {
            return; // Table 1 is that law.
        };
        let mut sample: Vec<f64> = Sampler::new(model.sizes.clone(), seed, PURPOSE_SIZES)
            .take(draws as usize)
            .collect();
        let (body, tail): (Vec<f64>, Vec<f64>) = sample.iter().partition(|x| **x < cut);
        let [mu_found, sigma_found] = parameters::lognormal_below(&body, cut);
        self.parameter(quantity, "mu of the body", body.len(), mu, mu_found);
        self.parameter(
            quantity,
            "sigma of the body",
            body.len(),
            sigma,
            sigma_found,
        );
        let alpha_found = parameters::bounded_pareto_alpha(&tail, cut, p);
        self.parameter(
            quantity,
            "alpha of the tail",
            tail.len(),
            alpha,
            alpha_found,
        );
        self.law(quantity, &mut sample, &published);
        // The mean of so heavy a tail cannot be estimated from draws: the law's own.
        let mean = (MEAN_BYTES, model.sizes.mean());
        self.bounded(
            quantity,
            "mean of the law",
            sample.len(),
            Some(mean.0),
            mean.1,
            (MEAN_BYTES - 1.0, MEAN_BYTES + 1.0),
        );
    }

    fn files(&mut self, files: &FileSet, published: &SurgeModel) {
        let by_size = files.by_size();
        let n = by_size.len();
        let ends = [
            ("number", f64::from(published.files), n as f64),
            (
                "smallest",
                published.smallest_bytes as f64,
                by_size[0].0 as f64,
            ),
            (
                "largest",
                published.largest_bytes as f64,
                by_size[n - 1].0 as f64,
            ),
        ];
        for (what, expected, found) in ends {
            self.bounded(
                "files",
                what,
                n,
                Some(expected),
                found,
                (expected, expected),
            );
        }
        let within = within_range(published);
        let mut sizes: Vec<f64> = by_size.iter().map(|(bytes, _)| *bytes as f64).collect();
        self.test(
            "files",
            "Kolmogorov-Smirnov",
            n,
            ks::test(&mut sizes, &within),
        );
        let (mut sum, mut distance) = (0.0f64, 0.0f64);
        for (bytes, share) in &by_size {
            let expected = within(*bytes as f64);
            distance = distance
                .max((sum - expected).abs())
                .max((sum + share - expected).abs());
            sum += share;
        }
        let bound = files.shares.iter().copied().fold(0.0, f64::max) / 2.0 + STEPS_MAX;
        self.bounded(
            "requested sizes",
            "distance to the law",
            n,
            None,
            distance,
            (0.0, bound),
        );
        let bounds = (
            MEAN_BYTES * (1.0 - MEAN_SHARE_MAX),
            MEAN_BYTES * (1.0 + MEAN_SHARE_MAX),
        );
        self.bounded(
            "requested sizes",
            "mean",
            n,
            Some(MEAN_BYTES),
            files.mean_request_bytes(),
            bounds,
        );
    }

    fn references(&mut self, model: &SurgeModel, published: &SurgeModel, seed: u64, draws: u64) {
        let mut references = References::new(model, seed);
        let mut counts = vec![0; model.files as usize];
        let mut distances = vec![0; COUNTED_MAX];
        let mut n = 0;
        while n < draws as usize {
            let round = references.next_round();
            n += round.len();
            round.iter().for_each(|rank| counts[*rank as usize] += 1);
            distances::count(&round, counts.len(), &mut distances);
        }
        let shares: Vec<f64> = (1..=published.files)
            .map(|rank| f64::from(rank).powf(-published.zipf_exponent))
            .collect();
        let exponent = parameters::zipf_exponent(&counts);
        self.parameter(
            "popularity",
            "Zipf exponent",
            n,
            published.zipf_exponent,
            exponent,
        );
        // Counts of whole rounds vary less than chance: a few wide cells show a wrong law where
        // 2000 narrow ones would hide it.
        let test = chi_square::test(&doubling(&counts), &doubling(&shares));
        self.test("popularity", "chi-square", n, test);
        self.locality(&distances, published);
    }

    fn locality(&mut self, distances: &[u64], published: &SurgeModel) {
        let quantity = "stack distance";
        let n = distances.iter().sum::<u64>() as usize;
        let (mu, sigma) = (published.locality_mu, published.locality_sigma);
        let found = parameters::lognormal_of_counts(distances);
        for (what, expected, estimate) in [("mu", mu, found[0]), ("sigma", sigma, found[1])] {
            let off = expected * LOCALITY_SHARE_MAX;
            let bounds = (expected - off, expected + off);
            self.bounded(quantity, what, n, Some(expected), estimate.value, bounds);
        }
        let (mut sum, mut distance) = (0, 0.0f64);
        for (files, count) in (1..).zip(distances) {
            sum += count;
            let expected = normal_cdf((f64::from(files).ln() - mu) / sigma);
            distance = distance.max((sum as f64 / n as f64 - expected).abs());
        }
        let bounds = (0.0, LOCALITY_DISTANCE_MAX);
        self.bounded(quantity, "distance to the law", n, None, distance, bounds);
    }

    fn users(&mut self, model: &SurgeModel, published: &SurgeModel, seed: u64, draws: u64) {
        let mut embedded = vec![0; super::REQUESTS_PER_PAGE_MAX];
        let (mut active_s, mut inactive_s) = (Vec::new(), Vec::new());
        let mut users: Vec<User> = (0..USERS)
            .map(|number| User::new(model, seed, number))
            .collect();
        for turn in 0..draws as usize {
            let page = users[turn % USERS as usize].page();
            if let Some(files) = page.active_off_s.len().checked_sub(1) {
                embedded[files] += 1;
            }
            inactive_s.push(page.inactive_off_s);
            active_s.extend(page.active_off_s);
        }
        active_s.truncate(draws as usize);
        if let Law::Pareto { alpha, .. } = *published.embedded.law() {
            let n = embedded.iter().sum::<u64>() as usize;
            let found = parameters::pareto_alpha_of_counts(&embedded);
            self.parameter("embedded files", "alpha", n, alpha, found);
            let above = |files: u32| f64::from(files).powf(-alpha);
            let shares: Vec<f64> = (1..)
                .take(embedded.len())
                .map(|files| above(files) - above(files + 1))
                .collect();
            self.test(
                "embedded files",
                "chi-square",
                n,
                chi_square::test(&embedded, &shares),
            );
        }
        if let Law::Weibull { scale, shape } = *published.active_off_s.law() {
            let [scale_found, shape_found] = parameters::weibull(&active_s);
            self.parameter("active OFF", "scale", active_s.len(), scale, scale_found);
            self.parameter("active OFF", "shape", active_s.len(), shape, shape_found);
        }
        self.law("active OFF", &mut active_s, &published.active_off_s);
        if let Law::Pareto { k, alpha } = *published.inactive_off_s.law() {
            let n = inactive_s.len();
            self.parameter(
                "inactive OFF",
                "k",
                n,
                k,
                parameters::pareto_k(&inactive_s, alpha),
            );
            self.parameter(
                "inactive OFF",
                "alpha",
                n,
                alpha,
                parameters::pareto_alpha(&inactive_s, k),
            );
        }
        self.law("inactive OFF", &mut inactive_s, &published.inactive_off_s);
    }
}

/// Sums of 1, 1, 2, 4, 8 and so on values.
fn doubling<T: Copy + std::iter::Sum<T>>(values: &[T]) -> Vec<T> {
    let ends = std::iter::successors(Some(1), |end| Some(end * 2));
    let starts = std::iter::once(0).chain(ends.clone());
    let cells = starts
        .zip(ends)
        .take_while(|(start, _)| *start < values.len());
    cells
        .map(|(start, end)| values[start..end.min(values.len())].iter().copied().sum())
        .collect()
}

/// The distribution function of the published sizes between the smallest and the largest file.
fn within_range(published: &SurgeModel) -> impl Fn(f64) -> f64 {
    let law = published.sizes.clone();
    let low = law.cdf(published.smallest_bytes as f64);
    let high = law.cdf(published.largest_bytes as f64);
    move |bytes| ((law.cdf(bytes) - low) / (high - low)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 100_000;

    fn misfits(change: impl FnOnce(&mut SurgeModel)) -> Vec<String> {
        let mut model = SurgeModel::default();
        change(&mut model);
        let rows = check(&model, 1, DRAWS).expect("in range");
        rows.iter()
            .filter(|row| !row.fits)
            .map(|row| format!("{}: {}", row.quantity, row.what))
            .collect()
    }

    fn law(text: &str) -> Distribution {
        text.parse().expect(text)
    }

    #[test]
    fn everything_published_is_what_is_drawn() {
        let rows = check(&SurgeModel::default(), 1, DRAWS).expect("in range");
        for row in &rows {
            assert!(row.fits, "{row:?}");
        }
        for quantity in [
            "sizes",
            "files",
            "requested sizes",
            "popularity",
            "stack distance",
            "embedded files",
            "active OFF",
            "inactive OFF",
        ] {
            assert!(
                rows.iter().any(|row| row.quantity == quantity),
                "{quantity}"
            );
        }
    }

    /// Each parameter off by a few per cent is noticed, in its own quantity.
    #[test]
    fn a_wrong_parameter_is_found_out() {
        type Break = fn(&mut SurgeModel);
        let broken: [(Break, &[&str]); 9] = [
            (
                |model| {
                    model.sizes =
                        law("lognormal-pareto:mu=7.66,sigma=1.001,cut=9020,k=631.44,p=1e10,alpha=1")
                },
                &[
                    "sizes: mu of the body",
                    "sizes: Kolmogorov-Smirnov",
                    "sizes: mean of the law",
                ],
            ),
            (
                |model| {
                    model.sizes = law(
                        "lognormal-pareto:mu=7.63,sigma=1.001,cut=9020,k=631.44,p=1e10,alpha=1.1",
                    )
                },
                &["sizes: alpha of the tail", "sizes: mean of the law"],
            ),
            (|model| model.files = 1900, &["files: number"]),
            (
                |model| model.largest_bytes = 120_000_000,
                &["files: largest"],
            ),
            (
                |model| model.zipf_exponent = 0.95,
                &["popularity: Zipf exponent", "popularity: chi-square"],
            ),
            (
                |model| model.locality_mu = 1.7,
                &["stack distance: mu", "stack distance: distance to the law"],
            ),
            (
                |model| model.embedded = law("pareto:k=1,alpha=2.5"),
                &["embedded files: alpha"],
            ),
            (
                |model| model.active_off_s = law("weibull:scale=1.46,shape=0.39"),
                &["active OFF: shape", "active OFF: Anderson-Darling"],
            ),
            (
                |model| model.inactive_off_s = law("pareto:k=1.001,alpha=1.5"),
                &["inactive OFF: k"],
            ),
        ];
        for (breaks, expected) in broken {
            let found = misfits(breaks);
            for row in expected {
                assert!(
                    found.iter().any(|misfit| misfit == row),
                    "{row} should be among {found:?}"
                );
            }
        }
    }

    #[test]
    fn cells_double() {
        assert_eq!(doubling(&[1, 2, 3, 4, 5, 6]), [1, 2, 7, 11]);
        assert_eq!(doubling::<u64>(&[]), []);
    }

    #[test]
    fn too_few_draws_are_refused() {
        let error = check(&SurgeModel::default(), 1, 10).expect_err("too few");
        assert_eq!(error.to_string(), "10 draws; give 10000 to 10000000");
    }
}
