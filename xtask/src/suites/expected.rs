//! Differences that are expected, each with its reason: `experiments/suites/expected/SUITE.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use regex::Regex;
use serde::Deserialize;

/// The expected differences of a suite, and which of them came.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    #[serde(default, rename = "difference")]
    entries: Vec<Entry>,
    /// What varies from run to run and is replaced before texts are compared.
    #[serde(default, rename = "replace")]
    pub replacements: Vec<Replacement>,
    /// Cases that are not run.
    #[serde(default, rename = "leave_out")]
    pub left_out: Vec<LeftOut>,
    #[serde(skip)]
    cases: BTreeSet<String>,
}

/// In names and texts `*` stands for anything.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    cases: Vec<String>,
    ways: Vec<String>,
    /// The difference, in which `*` stands for anything.
    #[serde(default)]
    text: String,
    /// Or a regular expression for the whole of it.
    #[serde(default)]
    pattern: Option<String>,
    reason: String,
    /// Whether it may be absent, because it depends on time or on who runs beside it.
    #[serde(default)]
    sometimes: bool,
    #[serde(skip)]
    came: BTreeSet<(String, String)>,
}

/// A regular expression and what stands for all that it finds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// Which cases; all where none is named.
    #[serde(default)]
    pub cases: Vec<String>,
    pub pattern: String,
    pub with: String,
    /// Why it varies.
    #[serde(rename = "reason")]
    _reason: String,
}

/// Cases that are not run, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub cases: Vec<String>,
    #[serde(rename = "reason")]
    _reason: String,
}

impl Entry {
    fn is(&self, difference: &str) -> bool {
        let difference = difference.trim_end();
        match &self.pattern {
            Some(pattern) => expression(pattern).is_ok_and(|pattern| pattern.is_match(difference)),
            None => is_like(self.text.trim_end(), difference),
        }
    }

    /// How it is named where it does not come.
    fn first_line(&self) -> &str {
        let text = self.pattern.as_ref().unwrap_or(&self.text);
        text.lines().next().unwrap_or_default()
    }
}

fn expression(pattern: &str) -> Result<Regex, regex::Error> {
    Regex::new(&format!("^(?:{})$", pattern.trim_end()))
}

impl Expected {
    /// Reads the file; a suite without one expects no difference.
    pub fn read(path: &Path) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let expected: Self = toml::from_str(text)?;
        for entry in &expected.entries {
            ensure!(
                !entry.cases.is_empty() && !entry.ways.is_empty() && entry.reason.len() > 20,
                "a difference needs cases, ways and a reason: {}",
                entry.first_line()
            );
            ensure!(
                entry.pattern.is_none() != entry.text.is_empty(),
                "a difference has a text or a pattern"
            );
            if let Some(pattern) = &entry.pattern {
                expression(pattern)?;
            }
        }
        Ok(expected)
    }

    /// Notes that a case was run.
    pub fn ran(&mut self, case: &str) {
        self.cases.insert(case.to_owned());
    }

    /// Why this difference is expected; `None` where it is not.
    pub fn reason(&mut self, case: &str, way: &str, difference: &str) -> Option<&str> {
        let fits = |entry: &&mut Entry| {
            entry.ways.iter().any(|named| named == way)
                && entry.cases.iter().any(|named| is_like(named, case))
                && entry.is(difference)
        };
        let entry = self.entries.iter_mut().find(fits)?;
        let named = entry.cases.iter().filter(|named| is_like(named, case));
        entry
            .came
            .extend(named.map(|named| (named.clone(), way.to_owned())));
        Some(&entry.reason)
    }

    /// What was expected of cases that were run (`all`: of any case) and did not come.
    pub fn missing(&self, all: bool) -> Vec<String> {
        let mut missing = Vec::new();
        for entry in self.entries.iter().filter(|entry| !entry.sometimes) {
            for named in &entry.cases {
                if !all && !self.cases.iter().any(|case| is_like(named, case)) {
                    continue;
                }
                let came = |way: &&String| entry.came.contains(&(named.clone(), (*way).clone()));
                let first = entry.first_line();
                let absent = entry.ways.iter().filter(|way| !came(way));
                missing.extend(absent.map(|way| format!("{named} ({way}): {first}")));
            }
        }
        missing
    }

    /// Whether a case is not to be run.
    pub fn leaves_out(&self, case: &str) -> bool {
        let mut named = self.left_out.iter().flat_map(|left| &left.cases);
        named.any(|pattern| is_like(pattern, case))
    }
}

/// Whether a text is as the pattern says, in which `*` stands for anything.
pub fn is_like(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"
[[difference]]
cases = ["prepare"]
ways = ["transaction", "session"]
text = '''
-name *
+other
'''
reason = "a reason that says which promise is not made"
"#;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text) in [("a*c", "abc"), ("a*", "a"), ("*", ""), ("a*b*", "a1b2b3")] {
            assert!(is_like(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*c", "ab"), ("a", "ab"), ("a*b*c", "acb"), ("ab*b", "ab")] {
            assert!(!is_like(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn each_way_of_an_expected_difference_has_to_come() {
        let mut expected = Expected::parse(ONE).unwrap();
        assert_eq!(expected.missing(true).len(), 2);
        assert!(expected.missing(false).is_empty());
        expected.ran("prepare");
        let difference = "-name of it\n+other\n";
        assert!(expected.reason("prepare", "session", difference).is_some());
        assert!(
            expected
                .reason("prepare", "session", "-name\n+x\n")
                .is_none()
        );
        assert!(expected.reason("portals", "session", difference).is_none());
        assert_eq!(expected.missing(false), ["prepare (transaction): -name *"]);
    }

    #[test]
    fn a_pattern_is_of_the_whole_difference() {
        let text = "text = '''\n-name *\n+other\n'''";
        let one = ONE.replace(text, r"pattern = '([-+] \(\d+ rows?\)\n?)+'");
        let mut expected = Expected::parse(&one).unwrap();
        let mut is_expected = |text| expected.reason("prepare", "session", text).is_some();
        assert!(is_expected("- (1 row)\n+ (2 rows)\n"));
        assert!(!is_expected("- (1 row)\n+ (2 rows)\n+ more\n"));
    }

    #[test]
    fn an_expected_difference_needs_a_reason() {
        let text = ONE.replace("a reason that says which promise is not made", "differs");
        assert!(Expected::parse(&text).is_err());
    }
}
