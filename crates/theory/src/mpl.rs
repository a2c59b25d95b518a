//! A queue, first come first served, into a processor that at most so many jobs share (thesis 9.4,
//! Figure 9.10).
//!
//! Poisson arrivals, hyperexponential sizes. Its states are the number of jobs and how many of
//! those inside are of the first branch: a quasi-birth-death process, solved by the
//! matrix-geometric method (Neuts 1981) with Latouche and Ramaswami's logarithmic reduction (1993).

use crate::TheoryError;
use nalgebra::{DMatrix, DVector, RowDVector};
use sooner_workload::Distribution;
use sooner_workload::sizes::Law;

/// With so many a second or two of work; what lies beyond is processor sharing to all digits unless
/// sizes vary wildly.
pub const MPL_MAX: usize = 400;
const STEPS_MAX: usize = 200;
const PRECISION: f64 = 1e-13;

/// Response in the mean, in the unit of the sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solution {
    /// From arrival to end.
    pub mean_response: f64,
    /// Of that, before the job was let in.
    pub mean_outside: f64,
}

/// The queue with these sizes, at this load, with at most `mpl` jobs inside; fails for other sizes
/// than exponential and hyperexponential ones.
pub fn solve(sizes: &Distribution, load: f64, mpl: usize) -> Result<Solution, TheoryError> {
    if !(load > 0.0 && load < 1.0) {
        return Err(TheoryError::Load(load));
    }
    if mpl == 0 || mpl > MPL_MAX {
        return Err(TheoryError::Mpl(mpl));
    }
    let [(share, first), (_, second)] = branches(sizes.law())?;
    let process = Process {
        arrivals: load / sizes.mean(),
        share,
        rates: [1.0 / first, 1.0 / second],
        mpl,
    };
    process.solve().ok_or(TheoryError::NoSolution)
}

/// Probability and mean of two branches.
fn branches(law: &Law) -> Result<[(f64, f64); 2], TheoryError> {
    match law {
        Law::Exponential { mean } => Ok([(0.5, *mean), (0.5, *mean)]),
        Law::Hyperexponential { .. } => Ok(law.branches().unwrap_or_default()),
        _ => Err(TheoryError::NotHyperexponential),
    }
}

struct Process {
    arrivals: f64,
    /// Of jobs of the first branch.
    share: f64,
    rates: [f64; 2],
    mpl: usize,
}

impl Process {
    fn solve(&self) -> Option<Solution> {
        let states = self.mpl + 1;
        let identity = DMatrix::identity(states, states);
        let up = &identity * self.arrivals;
        let (stay, down) = (self.stay(self.mpl), self.down_full());
        let first_passage = first_passage(&up, &stay, &down)?;
        // Expected visits one level up, for each visit here.
        let rising = &up * (-&stay - &up * first_passage).try_inverse()?;
        let levels = self.levels_up_to_full(&(&stay + &rising * &down))?;
        let full = levels.last()?;
        let ones = DVector::from_element(states, 1.0);
        let beyond = (&identity - &rising).try_inverse()?;
        let (full_and_above, waiting) = (
            (full * &beyond * &ones)[0],
            (full * &rising * &beyond * &beyond * &ones)[0],
        );
        let below = &levels[..self.mpl];
        let total = below.iter().map(RowDVector::sum).sum::<f64>() + full_and_above;
        let inside: f64 = below
            .iter()
            .enumerate()
            .map(|(jobs, level)| jobs as f64 * level.sum())
            .sum::<f64>()
            + self.mpl as f64 * full_and_above;
        Some(Solution {
            mean_response: (inside + waiting) / total / self.arrivals,
            mean_outside: waiting / total / self.arrivals,
        })
    }

    /// Rate at which one of the jobs of each branch ends, with `jobs` inside of which `of_first`
    /// are of the first.
    fn ends(&self, jobs: usize, of_first: usize) -> [f64; 2] {
        let share = |count: usize| count as f64 / jobs as f64;
        [
            share(of_first) * self.rates[0],
            share(jobs - of_first) * self.rates[1],
        ]
    }

