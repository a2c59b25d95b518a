//! Counting tests from what `cargo test -- --nocapture` prints.
//!
//! A test that cannot run here says so on standard error, in one line, and returns:
//! `skipped: NAME: REASON`. The harness counts it as passed; here it counts as skipped.

use std::collections::{BTreeMap, BTreeSet};

/// Passed, failed and skipped tests.
#[derive(Debug, Default)]
pub struct Tally {
    passed: u64,
    failed: u64,
    failures: BTreeSet<String>,
    skipped: BTreeMap<String, String>,
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

    fn fail(&mut self, name: &str) {
        self.failed += 1;
        self.failures.insert(name.to_owned());
    }

    /// Counts one step or test that could not run, with the reason; a repetition counts once.
    pub fn skip(&mut self, name: &str, reason: &str) {
        self.skipped.insert(name.to_owned(), reason.to_owned());
    }

    /// Counts what the output of one `cargo test` says.
    pub fn cargo_test(&mut self, success: bool, lines: &[String]) {
        let (failed_before, mut announced) = (self.failed, 0);
        for line in lines {
            if let Some((passed, failed)) = result_line(line) {
                self.passed += passed;
                self.failed += failed;
            } else if let Some(name) = failed_line(line) {
                self.failures.insert(name.to_owned());
            } else if let Some((name, reason)) = ignored_line(line) {
                self.skip(name, reason);
            } else if let Some((name, reason)) = skipped_line(line) {
                announced += u64::from(!self.skipped.contains_key(name));
                self.skip(name, reason);
            }
        }
        self.passed = self.passed.saturating_sub(announced);
        // A build error or a crash of the harness leaves no count behind, and is a failure.
        if !success && self.failed == failed_before {
            self.fail("cargo test");
        }
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

    /// Prints what failed and what was skipped, and the summary alone on the last line.
    pub fn print(&self) {
        for name in self.failures() {
            println!("failed: {name}");
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
            self.passed,
            self.failed,
            self.skipped.len()
        )
    }
}

/// `test result: ok. 3 passed; 1 failed; ...`; a test may have printed before it on the same line.
fn result_line(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.split_once("test result: ")?;
    let count_of = |what: &str| {
        let words: Vec<&str> = counts.split([' ', ';']).collect();
        let at = words.iter().position(|word| *word == what)?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    Some((count_of("passed")?, count_of("failed")?))
}

/// `test NAME ... FAILED`.
fn failed_line(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// `test NAME ... ignored` or `test NAME ... ignored, REASON`.
fn ignored_line(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    let reason = rest
        .strip_prefix(", ")
        .unwrap_or("marked #[ignore] without a reason");
    Some((name, reason))
}

/// `skipped: NAME: REASON`.
fn skipped_line(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("skipped: ")?.split_once(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally_of(success: bool, output: &str) -> Tally {
        let lines: Vec<String> = output.lines().map(str::to_owned).collect();
        let mut tally = Tally::default();
        tally.cargo_test(success, &lines);
        tally
    }

    #[test]
    fn sums_over_test_binaries() {
        let output = "\
test a ... ok
test b ... FAILED
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
noise on the same line test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured";
        let tally = tally_of(false, output);
        assert_eq!(tally.summary(), "5 passed, 1 failed, 0 skipped");
        assert_eq!(tally.failures().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one_and_counts_once() {
        let output = "\
skipped: bands_on_veth: needs CAP_NET_ADMIN: run as root
skipped: bands_on_veth: needs CAP_NET_ADMIN: run as root
test slow ... ignored, takes an hour
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured";
        let tally = tally_of(true, output);
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

    #[test]
    fn a_build_error_counts_as_a_failure() {
        let tally = tally_of(false, "error: could not compile `sooner-policy`");
        assert_eq!(tally.summary(), "0 passed, 1 failed, 0 skipped");
        assert!(!tally.is_good());
    }
}
