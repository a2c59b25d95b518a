//! sooner.toml(5) and gate.toml(5), made of the tables of keys in docs/: one place a key. The test
//! command compares those tables with what the program reads.

use super::Release;
use crate::process;
use crate::tidy::files;
use anyhow::{Context, Result};
use std::fmt::Write as _;

/// A page, and how its table is found wherever it stands in docs/.
struct Page {
    name: &'static str,
    /// Its line in lists of pages.
    about: &'static str,
    /// A key that only its table has.
    marker: &'static str,
    description: &'static str,
    /// How keys are written here.
    notation: &'static str,
    /// Tables that may come several times.
    lists: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    see_also: &'static [(&'static str, u8)],
}

const PAGES: [Page; 2] = [
    Page {
        name: "sooner.toml",
        about: "configuration of sooner serve",
        marker: "site.redirect.status",
        description: "The file is TOML. Sooner refuses a key that does not exist, and names the \
            nearest one that does. It reports each mistake in one line: file, line, key, what is \
            wrong, what would be right. \"sooner serve --config FILE --check\" checks the file and \
            starts nothing. SIGHUP reads the file again; a file with a mistake changes nothing. \
            A relative path is relative to the directory of the file.",
        notation: "The key root of a table [[site]] is written site.root here, as messages name it.",
        lists: &["tls", "site", "site.redirect", "upstream", "route", "class"],
        files: &[
            (
                "/etc/sooner/sooner.toml",
                "The configuration of sooner.service",
            ),
            (
                "/usr/share/doc/sooner/examples/sooner.toml",
                "A commented example with every table",
            ),
        ],
        see_also: &[("sooner", 1), ("sooner-serve", 1), ("gate.toml", 5)],
    },
    Page {
        name: "gate.toml",
        about: "configuration of sooner gate",
        marker: "limits.transactions_max",
        description: "The file is TOML. The gate refuses a key that does not exist, and names the \
            nearest one that does. It reports each mistake in one line: file, line, key, what is \
            wrong, what would be right. \"sooner gate --config FILE --check\" checks the file and \
            starts nothing; \"sooner gate import\" converts a pgbouncer.ini to such a file. \
            SIGHUP reads the file again; a file with a mistake changes nothing. A relative path is \
            relative to the directory of the file.",
        notation: "The key server of a table [[database]] is written database.server here, as \
            messages name it.",
        lists: &["tls", "database", "user", "rule", "class"],
        files: &[
            (
                "/etc/sooner/gate.toml",
                "The configuration of sooner-gate.service",
            ),
            (
                "/etc/sooner/users.txt",
                "Users and their secrets, where the key users names it",
            ),
        ],
        see_also: &[("sooner", 1), ("sooner-gate", 1), ("sooner.toml", 5)],
    },
];

/// A row of a table: keys, default, meaning.
struct Row {
    keys: Vec<String>,
    default: String,
    meaning: String,
}

/// The pages by their file's name.
pub fn all(release: &Release) -> Result<Vec<(String, String)>> {
    let root = process::root();
    let documents: Vec<files::File> = files::all(&root)?
        .into_iter()
        .filter(|file| file.path.starts_with("docs/") && file.path.ends_with(".md"))
        .collect();
    let page = |page: &Page| {
        let found = documents.iter().find_map(|file| {
            let section = section(&file.text, page.marker)?;
            Some((section, example(section).or_else(|| example(&file.text))))
        });
        let (section, example) = found.with_context(|| {
            format!(
                "no table of keys in docs/ has `{}`, for {}",
                page.marker, page.name
            )
        })?;
        Ok((
            format!("{}.5", page.name),
            render(page, section, example, release),
        ))
    };
    PAGES.iter().map(page).collect()
}

/// The part of a document, between two headings, of which a table of keys has this one.
fn section<'a>(text: &'a str, marker: &str) -> Option<&'a str> {
    let row = format!("| `{marker}`");
    let at = text.match_indices(&row).map(|(at, _)| at);
    let mut sections = at.map(|at| {
        // One mark may begin a comment in an example.
        let from = text[..at].rfind("\n##").unwrap_or(0);
        let to = text[at..].find("\n##").map_or(text.len(), |to| at + to);
        &text[from..to]
    });
    sections.find(|section| section.contains("| key | default |"))
}

/// The rows of the section's tables of keys.
fn rows(section: &str) -> Vec<Row> {
    let mut is_keys = false;
    let mut rows = Vec::new();
    for line in section.lines() {
        if line.starts_with("| key | default |") {
            is_keys = true;
        } else if !line.starts_with('|') {
            is_keys = false;
        } else if is_keys && !line.starts_with("|--") && !line.starts_with("| --") {
            rows.extend(row(line));
        }
    }
    rows
}

fn row(line: &str) -> Option<Row> {
    let line = line.trim().strip_prefix("| ")?.strip_suffix('|')?;
    let mut cells = line.splitn(3, " | ").map(str::trim);
    let (keys, default, meaning) = (cells.next()?, cells.next()?, cells.next()?);
    let keys = keys.split('`').skip(1).step_by(2).map(str::to_owned);
    Some(Row {
        keys: keys.collect(),
        default: default.to_owned(),
        meaning: meaning.to_owned(),
    })
}

/// The first block of TOML.
fn example(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("```toml\n")?;
    Some(rest.split_once("\n```")?.0)
}

