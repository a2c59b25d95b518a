//! A requests table gives sorted rows or an error on one line.

use sooner_workload::trace::parse::parse_requests;

/// Tries one input.
pub fn run(table: &[u8]) {
    match parse_requests(table, "trace.csv") {
        Ok(rows) => assert!(rows.is_sorted_by(|a, b| a.time_s <= b.time_s)),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}
