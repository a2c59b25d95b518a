//! What a gate that runs says of itself, read from its own tables.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;
use sooner_pooler::config::Endpoint;
use sooner_pooler::{Answer, ConsoleClient};

/// The version of what is printed as JSON.
const SCHEMA: u32 = 1;

/// One look.
#[derive(Serialize)]
pub struct Look {
    pub schema: u32,
    pub state: String,
    pub servers: Vec<Server>,
    pub classes: Vec<Class>,
    pub targets: Vec<Target>,
}

#[derive(Default, Serialize)]
pub struct Server {
    pub address: String,
    pub limit_transactions: u64,
    pub inside_transactions: u64,
    pub waiting_transactions: u64,
    pub connections: u64,
    pub limit_connections: u64,
}

#[derive(Default, Serialize)]
pub struct Class {
    pub name: String,
    pub priority: Option<u64>,
    pub clients: u64,
    pub waiting_clients: u64,
    pub transactions: u64,
    /// Since the last look.
    pub transactions_per_sec: Option<f64>,
    pub outside_p50_us: Option<u64>,
    pub outside_p95_us: Option<u64>,
    pub inside_p50_us: Option<u64>,
    pub inside_p95_us: Option<u64>,
    /// That had to log in to a server first, since the start.
    pub logins: u64,
    pub opening_mean_us: Option<u64>,
    pub opening_p95_us: Option<u64>,
    pub total_p95_us: Option<u64>,
    pub total_p99_us: Option<u64>,
    /// Of all turns since the start.
    #[serde(skip)]
    pub sums: Sums,
}

/// Turns and their times.
#[derive(Clone, Copy, Default)]
pub struct Sums {
    pub turns: u64,
    /// Until there was a server connection.
    pub outside_us: u64,
    pub inside_us: u64,
}

impl Sums {
    /// What came since.
    pub fn since(self, before: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(before.turns),
            outside_us: self.outside_us.saturating_sub(before.outside_us),
            inside_us: self.inside_us.saturating_sub(before.inside_us),
        }
    }
}

/// A target of a class in a server.
#[derive(Default, Serialize)]
pub struct Target {
    pub server: String,
    pub class: String,
    /// `mean`, or a percentile.
    pub target: String,
    pub target_us: u64,
    pub achieved_us: Option<u64>,
    /// Achieved, in parts in a hundred of the target: above 100 it is late.
    pub achieved_percent: Option<u64>,
    pub inside_us: Option<u64>,
}

/// One look.
pub async fn look(console: &mut ConsoleClient, place: &Endpoint) -> Result<Look> {
    let mut answers = Vec::new();
    for command in ["SHOW STATE", "SHOW GATES", "SHOW CLASSES", "SHOW TARGETS"] {
        let answer = console.ask(place, command).await;
        answers.push(answer.map_err(anyhow::Error::msg)?);
    }
    let [state, gates, classes, targets] = &answers[..] else {
        bail!("the gate's answer is incomplete");
    };
    let is_so = |row: &&Vec<Option<String>>| state.field(row, "value") == "yes";
    let states = state.rows.iter().filter(is_so);
    let states: Vec<&str> = states.map(|row| state.field(row, "key")).collect();
    Ok(Look {
        schema: SCHEMA,
        state: states.join(", "),
        servers: gates
            .rows
            .iter()
            .map(|row| Server::read(gates, row))
            .collect(),
        classes: classes
            .rows
            .iter()
            .map(|row| Class::read(classes, row))
            .collect(),
        targets: targets
            .rows
            .iter()
            .map(|row| Target::read(targets, row))
            .collect(),
    })
}

fn number_of(answer: &Answer, row: &[Option<String>], column: &str) -> Option<u64> {
    answer.field(row, column).parse().ok()
}

impl Server {
    fn read(answer: &Answer, row: &[Option<String>]) -> Self {
        let number = |column| number_of(answer, row, column).unwrap_or(0);
        Self {
            address: answer.field(row, "server").to_owned(),
            limit_transactions: number("limit"),
            inside_transactions: number("inside"),
            waiting_transactions: number("waiting"),
            connections: number("connections"),
            limit_connections: number("connections_max"),
        }
    }
}

impl Class {
    fn read(answer: &Answer, row: &[Option<String>]) -> Self {
        let number = |column| number_of(answer, row, column);
        Self {
            name: answer.field(row, "class").to_owned(),
            priority: number("priority"),
            clients: number("clients").unwrap_or(0),
            waiting_clients: number("waiting").unwrap_or(0),
            transactions: number("transactions").unwrap_or(0),
            transactions_per_sec: None,
            outside_p50_us: number("outside_p50_us"),
            outside_p95_us: number("outside_p95_us"),
            inside_p50_us: number("inside_p50_us"),
            inside_p95_us: number("inside_p95_us"),
            logins: number("logins").unwrap_or(0),
            opening_mean_us: number("mean_opening_us"),
            opening_p95_us: number("opening_p95_us"),
            total_p95_us: number("total_p95_us"),
            total_p99_us: number("total_p99_us"),
            sums: Sums {
                turns: number("turns").unwrap_or(0),
                outside_us: number("outside_sum_us").unwrap_or(0)
                    + number("opening_sum_us").unwrap_or(0),
                inside_us: number("inside_sum_us").unwrap_or(0),
            },
        }
    }
}

impl Look {
    /// Transactions of each class since the start.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let count = |class: &Class| (class.name.clone(), class.transactions);
        self.classes.iter().map(count).collect()
    }

    /// Notes how many a second that is since an earlier look.
    pub fn compare(&mut self, before: &BTreeMap<String, u64>, passed: Duration) {
        for class in &mut self.classes {
            let then = before.get(&class.name).copied().unwrap_or(0);
            let more = class.transactions.saturating_sub(then);
            class.transactions_per_sec = Some(more as f64 / passed.as_secs_f64());
        }
    }
}

impl Target {
    fn read(answer: &Answer, row: &[Option<String>]) -> Self {
        let number = |column| number_of(answer, row, column);
        let text = |column| answer.field(row, column).to_owned();
        Self {
            server: text("server"),
            class: text("class"),
            target: text("target"),
            target_us: number("target_us").unwrap_or(0),
            achieved_us: number("achieved_us"),
            achieved_percent: number("achieved_percent"),
            inside_us: number("inside_us"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_field_is_in_the_manual() {
        let manual = include_str!("../../../../docs/json.md");
        let (_, rest) = manual
            .split_once("\n## What `sooner gate top` prints\n")
            .unwrap();
        let (section, _) = rest.split_once("\n## ").unwrap();
        // A row names its list once, and further fields of it with a dot.
        let is_told = |begin: &str, field: &str| {
            let mut rows = section.lines().filter(|line| line.starts_with(begin));
            rows.any(|row| row.contains(&format!("{field}`")))
        };
        let look = Look {
            schema: SCHEMA,
            state: String::new(),
            servers: vec![Server::default()],
            classes: vec![Class::default()],
            targets: vec![Target::default()],
        };
        let Value::Object(look) = serde_json::to_value(&look).unwrap() else {
            panic!("a look is an object");
        };
        for (name, value) in &look {
            match value[0].as_object() {
                None => assert!(is_told("| `", &format!("`{name}")), "{name}"),
                Some(row) => {
                    for field in row.keys() {
                        let begin = format!("| `{name}[].");
                        assert!(is_told(&begin, &format!(".{field}")), "{name}[].{field}");
                    }
                }
            }
        }
    }
}
