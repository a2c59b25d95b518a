//! A case of a suite, and what came out of it.

use serde::Serialize;

/// One file or test of a suite, tried in several ways.
#[derive(Debug, Serialize)]
pub struct Case {
    pub name: String,
    /// Its outcome without Sooner: a word such as `passed`, or how long an output is.
    pub reference: String,
    pub tried: Vec<Tried>,
}

/// What one way through Sooner gave.
#[derive(Debug, Serialize)]
pub struct Tried {
    /// `transaction`, `session`, ...: the same word in results and in expected differences.
    pub way: String,
    pub outcome: String,
    /// Each place where it differs from the reference; none where it is equal.
    pub differences: Vec<String>,
    /// Whether it is equal only since it was run again.
    pub repeated: bool,
}

impl Tried {
    /// An outcome in one word, with what was said about it; equal if the reference is the same
    /// word.
    pub fn word(way: &str, reference: &str, outcome: &str, said: &str) -> Self {
        let differences = if reference == outcome {
            Vec::new()
        } else {
            vec![format!("{reference} -> {outcome}: {said}")]
        };
        Self {
            way: way.to_owned(),
            outcome: outcome.to_owned(),
            differences,
            repeated: false,
        }
    }

    /// Two texts compared by line, without what stands in both.
    pub fn text(way: &str, reference: &str, text: &str) -> Self {
        Self {
            way: way.to_owned(),
            outcome: format!("{} lines", text.lines().count()),
            differences: hunks(reference, text),
            repeated: false,
        }
    }
}

/// Lines that differ, neighbours together: `-` of the first text, `+` of the second.
fn hunks(first: &str, second: &str) -> Vec<String> {
    let (first, second): (Vec<&str>, Vec<&str>) =
        (first.lines().collect(), second.lines().collect());
    let mut hunks = Vec::new();
    let mut hunk = String::new();
    for change in similar::capture_diff_slices(similar::Algorithm::Patience, &first, &second) {
        let (tag, old, new) = change.as_tag_tuple();
        if tag == similar::DiffTag::Equal {
            continue;
        }
        for line in &first[old] {
            hunk += &format!("-{line}\n");
        }
        for line in &second[new] {
            hunk += &format!("+{line}\n");
        }
        hunks.push(std::mem::take(&mut hunk));
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_lines_are_one_difference() {
        let tried = Tried::text("session", "a\nb\nc\nd\ne\n", "a\nB\nC\nd\ne\nf\n");
        assert_eq!(tried.differences, ["-b\n-c\n+B\n+C\n", "+f\n"]);
        assert!(Tried::text("session", "a\n", "a\n").differences.is_empty());
    }
}
