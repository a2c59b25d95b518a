//! Sizes that stand for all: atoms themselves, or points of a quadrature over the shares of jobs, ever finer towards both ends, so that a
//! heavy tail is followed as far as it carries anything.

use crate::quadrature::points;
use sooner_workload::Distribution;
use sooner_workload::sizes::Law;

/// What is left of a mean beyond the last node, as a share of it.
const LEFT: f64 = 1e-9;
/// Pieces into which each halving of the share of jobs is cut: where two branches of a mixture meet, sizes bend sharply.
const PIECES: i32 = 4;
/// Halvings at most: what a float can hold.
const HALVINGS_MAX: i32 = 1000;

/// A size, and the share of jobs it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    pub size: f64,
    pub share: f64,
}

/// Ascending, with shares that add up to 1.
pub fn of(sizes: &Distribution) -> Vec<Node> {
    match sizes.law() {
        Law::Deterministic { mean } => vec![Node {
            size: *mean,
            share: 1.0,
        }],
        Law::Empirical(values) => atoms(values),
        _ => smooth(sizes),
    }
}

/// Whether E\[1/X\] is finite, and with it the slowdown of jobs that wait for others however small they are.
pub fn has_mean_inverse(law: &Law) -> bool {
    match law {
        Law::Exponential { .. } | Law::Hyperexponential { .. } => false,
        Law::Weibull { shape, .. } => *shape > 1.0,
        Law::Deterministic { mean } => *mean > 0.0,
        Law::Empirical(values) => values.first().is_some_and(|least| *least > 0.0),
        Law::Pareto { .. }
        | Law::BoundedPareto { .. }
        | Law::Lognormal { .. }
        | Law::LognormalPareto { .. } => true,
    }
}

fn atoms(values: &[f64]) -> Vec<Node> {
    let share = 1.0 / values.len() as f64;
    let mut nodes: Vec<Node> = Vec::new();
    for &size in values {
        match nodes.last_mut() {
            Some(last) if last.size == size => last.share += share,
            _ => nodes.push(Node { size, share }),
        }
    }
    nodes
}

fn smooth(sizes: &Distribution) -> Vec<Node> {
    let mean = sizes.mean();
    // Small sizes count by their inverse, in the slowdown; large ones by themselves.
    let mut nodes = towards_end(|u| sizes.quantile(u), |u, size| u * mean / size);
    nodes.reverse();
    nodes.extend(towards_end(
        |v| sizes.upper_quantile(v),
        |v, size| v * size / mean,
    ));
    nodes
}

/// From the median to an end of the sizes: `size_at` of the share of jobs beyond it, until what is `left` there counts for nothing.
fn towards_end(size_at: impl Fn(f64) -> f64, left: impl Fn(f64, f64) -> f64) -> Vec<Node> {
    let mut nodes = Vec::new();
    let share_after = |piece: i32| 0.5_f64.powf(1.0 + f64::from(piece) / f64::from(PIECES));
    for piece in 1..=HALVINGS_MAX * PIECES {
        let (from, to) = (share_after(piece - 1), share_after(piece));
        let of_panel = points(to, from);
        nodes.extend(of_panel.iter().rev().map(|&(at, share)| Node {
            size: size_at(at),
            share,
        }));
        let size = size_at(to);
        if to < LEFT && left(to, size) < LEFT || piece == HALVINGS_MAX * PIECES {
            nodes.push(Node { size, share: to });
            break;
        }
    }
    nodes
}
