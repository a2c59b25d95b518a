//! What the server's access log says of a client.

use super::way::Way;
use serde_json::Value;
use std::collections::BTreeSet;

/// The log's lines.
pub struct Visits(Vec<Value>);

impl Visits {
    /// Reads the log's lines, those that `user_agent` caused left out.
    pub fn read(log: &str, but_of_user_agent: &str) -> Self {
        let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
        Self(
            lines
                .filter(|line: &Value| line["user_agent"] != but_of_user_agent)
                .collect(),
        )
    }

    /// All came in this way, and were answered to the end.
    pub fn check(&self, way: Way) {
        for line in &self.0 {
            assert_eq!(line["protocol"], way.protocol(), "{line}");
            assert_eq!(line["tls"].is_string(), way.is_tls(), "{line}");
            assert_eq!(line["completed"], true, "{line}");
        }
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many connections they came over.
    pub fn connections(&self) -> usize {
        let remotes = self.0.iter().map(|line| line["remote"].to_string());
        remotes.collect::<BTreeSet<_>>().len()
    }

    /// Status and body's bytes of the last.
    pub fn last(&self) -> (u64, u64) {
        let number = |name: &str| self.0.last().and_then(|line| line[name].as_u64()).unwrap();
        (number("status"), number("size_bytes"))
    }
}
