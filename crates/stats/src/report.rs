//! What `--json` prints: one or more runs with the schema's version.

use crate::Run;
use serde::{Deserialize, Serialize};

/// Version of the JSON form; it rises when a field changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// The whole JSON document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of the form, [`SCHEMA`].
    pub schema: u32,
    /// Unit of every time in the report.
    pub time_unit: TimeUnit,
    /// The runs, in the order in which they were made.
    pub runs: Vec<Run>,
}

/// Unit of the times in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Milliseconds: every measured run.
    Ms,
}

impl Report {
    /// A report of measured runs.
    pub fn new(runs: Vec<Run>) -> Self {
        Self {
            schema: SCHEMA,
            time_unit: TimeUnit::Ms,
            runs,
        }
    }
}
