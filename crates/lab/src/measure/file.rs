//! Reads the `[[part]]`s of an experiment.toml; a mistake is told with its line, and nothing is
//! measured.

use super::expression::Expression;
use super::text::Template;
use super::{Axis, Claims, Experiment, Hold, Item, Limit, Measure, Part, Table, kind};
use crate::experiment::{ExperimentError, FILE, line_of};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// A mistake with its place in the text.
type Mistake = (Range<usize>, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rows: Vec<String>,
    question: String,
    part: Vec<Spanned<PartTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartTable {
    name: String,
    measure: Vec<Spanned<toml::Table>>,
    #[serde(default)]
    table: Vec<Spanned<TableTable>>,
    #[serde(default)]
    claims: Vec<Spanned<ClaimsTable>>,
}

/// The keys of a measurement that all kinds have; the others are the kind's.
#[derive(Deserialize)]
struct Common {
    kind: String,
    name: Option<String>,
    #[serde(default)]
    is: Map<String, Value>,
    has: Option<String>,
    #[serde(default)]
    nth: bool,
    #[serde(default)]
    values: Map<String, Value>,
    #[serde(default)]
    case_by: Vec<String>,
    way_by: Option<String>,
    #[serde(default)]
    turn_by: Vec<String>,
    #[serde(default = "one")]
    turns: u32,
    #[serde(default)]
    quick: Vec<String>,
    #[serde(default)]
    case: Vec<toml::Table>,
    #[serde(default)]
    way: Vec<toml::Table>,
}

const COMMON: [&str; 13] = [
    "kind", "name", "is", "has", "nth", "values", "case_by", "way_by", "turn_by", "turns", "case",
    "way", "quick",
];

/// The keys that all ways and cases have.
const ITEM: [&str; 3] = ["id", "values", "cases"];

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableTable {
    of: Option<String>,
    before: Option<String>,
    head: String,
    #[serde(default)]
    each: Vec<Axis>,
    #[serde(default)]
    cases: Vec<String>,
    #[serde(default)]
    ways: Vec<String>,
    rows: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimsTable {
    of: Option<String>,
    #[serde(default)]
    each: Vec<Axis>,
    #[serde(default)]
    cases: Vec<String>,
    #[serde(default)]
    ways: Vec<String>,
    hold: Vec<HoldTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldTable {
    text: String,
    value: String,
    at_most: Option<toml::Value>,
    at_least: Option<toml::Value>,
}

/// Whether an experiment.toml with this text is one of measurements.
pub(crate) fn is_of_measurements(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == "[[part]]")
}

/// All experiments of measurements under `folder`, by name.
pub fn all(folder: &Path) -> Result<Vec<Experiment>, ExperimentError> {
    let mut experiments = Vec::new();
    for path in crate::experiment::folders(folder)? {
        let file = path.join(FILE);
        let text = fs::read_to_string(&file).map_err(|source| ExperimentError::Read {
            path: file.clone(),
            source,
        })?;
        if is_of_measurements(&text) {
            let experiment =
                parse(&text, &path).map_err(|(span, problem)| ExperimentError::Mistake {
                    path: file,
                    line: line_of(&text, span.start),
                    problem: problem.replace(char::is_control, " "),
                })?;
            experiments.push(experiment);
        }
    }
    Ok(experiments)
}

pub(super) fn parse(text: &str, folder: &Path) -> Result<Experiment, Mistake> {
    let file: File = toml::from_str(text)
        .map_err(|error| (error.span().unwrap_or(0..0), error.message().to_owned()))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut parts: Vec<Part> = Vec::new();
    let mut last = 0..0;
    for table in file.part {
        last = table.span();
        let table = table.into_inner();
        if parts.iter().any(|part| part.name == table.name) {
            return Err((last, format!("part {} is there twice", table.name)));
        }
        parts.push(part(table, text)?);
    }
    let experiment = Experiment {
        name: name.into_owned(),
        folder: PathBuf::from(folder),
        rows: file.rows,
        question: file.question,
        parts,
    };
    match experiment.unknown_name() {
        Some(problem) => Err((last, problem)),
        None => Ok(experiment),
    }
}

fn part(table: PartTable, text: &str) -> Result<Part, Mistake> {
    let mut measures = Vec::new();
    for keys in table.measure {
        let span = keys.span();
        let measure = measure(keys.into_inner(), &table.name);
        measures.push(measure.map_err(|(key, problem)| (line_with(text, &span, &key), problem))?);
    }
    let tables = table.table.into_iter().map(|table| {
        let span = table.span();
        table_of(table.into_inner()).map_err(|problem| (span, problem))
    });
    let claims = table.claims.into_iter().map(|claims| {
        let span = claims.span();
        claims_of(claims.into_inner()).map_err(|problem| (span, problem))
    });
    Ok(Part {
        tables: tables.collect::<Result<_, _>>()?,
        claims: claims.collect::<Result<_, _>>()?,
        name: table.name,
        measures,
    })
}

/// A measurement; a mistake comes with the key that it is in.
fn measure(mut keys: toml::Table, part: &str) -> Result<Measure, (String, String)> {
    let mut own = toml::Table::new();
    let of_kind: Vec<String> = keys
        .keys()
        .filter(|key| !COMMON.contains(&key.as_str()))
        .cloned()
        .collect();
    for key in of_kind {
        own.extend(keys.remove_entry(&key));
    }
    let common: Common = keys
        .try_into()
        .map_err(|error: toml::de::Error| ("kind".to_owned(), error.message().to_owned()))?;
    let way_by: Vec<String> = common.way_by.iter().cloned().collect();
    let of_ways = without(&common.way, &way_by);
    let of_cases = without(&common.case, &common.case_by);
    let kind = kind::of(&common.kind, own, of_ways, of_cases)?;
    let cases = items(common.case, &common.case_by)?;
    let ways = items(common.way, &way_by)?;
    let unknown = |id: &&String| cases.iter().chain(&ways).all(|item| item.id != **id);
    if let Some(unknown) = common.quick.iter().find(unknown) {
        return Err((
            "quick".into(),
            format!("quick: there is no case or way {unknown}"),
        ));
    }
    let turns = common.turns.max(1);
    Ok(Measure {
        name: common.name.unwrap_or_else(|| part.to_owned()),
        kind_name: common.kind,
        kind,
        is: common.is,
        has: common.has,
        nth: common.nth,
        values: common.values,
        case_by: common.case_by,
        way_by: common.way_by,
        turn_by: common.turn_by,
        cases,
        ways,
        turns,
        quick: common.quick,
    })
}

/// What a kind has to know of ways or cases: neither what names them nor what only tables and
/// claims need.
fn without(tables: &[toml::Table], keys: &[String]) -> Vec<toml::Table> {
    let is_of_kind = |key: &String| !keys.contains(key) && !ITEM.contains(&key.as_str());
    let of_kind = |table: &toml::Table| {
        let keys = table.iter().filter(|(key, _)| is_of_kind(key));
        keys.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    tables.iter().map(of_kind).collect()
}

fn items(tables: Vec<toml::Table>, keys: &[String]) -> Result<Vec<Item>, (String, String)> {
    let mut items: Vec<Item> = Vec::new();
    for table in tables {
        let fields = serde_json::to_value(table);
        let Ok(Value::Object(mut fields)) = fields else {
            return Err((String::new(), "a way or a case is a table".into()));
        };
        let id = fields.remove("id");
        let values = fields.remove("values");
        let cases = fields.remove("cases");
        let mut item = Item::of(fields, keys);
        if let Some(Value::Object(values)) = values {
            item.values = values;
        }
        if let Some(cases) = cases {
            let wrong = |_| ("cases".to_owned(), "cases is a list of ids".to_owned());
            item.cases = serde_json::from_value(cases).map_err(wrong)?;
        }
        if let Some(Value::String(id)) = id {
            item.id = id;
        }
        if items.iter().any(|other| other.id == item.id) {
            return Err((
                "id".into(),
                format!("way or case {} is there twice", item.id),
            ));
        }
        items.push(item);
    }
    Ok(items)
}

fn table_of(table: TableTable) -> Result<Table, String> {
    let rows = table.rows.iter().map(|row| Template::parse(row));
    let before = table.before.as_deref().map(Template::parse);
    Ok(Table {
        rows: rows.collect::<Result<_, _>>()?,
        before: before.transpose()?,
        of: table.of,
        head: table.head,
        each: table.each,
        cases: table.cases,
        ways: table.ways,
    })
}

fn claims_of(table: ClaimsTable) -> Result<Claims, String> {
    let hold = table.hold.into_iter().map(hold_of);
    Ok(Claims {
        hold: hold.collect::<Result<_, _>>()?,
        of: table.of,
        each: table.each,
        cases: table.cases,
        ways: table.ways,
    })
}

fn hold_of(table: HoldTable) -> Result<Hold, String> {
    let expression = |limit: toml::Value| match limit {
        toml::Value::String(text) => Expression::parse(&text),
        number => Expression::parse(&number.to_string()),
    };
    let limit = match (table.at_most, table.at_least) {
        (None, None) => Limit::Holds,
        (Some(limit), None) => Limit::AtMost(expression(limit)?),
        (None, Some(limit)) => Limit::AtLeast(expression(limit)?),
        _ => return Err(format!("\"{}\": at_most or at_least, not both", table.text)),
    };
    Ok(Hold {
        text: Template::parse(&table.text)?,
        value: Expression::parse(&table.value)?,
        limit,
    })
}

/// The place of a key behind the beginning of its table, or of the table.
fn line_with(text: &str, table: &Range<usize>, key: &str) -> Range<usize> {
    let behind = &text[table.start..];
    let mut at = table.start;
    for line in behind.split_inclusive('\n') {
        let is_there = |word: &str| word == key;
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let is_comment = line.trim_start().starts_with('#');
        if !key.is_empty() && !is_comment && words.any(is_there) {
            return at..at + line.len();
        }
        at += line.len();
    }
    table.clone()
}

/// The keys of a kind, as its type.
pub(super) fn keys<T: serde::de::DeserializeOwned>(
    table: toml::Table,
) -> Result<T, (String, String)> {
    table.try_into().map_err(|error: toml::de::Error| {
        let problem = error.message().to_owned();
        let key = problem.split('`').nth(1).unwrap_or_default().to_owned();
        (key, problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"question = "q"

[[part]]
name = "p"

[[part.measure]]
kind = "request-cost"
case_by = ["file"]
way_by = "server"
case = [{ file = "1k", bytes = 1024 }]
way = [{ id = "ours", server = "sooner serve", peer = "sooner" }]

[[part.table]]
head = "| body |"
each = ["case"]
rows = ["| {spread(cores@ours):1} |"]

[[part.claims]]
hold = [{ text = "t", value = "median(cores@ours)", at_most = 1 }]
"#;

    fn mistake(text: &str) -> (usize, String) {
        let (span, problem) = parse(text, Path::new("x")).unwrap_err();
        (line_of(text, span.start), problem)
    }

    #[test]
    fn mistakes_have_a_place() {
        assert!(parse(TEXT, Path::new("x")).is_ok());
        for (from, to, line, words) in [
            (
                "\"request-cost\"",
                "\"request-costs\"",
                7,
                "there is no kind",
            ),
            ("way_by", "tsl = true\nway_by", 9, "unknown field `tsl`"),
            ("bytes = 1024", "byte = 1024", 10, "unknown field `byte`"),
            ("bytes = 1024", "", 6, "missing field `bytes`"),
            (
                "each = [\"case\"]",
                "each = [\"cases\"]",
                15,
                "unknown variant",
            ),
            ("spread(cores", "spraed(cores", 13, "no function spraed"),
            ("median(cores@ours)", "median(cores@our)", 3, "no way our"),
            ("at_most = 1", "at_most = 1, at_least = 1", 18, "not both"),
            ("way_by", "quick = [\"2k\"]\nway_by", 9, "no case or way 2k"),
        ] {
            let text = TEXT.replacen(from, to, 1);
            let (place, problem) = mistake(&text);
            assert!(problem.contains(words), "{problem}");
            assert_eq!(place, line, "{problem}");
        }
    }
}
