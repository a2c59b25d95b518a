//! Classes with targets that requests are of by chance: their configuration, and what was achieved
//! of each target.

use super::calls::Answer;
use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write;

/// The header that tells it.
pub const HEADER: &str = "X-Class";
/// What targets may be above the mean first come, first served, in the mean.
const ROOM: f64 = 1.1;

/// A class; targets are parts of the mean response time first come, first served.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Of all requests.
    pub share: f64,
    mean: Option<f64>,
    p80: Option<f64>,
    p95: Option<f64>,
}

/// What the header says of a request of this class.
pub fn name(number: usize) -> String {
    format!("c{number}")
}

/// Targets as the rows have them. Where all but the last are means, the last gets what is left over.
fn with_the_last(tiers: &[Tier]) -> Vec<Tier> {
    let mut tiers = tiers.to_vec();
    let Some((last, others)) = tiers.split_last_mut() else {
        return tiers;
    };
    let parts: Option<Vec<f64>> = others
        .iter()
        .map(|tier| Some(tier.share * tier.mean?))
        .collect();
    if let (Some(parts), None) = (parts, last.mean) {
        last.mean = Some((ROOM - parts.iter().sum::<f64>()) / last.share);
    }
    tiers
}

/// The classes of our configuration, where requests take `mean_ms` first come, first served.
pub fn config(tiers: &[Tier], mean_ms: f64) -> String {
    let mut text = String::new();
    for (number, tier) in with_the_last(tiers).iter().enumerate() {
        let name = name(number);
        write!(
            text,
            "\n[[class]]\nname = \"{name}\"\nheader.x-class = [\"{name}\"]\n"
        )
        .expect("a string takes all");
        let targets = [("mean", tier.mean), ("p80", tier.p80), ("p95", tier.p95)];
        for (what, part) in targets {
            if let Some(part) = part {
                let us = (1000.0 * part * mean_ms).round();
                writeln!(text, "target.{what} = \"{us}us\"").expect("a string takes all");
            }
        }
    }
    text
}

/// What was achieved of each target, over it.
pub fn achieved(tiers: &[Tier], mean_ms: f64, answers: &[&Answer]) -> Result<Map<String, Value>> {
    let mut row = Map::new();
    let mut most: f64 = 0.0;
    for (number, tier) in with_the_last(tiers).iter().enumerate() {
        let of_tier = answers.iter().filter(|one| one.tier == number);
        let mut times: Vec<f64> = of_tier.map(|one| one.ms).collect();
        ensure!(!times.is_empty(), "class {} got no answer", name(number));
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get((share * times.len() as f64) as usize).copied();
        let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
        let targets = [
            ("mean", tier.mean, Some(mean)),
            ("p80", tier.p80, at(0.8)),
            ("p95", tier.p95, at(0.95)),
        ];
        for (what, part, achieved) in targets {
            if let (Some(part), Some(achieved)) = (part, achieved) {
                let over = achieved / (part * mean_ms);
                most = most.max(over);
                row.insert(format!("{}_{what}_over_target", name(number)), over.into());
            }
        }
    }
    row.insert("most_over_target".into(), most.into());
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_last_class_gets_what_is_left_over() {
        let tiers: Vec<Tier> = [(0.1, Some(0.33)), (0.2, Some(0.66)), (0.7, None)]
            .map(|(share, mean)| Tier {
                share,
                mean,
                p80: None,
                p95: None,
            })
            .to_vec();
        let text = config(&tiers, 1000.0);
        assert!(text.contains("target.mean = \"330000us\""), "{text}");
        assert!(text.contains("target.mean = \"1335714us\""), "{text}");
        let answer = |tier, ms| Answer {
            at: Duration::ZERO,
            ms,
            size: 1.0,
            route: 0,
            tier,
            is_right: true,
        };
        let answers = [answer(0, 330.0), answer(1, 330.0), answer(2, 2671.43)];
        let answers: Vec<&Answer> = answers.iter().collect();
        let row = achieved(&tiers, 1000.0, &answers).expect("answers of all classes");
        let of = |name: &str| row[name].as_f64().expect("a number");
        assert!((of("c0_mean_over_target") - 1.0).abs() < 1e-6);
        assert!((of("c1_mean_over_target") - 0.5).abs() < 1e-6);
        assert!((of("most_over_target") - 2.0).abs() < 1e-4);
    }
}
