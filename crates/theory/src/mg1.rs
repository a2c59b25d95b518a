//! One server, Poisson arrivals, any sizes: the response time under each policy, of a job of a
//! given size and in the mean.
//!
//! Formulas: Schrage and Miller (1966) for SRPT; Kleinrock's Queueing Systems II (1976) for the
//! others. Sizes that come in atoms (a trace, a constant) are exact: among jobs of equal rank the
//! older goes first, so what is at most x is told apart from what is less.

mod below;
mod nodes;
mod policy;

use crate::TheoryError;
use crate::quadrature::integral;
pub(crate) use below::{Below, Moments};
pub(crate) use nodes::Node;
pub use policy::Policy;
use sooner_workload::Distribution;

/// The queue; the server does one unit of size in one unit of time.
#[derive(Clone, Debug)]
pub struct Mg1 {
    below: Below,
    /// Jobs a unit of time.
    rate: f64,
    load: f64,
    mean: f64,
    second_moment: f64,
    /// Sizes, ascending, each for its share of the jobs.
    nodes: Vec<Node>,
    /// At each node ∫ dt / (1 - ρ(t)) up to its size.
    residence: Vec<f64>,
    has_mean_inverse: bool,
}

/// What a policy gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Of all jobs, in the unit of the sizes; infinite where it does not exist.
    pub mean_response: f64,
    /// Mean of response time over size; infinite where it does not exist.
    pub mean_slowdown: f64,
}

/// Response time of the jobs of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfSize {
    /// The share of jobs that are at most as large.
    pub share: f64,
    /// The size.
    pub size: f64,
    /// Mean response time.
    pub mean_response: f64,
    /// That over the size.
    pub mean_slowdown: f64,
}

impl Mg1 {
    /// Jobs of these sizes at this load; fails at a load that is not between 0 and 1, or without a
    /// mean size.
    pub fn new(sizes: &Distribution, load: f64) -> Result<Self, TheoryError> {
        if !(load > 0.0 && load < 1.0) {
            return Err(TheoryError::Load(load));
        }
        let mean = sizes.mean();
        if !(mean.is_finite() && mean > 0.0) {
            return Err(TheoryError::Mean);
        }
        let below = Below::of(sizes);
        let mut queue = Self {
            nodes: below.nodes(),
            below,
            rate: load / mean,
            load,
            mean,
            second_moment: sizes.second_moment(),
            residence: Vec::new(),
            has_mean_inverse: nodes::has_mean_inverse(sizes.law()),
        };
        queue.residence = queue.residence_at_nodes();
        Ok(queue)
    }

    /// The size of a job in the mean.
    pub fn mean_size(&self) -> f64 {
        self.mean
    }

    /// E\[T(x)\]: mean response time of a job of size x.
    pub fn response(&self, policy: Policy, x: f64) -> f64 {
        let free = |load: f64| 1.0 - load;
        let up_to = self.below.at_most(x);
        let load_up_to = self.rate * up_to.first;
        // Of jobs that a new one of size x does not go behind.
        let load_below = self.rate * self.below.less_than(x).first;
        match policy {
            Policy::Fcfs => x + self.rate * self.second_moment / (2.0 * free(self.load)),
            Policy::Fair => x / free(self.load),
            Policy::Sjf => {
                let left = self.rate * self.second_moment / 2.0;
                x + left / (free(load_below) * free(load_up_to))
            }
            Policy::Psjf => {
                let ahead = self.rate * up_to.second / 2.0 / free(load_up_to);
                (ahead + x) / free(load_below)
            }
            Policy::Srpt => {
                let larger = x * (x * up_to.above);
                let ahead = self.rate * (up_to.second + larger) / 2.0 / free(load_up_to);
                ahead / free(load_below) + self.residence(x)
            }
            Policy::Las => {
                // Every job counts as if it ended at x.
                let larger = x * up_to.above;
                let load = self.rate * (up_to.first + larger);
                let second = up_to.second + x * larger;
                self.rate * second / 2.0 / free(load).powi(2) + x / free(load)
            }
        }
    }

    /// E\[T(x)\]/x, and what it tends to where x is 0.
    pub fn slowdown(&self, policy: Policy, x: f64) -> f64 {
        if x > 0.0 {
            return self.response(policy, x) / x;
        }
        match policy {
            Policy::Fair => 1.0 / (1.0 - self.load),
            Policy::Srpt | Policy::Psjf | Policy::Las => 1.0,
            Policy::Fcfs | Policy::Sjf => f64::INFINITY,
        }
    }

    /// Response time and slowdown in the mean.
    pub fn solve(&self, policy: Policy) -> Solution {
        let waits_for_all = matches!(policy, Policy::Fcfs | Policy::Sjf);
        let has_response = !waits_for_all || self.second_moment.is_finite();
        let has_slowdown = has_response && (!waits_for_all || self.has_mean_inverse);
        let mean = |of: &dyn Fn(f64) -> f64| {
            let of_node = |node: &Node| node.share * of(node.size);
            self.nodes.iter().map(of_node).sum::<f64>()
        };
        Solution {
            mean_response: match policy {
                _ if !has_response => f64::INFINITY,
                // The same for all of them, and no sum over a tail.
                Policy::Fcfs | Policy::Fair => self.response(policy, self.mean),
                _ => mean(&|x| self.response(policy, x)),
            },
            mean_slowdown: match policy {
                _ if !has_slowdown => f64::INFINITY,
                Policy::Fair => self.slowdown(policy, 0.0),
                _ => mean(&|x| self.slowdown(policy, x)),
            },
        }
    }

    /// The jobs below which these shares of all are.
    pub fn by_share(&self, policy: Policy, sizes: &Distribution, shares: &[f64]) -> Vec<OfSize> {
        let of_share = |&share: &f64| {
            let size = sizes.quantile(share);
            let mean_response = self.response(policy, size);
            OfSize {
                share,
                size,
                mean_response,
                mean_slowdown: self.slowdown(policy, size),
            }
        };
        shares.iter().map(of_share).collect()
    }

    /// ∫ dt / (1 - ρ(t)) from 0 to x: the time from the first service to the end of a job, under
    /// SRPT.
    fn residence(&self, x: f64) -> f64 {
        let passed = self.nodes.partition_point(|node| node.size <= x);
        let (from, so_far) = match passed {
            0 => (0.0, 0.0),
            _ => (self.nodes[passed - 1].size, self.residence[passed - 1]),
        };
        so_far + self.residence_between(from, x)
    }

    fn residence_at_nodes(&self) -> Vec<f64> {
        let (mut from, mut so_far) = (0.0, 0.0);
        let next = |node: &Node| {
            so_far += self.residence_between(from, node.size);
            from = node.size;
            so_far
        };
        self.nodes.iter().map(next).collect()
    }

    /// Between two neighbouring nodes, or less: inside, sizes have no atom.
    fn residence_between(&self, from: f64, to: f64) -> f64 {
        if to <= from {
            return 0.0;
        }
        if self.below.has_atoms() {
            return (to - from) / (1.0 - self.rate * self.below.at_most(from).first);
        }
        integral(from, to, |t| {
            1.0 / (1.0 - self.rate * self.below.at_most(t).first)
        })
    }
}
