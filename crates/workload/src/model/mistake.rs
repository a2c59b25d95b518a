//! A mistake in a model file: where, in which key, and what would be right.

use std::fmt::Display;
use std::ops::Range;

/// One mistake; prints as `line 3: users.stay: ...` on one line, before which goes the file's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{key}: {message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Mistake {
    /// Line of the file, counted from 1; none where something is missing altogether.
    pub line: Option<usize>,
    /// The key, like `users.stay`.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Mistake {
    /// At `span` of `text`.
    pub(super) fn at(
        text: &str,
        span: Option<Range<usize>>,
        key: &str,
        message: impl Display,
    ) -> Self {
        let line_of = |span: Range<usize>| {
            let before = text.as_bytes().iter().take(span.start);
            1 + before.filter(|byte| **byte == b'\n').count()
        };
        Self {
            line: span.map(line_of),
            key: one_line(key),
            message: one_line(&message.to_string()),
        }
    }

    /// One of TOML's or serde's; the key is the one that its line begins with.
    pub(super) fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        let placed = Self::at(text, error.span(), "", error.message());
        let line = placed
            .line
            .and_then(|line| text.lines().nth(line - 1))
            .unwrap_or_default();
        let key = line.split(['=', '#']).next().unwrap_or_default().trim();
        let key = key.trim_matches(['[', ']', '"', ' ']);
        let key: String = match key {
            "" => "model".into(),
            key => key.chars().take(60).collect(),
        };
        let missing = error.message().strip_prefix("missing field `");
        if let Some(name) = missing.map(|name| name.trim_end_matches('`')) {
            // Of the whole file, or of the table that this line begins.
            let is_whole = error.span().is_none_or(|span| span.start == 0);
            return Self {
                line: placed.line.filter(|_| !is_whole),
                key: if is_whole {
                    name.into()
                } else {
                    format!("{key}.{name}")
                },
                message: "is missing".into(),
            };
        }
        Self {
            key: one_line(&key),
            ..placed
        }
    }
}

/// Whatever was written into a value, a message stays one line and does nothing to a terminal.
fn one_line(text: &str) -> String {
    text.trim()
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}
