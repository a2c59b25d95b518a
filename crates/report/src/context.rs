//! What a report says about how it came to be: enough to repeat it.

/// The set-up of a measurement. Every field is shown as it stands; an empty or absent one is left
/// out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// What was measured, in one line under the title.
    pub summary: String,
    /// The command that makes this measurement again.
    pub command: String,
    /// Version of Sooner.
    pub version: String,
    /// Commit it was built from.
    pub commit: Option<String>,
    /// When it was measured, UTC.
    pub measured_at: String,
    /// Processor, cores and kernel.
    pub machine: String,
    /// The limited link: its rate and what limits it.
    pub uplink: String,
    /// The trace, and what was left out of it.
    pub trace: String,
    /// Offered load over time, duration and arrival process.
    pub schedule: String,
}

impl Context {
    /// Name and value of every field that has a value, in the order in which they are shown.
    pub fn rows(&self) -> Vec<(&'static str, &str)> {
        let rows = [
            ("Command", self.command.as_str()),
            ("Uplink", &self.uplink),
            ("Trace", &self.trace),
            ("Schedule", &self.schedule),
            ("Machine", &self.machine),
            ("Measured", &self.measured_at),
            ("Sooner", &self.version),
            ("Commit", self.commit.as_deref().unwrap_or("")),
        ];
        rows.into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }
}
