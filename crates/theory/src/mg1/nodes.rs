//! Sizes that stand for all: points of a quadrature over the shares of jobs, ever finer towards
//! both ends, so that a heavy tail is followed as far as it carries anything.

use crate::quadrature::points;
use sooner_workload::Distribution;
use sooner_workload::sizes::Law;

/// What is left of a mean beyond the last node, as a share of it.
const LEFT: f64 = 1e-9;
/// Pieces into which each halving of the share of jobs is cut: where two branches of a mixture
/// meet, sizes bend sharply.
const PIECES: i32 = 4;
/// Halvings at most: what a float can hold.
const HALVINGS_MAX: i32 = 1000;

/// A size, and the share of jobs it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    pub size: f64,
    pub share: f64,
}

/// Whether E\[1/X\] is finite, and with it the slowdown of jobs that wait for others however small
/// they are.
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

/// Of sizes without atoms: ascending, with shares that add up to 1, and with the mean of the sizes.
pub fn of(sizes: &Distribution) -> Vec<Node> {
    let mean = sizes.mean();
    // Small sizes count by their inverse, in the slowdown; large ones by themselves.
    let mut nodes = towards_end(|u| sizes.quantile(u), |u, size| u * mean / size);
    nodes.reverse();
    nodes.extend(towards_end(
        |v| sizes.upper_quantile(v),
        |v, size| v * size / mean,
    ));
    // The last stands for all beyond it.
    if let Some((last, before)) = nodes.split_last_mut() {
        let of_others: f64 = before.iter().map(|node| node.share * node.size).sum();
        last.size = last.size.max((mean - of_others) / last.share);
    }
    nodes
}

/// From the median to an end of the sizes: `size_at` of the share of jobs beyond it, until what is
/// `left` there counts for nothing or a float cannot tell the sizes from 0.
fn towards_end(size_at: impl Fn(f64) -> f64, left: impl Fn(f64, f64) -> f64) -> Vec<Node> {
    let share_after = |piece: i32| 0.5_f64.powf(1.0 + f64::from(piece) / f64::from(PIECES));
    let mut nodes = Vec::new();
    let mut last_size = size_at(0.5);
    for piece in 1..=HALVINGS_MAX * PIECES {
        let (from, to) = (share_after(piece - 1), share_after(piece));
        let size = size_at(to);
        if size == 0.0 {
            nodes.push(Node {
                size: last_size,
                share: from,
            });
            return nodes;
        }
        let of_panel = points(to, from);
        nodes.extend(of_panel.iter().rev().map(|&(at, share)| Node {
            size: size_at(at),
            share,
        }));
        last_size = size;
        if to < LEFT && left(to, size) < LEFT {
            nodes.push(Node { size, share: to });
            return nodes;
        }
    }
    nodes.push(Node {
        size: last_size,
        share: share_after(HALVINGS_MAX * PIECES),
    });
    nodes
}
