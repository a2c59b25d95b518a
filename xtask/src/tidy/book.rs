//! The book and every other Markdown page: each page is in the summary, each link between files
//! leads somewhere, each block of code says what it is.

use super::files::File;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const SUMMARY: &str = "docs/SUMMARY.md";
/// What a fence may be marked with; `sh` is run by the tests of `sooner-cli`, `console` is shown.
const KINDS: [&str; 9] = [
    "sh", "console", "text", "toml", "ini", "yaml", "json", "nginx", "sql",
];

/// Everything that is wrong with the pages; `exists` says whether a path from the root is there.
pub fn check(files: &[File], exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let pages: BTreeMap<&str, &str> = files
        .iter()
        .filter(|file| is_page(&file.path))
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut errors = Vec::new();
    let listed: BTreeSet<String> = pages
        .get(SUMMARY)
        .map(|summary| links(summary).into_iter())
        .into_iter()
        .flatten()
        .filter_map(|(_, target)| resolve(SUMMARY, &target).map(|(path, _)| path))
        .collect();
    for (path, text) in &pages {
        if path.starts_with("docs/") && *path != SUMMARY && !listed.contains(*path) {
            errors.push(format!("{path}: not in {SUMMARY}: give it a place there"));
        }
        for (line, target) in links(text) {
            let Some((file, anchor)) = resolve(path, &target) else {
                continue;
            };
            if !exists(&file) {
                errors.push(format!("{path}:{line}: {target}: there is no {file}"));
            } else if let (Some(page), Some(anchor)) = (pages.get(file.as_str()), anchor)
                && !anchors(page).contains(&anchor)
            {
                errors.push(format!(
                    "{path}:{line}: {target}: {file} has no heading #{anchor}"
                ));
            }
        }
        if path.starts_with("docs/") || *path == "README.md" {
            errors.extend(unmarked(path, text));
        }
    }
    errors
}

fn is_page(path: &str) -> bool {
    path.ends_with(".md") && !path.starts_with("xtask/") && !path.contains("/tests/")
}

/// Each link to a file of this repository, with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    #[expect(clippy::unwrap_used, reason = "the expression is constant")]
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let code = Regex::new(r"`[^`]*`").ok();
    prose(text)
        .flat_map(|(line, words)| {
            let words = code
                .as_ref()
                .map_or_else(|| words.into(), |code| code.replace_all(words, "`"));
            link.captures_iter(&words)
                .map(|found| (line, found[1].to_owned()))
                .collect::<Vec<_>>()
        })
        .filter(|(_, target)| !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// The lines outside of fenced blocks, from 1 on.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!fence && !inside).then_some((at + 1, line))
    })
}

/// The path from the root that a link means, and its anchor; none where it leaves the repository.
fn resolve(from: &str, target: &str) -> Option<(String, Option<String>)> {
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (target, None),
    };
    if path.is_empty() {
        return Some((from.to_owned(), anchor));
    }
    let folder = Path::new(from).parent()?.to_str()?;
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some((parts.join("/"), anchor))
}

/// The anchors of a page: those of its headings, as GitHub and mdBook make them, and its own.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for (_, line) in prose(text) {
        if let Some((_, rest)) = line.split_once("<a id=\"")
            && let Some((id, _)) = rest.split_once('"')
        {
            found.insert(id.to_owned());
        }
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let plain = slug(title.trim());
        let mut name = plain.clone();
        let mut again = 1;
        while !found.insert(name) {
            name = format!("{plain}-{again}");
            again += 1;
        }
    }
    found
}

fn slug(title: &str) -> String {
    title
        .to_lowercase()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        })
        .collect()
}

/// Fenced blocks that do not say what they are.
fn unmarked(path: &str, text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        let Some(kind) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        inside = !inside;
        if inside && !KINDS.contains(&kind) {
            errors.push(format!(
                "{path}:{}: a block marked `{kind}`; right is one of {}: `sh` is run by a test, \
                 `console` is only shown",
                at + 1,
                KINDS.join(", ")
            ));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(pages: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = pages
            .iter()
            .map(|(path, text)| File::new((*path).to_owned(), (*text).to_owned()))
            .collect();
        let exists = |path: &str| pages.iter().any(|(page, _)| *page == path);
        check(&files, &exists)
    }

    #[test]
    fn a_page_that_the_summary_does_not_name_is_found() {
        let found = wrong(&[
            ("docs/SUMMARY.md", "- [One](one.md)"),
            ("docs/one.md", "# One"),
            ("docs/a/two.md", "# Two"),
        ]);
        assert_eq!(
            found,
            ["docs/a/two.md: not in docs/SUMMARY.md: give it a place there"]
        );
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let found = wrong(&[
            ("docs/SUMMARY.md", "- [One](one.md)\n- [Two](a/two.md)"),
            (
                "docs/one.md",
                "# One\n## What `x --y` gives\n## Again\n## Again\n<a id=\"own\"></a>\n\
                 [a](#what-x---y-gives) [b](#again-1) [c](#own) [d](#again-2)\n[e](https://e.org)\n\
                 ```text\n[f](nowhere.md)\n```\n`[g](nowhere.md)`\n",
            ),
            (
                "docs/a/two.md",
                "# Two\n[x](../one.md#again) [y](../none.md) [z](../../README.md)",
            ),
        ]);
        assert_eq!(
            found,
            [
                "docs/a/two.md:2: ../none.md: there is no docs/none.md",
                "docs/a/two.md:2: ../../README.md: there is no README.md",
                "docs/one.md:6: #again-2: docs/one.md has no heading #again-2",
            ]
        );
    }

    #[test]
    fn a_block_says_whether_it_is_run() {
        let found = wrong(&[("README.md", "```\nsooner\n```\n```sh\nsooner\n```\n")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("README.md:1: a block marked ``"));
    }
}
