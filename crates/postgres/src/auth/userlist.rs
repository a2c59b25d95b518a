//! PgBouncer's userlist.txt: a line a user, `"name" "secret"`, each in double quotes that are
//! doubled inside; lines that begin with `;` and empty ones say nothing, and what follows the
//! secret is not looked at.

use super::Secret;
use crate::wire::truncate_name;
use std::collections::BTreeMap;

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; a line is \"name\" \"secret\"")]
pub struct BadLine {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Reads the users with their secrets.
pub fn read(text: &str) -> Result<BTreeMap<String, Secret>, BadLine> {
    let mut users = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line_text = line.trim();
        if line_text.is_empty() || line_text.starts_with(';') {
            continue;
        }
        let bad = |what: String| BadLine {
            line: index + 1,
            what,
        };
        let (name, rest) = quoted(line_text).ok_or_else(|| bad("no name in quotes".into()))?;
        let (secret, _) =
            quoted(rest.trim_start()).ok_or_else(|| bad("no secret in quotes".into()))?;
        if secret.is_empty() {
            // No client can prove an empty password, as in PgBouncer.
            continue;
        }
        let secret = Secret::read(&secret).map_err(|error| bad(error.to_string()))?;
        if users
            .insert(truncate_name(&name).to_owned(), secret)
            .is_some()
        {
            return Err(bad(format!("{name:?} is listed twice")));
        }
    }
    Ok(users)
}

/// A text in double quotes at the beginning, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut rest = text.strip_prefix('"')?;
    loop {
        let (part, behind) = rest.split_once('"')?;
        inside.push_str(part);
        match behind.strip_prefix('"') {
            Some(more) => {
                inside.push('"');
                rest = more;
            }
            None => return Some((inside, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn users_have_secrets() {
        let text =
            "; from pg_shadow\n\n\"ann\" \"pencil\"\n  \"b\"\"ob\"\t\"x\" ; one\n\"nobody\" \"\"\n";
        let users = read(text).unwrap();
        assert_eq!(users.len(), 2);
        assert_eq!(users["ann"], Secret::Plain("pencil".into()));
        assert_eq!(users["b\"ob"], Secret::Plain("x".into()));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, said) in [
            ("\"ann\" \"x\"\nann x", "line 2: no name in quotes"),
            ("\"ann\"", "line 1: no secret in quotes"),
            ("\"ann\" \"x", "line 1: no secret in quotes"),
            (
                "\"ann\" \"x\"\n\"ann\" \"y\"",
                "line 2: \"ann\" is listed twice",
            ),
            ("\"ann\" \"SCRAM-SHA-256$x\"", "line 1: a SCRAM verifier is"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_in_quotes_is_read(name in "[^\n\r]{1,20}", secret in "[a-z\"]{1,20}") {
            let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            let users = read(&format!("{} {}", quote(&name), quote(&secret))).unwrap();
            prop_assert_eq!(&users[&name], &Secret::Plain(secret.into()));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ = read(&text);
        }
    }
}
