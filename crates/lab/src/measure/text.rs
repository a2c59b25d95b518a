//! Tables and claims of a part, from its kept rows.
//!
//! A table's rows are texts with figures in braces, one for each case, way or kept row: `| {file} |
//! {spread(us_per_request):1} |`. A word in braces is a key of the case or way, or a field of the
//! row; behind a figure stand its decimals. `spread` shows the median and the range, `interval(A,
//! B)` the ratio of two sums and half of its 95 % interval.

use super::expression::{Expression, Field, Values, median, ratio_of_turns};
use super::rows::{self, Rows};
use super::{Axis, Claims, Hold, Item, Limit, Measure, Part, Table};
use serde_json::Value;

/// A claim that was held against what is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether it holds.
    pub holds: bool,
    /// What is claimed, with its figures.
    pub text: String,
}

impl Verdict {
    /// A figure that may be at most so much.
    pub fn at_most(text: &str, figure: f64, limit: f64) -> Verdict {
        Verdict {
            holds: figure <= limit,
            text: format!("{text}: {figure:.3}, at most {limit:.3}"),
        }
    }

    /// A figure that must be at least so much.
    pub fn at_least(text: &str, figure: f64, limit: f64) -> Verdict {
        Verdict {
            holds: figure >= limit,
            text: format!("{text}: {figure:.3}, at least {limit:.3}"),
        }
    }
}

/// What a part shows.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// Its tables, as Markdown.
    pub tables: String,
    /// Its claims.
    pub verdicts: Vec<Verdict>,
}

impl Shown {
    /// All of it as Markdown.
    pub fn markdown(&self) -> String {
        let line = |verdict: &Verdict| {
            let word = if verdict.holds { "PASS" } else { "FAIL" };
            format!("- {word} {}\n", verdict.text)
        };
        let claims: String = self.verdicts.iter().map(line).collect();
        format!("{}\n{claims}", self.tables)
    }
}

/// A piece of a table's row.
#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Word(String),
    Figure(Expression, usize),
    Spread(Expression, usize),
    Interval(Expression, Expression, usize),
}

/// A text with figures in braces.
#[derive(Debug, Clone)]
pub struct Template(Vec<Piece>);

impl Template {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(begin) = rest.find('{') {
            let end = rest[begin..]
                .find('}')
                .ok_or_else(|| format!("a brace is open in \"{text}\""))?;
            pieces.push(Piece::Text(rest[..begin].into()));
            pieces.push(piece(&rest[begin + 1..begin + end])?);
            rest = &rest[begin + end + 1..];
        }
        pieces.push(Piece::Text(rest.into()));
        Ok(Template(pieces))
    }

    /// Calls `look` with every field in it.
    pub fn fields(&self, look: &mut impl FnMut(&Field)) {
        for piece in &self.0 {
            match piece {
                Piece::Text(_) | Piece::Word(_) => {}
                Piece::Figure(figure, _) | Piece::Spread(figure, _) => figure.fields(look),
                Piece::Interval(one, other, _) => {
                    one.fields(look);
                    other.fields(look);
                }
            }
        }
    }

    fn shown(&self, scope: &Scope<'_>) -> Result<String, String> {
        let shown = self.0.iter().map(|piece| piece.shown(scope));
        shown.collect()
    }
}

fn piece(text: &str) -> Result<Piece, String> {
    let Some((figure, decimals)) = text.rsplit_once(':') else {
        return Ok(Piece::Word(text.into()));
    };
    let decimals = decimals
        .parse()
        .map_err(|_| format!("{decimals} is not a number of decimals"))?;
    let inner = |name: &str| {
        figure
            .strip_prefix(name)?
            .strip_prefix('(')?
            .strip_suffix(')')
    };
    if let Some(figure) = inner("spread") {
        return Ok(Piece::Spread(Expression::parse(figure)?, decimals));
    }
    if let Some((one, other)) = inner("interval").and_then(|both| both.split_once(',')) {
        let (one, other) = (Expression::parse(one)?, Expression::parse(other)?);
        return Ok(Piece::Interval(one, other, decimals));
    }
    Ok(Piece::Figure(Expression::parse(figure)?, decimals))
}

