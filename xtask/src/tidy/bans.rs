//! Words that do not belong in the repository, each with what to write instead.

use super::code;
use super::files::File;
use std::path::Path;

/// Where a ban holds.
enum Where {
    /// In the code of every crate, but not in its comments and literals.
    Code,
    /// In the code below one of these folders, tests left out.
    CodeOf(&'static [&'static str]),
    /// In the code of every crate but this one.
    CodeOutside(&'static str),
    /// Anywhere in any text file.
    Text,
}

struct Ban {
    word: &'static str,
    holds: Where,
    instead: &'static str,
}

/// Crates that take time as a value.
const CLOCKLESS: &[&str] = &[
    "crates/policy/src",
    "crates/workload/src",
    "crates/stats/src",
    "crates/report/src",
];

const BANS: &[Ban] = &[
    Ban {
        word: "todo!",
        holds: Where::Code,
        instead: "finish it, or leave it out",
    },
    Ban {
        word: "unimplemented!",
        holds: Where::Code,
        instead: "finish it, or leave it out",
    },
    Ban {
        word: "dbg!",
        holds: Where::Code,
        instead: "remove it, or report what a user needs to know",
    },
    Ban {
        word: "[allow(",
        holds: Where::CodeOf(&["crates/", "xtask/"]),
        instead: "fix the cause, or #[expect(LINT, reason = \"...\")]",
    },
    Ban {
        word: "unsafe",
        holds: Where::CodeOutside("crates/kernel/"),
        instead: "a safe function of sooner-kernel",
    },
    Ban {
        word: "f32",
        holds: Where::CodeOf(&["crates/policy/src"]),
        instead: "integers: ranks compare exactly",
    },
    Ban {
        word: "f64",
        holds: Where::CodeOf(&["crates/policy/src"]),
        instead: "integers: ranks compare exactly",
    },
    Ban {
        word: "Instant::now",
        holds: Where::CodeOf(CLOCKLESS),
        instead: "take the time as a value",
    },
    Ban {
        word: "SystemTime::now",
        holds: Where::CodeOf(CLOCKLESS),
        instead: "take the time as a value",
    },
    Ban {
        word: concat!("FIX", "ME"),
        holds: Where::Text,
        instead: "fix it now",
    },
    Ban {
        word: concat!("TO", "DO"),
        holds: Where::Text,
        instead: "do it now, or leave it out",
    },
    Ban {
        word: concat!("/ho", "me/"),
        holds: Where::Text,
        instead: "a path that exists on every machine",
    },
    Ban {
        word: concat!("/ro", "ot/"),
        holds: Where::Text,
        instead: "a path that exists on every machine",
    },
];

/// What is wrong in this file: line, word and remedy.
pub fn check(file: &File, root: &Path) -> Vec<String> {
    let mut findings: Vec<String> = BANS
        .iter()
        .filter_map(|ban| Some((ban, text_in_scope(ban, file)?)))
        .flat_map(|(ban, text)| places(text, ban.word).map(move |line| (ban, line)))
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

/// The part of the file a ban looks at; `None` when it does not hold there.
fn text_in_scope<'a>(ban: &Ban, file: &'a File) -> Option<&'a str> {
    let code = file.code.as_deref();
    match ban.holds {
        Where::Text => Some(&file.text),
        Where::Code => code,
        Where::CodeOutside(folder) => code.filter(|_| !file.path.starts_with(folder)),
        Where::CodeOf(folders) => {
            let is_below = folders.iter().any(|folder| file.path.starts_with(folder));
            let is_test = file.path.ends_with("tests.rs") || file.path.contains("/tests/");
            code.filter(|_| is_below && !is_test).map(without_tests)
        }
    }
}

fn without_tests(code: &str) -> &str {
    code.split("#[cfg(test)]").next().unwrap_or(code)
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
        .map(|(at, _)| code::line_of(text, at))
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
    fn code_bans_ignore_comments_strings_and_longer_words() {
        let text = "//! dbg!\nfn my_dbg() { my_dbg!(\"dbg!\"); }\n";
        assert!(findings("crates/web/src/a.rs", text).is_empty());
        let found = findings("crates/web/src/a.rs", "fn a() {\n    dbg!(1);\n}\n");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("crates/web/src/a.rs:2: `dbg!`"),
            "{found:?}"
        );
    }

    #[test]
    fn floats_are_banned_in_policy_but_not_in_its_unit_tests() {
        let text = "fn a() -> f64 { 0.0 }\n#[cfg(test)]\nmod tests { fn b() -> f64 { 0.0 } }\n";
        assert_eq!(findings("crates/policy/src/a.rs", text).len(), 1);
        assert!(findings("crates/stats/src/a.rs", text).is_empty());
    }

    #[test]
    fn unsafe_belongs_to_kernel() {
        assert!(findings("crates/kernel/src/a.rs", "unsafe fn a() {}").is_empty());
        assert_eq!(findings("crates/web/src/a.rs", "unsafe fn a() {}").len(), 1);
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
