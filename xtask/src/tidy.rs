//! `cargo xtask tidy`: architecture and style as a check that runs in a second, without a build.

mod bans;
mod book;
mod crates;
pub mod files;
mod layers;

use crate::process;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Prints what is wrong in this repository; whether nothing was.
pub fn run() -> Result<bool> {
    let (errors, warnings) = check(&process::root())?;
    for warning in warnings {
        println!("warning: {warning}");
    }
    for error in &errors {
        println!("error: {error}");
    }
    println!("tidy: {} errors", errors.len());
    Ok(errors.is_empty())
}

/// Errors and warnings, each with its place and remedy.
fn check(root: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let files = files::all(root)?;
    let crates = crates::all(root)?;
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for file in &files {
        let (too_long, rather_long) = files::check_lengths(file);
        errors.extend(too_long);
        warnings.extend(rather_long);
        errors.extend(files::check_header(file));
        errors.extend(bans::check(file, root));
    }
    errors.extend(files::check_experiments(&files));
    errors.extend(book::check(&files, &|path| root.join(path).exists()));
    errors.extend(crates::check(&crates, &files));
    errors.extend(layers::check(&map, &crates, root));
    Ok((errors, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let (errors, _) = check(&process::root()).unwrap();
        assert!(errors.is_empty(), "\n{}", errors.join("\n"));
    }
}
