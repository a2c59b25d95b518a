//! The law of the times taken: how they vary, and whether the long ones are of a heavy tail.

use crate::sizes::Sizes;
use serde::Serialize;
use sooner_workload::fit::{exponential, ks, parameters};

/// Of the largest so many parts the tail is told.
const TAIL_PARTS: u64 = 10;
/// Less variance is rounding.
const C2_MIN: f64 = 1e-9;
/// Fewest times in it.
const TAIL_LEAST: usize = 50;
/// A power law with a larger index has a mean, a variance and a third moment: for a queue it is
/// light.
const HEAVY_INDEX_MAX: f64 = 3.0;

/// What times are like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LawFigures {
    /// Mean, ms.
    pub mean_ms: f64,
    /// Squared coefficient of variation.
    pub c2: f64,
    /// Half are not longer, ms.
    pub p50_ms: f64,
    /// 90 % are not longer.
    pub p90_ms: f64,
    /// 99 % are not longer.
    pub p99_ms: f64,
    /// 99.9 % are not longer.
    pub p99_9_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Share of all time in the longest 1 %.
    pub top_1_percent_share: f64,
    /// `heavy` where the longest tenth is nearer to a power law than to an exponential one, else
    /// `light`; none of too few.
    pub tail: Option<&'static str>,
    /// The index of that power law, where the tail is heavy.
    pub tail_index: Option<f64>,
}

/// Of times in ns; none where all are 0.
pub fn figures(times: &Sizes) -> Option<LawFigures> {
    let figures = times.figures()?;
    let ms = |ns: u64| ns as f64 / 1e6;
    let tail = tail(times);
    Some(LawFigures {
        mean_ms: figures.mean_bytes / 1e6,
        // Sums of equal times differ in their last digits.
        c2: if figures.c2 < C2_MIN { 0.0 } else { figures.c2 },
        p50_ms: ms(figures.median_bytes),
        p90_ms: ms(figures.p90_bytes),
        p99_ms: ms(figures.p99_bytes),
        p99_9_ms: ms(figures.p99_9_bytes),
        max_ms: ms(figures.max_bytes),
        top_1_percent_share: figures.top_1_percent_share,
        tail: tail.map(|(name, _)| name),
        tail_index: tail.and_then(|(_, index)| index),
    })
}

/// Whether the longest times are light or heavy, and the index of a heavy tail.
fn tail(times: &Sizes) -> Option<(&'static str, Option<f64>)> {
    let largest = times.largest();
    let n = usize::try_from(times.count() / TAIL_PARTS).ok()?;
    let n = n.min(largest.len().checked_sub(1)?);
    if n < TAIL_LEAST || largest[n] == 0 {
        return None;
    }
    let border = largest[n] as f64;
    let mut over: Vec<f64> = largest[..n].iter().map(|ns| *ns as f64 / border).collect();
    over.reverse();
    let mut excess: Vec<f64> = over.iter().map(|times| times - 1.0).collect();
    let exponential_off = exponential::distance(&mut excess)?;
    let index = parameters::pareto_alpha(&over, 1.0).value;
    let power_off = ks::distance(&over, |times| 1.0 - times.powf(-index));
    let is_heavy = exponential_off > exponential::distance_max(n)
        && power_off < exponential_off
        && index <= HEAVY_INDEX_MAX;
    Some(if is_heavy {
        ("heavy", Some(index))
    } else {
        ("light", None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_workload::{Distribution, Sampler};

    fn of(law: &str) -> LawFigures {
        let law: Distribution = law.parse().expect(law);
        let mut times = Sizes::new();
        for time in Sampler::new(law, 3, 1).take(20_000) {
            times.add((time * 1e6) as u64);
        }
        figures(&times).expect("times")
    }

    #[test]
    fn tails_are_told_apart() {
        for law in ["exp:mean=20", "weibull:scale=20,shape=2", "det:mean=5"] {
            assert_eq!(of(law).tail, Some("light"), "{law}");
        }
        let heavy = of("pareto:k=1,alpha=1.5");
        assert_eq!(heavy.tail, Some("heavy"));
        let index = heavy.tail_index.expect("an index");
        assert!((index - 1.5).abs() < 0.15, "{index}");
        let exponential = of("exp:mean=20");
        assert!((exponential.mean_ms / 20.0 - 1.0).abs() < 0.03);
        assert!((exponential.c2 - 1.0).abs() < 0.1);
    }
}
