//! `target = { mean = "30ms", p95 = "120ms" }`: how long jobs of a class may take, waiting
//! included.

use crate::{Misconfigured, Spanned};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use sooner_admission::ResponseTarget;
use sooner_quantity::parse_duration_with_unit;
use std::collections::BTreeMap;
use std::time::Duration;

/// Targets as they are written: `mean` or a percentile, and a time.
pub type TargetTable = BTreeMap<String, Spanned<String>>;

/// The longest target, ns: a day.
const TARGET_NS_MAX: u64 = 86_400_000_000_000;

/// For `#[serde(deserialize_with)]`: a table that names a target.
pub fn target_table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TargetTable, D::Error> {
    let table = TargetTable::deserialize(deserializer)?;
    if table.is_empty() {
        let words = "it names no target; write target = { mean = \"30ms\" }, or leave it out";
        return Err(D::Error::custom(words));
    }
    Ok(table)
}

/// The targets in a table; the first mistake is the error.
pub fn response_targets(table: &TargetTable) -> Result<Vec<ResponseTarget>, Misconfigured> {
    let targets = table.iter();
    let targets = targets.map(|(name, time)| response_target(name, time));
    let targets: Vec<ResponseTarget> = targets.collect::<Result<_, _>>()?;
    let mut shares: Vec<(f64, u64, &String, &Spanned<String>)> = Vec::new();
    for (&target, (name, time)) in targets.iter().zip(table) {
        if let ResponseTarget::Share(share, ns) = target {
            shares.push((share, ns, name, time));
        }
    }
    shares.sort_by(|one, other| one.0.total_cmp(&other.0));
    let falls = shares.windows(2).find(|pair| pair[1].1 < pair[0].1);
    if let Some([(_, _, lower, most), (_, _, higher, time)]) = falls {
        let most = most.get_ref();
        let words = format!(
            "less than {lower}, which is never above it; write \"{most}\" or more, or leave {lower} out"
        );
        return Err(Misconfigured::at(
            time,
            &format!("class.target.{higher}"),
            words,
        ));
    }
    Ok(targets)
}

fn response_target(name: &str, time: &Spanned<String>) -> Result<ResponseTarget, Misconfigured> {
    let key = format!("class.target.{name}");
    let wrong = |words: String| Misconfigured::at(time, &key, words);
    let target_ns = target_ns(time.get_ref()).map_err(wrong)?;
    if name == "mean" {
        return Ok(ResponseTarget::Mean(target_ns));
    }
    let percent = name.strip_prefix('p').and_then(|text| text.parse().ok());
    match percent {
        Some(percent) if (1.0..100.0).contains(&percent) => {
            Ok(ResponseTarget::Share(percent / 100.0, target_ns))
        }
        // A share where a percent belongs would be met by nearly anything.
        Some(percent) if 0.0 < percent && percent < 1.0 => Err(wrong(
            "percentiles begin with p1: p95 is the 95th percentile".into(),
        )),
        _ => Err(wrong(
            "there is no such target; write mean, or a percentile such as p50, p95 or \"p99.9\""
                .into(),
        )),
    }
}

/// A target in words, as tables show it: `p95`.
pub fn name_of(response_target: ResponseTarget) -> String {
    match response_target {
        ResponseTarget::Mean(_) => "mean".into(),
        // Shares were read as percents with few digits.
        ResponseTarget::Share(share, _) => format!("p{}", (share * 1e6).round() / 1e4),
    }
}

/// A target's time, ns.
fn target_ns(text: &str) -> Result<u64, String> {
    let ns = time_ns(text)?;
    if !(1_000..=TARGET_NS_MAX).contains(&ns) {
        let most = Duration::from_nanos(TARGET_NS_MAX).as_secs() / 60;
        return Err(format!("out of range; write 1us to {most}min"));
    }
    Ok(ns)
}

/// A time with its unit, ns: `250us`, `30ms`, `1.5 s`, `2min`. The error is what is wrong, in
/// words.
pub fn time_ns(text: &str) -> Result<u64, String> {
    let time = parse_duration_with_unit(text).map_err(|error| error.to_string())?;
    Ok(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ns) in [
            ("250us", 250_000),
            ("30ms", 30_000_000),
            (" 1.5 s", 1_500_000_000),
            ("2min", 120_000_000_000),
            ("1h30m", 5_400_000_000_000),
        ] {
            assert_eq!(target_ns(text), Ok(ns), "{text}");
        }
        for (text, says) in [
            ("30", "`30` has no unit"),
            ("30 millis", "is not a length of time"),
            ("ms", "is not a length of time"),
            ("1.2.3ms", "is not a length of time"),
            ("0ms", "write 1us"),
            ("9e9s", "is not a length of time"),
            ("99999min", "write 1us to 1440min"),
            ("-5ms", "is not a length of time"),
            ("", "is not a length of time"),
        ] {
            let error = target_ns(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn targets_are_of_the_mean_or_of_a_percentile() {
        let time = |text: &str| Spanned::new(0..0, text.to_owned());
        let read = |name: &str| response_target(name, &time("30ms"));
        assert_eq!(read("mean").unwrap(), ResponseTarget::Mean(30_000_000));
        assert_eq!(
            read("p95").unwrap(),
            ResponseTarget::Share(0.95, 30_000_000)
        );
        assert_eq!(name_of(read("p99.9").unwrap()), "p99.9");
        assert_eq!(name_of(read("p80").unwrap()), "p80");
        let error = read("p0.95").unwrap_err();
        assert!(
            error.message.contains("p95 is the 95th percentile"),
            "{error}"
        );
        assert_eq!(read("p1").unwrap(), ResponseTarget::Share(0.01, 30_000_000));
        for name in ["median", "p", "p0", "p100", "95", "pNaN", "p-3"] {
            let error = read(name).unwrap_err();
            assert_eq!(error.key, format!("class.target.{name}"));
        }
    }
}
