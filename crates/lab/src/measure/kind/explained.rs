//! What `sooner attach postgres --explain` says of a database while users are there.

use super::database::Database;
use crate::measure::bench::Bench;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// The whole of it; `more` are flags besides.
pub fn explain(
    bench: &Bench<'_>,
    database: &Database,
    seconds: u64,
    more: &[&str],
) -> Result<Value> {
    let (pid, length) = (database.id().to_string(), format!("{seconds}s"));
    let mut command = bench.sooner(&["attach", "postgres", "--explain", "--json"]);
    command.args(["--pid", &pid, "--for", &length]).args(more);
    let looking = bench.start(command)?;
    let printed = bench.finish("attach postgres", looking, &[0])?;
    serde_json::from_str(&printed).context("no explanation")
}

/// What it advises for the class that goes first: its mean, what takes most of it, what each knob
/// could gain at most, ms and of its mean, and for each whether it is the one that is named.
pub fn advice(found: &Value) -> Result<Map<String, Value>> {
    let advice = found.pointer("/advice/0").context("no advice")?;
    let class = &advice["class"];
    let classes = found["classes"].as_array();
    let row = classes.and_then(|rows| rows.iter().find(|row| row["name"] == *class));
    let mean = row.and_then(|row| row["mean_ms"].as_f64());
    let mean = mean.context("the class has no mean")?;
    let (mut most, mut share, mut named) = (Map::new(), Map::new(), Map::new());
    for gain in advice["gains"].as_array().into_iter().flatten() {
        let knob = gain["knob"].as_str().context("a knob without a name")?;
        let name = knob.replace('-', "_");
        let is_named = u8::from(advice["knob"] == *knob);
        most.insert(name.clone(), gain["at_most_ms"].clone());
        let of_mean = gain["at_most_ms"].as_f64().map(|ms| ms / mean);
        share.insert(name.clone(), of_mean.into());
        named.insert(name, is_named.into());
    }
    let is_nothing = u8::from(advice["knob"].is_null());
    named.insert("nothing".into(), is_nothing.into());
    let all = json!({
        "mean_ms": mean,
        "bottleneck": advice["bottleneck"],
        "bottleneck_ms": advice["bottleneck_ms"],
        "at_most_ms": most,
        "at_most_share": share,
        "named": named,
        "cost_share": found["cost"]["share"],
    });
    Ok(all.as_object().cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knob_that_is_named_is_marked() {
        let found = json!({
            "classes": [{"name": "rest", "mean_ms": 9.0}, {"name": "high", "mean_ms": 4.0}],
            "advice": [{
                "class": "high", "bottleneck": "locks", "bottleneck_ms": 3.0, "knob": "np-lq",
                "gains": [
                    {"knob": "cpu-prio", "at_most_ms": 1.0},
                    {"knob": "np-lq", "at_most_ms": 3.0},
                    {"knob": "pow", "at_most_ms": null},
                ],
            }],
            "cost": {"share": 0.01},
        });
        let row = Value::Object(advice(&found).unwrap());
        assert_eq!(row["at_most_share"]["np_lq"], 0.75);
        assert_eq!(row["at_most_share"]["pow"], Value::Null);
        let named = json!({"cpu_prio": 0, "np_lq": 1, "pow": 0, "nothing": 0});
        assert_eq!(row["named"], named);
    }
}
