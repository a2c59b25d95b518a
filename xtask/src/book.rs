//! `cargo xtask book`: the documents as a book, by mdBook, in `target/book`. Where mdBook is not
//! installed, it is built for this alone.
//!
//! Pages may link to files outside of `docs`, which a reader of the repository can follow and a
//! reader of the book cannot. So the book is made of a copy in which such links are plain paths.

use crate::process;
use crate::tally::Tally;
use anyhow::{Context, Result};
use regex::Regex;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STEP: &str = "the book";
/// What is built where there is no other.
const VERSION: &str = "0.5.4";

/// Makes the book; whether that worked.
pub fn run() -> Result<bool> {
    let mut tally = Tally::default();
    check(&mut tally)?;
    tally.print();
    Ok(tally.is_good())
}

/// The same as a step of the tests; skipped where mdBook neither is nor can be had.
pub fn check(tally: &mut Tally) -> Result<()> {
    let program = match program()? {
        Ok(program) => program,
        Err(reason) => {
            tally.skip(STEP, &reason);
            return Ok(());
        }
    };
    let root = process::root();
    let source = root.join("target/book-source");
    if source.exists() {
        fs::remove_dir_all(&source).context("target/book-source")?;
    }
    fs::create_dir_all(&source).context("target/book-source")?;
    fs::copy(root.join("book.toml"), source.join("book.toml")).context("book.toml")?;
    copy(&root.join("docs"), &source.join("docs"), 0)?;
    let mut build = Command::new(program);
    build.arg("build").arg(&source);
    build.arg("--dest-dir").arg(root.join("target/book"));
    let said = process::run(&mut build)?;
    tally.step_saying(STEP, said.success, &said.lines.join("\n"));
    Ok(())
}

/// mdBook, installed or built; or why there is none.
fn program() -> Result<Result<PathBuf, String>> {
    if process::is_installed("mdbook") {
        return Ok(Ok("mdbook".into()));
    }
    let tools = process::root().join("target/tools");
    let program = tools.join("bin/mdbook");
    if program.exists() {
        return Ok(Ok(program));
    }
    // Not optimised and without its search: one book is made of it.
    let mut install = process::cargo(&["install", "mdbook", "--locked", "--version", VERSION]);
    install.args(["--debug", "--no-default-features", "--quiet", "--root"]);
    install.arg(tools);
    let built = process::run_quietly(&mut process::at_idle(&install))?;
    Ok(if built.success {
        Ok(program)
    } else {
        let said = built.lines.last().map_or("", String::as_str);
        Err(format!("mdbook {VERSION} cannot be built: {said}"))
    })
}

/// Copies a folder that lies `depth` folders below `docs`.
fn copy(from: &Path, to: &Path, depth: usize) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("{}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("{}", from.display()))? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&path, &target, depth + 1)?;
        } else if path.extension().is_some_and(|kind| kind == "md") {
            let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
            fs::write(&target, without_outside(&text, depth)?)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("{}", path.display()))?;
        }
    }
    Ok(())
}

/// A page whose links to what is outside of `docs` have become the words and the path.
fn without_outside(text: &str, depth: usize) -> Result<String> {
    let up = "../".repeat(depth + 1);
    let link = Regex::new(&format!(
        r"\[([^\]]+)\]\({}([^)#\s]+)(#[^)\s]*)?\)",
        regex::escape(&up)
    ))?;
    Ok(link.replace_all(text, "$1 (`$2`)").into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_become_paths() {
        let page = "See [it](../experiments/a/README.md#b), [page](../x.md), [top](attach.md#c).";
        assert_eq!(
            without_outside(page, 0).unwrap(),
            "See it (`experiments/a/README.md`), page (`x.md`), [top](attach.md#c)."
        );
        let below = "[in](../attach.md) [out](../../data/README.md)";
        assert_eq!(
            without_outside(below, 1).unwrap(),
            "[in](../attach.md) out (`data/README.md`)"
        );
    }
}
