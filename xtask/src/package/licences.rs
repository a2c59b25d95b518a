//! Licences of what is linked: checked against those that may be, and their texts in one file, which
//! most of them ask for where a program is given away.

use super::linked::Linked;
use anyhow::{Context, Result, bail};
use spdx::{Expression, LicenseReq, ParseMode};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// What may be linked: licences that let a program of MIT OR Apache-2.0 be given away as a binary,
/// by anyone, with no more than their text beside it.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];
/// How the names of files with such texts begin, in capitals.
const TEXT_NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];
/// The text of a crate that has none in its archive, whose Cargo.toml says MIT.
const MIT: &str = include_str!("../../../LICENSE-MIT");

/// What is wrong with the licences of these crates, a line each.
pub fn mistakes(crates: &[Linked]) -> Vec<String> {
    let wrong = crates.iter().filter_map(|one| {
        let what = refusal(&one.licence)?;
        Some(format!("{} {}: {what}", one.name, one.version))
    });
    wrong.collect()
}

/// Why a crate of this licence may not be linked.
fn refusal(licence: &str) -> Option<String> {
    // Old ones are written `MIT/Apache-2.0`.
    let Ok(expression) = Expression::parse_mode(licence, ParseMode::LAX) else {
        return Some(format!("its licence `{licence}` is no SPDX expression"));
    };
    if expression.evaluate(is_allowed) {
        return None;
    }
    Some(format!(
        "its licence {licence} is not among {}",
        ALLOWED.join(", ")
    ))
}

/// An exception only adds to what a licence allows.
fn is_allowed(requirement: &LicenseReq) -> bool {
    let id = requirement.license.id();
    id.is_some_and(|id| ALLOWED.contains(&id.name))
}

/// The file with all texts: each once, with the crates it is of.
pub fn texts(crates: &[Linked]) -> Result<String> {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in crates {
        let mut texts = texts_of(one)?;
        if texts.is_empty() {
            texts = texts_of_sibling(one, crates)?;
        }
        for text in texts {
            let name = format!("{} {} ({})", one.name, one.version, one.licence);
            let names = by_text.entry(text).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut entries: Vec<(String, Vec<String>)> = by_text.into_iter().collect();
    entries.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    let mut all = String::from(
        "Sooner is linked with crates of other projects. These are the licences they come under,\n\
         each with the crates it is of.\n",
    );
    for (text, names) in entries {
        let line = "=".repeat(78);
        write!(all, "\n{line}\n{}\n\n{text}\n", names.join("\n"))?;
    }
    Ok(all)
}

/// Those of another crate of the same repository and licence: archives of a workspace's smaller
/// crates lack them now and then.
fn texts_of_sibling(one: &Linked, crates: &[Linked]) -> Result<Vec<String>> {
    let is_sibling = |other: &&Linked| {
        one.repository.is_some()
            && other.repository == one.repository
            && other.licence == one.licence
    };
    for other in crates.iter().filter(is_sibling) {
        let texts = texts_of(other)?;
        if !texts.is_empty() {
            return Ok(texts);
        }
    }
    bail!(
        "{} {}: its archive has no text of its licence",
        one.name,
        one.version
    );
}

/// What its archive has; empty where that is nothing.
fn texts_of(one: &Linked) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(&one.folder);
    for entry in entries.with_context(|| format!("cannot read {}", one.folder.display()))? {
        let entry = entry?;
        if is_text(&entry.path()) {
            files.push(entry.path());
        }
    }
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        texts.push(plain(&String::from_utf8_lossy(&fs::read(&file)?)));
    }
    if texts.is_empty() && one.licence.contains("MIT") {
        // Behind its title and our own name.
        let terms = MIT.splitn(3, "\n\n").nth(2);
        let terms = terms.context("LICENSE-MIT has no third part")?;
        let owners = match one.authors.join(", ") {
            none if none.is_empty() => format!("the authors of {}", one.name),
            authors => authors,
        };
        texts.push(plain(&format!("Copyright (c) {owners}\n\n{terms}")));
    }
    Ok(texts)
}

fn is_text(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_uppercase();
    path.is_file() && TEXT_NAMES.iter().any(|one| name.starts_with(one)) && !name.ends_with(".RS")
}

/// Without what differs between two copies of one text: line ends, blanks at ends of lines.
fn plain(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_linked_is_told_from_what_may_not() {
        for licence in [
            "MIT",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "GPL-3.0-only OR MIT",
        ] {
            assert_eq!(refusal(licence), None, "{licence}");
        }
        for licence in [
            "GPL-3.0-only",
            "MIT AND LGPL-2.1-only",
            "MPL-2.0",
            "",
            "see LICENSE",
        ] {
            assert!(refusal(licence).is_some(), "{licence}");
        }
    }

    #[test]
    fn a_crate_without_a_text_has_that_of_its_workspace() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        fs::write(folders[0].path().join("LICENSE"), "the terms\n").unwrap();
        let linked = |number: usize, name: &str, repository: Option<&str>, licence: &str| Linked {
            name: name.into(),
            version: "1.0.0".into(),
            licence: licence.into(),
            authors: Vec::new(),
            repository: repository.map(str::to_owned),
            folder: folders[number].path().into(),
            checksum: None,
            uses: Vec::new(),
        };
        let whole = linked(0, "whole", Some("https://a"), "BSD-3-Clause");
        let part = linked(1, "part", Some("https://a"), "BSD-3-Clause");
        let both = texts(&[whole, part]).unwrap();
        assert!(
            both.contains("whole 1.0.0 (BSD-3-Clause)\npart 1.0.0"),
            "{both}"
        );
        for (repository, licence) in [(None, "BSD-3-Clause"), (Some("https://a"), "ISC")] {
            let whole = linked(0, "whole", Some("https://a"), "BSD-3-Clause");
            let alone = linked(1, "alone", repository, licence);
            assert!(texts(&[whole, alone]).is_err(), "{repository:?} {licence}");
        }
    }

    #[test]
    fn copies_of_one_text_are_one() {
        assert_eq!(plain("\r\na  \r\nb\r\n\r\n"), "a\nb");
    }
}
