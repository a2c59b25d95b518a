//! Names in double quotes, which are doubled inside; the names in a userlist.txt.

use crate::ini::{At, ImportError};
use std::sync::Arc;

/// A text in double quotes at the beginning, and what follows it.
pub fn in_double_quotes(text: &str) -> Option<(String, &str)> {
    in_quotes(text, '"')
}

/// The same with any quote.
pub fn in_quotes(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut rest = text.strip_prefix(quote)?;
    loop {
        let (part, behind) = rest.split_once(quote)?;
        inside.push_str(part);
        match behind.strip_prefix(quote) {
            Some(more) => {
                inside.push(quote);
                rest = more;
            }
            None => return Some((inside, behind)),
        }
    }
}

/// Who stands in a userlist.txt, whatever the secrets: with `trust` an empty one is good enough.
pub fn of_userlist(file: &str, text: &str) -> Result<Vec<String>, ImportError> {
    let file: Arc<str> = file.into();
    let mut names = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        let Some((name, _)) = in_double_quotes(line) else {
            let at = At {
                file,
                line: index + 1,
            };
            return Err(at.wrong("no name in quotes; a line is \"name\" \"secret\""));
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Names between commas.
pub fn list(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}