fn render(page: &Page, section: &str, example: Option<&str>, release: &Release) -> String {
    let mut text = format!(
        ".TH {} 5 \"{}\" \"Sooner {}\" \"Sooner\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n.SH DESCRIPTION\n{}\n.SH KEYS\n",
        page.name.to_uppercase(),
        release.date(),
        release.version,
        page.name,
        page.about,
        filled(page.description)
    );
    let _ = writeln!(text, "{}", filled(page.notation));
    let mut table = String::new();
    for row in rows(section) {
        let of = row.keys.first().and_then(|key| key.rsplit_once('.'));
        let of = of.map_or("", |(table, _)| table);
        if of != table {
            of.clone_into(&mut table);
            let _ = writeln!(text, ".SS \"{}\"", heading(page, of));
        }
        let keys: Vec<String> = row
            .keys
            .iter()
            .map(|key| format!("\\fB{}\\fR", literal(key)))
            .collect();
        let _ = writeln!(text, ".TP\n{}", keys.join(", "));
        if !row.meaning.is_empty() {
            let _ = writeln!(text, "{}", filled(&sentence(&row.meaning)));
        }
        let default = match row.default.as_str() {
            "required" => "Required.".to_owned(),
            default => format!("Default: {default}."),
        };
        let _ = writeln!(text, "{}", filled(&default));
    }
    if let Some(example) = example {
        let _ = write!(text, ".SH EXAMPLES\n.nf\n{}\n.fi\n", literal(example));
    }
    text.push_str(".SH FILES\n");
    for (file, what) in page.files {
        let _ = write!(text, ".TP\n.I {}\n{}\n", literal(file), filled(what));
    }
    let pages = page.see_also.iter();
    let pages: Vec<String> = pages
        .map(|(name, section)| format!(".BR {} ({section})", literal(name)))
        .collect();
    let _ = write!(text, ".SH SEE ALSO\n{}\n", pages.join(" ,\n"));
    text
}

fn heading(page: &Page, table: &str) -> String {
    if table.is_empty() {
        "Outside of tables".to_owned()
    } else if page.lists.contains(&table) {
        format!("[[{table}]]")
    } else {
        format!("[{table}]")
    }
}

/// With a capital at its beginning and a full stop at its end.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    let text = format!("{}{}", first.unwrap_or_default(), letters.as_str());
    if text.ends_with('.') {
        text
    } else {
        format!("{text}.")
    }
}

/// Prose with Markdown's marks as lines of roff of at most 80 bytes.
fn filled(text: &str) -> String {
    let marked = marks(text);
    let mut lines = vec![String::new()];
    for word in marked.split_whitespace() {
        let length = lines.last().map_or(0, String::len);
        if length > 0 && length + 1 + word.len() > 79 && !word.starts_with(['.', '\'']) {
            lines.push(word.to_owned());
        } else if let Some(last) = lines.last_mut() {
            if length > 0 {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    let mut text = lines.join("\n");
    if text.starts_with(['.', '\'']) {
        text.insert_str(0, "\\&");
    }
    text
}

/// Links become their words, and `code` bold.
fn marks(text: &str) -> String {
    let mut out = String::new();
    let mut is_code = false;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        rest = after;
        match letter {
            '`' => {
                is_code = !is_code;
                out.push_str(if is_code { "\\fB" } else { "\\fR" });
            }
            '[' if !is_code => match link(after) {
                Some((words, behind)) => {
                    out.push_str(&marks(words));
                    rest = behind;
                }
                None => out.push('['),
            },
            // Emphasis.
            '*' if !is_code && after.starts_with('*') => rest = &after[1..],
            '\\' if after.starts_with('|') => {}
            other => out.push_str(&literal(&other.to_string())),
        }
    }
    out
}

/// `words](place)...`: the words, and what is behind.
fn link(text: &str) -> Option<(&str, &str)> {
    let (words, rest) = text.split_once("](")?;
    let (_, behind) = rest.split_once(')')?;
    (!words.contains('[')).then_some((words, behind))
}

/// As roff prints it.
fn literal(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga")
        .replace('^', "\\(ha")
        .replace('~', "\\(ti")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_documents_is_on_its_page() {
        let pages = all(&Release::for_tests()).unwrap();
        for ((name, text), keys) in pages.iter().zip([70, 60]) {
            let shown = text.lines().filter(|line| line.starts_with("\\fB")).count();
            assert!(shown >= keys, "{name}: {shown} keys");
            assert!(text.contains("Default: "), "{name}");
            assert!(!text.contains("]("), "{name} has a link left");
            assert!(!text.contains('`'), "{name} has a mark left");
        }
    }

    #[test]
    fn marks_are_roff() {
        assert_eq!(
            marks("see [files](a.md#b), `x-y`"),
            "see files, \\fBx\\-y\\fR"
        );
        assert_eq!(marks("`[[tls]]` and [1]"), "\\fB[[tls]]\\fR and [1]");
    }

    #[test]
    fn a_meaning_ends_as_a_sentence() {
        assert_eq!(sentence("see [a](b.md)"), "See [a](b.md).");
        assert_eq!(sentence("it is so."), "It is so.");
    }

    #[test]
    fn a_row_is_keys_default_and_meaning() {
        let row = row("| `a.b`, `a.c` | `\"x\"` | this | that |").unwrap();
        assert_eq!(row.keys, ["a.b", "a.c"]);
        assert_eq!(
            (row.default.as_str(), row.meaning.as_str()),
            ("`\"x\"`", "this | that")
        );
    }
}
