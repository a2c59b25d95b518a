//! Results as they are kept: JSON lines, the first of which says commit, kernel and machine.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::machine;

/// The field of the first line that no result has.
const HEAD: &str = "commit";

/// What is kept of a part.
#[derive(Debug, Clone, Default)]
pub struct Rows(pub Vec<Value>);

impl Rows {
    /// Reads a file of JSON lines.
    pub fn read(path: &Path) -> Result<Rows> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let lines = text.lines().zip(1..);
        let rows = lines.map(|(line, number)| {
            serde_json::from_str::<Value>(line)
                .with_context(|| format!("{}:{number}: no JSON", path.display()))
        });
        let rows = rows.collect::<Result<Vec<_>>>()?;
        Ok(Rows(
            rows.into_iter()
                .filter(|row| row.get(HEAD).is_none())
                .collect(),
        ))
    }
}

/// Where results go, each line as it comes. They take the place of earlier ones when all are there.
#[derive(Debug)]
pub struct Record {
    file: File,
    unfinished: PathBuf,
    path: PathBuf,
    rows: Rows,
}

impl Record {
    /// Begins a part's results in `folder`, for this process alone; what an earlier run that did not
    /// come to its end left unfinished there is replaced.
    pub fn begin(folder: &Path, part: &str) -> Result<Record> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = file_of(folder, part);
        let unfinished = path.with_extension("jsonl.unfinished");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&unfinished)
            .with_context(|| format!("cannot write {}", unfinished.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Err(TryLockError::WouldBlock) => bail!(
                "{}: another sooner lab run writes there; wait for it, or give --out another folder",
                unfinished.display()
            ),
        }
        file.set_len(0)?;
        let head = json!({HEAD: machine::commit(), "machine": machine::description(), "date": machine::today()});
        writeln!(file, "{head}")?;
        Ok(Record {
            file,
            unfinished,
            path,
            rows: Rows::default(),
        })
    }

    /// All is there: it takes the place of an earlier run of the same day.
    pub fn finish(&self) -> Result<()> {
        fs::rename(&self.unfinished, &self.path)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Keeps one result.
    pub fn add(&mut self, row: Map<String, Value>) -> Result<()> {
        let row = Value::Object(row);
        writeln!(self.file, "{row}")?;
        self.file.sync_data()?;
        self.rows.0.push(row);
        Ok(())
    }

    /// All that was kept.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }
}

/// The file of a part's results.
pub fn file_of(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!("{part}.jsonl"))
}

/// The value at a path of names and places in lists, with points between.
pub fn at<'a>(row: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(row, |value, name| match value {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}

/// A value as a number: a verdict is 1 where it is VALID.
pub fn number(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::Bool(is_so) => f64::from(u8::from(*is_so)),
        Value::String(text) => f64::from(u8::from(text == "VALID")),
        _ => f64::NAN,
    }
}

/// Whether two values are the same, numbers by what they are and not by how they are written.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// A value as a word of a table.
pub fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A run as it is kept: without the parts that are only for plots.
pub fn slim(mut run: Value) -> Value {
    if let Some(fields) = run.as_object_mut() {
        for plot in ["by_size", "ccdf", "per_second"] {
            fields.remove(plot);
        }
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(folder: &Path) -> Vec<Value> {
        Rows::read(&file_of(folder, "part")).unwrap().0
    }

    #[test]
    fn what_was_kept_stays_until_a_later_run_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let row = |ms: u32| json!({ "ms": ms }).as_object().unwrap().clone();
        let mut first = Record::begin(folder.path(), "part").unwrap();
        first.add(row(1)).unwrap();
        let refused = Record::begin(folder.path(), "part").unwrap_err();
        assert!(
            refused.to_string().contains("another sooner lab run"),
            "{refused}"
        );
        first.finish().unwrap();
        drop(first);
        assert_eq!(kept(folder.path()), [json!({"ms": 1})]);
        let mut broken_off = Record::begin(folder.path(), "part").unwrap();
        broken_off.add(row(2)).unwrap();
        broken_off.add(row(3)).unwrap();
        drop(broken_off);
        assert_eq!(kept(folder.path()), [json!({"ms": 1})]);
        let mut last = Record::begin(folder.path(), "part").unwrap();
        last.add(row(4)).unwrap();
        last.finish().unwrap();
        assert_eq!(kept(folder.path()), [json!({"ms": 4})]);
    }
}