impl Piece {
    fn shown(&self, scope: &Scope<'_>) -> Result<String, String> {
        Ok(match self {
            Piece::Text(text) => text.clone(),
            Piece::Word(name) => scope.word(name)?,
            Piece::Figure(figure, decimals) => {
                let value = figure.value(scope)?;
                if value.is_nan() {
                    String::new()
                } else {
                    format!("{value:.decimals$}")
                }
            }
            Piece::Spread(figures, decimals) => spread(&figures.values(scope)?, *decimals),
            Piece::Interval(one, other, decimals) => {
                let (share, half) = ratio_of_turns(&one.values(scope)?, &other.values(scope)?)?;
                format!("{share:.decimals$} (± {half:.decimals$})")
            }
        })
    }
}

/// Median and range, for a table.
pub fn spread(figures: &[f64], decimals: usize) -> String {
    let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let middle = median(figures);
    format!("{middle:.decimals$} ({low:.decimals$}-{high:.decimals$})")
}

impl Part {
    /// Its tables and claims; an error says what in the rows or the file does not fit.
    pub fn shown(&self, rows: &Rows) -> Result<Shown, String> {
        let mut shown = Shown::default();
        for measure in &self.measures {
            if let Some(own) = measure.kind.shown(&measure.rows_of(rows)) {
                shown.tables += &own.tables;
                shown.verdicts.extend(own.verdicts);
            }
        }
        for table in &self.tables {
            if !shown.tables.is_empty() {
                shown.tables.push('\n');
            }
            shown.tables += &self.table(table, rows)?;
        }
        for claims in &self.claims {
            shown.verdicts.extend(self.verdicts(claims, rows)?);
        }
        Ok(shown)
    }

    fn table(&self, table: &Table, rows: &Rows) -> Result<String, String> {
        let measure = self.measure(table.of.as_deref())?;
        let known = Known::of(measure, rows);
        let mut text = match &table.before {
            Some(before) => format!("{}\n\n", before.shown(&Scope::nowhere(&known))?),
            None => String::new(),
        };
        text += &table.head;
        let columns = table.head.matches('|').count().saturating_sub(1);
        text += &format!("\n|{}\n", "---|".repeat(columns));
        for scope in known.places(&table.each, &table.cases, &table.ways) {
            for row in &table.rows {
                text += &row.shown(&scope)?;
                text.push('\n');
            }
        }
        Ok(text)
    }

    fn verdicts(&self, claims: &Claims, rows: &Rows) -> Result<Vec<Verdict>, String> {
        let measure = self.measure(claims.of.as_deref())?;
        let known = Known::of(measure, rows);
        let mut verdicts = Vec::new();
        for scope in known.places(&claims.each, &claims.cases, &claims.ways) {
            for hold in &claims.hold {
                verdicts.push(verdict(hold, &scope)?);
            }
        }
        Ok(verdicts)
    }
}

fn verdict(hold: &Hold, scope: &Scope<'_>) -> Result<Verdict, String> {
    let text = hold.text.shown(scope)?;
    let figure = hold.value.value(scope)?;
    Ok(match &hold.limit {
        Limit::Holds => Verdict {
            holds: figure == 1.0,
            text,
        },
        Limit::AtMost(limit) => Verdict::at_most(&text, figure, limit.value(scope)?),
        Limit::AtLeast(limit) => Verdict::at_least(&text, figure, limit.value(scope)?),
    })
}

/// The rows of a measurement, with its ways and cases.
struct Known<'a> {
    measure: &'a Measure,
    rows: Vec<Value>,
    ways: Vec<Item>,
    cases: Vec<Item>,
}

impl<'a> Known<'a> {
    fn of(measure: &'a Measure, rows: &Rows) -> Known<'a> {
        let rows = measure.rows_of(rows);
        let way_by: Vec<String> = measure.way_by.iter().cloned().collect();
        let ways = listed_or_found(&measure.ways, &way_by, &rows);
        let cases = listed_or_found(&measure.cases, &measure.case_by, &rows);
        Known {
            measure,
            rows,
            ways,
            cases,
        }
    }

    /// What a table or claims are about, one after the other; those of which nothing is kept are
    /// left out.
    fn places(&'a self, each: &[Axis], cases: &[String], ways: &[String]) -> Vec<Scope<'a>> {
        let mut places = vec![Scope::nowhere(self)];
        for axis in each {
            places = places
                .into_iter()
                .flat_map(|scope| scope.along(*axis, cases, ways))
                .collect();
        }
        places.retain(|scope| !scope.rows(None, None).is_empty());
        places
    }
}

/// The items that an experiment lists, or those that its rows have.
fn listed_or_found(listed: &[Item], keys: &[String], rows: &[Value]) -> Vec<Item> {
    if !listed.is_empty() || keys.is_empty() {
        return listed.to_vec();
    }
    let mut found: Vec<Item> = Vec::new();
    for row in rows {
        let fields = keys
            .iter()
            .map(|key| Some((key.clone(), row.get(key)?.clone())));
        let Some(fields) = fields.collect::<Option<serde_json::Map<_, _>>>() else {
            continue;
        };
        let item = Item::of(fields, keys);
        if found.iter().all(|one| one.id != item.id) {
            found.push(item);
        }
    }
    found
}

/// What a row of a table, or a claim, is about.
#[derive(Clone, Copy)]
struct Scope<'a> {
    known: &'a Known<'a>,
    case: Option<&'a Item>,
    way: Option<&'a Item>,
    row: Option<&'a Value>,
}

impl<'a> Scope<'a> {
    fn nowhere(known: &'a Known<'a>) -> Scope<'a> {
        Scope {
            known,
            case: None,
            way: None,
            row: None,
        }
    }

