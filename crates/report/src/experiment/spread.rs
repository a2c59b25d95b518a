//! Figures over repetitions: medians with their range, and ratios of two peers seed by seed.

use super::{Case, Peer, Repetition};
use crate::escape::html as text;
use crate::number::NO_VALUE;
use sooner_stats::summary::{Spread, median_and_spread};
use sooner_stats::{Group, Run};

/// The figure over the runs that count; none where no run has it.
pub fn of(peer: &Peer, figure: impl Fn(&Repetition) -> Option<f64>) -> Option<Spread> {
    let values: Vec<f64> = peer.counted().filter_map(figure).collect();
    median_and_spread(&usable(values))
}

/// A figure of each group of the runs that count.
pub fn of_group(
    peer: &Peer,
    group: fn(&Run) -> &Group,
    figure: fn(&Group) -> Option<f64>,
) -> Option<Spread> {
    of(peer, |one| figure(group(&one.run)))
}

/// How many times the baseline's mean response time of a group is this peer's, with the very same
/// arrivals: above 1 where this peer's is shorter.
pub fn gain(case: &Case, baseline: &str, peer: &Peer, group: fn(&Run) -> &Group) -> Option<Spread> {
    let base = case.peer(baseline)?;
    let mean = |one: &Repetition| group(&one.run).mean_response_ms;
    let of_seed = |one: &Repetition| {
        let same = base.counted().find(|run| run.run.seed == one.run.seed)?;
        Some(mean(same)? / mean(one)?)
    };
    of(peer, of_seed)
}

/// What perfect schedulers of both kinds would have gained in the mean with the same arrivals.
pub fn ideal_gain(peer: &Peer) -> Option<Spread> {
    of(peer, |one| {
        let all = &one.run.all;
        Some(all.ideal_ps_mean_response_ms? / all.ideal_srpt_mean_response_ms?)
    })
}

/// Requests of a group that were not answered in full and did not end in an error: under way at the
/// end, or given up.
pub fn incomplete(group: &Group) -> Option<f64> {
    Some(group.n.saturating_sub(group.completed + group.errors) as f64)
}

/// The peer with the runs that completed most: ideals are told of the requests that completed.
pub fn fullest(case: &Case) -> Option<&Peer> {
    let completed = |peer: &&Peer| peer.counted().map(|one| one.run.all.completed).sum::<u64>();
    let measured = case.peers.iter().filter(|peer| !peer.runs.is_empty());
    measured.min_by_key(|peer| std::cmp::Reverse(completed(peer)))
}

/// The median, and below it the range where repetitions differ; markup.
pub fn cell(spread: Option<Spread>, words: impl Fn(f64) -> String) -> String {
    let Some(spread) = spread else {
        return NO_VALUE.to_owned();
    };
    let (median, low, high) = (words(spread.median), words(spread.min), words(spread.max));
    let median = text(&median);
    if low == high {
        return median;
    }
    format!(
        "{median}<small>{} to {}</small>",
        text(without_unit(&low, &high)),
        text(&high)
    )
}

/// `low` without its unit where `high` has the same one.
fn without_unit<'a>(low: &'a str, high: &str) -> &'a str {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
    let unit = |words: &str| {
        words
            .find(|c| !is_number(c))
            .map(|at| words[at..].to_owned())
    };
    match (unit(low), unit(high)) {
        (Some(own), Some(other)) if own == other => &low[..low.len() - own.len()],
        _ => low,
    }
}

fn usable(mut values: Vec<f64>) -> Vec<f64> {
    values.retain(|value| value.is_finite());
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_tells_its_unit_once() {
        let spread = Spread {
            median: 2.0,
            min: 1.0,
            max: 3.0,
            n: 3,
        };
        let words = |unit: &'static str| move |value: f64| format!("{value}{unit}");
        assert_eq!(
            cell(Some(spread), words(" ms")),
            "2 ms<small>1 to 3 ms</small>"
        );
        assert_eq!(cell(Some(spread), words("")), "2<small>1 to 3</small>");
        let same = |_| "0".to_owned();
        assert_eq!(cell(Some(spread), same), "0");
        assert_eq!(cell(None, same), NO_VALUE);
        assert_eq!(without_unit("900 ms", "1.2 s"), "900 ms");
    }
}