    /// What keeps a level, with `jobs` inside: minus all rates out of each state.
    fn stay(&self, jobs: usize) -> DMatrix<f64> {
        let out = |of_first: usize| -> f64 {
            let ends: f64 = if jobs == 0 {
                0.0
            } else {
                self.ends(jobs, of_first).iter().sum()
            };
            -(self.arrivals + ends)
        };
        DMatrix::from_diagonal(&DVector::from_fn(jobs + 1, |of_first, _| out(of_first)))
    }

    /// From one level to the one below while others wait: one of them follows the job that ends.
    fn down_full(&self) -> DMatrix<f64> {
        let mut down = DMatrix::zeros(self.mpl + 1, self.mpl + 1);
        for of_first in 0..=self.mpl {
            let [first, second] = self.ends(self.mpl, of_first);
            down[(of_first, of_first)] += first * self.share + second * (1.0 - self.share);
            if of_first > 0 {
                down[(of_first, of_first - 1)] += first * (1.0 - self.share);
            }
            if of_first < self.mpl {
                down[(of_first, of_first + 1)] += second * self.share;
            }
        }
        down
    }

    /// From `jobs` to one less while no job waits.
    fn down(&self, jobs: usize) -> DMatrix<f64> {
        let mut down = DMatrix::zeros(jobs + 1, jobs);
        for of_first in 0..=jobs {
            let [first, second] = self.ends(jobs, of_first);
            if of_first > 0 {
                down[(of_first, of_first - 1)] = first;
            }
            if of_first < jobs {
                down[(of_first, of_first)] = second;
            }
        }
        down
    }

    /// From `jobs` to one more, which is let in.
    fn up(&self, jobs: usize) -> DMatrix<f64> {
        let mut up = DMatrix::zeros(jobs + 1, jobs + 2);
        for of_first in 0..=jobs {
            up[(of_first, of_first + 1)] = self.arrivals * self.share;
            up[(of_first, of_first)] = self.arrivals * (1.0 - self.share);
        }
        up
    }

    /// How often each state up to the full level is visited, in units of the empty one; `stay_full`
    /// has what comes back from above in it.
    fn levels_up_to_full(&self, stay_full: &DMatrix<f64>) -> Option<Vec<RowDVector<f64>>> {
        // From the full level down: a level in units of the one below.
        let mut from_below = Vec::new();
        let mut stay = stay_full.clone();
        for jobs in (1..=self.mpl).rev() {
            let step = self.up(jobs - 1) * (-stay).try_inverse()?;
            stay = self.stay(jobs - 1) + &step * self.down(jobs);
            from_below.push(step);
        }
        let mut levels = vec![RowDVector::from_element(1, 1.0)];
        for step in from_below.iter().rev() {
            let next = levels.last()? * step;
            levels.push(next);
        }
        Some(levels)
    }
}

/// Probabilities of the states in which the level below is first entered.
fn first_passage(
    up: &DMatrix<f64>,
    stay: &DMatrix<f64>,
    down: &DMatrix<f64>,
) -> Option<DMatrix<f64>> {
    let size = stay.nrows();
    let identity = DMatrix::<f64>::identity(size, size);
    let out = (-stay).try_inverse()?;
    let (mut rises, mut falls) = (&out * up, &out * down);
    let (mut found, mut way) = (falls.clone(), rises.clone());
    for _ in 0..STEPS_MAX {
        let comes_back = (&identity - (&rises * &falls + &falls * &rises)).try_inverse()?;
        rises = &comes_back * (&rises * &rises);
        falls = &comes_back * (&falls * &falls);
        found += &way * &falls;
        way *= &rises;
        let missing = (0..size).map(|row| (1.0 - found.row(row).sum()).abs());
        if missing.fold(0.0, f64::max) < PRECISION || way.amax() < PRECISION {
            return Some(found);
        }
    }
    None
}
