//! How many jobs are at most, or less than, a size, and their first two moments.

use super::nodes::{self, Node};
use sooner_workload::Distribution;
use sooner_workload::sizes::Law;

/// Of the jobs below a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// P\[X > x\].
    pub above: f64,
    /// E\[X; X <= x\].
    pub first: f64,
    /// E\[X²; X <= x\].
    pub second: f64,
}

/// Below the smallest.
const NONE: Moments = Moments {
    above: 1.0,
    first: 0.0,
    second: 0.0,
};

/// A distribution of sizes as these formulas ask it.
#[derive(Clone, Debug)]
pub enum Below {
    /// Without atoms.
    Smooth(Distribution),
    /// Values, ascending and different, each with the moments up to and with it.
    Atoms(Vec<(f64, Moments)>),
}

impl Below {
    pub fn of(sizes: &Distribution) -> Self {
        match sizes.law() {
            Law::Deterministic { mean } => Self::of_values(&[*mean]),
            Law::Empirical(values) => Self::of_values(values),
            _ => Self::Smooth(sizes.clone()),
        }
    }

    /// Of ascending values, each equally likely.
    fn of_values(values: &[f64]) -> Self {
        let weight = 1.0 / values.len() as f64;
        let mut so_far = NONE;
        let mut atoms: Vec<(f64, Moments)> = Vec::new();
        for (index, &value) in values.iter().enumerate() {
            so_far.above = (values.len() - index - 1) as f64 * weight;
            so_far.first += weight * value;
            so_far.second += weight * value * value;
            match atoms.last_mut() {
                Some((last, moments)) if *last == value => *moments = so_far,
                _ => atoms.push((value, so_far)),
            }
        }
        Self::Atoms(atoms)
    }

    /// Of the jobs that are at most x.
    pub fn at_most(&self, x: f64) -> Moments {
        match self {
            Self::Smooth(sizes) => Moments {
                above: sizes.above(x),
                first: sizes.partial_moment(1, x),
                second: sizes.partial_moment(2, x),
            },
            Self::Atoms(atoms) => up_to(atoms, atoms.partition_point(|(value, _)| *value <= x)),
        }
    }

    /// Of the jobs that are less than x.
    pub fn less_than(&self, x: f64) -> Moments {
        match self {
            Self::Smooth(_) => self.at_most(x),
            Self::Atoms(atoms) => up_to(atoms, atoms.partition_point(|(value, _)| *value < x)),
        }
    }

    pub fn has_atoms(&self) -> bool {
        matches!(self, Self::Atoms(_))
    }

    /// Sizes that stand for all, ascending, with shares that add up to 1.
    pub fn nodes(&self) -> Vec<Node> {
        let atoms = match self {
            Self::Smooth(sizes) => return nodes::of(sizes),
            Self::Atoms(atoms) => atoms,
        };
        let mut above = 1.0;
        let node = |&(size, moments): &(f64, Moments)| {
            let share = above - moments.above;
            above = moments.above;
            Node { size, share }
        };
        atoms.iter().map(node).collect()
    }
}

fn up_to(atoms: &[(f64, Moments)], count: usize) -> Moments {
    count.checked_sub(1).map_or(NONE, |last| atoms[last].1)
}
