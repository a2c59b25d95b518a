//! Measurements that are no comparison of web servers on links of their own: processor time a
//! request, memory a client, slices by turns, a statement through the gate, a page in a browser.
//!
//! An experiment of this sort has `[[part]]`s in its experiment.toml. A part is a file of kept rows
//! with its tables and claims; it is measured by one or more `[[part.measure]]`. The `kind` of each
//! says how. Every kind measures its ways by turns, once a turn in each case, and keeps a row for
//! each. docs/lab.md has the kinds and their keys.

mod bench;
mod calm;
mod expression;
mod file;
mod kind;
mod names;
mod rows;
pub mod run;
mod text;

pub use file::all;
pub(crate) use file::is_of_measurements;
pub use rows::Rows;
pub use text::{Shown, Verdict};

use anyhow::{Result, anyhow};
use expression::Expression;
use kind::Kind;
pub use rows::Record;
use serde_json::{Map, Value};
use std::fs;
use std::path::PathBuf;
use text::Template;

/// A checked experiment of measurements.
#[derive(Debug)]
pub struct Experiment {
    /// Its folder's name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The rows of the papers' table it answers.
    pub rows: Vec<String>,
    /// The question in one line.
    pub question: String,
    /// What is measured, a file of results each.
    pub parts: Vec<Part>,
}

/// A file of results with what it shows.
#[derive(Debug)]
pub struct Part {
    /// The file's name, without its end.
    pub name: String,
    /// What is measured into it, in this order.
    pub measures: Vec<Measure>,
    tables: Vec<Table>,
    claims: Vec<Claims>,
}

/// Something that is measured.
#[derive(Debug)]
pub struct Measure {
    /// Its name within its part.
    pub name: String,
    kind_name: String,
    kind: Box<dyn Kind>,
    /// Fields that all its rows have, and no others.
    is: Map<String, Value>,
    /// A field that its rows have, and others of the part do not.
    has: Option<String>,
    /// Whether rows that look alike are told apart by the order in which they came, as field `nth`.
    nth: bool,
    /// Numbers and words for tables and claims.
    values: Map<String, Value>,
    /// The fields of rows that say which case they are of.
    case_by: Vec<String>,
    /// The field that says which way.
    way_by: Option<String>,
    /// The fields that tell one turn from another; of several attempts at one the last counts.
    turn_by: Vec<String>,
    cases: Vec<Item>,
    ways: Vec<Item>,
    /// How often each way is measured in each case.
    turns: u32,
    /// The cases and ways of a run that only shows that everything works; none: the first case, all
    /// ways.
    quick: Vec<String>,
}

/// A way or a case.
#[derive(Debug, Clone)]
pub struct Item {
    /// As tables and claims name it.
    pub id: String,
    /// All its keys but those below.
    pub fields: Map<String, Value>,
    /// Numbers and words for tables and claims.
    values: Map<String, Value>,
    /// The cases that a way is measured in; none: all.
    cases: Vec<String>,
}

/// What a table has a row for, and claims are held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Axis {
    Case,
    Way,
    Row,
}

#[derive(Debug)]
struct Table {
    of: Option<String>,
    before: Option<Template>,
    head: String,
    each: Vec<Axis>,
    cases: Vec<String>,
    ways: Vec<String>,
    rows: Vec<Template>,
}

#[derive(Debug)]
struct Claims {
    of: Option<String>,
    each: Vec<Axis>,
    cases: Vec<String>,
    ways: Vec<String>,
    hold: Vec<Hold>,
}

#[derive(Debug)]
struct Hold {
    text: Template,
    value: Expression,
    limit: Limit,
}

#[derive(Debug)]
enum Limit {
    /// The value is 1.
    Holds,
    AtMost(Expression),
    AtLeast(Expression),
}

impl Item {
    fn of(fields: Map<String, Value>, keys: &[String]) -> Item {
        let words: Vec<String> = keys
            .iter()
            .filter_map(|key| fields.get(key))
            .map(rows::word)
            .collect();
        Item {
            id: words.join("-"),
            fields,
            values: Map::new(),
            cases: Vec::new(),
        }
    }

    /// Whether a row is of this way or case.
    fn is_of(&self, row: &Value, keys: &[String]) -> bool {
        keys.iter()
            .all(|key| match (self.fields.get(key), row.get(key)) {
                (Some(own), Some(kept)) => rows::is_same(own, kept),
                (own, kept) => own.is_none() && kept.is_none(),
            })
    }

