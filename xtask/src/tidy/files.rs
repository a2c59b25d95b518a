//! The repository's text files, and the limit on how long a file may be.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// A file longer than this is mentioned.
const FILE_LINES_WARN: usize = 500;
/// A file longer than this is an error: it holds more than one idea.
const FILE_LINES_MAX: usize = 1000;

/// Kinds of files that are read.
const TEXT_KINDS: [&str; 14] = [
    "rs", "toml", "md", "sh", "c", "h", "json", "html", "js", "css", "yml", "mjs", "py", "go",
];
/// Folders that are made by tools or hold data.
const SKIPPED_FOLDERS: [&str; 6] = ["target", ".git", "corpus", "artifacts", "data", "runs"];

/// One text file.
pub struct File {
    /// Path from the root, with `/`.
    pub path: String,
    pub text: String,
}

impl File {
    pub fn new(path: String, text: String) -> Self {
        Self { path, text }
    }
}

/// Every text file below the root.
pub fn all(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if !SKIPPED_FOLDERS.contains(&&*name) {
                collect(root, &path, files)?;
            }
        } else if is_text(&path) {
            let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            let path = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            files.push(File::new(path, text));
        }
    }
    Ok(())
}

fn is_text(path: &Path) -> bool {
    let kind = path.extension().and_then(|kind| kind.to_str());
    kind.is_some_and(|kind| TEXT_KINDS.contains(&kind)) || path.ends_with(".ci/run")
}

/// What is too long in a Rust file: errors, then warnings.
pub fn check_lengths(file: &File) -> (Vec<String>, Vec<String>) {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    if !file.path.ends_with(".rs") {
        return (errors, warnings);
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        errors.push(format!(
            "{}: {lines} lines, at most {FILE_LINES_MAX}: divide it by idea",
            file.path
        ));
    } else if lines > FILE_LINES_WARN {
        warnings.push(format!(
            "{}: {lines} lines, better below {FILE_LINES_WARN}",
            file.path
        ));
    }
    (errors, warnings)
}

/// Every module says at its top what it holds and why.
pub fn check_header(file: &File) -> Option<String> {
    let is_module = file.path.ends_with(".rs") && file.path.contains("/src/");
    (is_module && !file.text.starts_with("//! ")).then(|| {
        format!(
            "{}: does not begin with `//! ` and what the module is for",
            file.path
        )
    })
}

/// Folders under experiments/ without an experiment.toml: one laboratory runs and reports them all.
pub fn check_experiments(files: &[File]) -> Vec<String> {
    let parts = files.iter().filter_map(|file| {
        let (name, inside) = file.path.strip_prefix("experiments/")?.split_once('/')?;
        Some((name, inside))
    });
    let (mut names, mut with_file) = (BTreeSet::new(), BTreeSet::new());
    for (name, inside) in parts {
        names.insert(name);
        if inside == "experiment.toml" {
            with_file.insert(name);
        }
    }
    let without = names.difference(&with_file);
    without
        .map(|name| {
            format!("experiments/{name}: no experiment.toml: docs/lab.md says what stands in one")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(lines: &str) -> File {
        File::new("crates/x/src/a.rs".to_owned(), lines.to_owned())
    }

    #[test]
    fn long_files_are_found() {
        let short = rust("//! A.\nfn a() {}\n");
        assert_eq!(check_lengths(&short), (vec![], vec![]));
        let (errors, warnings) = check_lengths(&rust(&"\n".repeat(FILE_LINES_WARN + 1)));
        assert_eq!((errors.len(), warnings.len()), (0, 1));
        let (errors, _) = check_lengths(&rust(&"\n".repeat(FILE_LINES_MAX + 1)));
        assert_eq!(errors.len(), 1);
    }

    #[test]
    fn modules_need_a_header() {
        assert!(check_header(&rust("use std::io;\n")).is_some());
        assert!(check_header(&rust("//! What this is for.\n")).is_none());
        assert!(check_header(&File::new("crates/x/tests/a.rs".into(), String::new())).is_none());
    }

    #[test]
    fn an_experiment_without_its_file_is_found() {
        let file = |path: &str| File::new(path.to_owned(), String::new());
        let files = [
            file("experiments/README.md"),
            file("experiments/one/experiment.toml"),
            file("experiments/one/README.md"),
            file("experiments/two/README.md"),
        ];
        let found = check_experiments(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("experiments/two: no experiment.toml"));
    }
}
