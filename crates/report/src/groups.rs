//! The groups of requests every table shows, and the ideal that belongs to a policy.

use sooner_stats::{Group, Run};

/// A group of requests by rank of size.
pub struct Named {
    /// As tables call it.
    pub name: &'static str,
    /// As a sentence calls its responses.
    pub phrase: &'static str,
    /// Where a run keeps it.
    pub of: fn(&Run) -> &Group,
}

/// In the order in which they are shown.
pub const ALL: [Named; 4] = [
    Named {
        name: "all",
        phrase: "the mean response",
        of: |run| &run.all,
    },
    Named {
        name: "smallest half",
        phrase: "the smallest half",
        of: |run| &run.smallest_half,
    },
    Named {
        name: "largest 1 %",
        phrase: "the largest 1 %",
        of: |run| &run.largest_1_percent,
    },
    Named {
        name: "largest",
        phrase: "the largest response",
        of: |run| &run.largest,
    },
];

/// The mean a perfect scheduler of this policy would reach with the same arrivals; known for `fair`
/// and `srpt`.
pub fn ideal_mean_ms(policy: &str, group: &Group) -> Option<f64> {
    match policy {
        "fair" => group.ideal_ps_mean_response_ms,
        "srpt" => group.ideal_srpt_mean_response_ms,
        _ => None,
    }
}

/// A policy's name as people write it: `SRPT`.
pub fn policy_name(run: &Run) -> String {
    run.policy.to_uppercase()
}

/// The CSS class that carries a run's colour: its own for `fair` and `srpt`, by position for the
/// others.
pub fn policy_class(runs: &[Run], index: usize) -> String {
    let own = |run: &Run| matches!(run.policy.as_str(), "fair" | "srpt");
    if own(&runs[index]) {
        return runs[index].policy.clone();
    }
    let earlier = runs[..index].iter().filter(|run| !own(run)).count();
    format!("p{}", 2 + earlier % 4)
}
