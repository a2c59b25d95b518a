//! The program as it is given away: for the musl target where Rust's library for it is installed,
//! and else with glibc linked in. Nothing in it depends on where or when it is built.

use super::sbom::Libc;
use crate::process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where it needs no shared library.
const MUSL: &str = "x86_64-unknown-linux-musl";
/// What is taken where Rust's library for that is not installed.
const GNU: &str = "x86_64-unknown-linux-gnu";
/// What is only checked, because no machine here runs it, and the compiler for the C in crates.
const CROSS: [(&str, &str); 2] = [
    ("aarch64-unknown-linux-musl", "aarch64-linux-gnu-gcc"),
    ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc"),
];
/// Where the sources seem to be.
const SOURCES: &str = "/usr/src/sooner";
const CRATES: &str = "/usr/src/cargo";

/// For what, and how.
pub struct Target {
    pub name: &'static str,
    pub libc: Libc,
    /// Said to the user where it is not what a release is made for.
    pub remark: Option<String>,
}

/// The target that is built here.
pub fn target() -> Result<Target> {
    if is_installed(MUSL)? {
        let (name, licence) = ("musl", "MIT");
        return Ok(Target {
            name: MUSL,
            libc: Libc { name, licence },
            remark: None,
        });
    }
    let (name, licence) = ("glibc", "LGPL-2.1-or-later");
    Ok(Target {
        name: GNU,
        libc: Libc { name, licence },
        remark: Some(format!(
            "Rust's library for {MUSL} is not installed (rustup target add {MUSL}): glibc is linked \
             in instead. Names are looked up in files and DNS alone then. Do not publish this one: \
             glibc comes under the LGPL"
        )),
    })
}

/// Whether Rust's library for a target is here.
fn is_installed(target: &str) -> Result<bool> {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", target]);
    let folder = process::output(command.current_dir(process::root()))?;
    Ok(Path::new(folder.trim()).is_dir())
}

/// Builds for a target, and returns the program.
pub fn build(target: &Target, profile: &str, into: &Path, epoch: u64) -> Result<Option<PathBuf>> {
    let built = process::run(&mut command(target.name, profile, into, epoch)?)?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let program = into.join(target.name).join(folder).join("sooner");
    Ok(built.success.then_some(program))
}

fn command(target: &str, profile: &str, into: &Path, epoch: u64) -> Result<Command> {
    let cargo_home = cargo_home()?;
    let root = process::root();
    let flags = [
        format!("--remap-path-prefix={}={SOURCES}", root.display()),
        format!("--remap-path-prefix={}={CRATES}", cargo_home.display()),
        "-Ctarget-feature=+crt-static".into(),
        "-Cstrip=symbols".into(),
        // A number that only names a build would differ for the same code of two linkers.
        "-Clink-arg=-Wl,--build-id=none".into(),
    ];
    let of_c = format!(
        "-ffile-prefix-map={}={CRATES} -ffile-prefix-map={}={SOURCES}",
        cargo_home.display(),
        into.display()
    );
    let mut command = process::cargo(&[
        "build",
        "--locked",
        "--package=sooner-cli",
        "--bin=sooner",
        "--profile",
        profile,
        // Named even where it is this machine's own: the flags are not for build scripts then.
        "--target",
        target,
        "--target-dir",
    ]);
    command
        .arg(into)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env("CFLAGS", of_c)
        .env("SOURCE_DATE_EPOCH", epoch.to_string())
        .env("CARGO_INCREMENTAL", "0");
    Ok(command)
}

/// Where cargo keeps the sources of crates.
fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?;
    Ok(PathBuf::from(home).join(".cargo"))
}

/// Checks the program for processors that this machine has not, where Rust's library for them is
/// installed; says what it did. Whether nothing was wrong.
pub fn check_others() -> Result<bool> {
    let mut is_good = true;
    for (target, compiler) in CROSS {
        let missing = if !is_installed(target)? {
            format!("Rust's library for it; rustup target add {target}")
        } else if !process::is_installed(compiler) {
            format!("{compiler}; install gcc-aarch64-linux-gnu")
        } else {
            let arguments = [
                "check",
                "--locked",
                "--package=sooner-cli",
                "--target",
                target,
            ];
            let variable = format!("CC_{}", target.replace('-', "_"));
            let mut check = process::cargo(&arguments);
            is_good &= process::run(check.env(variable, compiler))?.success;
            continue;
        };
        println!("skipped: check for {target}: no {missing}");
    }
    Ok(is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_this_machine_are_replaced() {
        let command = command(GNU, "dist", Path::new("/tmp/x"), 7).unwrap();
        let value = |name: &str| {
            let found = command.get_envs().find(|(one, _)| *one == name);
            let (_, value) = found.expect(name);
            value.expect(name).to_string_lossy().into_owned()
        };
        let root = process::root().display().to_string();
        assert!(value("CARGO_ENCODED_RUSTFLAGS").contains(&format!("{root}={SOURCES}")));
        assert_eq!(value("SOURCE_DATE_EPOCH"), "7");
    }
}
