//! Words that do not belong in any text of the repository, each with what to write instead. What
//! does not belong in code is for clippy (`[workspace.lints]`, clippy.toml).

use super::files::File;
use std::path::Path;

struct Ban {
    word: &'static str,
    instead: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        word: concat!("FIX", "ME"),
        instead: "fix it now",
    },
    Ban {
        word: concat!("TO", "DO"),
        instead: "do it now, or leave it out",
    },
    Ban {
        word: concat!("/ho", "me/"),
        instead: "a path that exists on every machine",
    },
    Ban {
        word: concat!("/ro", "ot/"),
        instead: "a path that exists on every machine",
    },
];

/// What is wrong in this file: line, word and remedy.
pub fn check(file: &File, root: &Path) -> Vec<String> {
    let mut findings: Vec<String> = BANS
        .iter()
        .flat_map(|ban| places(&file.text, ban.word).map(move |line| (ban, line)))
        .map(|(ban, line)| format!("{}:{line}: `{}`: {}", file.path, ban.word, ban.instead))
        .collect();
    findings.extend(
        places(&file.text, &format!("{}/", root.display())).map(|line| {
            format!(
                "{}:{line}: the path of this checkout: a path that exists on every machine",
                file.path
            )
        }),
    );
    findings
}

/// The lines on which the word stands by itself, not as a part of a longer word or path.
fn places<'a>(text: &'a str, word: &str) -> impl Iterator<Item = usize> + use<'a> {
    let glued = |side: Option<char>| side.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (open_start, open_end) = (word.starts_with('['), word.ends_with(['/', '(']));
    let path = word.starts_with('/');
    let found: Vec<usize> = text
        .match_indices(word)
        .filter(|(at, _)| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            let starts = open_start
                || !(glued(before) || path && matches!(before, Some('.' | '/' | '}' | '-' | '~')));
            starts && (open_end || !glued(after))
        })
        .map(|(at, _)| 1 + text[..at].matches('\n').count())
        .collect();
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(
            &File::new(path.to_owned(), text.to_owned()),
            Path::new("/checkout/here"),
        )
    }

    #[test]
    fn paths_of_one_machine_are_found_in_any_text() {
        assert_eq!(findings("README.md", "see /checkout/here/x").len(), 1);
        assert_eq!(
            findings("README.md", concat!("see `/ro", "ot/.config`")).len(),
            1
        );
        assert!(
            findings(
                "README.md",
                concat!("www/ro", "ot/index.html and /checkout/hereafter")
            )
            .is_empty()
        );
    }
}
