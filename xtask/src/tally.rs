//! Counting tests.
//!
//! A test that cannot run here says so on standard error, in one line, and returns:
//! `skipped: NAME: REASON`. The harness counts it as passed; here it counts as skipped.

use std::collections::{BTreeMap, BTreeSet};

/// Lines that the end of the log repeats of a test that failed.
const REASON_LINES_MAX: usize = 8;

/// Passed, failed and skipped tests.
#[derive(Debug, Default)]
pub struct Tally {
    passed: u64,
    failed: u64,
    failures: BTreeSet<String>,
    /// What tests said when they failed, by name.
    reasons: BTreeMap<String, String>,
    skipped: BTreeMap<String, String>,
    /// Of the passed, those that failed beside others first.
    unsteady: BTreeSet<String>,
    /// Of the passed, those that said that they were skipped.
    announced: u64,
}

impl Tally {
    /// Counts one step of our own.
    pub fn step(&mut self, name: &str, success: bool) {
        if success {
            self.passed += 1;
        } else {
            self.fail(name);
        }
    }

    /// Counts one step of our own, and keeps what it said if it failed.
    pub fn step_saying(&mut self, name: &str, success: bool, said: &str) {
        self.step(name, success);
        if !success {
            self.reason(name, said);
        }
    }

    fn fail(&mut self, name: &str) {
        self.failed += 1;
        self.failures.insert(name.to_owned());
    }

    /// A test that was counted as passed had failed beside others.
    pub fn unsteady(&mut self, name: &str) {
        self.unsteady.insert(name.to_owned());
    }

    /// Counts one step or test that could not run, with the reason; a repetition counts once.
    pub fn skip(&mut self, name: &str, reason: &str) {
        self.skipped.insert(name.to_owned(), reason.to_owned());
    }

    /// Counts a test, which printed this; one that the harness ignored has neither passed nor
    /// failed.
    pub fn test(&mut self, name: &str, passed: Option<bool>, printed: &str) {
        match passed {
            Some(passed) => self.step(name, passed),
            None if printed.is_empty() => self.skip(name, "marked #[ignore] without a reason"),
            None => self.skip(name, printed),
        }
        self.lines(printed.lines());
    }

    /// Counts the tests that say in these lines that they cannot run, which have been counted as
    /// passed.
    pub fn lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        for (name, reason) in lines.into_iter().filter_map(skipped_line) {
            self.announced += u64::from(!self.skipped.contains_key(name));
            self.skip(name, reason);
        }
    }

    /// What a test or a step said that failed, for the end of a long log: of a panic what stands
    /// before its backtrace.
    pub fn reason(&mut self, name: &str, text: &str) {
        let all = || text.lines();
        let panic = all().position(|line| line.contains("panicked at"));
        let lines = all().skip(panic.unwrap_or(0));
        let lines = lines.take_while(|line| !line.starts_with("stack backtrace"));
        let lines: Vec<&str> = lines.take(REASON_LINES_MAX).collect();
        self.reasons.insert(name.to_owned(), lines.join("\n  "));
    }

    /// Counts what another one counted.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.announced += other.announced;
        self.failures.extend(other.failures);
        self.reasons.extend(other.reasons);
        self.skipped.extend(other.skipped);
        self.unsteady.extend(other.unsteady);
    }

    /// Whether nothing failed.
    pub fn is_good(&self) -> bool {
        self.failed == 0
    }

    /// The names of what failed.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        self.failures.iter().map(String::as_str)
    }

    /// What was skipped, with its reason, by name.
    pub fn skipped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.skipped
            .iter()
            .map(|(name, reason)| (name.as_str(), reason.as_str()))
    }

    /// Prints what failed, what passed only alone and what was skipped, and the summary alone on the
    /// last line.
    pub fn print(&self) {
        for name in self.failures() {
            println!("failed: {name}");
            if let Some(reason) = self.reasons.get(name) {
                println!("  {reason}");
            }
        }
        for name in &self.unsteady {
            println!("unsteady: {name}: failed beside others, passed alone");
            if let Some(reason) = self.reasons.get(name) {
                println!("  {reason}");
            }
        }
        for (name, reason) in self.skipped() {
            println!("skipped: {name}: {reason}");
        }
        println!("{}", self.summary());
    }

    /// `N passed, N failed, N skipped`.
    pub fn summary(&self) -> String {
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed.saturating_sub(self.announced),
            self.failed,
            self.skipped.len()
        )
    }
}

/// `skipped: NAME: REASON`.
fn skipped_line(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("skipped: ")?.split_once(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_repeats_why_a_test_failed() {
        let mut tally = Tally::default();
        let text = "noise\nthread 'a' panicked at b.rs:1:2:\nleft: 1\nstack backtrace:\n 0: x";
        tally.reason("a", text);
        assert_eq!(
            tally.reasons["a"],
            "thread 'a' panicked at b.rs:1:2:\n  left: 1"
        );
        tally.reason("a step", "one line\nand another");
        assert_eq!(tally.reasons["a step"], "one line\n  and another");
    }

    #[test]
    fn what_failed_is_named() {
        let mut tally = Tally::default();
        tally.test("a", Some(true), "");
        tally.test("b", Some(false), "why\n");
        assert_eq!(tally.summary(), "1 passed, 1 failed, 0 skipped");
        assert_eq!(tally.failures().collect::<Vec<_>>(), ["b"]);
        assert!(!tally.is_good());
    }

    #[test]
    fn what_passed_only_alone_is_passed_and_named() {
        let mut tally = Tally::default();
        tally.step("a", true);
        tally.unsteady("a");
        assert_eq!(tally.summary(), "1 passed, 0 failed, 0 skipped");
        assert!(tally.is_good() && tally.unsteady.contains("a"));
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one_and_counts_once() {
        let line = "skipped: bands_on_veth: needs CAP_NET_ADMIN: run as root";
        let mut tally = Tally::default();
        tally.test("bands_on_veth", Some(true), line);
        tally.lines([line, "noise"]);
        tally.test("slow", None, "takes an hour");
        tally.test("other", Some(true), "");
        assert_eq!(tally.summary(), "1 passed, 0 failed, 2 skipped");
        let reasons: Vec<_> = tally.skipped().collect();
        assert_eq!(
            reasons,
            [
                ("bands_on_veth", "needs CAP_NET_ADMIN: run as root"),
                ("slow", "takes an hour")
            ]
        );
    }
}
