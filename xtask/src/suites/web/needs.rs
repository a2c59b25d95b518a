//! What the suites need of Debian, and what they have of Python's index.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::packages::{self, Need, Wanted};

const NGINX: Need = program("nginx", "nginx-light");
const OPENSSL: Need = program("openssl", "openssl");

/// A program of Debian that a suite runs.
pub const fn program(name: &'static str, package: &'static str) -> Need {
    Need {
        wanted: Wanted::Program(name),
        package,
        what_for: "suites of other projects about the server",
    }
}

/// Installs what is missing with apt as root; an error where it stays missing. All need nginx.
pub fn debian(needs: &[Need]) -> Result<()> {
    for needs in [&[NGINX, OPENSSL], needs] {
        packages::install(needs);
        let missing: Vec<&str> = packages::missing(needs).map(|need| need.package).collect();
        ensure!(missing.is_empty(), "needs {}", missing.join(", "));
    }
    Ok(())
}

/// A program of the suite's environment of Python.
pub fn in_environment(folder: &Path, program: &str) -> PathBuf {
    folder.join("venv/bin").join(program)
}

/// The version of a package in that environment.
pub fn python_version(folder: &Path, package: &str) -> Result<String> {
    let code = format!("import importlib.metadata as m; print(m.version('{package}'))");
    let mut ask = Command::new(in_environment(folder, "python"));
    Ok(crate::process::output(ask.args(["-c", &code]))?)
}
