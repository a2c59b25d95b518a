//! `cargo xtask package`: everything a distribution's package holds beside the sources, in
//! `target/package`.

use crate::process;
use anyhow::{Context, Result};
use std::fs;

/// Builds `sooner`, has it write its manual pages and completions, and puts unit, example and the
/// rest beside them; whether it worked.
pub fn run() -> Result<bool> {
    let folder = process::root().join("target/package");
    let built = process::run(&mut process::cargo(&["build", "--profile", "dist"]))?;
    if !built.success {
        return Ok(false);
    }
    let program = process::root().join("target/dist/sooner");
    let mut write = std::process::Command::new(&program);
    let written = process::run(write.arg("package").arg(&folder))?;
    copy(&program, &folder.join("sooner"))?;
    for entry in fs::read_dir(process::root().join("packaging"))? {
        let file = entry?;
        copy(&file.path(), &folder.join(file.file_name()))?;
    }
    Ok(written.success)
}

fn copy(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}
