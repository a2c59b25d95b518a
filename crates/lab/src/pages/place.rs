//! What the cases' places along a range are: the key of the set-up that has their values.

use crate::experiment::{Case, Experiment};
use crate::run::store::as_json;
use serde_json::Value;

/// Words for the keys that ranges are made over; others are told by their own names.
const WORDS: [(&str, &str); 6] = [
    ("rtt_ms", "Round-trip time, ms"),
    ("schedule", "Load"),
    ("initial_rto_ms", "Initial retransmission timeout, ms"),
    ("patience_seconds", "Patience of users, s"),
    ("rate_bits_per_sec", "Rate of the link, bit/s"),
    ("mss", "Maximum segment size, bytes"),
];

/// The title of the range's axis, with the unit where it is known.
pub fn title(experiment: &Experiment) -> String {
    let placed: Vec<(f64, Vec<(String, f64)>)> = experiment
        .cases
        .iter()
        .filter_map(|case| Some((case.at?, numbers(case))))
        .collect();
    let fits = |name: &str, factor: f64| {
        placed.iter().all(|(at, numbers)| {
            let mut of_name = numbers.iter().filter(|(key, _)| key == name);
            of_name.any(|(_, value)| (value * factor - at).abs() <= 1e-9 * at.abs().max(1.0))
        })
    };
    let keys = placed.first().map_or(&[][..], |(_, numbers)| numbers);
    let places_differ = placed.windows(2).any(|pair| pair[0].0 != pair[1].0);
    let keys = keys.iter().filter(|_| places_differ);
    for (key, _) in keys {
        if fits(key, 1.0) {
            let known = WORDS.iter().find(|(name, _)| name == key);
            let own = || match key.as_str() {
                "loss" => "Share of packets lost in each direction".to_owned(),
                _ => key.replace('_', " "),
            };
            return known.map_or_else(own, |(_, words)| (*words).to_owned());
        }
        if key == "loss" && fits(key, 100.0) {
            return "Packets lost in each direction, %".into();
        }
    }
    "Place of the case".into()
}

/// The numbers of a case's set-up by the last part of their names.
fn numbers(case: &Case) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    add(&mut all, "", &as_json(&case.setup));
    all
}

fn add(all: &mut Vec<(String, f64)>, name: &str, value: &Value) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, inner)| add(all, key, inner)),
        Value::Array(items) => items.iter().for_each(|item| add(all, name, item)),
        Value::String(text) => {
            all.extend(text.parse().ok().map(|number| (name.to_owned(), number)))
        }
        other => all.extend(other.as_f64().map(|number| (name.to_owned(), number))),
    }
}