    /// A key, for tables and claims.
    fn get(&self, path: &str) -> Option<&Value> {
        let (key, rest) = path
            .split_once('.')
            .map_or((path, None), |(key, rest)| (key, Some(rest)));
        let value = self.values.get(key).or_else(|| self.fields.get(key))?;
        rest.map_or(Some(value), |rest| rows::at(value, rest))
    }

    /// A key that is text; empty where there is none.
    fn text(&self, key: &str) -> &str {
        self.fields
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

impl Experiment {
    /// Whether `name` is its name or one of its rows.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.rows.iter().any(|row| row.eq_ignore_ascii_case(name))
    }

    /// What every kept run of every part shows, the newest last, each with its place.
    pub fn kept(&self) -> Vec<Result<(String, Shown)>> {
        let entries = fs::read_dir(self.folder.join("runs"));
        let entries = entries.into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        folders.sort();
        let places = folders
            .iter()
            .flat_map(|folder| self.parts.iter().map(move |part| (folder, part)));
        let there = places.filter(|(folder, part)| rows::file_of(folder, &part.name).exists());
        let shown = there.map(|(folder, part)| {
            let path = rows::file_of(folder, &part.name);
            let run = folder.file_name().unwrap_or_default().to_string_lossy();
            let place = format!("{}, {}, {run}", self.name, part.name);
            let shown = part.shown(&Rows::read(&path)?);
            Ok((
                place,
                shown.map_err(|problem| anyhow!("{}: {problem}", path.display()))?,
            ))
        });
        shown.collect()
    }
}

impl Part {
    fn measure(&self, name: Option<&str>) -> Result<&Measure, String> {
        let found = match name {
            None => self.measures.first(),
            Some(name) => self.measures.iter().find(|measure| measure.name == name),
        };
        found.ok_or_else(|| format!("there is no measurement {}", name.unwrap_or_default()))
    }
}

impl Measure {
    /// Those of its rows that count, in their order.
    fn rows_of(&self, rows: &Rows) -> Vec<Value> {
        let is_own = |row: &&Value| {
            let has_field = self.has.iter().all(|field| row.get(field).is_some());
            let mut fields = self.is.iter();
            has_field
                && fields
                    .all(|(key, value)| row.get(key).is_some_and(|kept| rows::is_same(value, kept)))
        };
        let mut own: Vec<Value> = rows.0.iter().filter(is_own).cloned().collect();
        if self.nth {
            self.count_alike(&mut own);
        }
        if self.turn_by.is_empty() {
            return own;
        }
        let mut counted: Vec<Value> = Vec::new();
        for row in own {
            match counted.iter_mut().find(|one| self.is_same_turn(one, &row)) {
                Some(earlier) => *earlier = row,
                None => counted.push(row),
            }
        }
        counted
    }

    /// Gives each row without a field `nth` the number of those before it that look alike.
    fn count_alike(&self, rows: &mut [Value]) {
        for at in 0..rows.len() {
            let (before, rest) = rows.split_at_mut(at);
            let [row, ..] = rest else { return };
            if row.get(NTH).is_some() {
                continue;
            }
            let alike = before.iter().rev();
            let last = alike.map(without_nth).zip(before.iter().rev());
            let row_alike = without_nth(row);
            let last = last
                .into_iter()
                .find(|(one, _)| self.is_same_turn(one, &row_alike));
            let nth = last
                .and_then(|(_, row)| row[NTH].as_u64())
                .map_or(0, |nth| nth + 1);
            row[NTH] = nth.into();
        }
    }

    fn is_same_turn(&self, one: &Value, other: &Value) -> bool {
        let keys = self.turn_by.iter().chain(&self.case_by).chain(&self.way_by);
        let mut keys = keys.map(|key| (one.get(key), other.get(key)));
        keys.all(|both| match both {
            (Some(one), Some(other)) => rows::is_same(one, other),
            (one, other) => one.is_none() && other.is_none(),
        })
    }
}

/// The field that tells rows that look alike apart.
const NTH: &str = "nth";

fn without_nth(row: &Value) -> Value {
    let mut row = row.clone();
    if let Some(fields) = row.as_object_mut() {
        fields.remove(NTH);
    }
    row
}
