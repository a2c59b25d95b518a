//! What an experiment claims, as data: a figure of the runs and the limit it is held to.

use serde::Deserialize;

/// One claim. Its value is the median over the seeds of one peer's figure, of the ratio of two
/// peers' figures in the same run, or of the ratio or difference of two figures of one run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In words.
    pub text: String,
    /// Where the figure stands in a run: a JSON pointer like `/all/mean_response_ms`, or into what
    /// was counted on the server's host: `/counters/max_open_connections`.
    pub figure: String,
    /// The peer that the figure belongs to.
    pub peer: String,
    /// The figure is divided by this peer's, with the very same arrivals.
    pub over: Option<String>,
    /// The figure is divided by this one of the same run, like `/all/ideal_srpt_mean_response_ms`.
    pub over_figure: Option<String>,
    /// This figure of the same run is subtracted.
    pub minus_figure: Option<String>,
    /// The least it may be.
    pub at_least: Option<f64>,
    /// The most it may be.
    pub at_most: Option<f64>,
    /// The cases it is claimed for; none: all.
    #[serde(default)]
    pub cases: Vec<String>,
}

/// How a claim stands in one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The median.
    pub value: f64,
    /// The least and the most of the repetitions.
    pub range: (f64, f64),
    /// Repetitions.
    pub count: usize,
    /// Whether the limit holds.
    pub holds: bool,
}

impl Claim {
    /// Whether it is claimed for this case.
    pub fn is_for(&self, case: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|name| name == case)
    }

    /// What is wrong with it, if anything; `pointer_ok` judges by form alone, because figures
    /// depend on the run.
    pub fn mistake(&self) -> Option<&'static str> {
        if self.at_least.is_none() && self.at_most.is_none() {
            return Some("a claim needs at_least or at_most");
        }
        let (over, minus) = (&self.over_figure, &self.minus_figure);
        let pointers = [Some(&self.figure), over.as_ref(), minus.as_ref()];
        if pointers
            .into_iter()
            .flatten()
            .any(|pointer| !pointer.starts_with('/'))
        {
            return Some("a figure is a JSON pointer, like \"/all/mean_response_ms\"");
        }
        let ways = [&self.over, over, minus];
        (ways.into_iter().flatten().count() > 1)
            .then_some("only one of over, over_figure and minus_figure can be given")
    }

    /// How it stands; none while no repetition has what it needs. `figure` gives a figure of the
    /// run of a peer and a seed.
    pub fn judge(
        &self,
        seeds: &[u64],
        figure: impl Fn(&str, u64, &str) -> Option<f64>,
    ) -> Option<Standing> {
        let of_seed = |&seed: &u64| {
            let own = figure(&self.peer, seed, &self.figure)?;
            let of_same_run = |pointer: &String| figure(&self.peer, seed, pointer);
            if let Some(pointer) = &self.minus_figure {
                return Some(own - of_same_run(pointer)?);
            }
            let below = match (&self.over, &self.over_figure) {
                (Some(peer), _) => figure(peer, seed, &self.figure)?,
                (None, Some(pointer)) => of_same_run(pointer)?,
                (None, None) => 1.0,
            };
            Some(own / below)
        };
        let mut values: Vec<f64> = seeds.iter().filter_map(of_seed).collect();
        // Nothing over nothing says nothing; something over nothing is infinitely more.
        values.retain(|value| !value.is_nan());
        values.sort_by(f64::total_cmp);
        let (first, last) = (*values.first()?, *values.last()?);
        let value = median(&values);
        let holds = self.at_least.is_none_or(|limit| value >= limit)
            && self.at_most.is_none_or(|limit| value <= limit);
        Some(Standing {
            value,
            range: (first, last),
            count: values.len(),
            holds,
        })
    }

    /// The limit in words: `at least 2`.
    pub fn limit(&self) -> String {
        let parts = [("at least", self.at_least), ("at most", self.at_most)];
        let words = parts
            .into_iter()
            .filter_map(|(word, limit)| Some(format!("{word} {}", limit?)));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// The median of sorted values; NaN of none.
pub fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn claim(text: &str) -> Claim {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_ratio_is_of_the_same_seed_and_the_median_counts() {
        let claim = claim(
            "text = \"t\"\nfigure = \"/mean\"\npeer = \"slow\"\nover = \"fast\"\nat_least = 2.0",
        );
        let runs = json!({"slow": [10.0, 30.0, 8.0], "fast": [5.0, 5.0, 8.0]});
        let runs: Vec<(String, u64, Value)> = ["slow", "fast"]
            .iter()
            .flat_map(|peer| {
                let figures = runs[peer].as_array().unwrap().iter().enumerate();
                figures.map(|(seed, mean)| ((*peer).into(), seed as u64, json!({"mean": mean})))
            })
            .collect();
        let figure = |peer: &str, seed, pointer: &str| {
            let found = runs
                .iter()
                .find(|(name, at, _)| name == peer && *at == seed);
            found?.2.pointer(pointer)?.as_f64()
        };
        let standing = claim.judge(&[0, 1, 2], figure).unwrap();
        assert_eq!(
            (standing.value, standing.range, standing.count),
            (2.0, (1.0, 6.0), 3)
        );
        assert!(standing.holds);
        assert_eq!(claim.judge(&[7], figure), None, "nothing was measured");
        let of_one = |slow, fast| {
            claim.judge(&[0], |peer, _, _| {
                Some(if peer == "slow" { slow } else { fast })
            })
        };
        assert!(of_one(3.0, 0.0).unwrap().holds, "more than any factor");
        assert_eq!(of_one(0.0, 0.0), None);
    }

    #[test]
    fn what_is_subtracted_is_of_the_same_run() {
        let claim = claim(
            "text = \"t\"\nfigure = \"/mean\"\npeer = \"p\"\nminus_figure = \"/ideal\"\nat_most = 3.0",
        );
        let figure = |_: &str, seed: u64, pointer: &str| match pointer {
            "/mean" => Some(5.0 + seed as f64),
            _ => Some(2.5),
        };
        let standing = claim.judge(&[0, 1], figure).unwrap();
        assert_eq!((standing.value, standing.range), (3.0, (2.5, 3.5)));
        assert!(standing.holds);
    }

    #[test]
    fn claims_that_claim_nothing_are_mistakes() {
        for text in [
            "text = \"t\"\nfigure = \"/a\"\npeer = \"p\"",
            "text = \"t\"\nfigure = \"a\"\npeer = \"p\"\nat_most = 1.0",
            "text = \"t\"\nfigure = \"/a\"\npeer = \"p\"\nat_most = 1.0\nover = \"q\"\nover_figure = \"/b\"",
            "text = \"t\"\nfigure = \"/a\"\npeer = \"p\"\nat_most = 1.0\nover = \"q\"\nminus_figure = \"/b\"",
            "text = \"t\"\nfigure = \"/a\"\npeer = \"p\"\nat_most = 1.0\nminus_figure = \"b\"",
        ] {
            assert!(claim(text).mistake().is_some(), "{text}");
        }
    }
}