    fn along(self, axis: Axis, cases: &[String], ways: &[String]) -> Vec<Scope<'a>> {
        let is_wanted =
            |wanted: &[String], item: &Item| wanted.is_empty() || wanted.contains(&item.id);
        match axis {
            Axis::Case => {
                let items = self
                    .known
                    .cases
                    .iter()
                    .filter(|item| is_wanted(cases, item));
                items
                    .map(|case| Scope {
                        case: Some(case),
                        ..self
                    })
                    .collect()
            }
            Axis::Way => {
                let items = self.known.ways.iter().filter(|item| is_wanted(ways, item));
                items
                    .map(|way| Scope {
                        way: Some(way),
                        ..self
                    })
                    .collect()
            }
            Axis::Row => {
                let rows = self.known.rows.iter();
                rows.map(|row| Scope {
                    row: Some(row),
                    ..self
                })
                .collect()
            }
        }
    }

    fn items(&self) -> impl Iterator<Item = &'a Item> {
        self.way.into_iter().chain(self.case)
    }

    fn word(&self, name: &str) -> Result<String, String> {
        let of_items = self.items().find_map(|item| item.get(name));
        let found = of_items.or_else(|| rows::at(self.row?, name));
        let found = found.or_else(|| self.known.measure.values.get(name));
        found.map(rows::word).ok_or_else(|| {
            format!("{{{name}}} is not a key of a way or case, and no field of a row")
        })
    }

    /// The rows of this scope, or of another way or case; none of one that the rows do not have.
    fn rows(&self, way: Option<&str>, case: Option<&str>) -> Vec<&'a Value> {
        if let (Some(row), None, None) = (self.row, way, case) {
            return vec![row];
        }
        let named = |items: &'a [Item], id: Option<&str>, own: Option<&'a Item>| match id {
            None => Some(own),
            Some(id) => items.iter().find(|item| item.id == id).map(Some),
        };
        let way = named(&self.known.ways, way, self.way);
        let case = named(&self.known.cases, case, self.case);
        let (Some(way), Some(case)) = (way, case) else {
            return Vec::new();
        };
        let measure = self.known.measure;
        let way_by: Vec<String> = measure.way_by.iter().cloned().collect();
        let is_of = |item: Option<&Item>, keys: &[String], row: &Value| {
            item.is_none_or(|item| item.is_of(row, keys))
        };
        let rows = self.known.rows.iter();
        rows.filter(|row| is_of(way, &way_by, row) && is_of(case, &measure.case_by, row))
            .collect()
    }
}

impl Values for Scope<'_> {
    fn series(&self, field: &Field) -> Result<Vec<f64>, String> {
        let (way, case) = (field.way.as_deref(), field.case.as_deref());
        if way.is_none() && case.is_none() {
            let of_items = self.items().find_map(|item| item.get(&field.path));
            let constant = of_items.or_else(|| self.known.measure.values.get(&field.path));
            if let Some(constant) = constant {
                return Ok(numbers(constant));
            }
        }
        let rows = self.rows(way, case);
        let values = rows
            .iter()
            .flat_map(|row| match rows::at(row, &field.path) {
                Some(value) => numbers(value),
                None => vec![f64::NAN],
            });
        Ok(values.collect())
    }

    fn lists(&self, field: &Field) -> Result<Vec<Vec<f64>>, String> {
        let rows = self.rows(field.way.as_deref(), field.case.as_deref());
        let lists = rows.iter().filter_map(|row| rows::at(row, &field.path));
        Ok(lists.map(numbers).collect())
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(list) => list.iter().map(rows::number).collect(),
        other => vec![rows::number(other)],
    }
}
