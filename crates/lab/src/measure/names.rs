//! The ways and cases that tables and claims name: one that the file does not have is a mistake.

use super::expression::Field;
use super::{Experiment, Item, Measure, Part};

impl Experiment {
    /// The first name that the file does not have, in words.
    pub(super) fn unknown_name(&self) -> Option<String> {
        self.parts.iter().find_map(Part::unknown_name)
    }
}

impl Part {
    fn unknown_name(&self) -> Option<String> {
        let mut unknown = None;
        for table in &self.tables {
            let of = self.measure(table.of.as_deref());
            let mut look = |field: &Field| note(&mut unknown, &of, &field.way, &field.case);
            let rows = table.rows.iter().chain(&table.before);
            rows.for_each(|row| row.fields(&mut look));
            note_all(&mut unknown, &of, &table.ways, &table.cases);
        }
        for claims in &self.claims {
            let of = self.measure(claims.of.as_deref());
            let mut look = |field: &Field| note(&mut unknown, &of, &field.way, &field.case);
            for hold in &claims.hold {
                hold.text.fields(&mut look);
                hold.value.fields(&mut look);
            }
            note_all(&mut unknown, &of, &claims.ways, &claims.cases);
        }
        unknown
    }
}

fn note_all(
    unknown: &mut Option<String>,
    of: &Result<&Measure, String>,
    ways: &[String],
    cases: &[String],
) {
    for way in ways {
        note(unknown, of, &Some(way.clone()), &None);
    }
    for case in cases {
        note(unknown, of, &None, &Some(case.clone()));
    }
}

/// Keeps what is wrong with these names; where a measurement lists none, its rows say which there
/// are.
fn note(
    unknown: &mut Option<String>,
    of: &Result<&Measure, String>,
    way: &Option<String>,
    case: &Option<String>,
) {
    let measure = match of {
        Ok(measure) => measure,
        Err(problem) => {
            *unknown = Some(problem.clone());
            return;
        }
    };
    let is_known =
        |items: &[Item], id: &String| items.is_empty() || items.iter().any(|item| item.id == *id);
    for (items, id, what) in [(&measure.ways, way, "way"), (&measure.cases, case, "case")] {
        if let Some(id) = id.as_ref().filter(|id| !is_known(items, id)) {
            *unknown = Some(format!(
                "there is no {what} {id} in measurement {}",
                measure.name
            ));
        }
    }
}
