//! JSON as names and values, one a line: what is kept of a host or a set-up, shown by its own
//! names.

use serde_json::Value;
use sooner_report::experiment::Amount;

/// Every leaf of `value` that is not null, under the names of what it stands in; numbers of a list
/// are told together.
pub fn leaves(value: &Value) -> Vec<(String, Amount)> {
    let mut all = Vec::new();
    add(&mut all, "", value);
    all
}

fn add(all: &mut Vec<(String, Amount)>, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (field, inner) in fields {
                add(all, &joined(name, field), inner);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (number, item) in (1..).zip(items) {
                add(all, &joined(name, &number.to_string()), item);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(words).collect();
            all.push((name.to_owned(), Amount::Text(items.join(", "))));
        }
        leaf => {
            let number = leaf.as_f64().map(Amount::Number);
            let amount = number.unwrap_or_else(|| Amount::Text(words(leaf)));
            all.push((name.to_owned(), amount));
        }
    }
}

fn joined(name: &str, field: &str) -> String {
    let field = field.replace('_', " ");
    match name {
        "" => field,
        _ => format!("{name}: {field}"),
    }
}

/// A leaf as it stands, text without its quotes.
pub fn words(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// A set-up's keys and values, by name; what is left to its default is left out.
pub fn definitions(setup: &Value) -> Vec<(String, String)> {
    let fields = setup.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null());
    fields
        .map(|(key, value)| (key.replace('_', " "), definition(key, value)))
        .collect()
}

fn definition(key: &str, value: &Value) -> String {
    match value {
        Value::Array(items) => grouped(items.iter().map(object).collect()),
        _ => match (key, value.as_f64()) {
            ("rate_bits_per_sec", Some(rate)) => sooner_report::number::round_rate(rate),
            _ => words(value),
        },
    }
}

/// `rtt ms 20, loss 0`.
fn object(value: &Value) -> String {
    let Some(fields) = value.as_object() else {
        return words(value);
    };
    let fields = fields.iter();
    let told = fields.map(|(key, value)| format!("{} {}", key.replace('_', " "), words(value)));
    told.collect::<Vec<_>>().join(", ")
}

/// Equal neighbours told once: `3 with rtt ms 20, loss 0`.
fn grouped(items: Vec<String>) -> String {
    let mut groups: Vec<(usize, String)> = Vec::new();
    for item in items {
        match groups.last_mut() {
            Some((count, last)) if *last == item => *count += 1,
            _ => groups.push((1, item)),
        }
    }
    let told = groups.iter().map(|(count, item)| match count {
        1 => item.clone(),
        _ => format!("{count} with {item}"),
    });
    told.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn leaves_keep_their_names() {
        let value = json!({"syn_drops": 3, "band": [{"drops": 1}, {"drops": 2}], "cpu": {"user_seconds": 0.5}, "none": null});
        let told: Vec<String> = leaves(&value)
            .into_iter()
            .map(|(name, amount)| format!("{name} = {amount:?}"))
            .collect();
        assert_eq!(
            told,
            [
                "band: 1: drops = Number(1.0)",
                "band: 2: drops = Number(2.0)",
                "cpu: user seconds = Number(0.5)",
                "syn drops = Number(3.0)"
            ]
        );
    }

    #[test]
    fn a_set_up_tells_equal_clients_once() {
        let client = json!({"rtt_ms": 20.0, "loss": 0.0});
        let setup =
            json!({"clients": [client, client], "rate_bits_per_sec": 10_000_000, "mss": null});
        assert_eq!(
            definitions(&setup),
            [
                (
                    "clients".to_owned(),
                    "2 with loss 0.0, rtt ms 20.0".to_owned()
                ),
                ("rate bits per sec".to_owned(), "10 Mbit/s".to_owned()),
            ]
        );
    }
}
