//! An objects table gives objects numbered by line, or an error on one line.

use sooner_workload::trace::parse::parse_objects;

/// Tries one input.
pub fn run(table: &[u8]) {
    match parse_objects(table, "trace.objects.csv") {
        Ok(objects) => assert!(
            (0..)
                .zip(&objects)
                .all(|(index, object)| object.id == index)
        ),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}
