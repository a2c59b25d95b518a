//! The extension `sooner_locks`: built for every PostgreSQL that is here, put into it, and tested in
//! servers of its own; its rules are played against a model of the lock table.

use crate::tally::Tally;
use crate::{packages, postgres, process};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// Where the programs of Debian's versions are, and their headers, below a folder of the version's name.
const DEBIAN: &str = "/usr/lib/postgresql";
const HEADERS: &str = "/usr/include/postgresql";
/// What is copied of the extension.
const PARTS: [&str; 5] = ["Makefile", "sooner_locks.control", "sql", "src", "test"];

/// Builds and tests it, before all versions at the same time.
pub fn check(tally: &mut Tally) -> Result<()> {
    let mut versions = of_debian();
    if !packages::is_root() && !versions.is_empty() {
        versions.clear();
        let why = "needs root, to put it beside the server's own extensions";
        tally.skip("sooner_locks for Debian's PostgreSQL", why);
    }
    let wheel = match postgres::unpack() {
        Ok(wheel) => {
            versions.extend(postgres::versions(&wheel));
            Some(wheel)
        }
        Err(error) => {
            tally.skip(
                "sooner_locks for PostgreSQL 16 and 18",
                &format!("{error:#}"),
            );
            None
        }
    };
    if versions.is_empty() {
        let why = "needs headers of PostgreSQL (Debian: postgresql-server-dev-15)";
        tally.skip("sooner_locks", why);
        return Ok(());
    }
    let model = build_folder("model")?;
    let mut play = Command::new("make");
    play.args(["check-model", "-C"]).arg(&model);
    tally.step("sooner_locks: the model", process::run(&mut play)?.success);
    let tested = thread::scope(|scope| {
        let test = |(version, bin): &(String, PathBuf)| {
            let (name, bin) = (format!("sooner_locks, PostgreSQL {version}"), bin.clone());
            let version = version.clone();
            (name, scope.spawn(move || build_and_test(&version, &bin)))
        };
        let started: Vec<_> = versions.iter().map(test).collect();
        let ended = started
            .into_iter()
            .map(|(name, thread)| (name, thread.join()));
        ended.collect::<Vec<_>>()
    });
    for (name, result) in tested {
        match result {
            Ok(Ok(is_good)) => tally.step(&name, is_good),
            Ok(Err(error)) => {
                println!("{name}: {error:#}");
                tally.step(&name, false);
            }
            Err(_) => tally.step(&name, false),
        }
    }
    drop(wheel);
    Ok(())
}

/// Versions with their programs, of which Debian's headers are here.
fn of_debian() -> Vec<(String, PathBuf)> {
    let folders = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let folders = folders.map(|entry| entry.path());
    let versions = folders.filter_map(|folder| {
        let version = folder.file_name()?.to_str()?.to_owned();
        Some((version, folder.join("bin")))
    });
    // The makefiles come with the client, the headers do not.
    let header = |version: &str| Path::new(HEADERS).join(version).join("server/postgres.h");
    versions
        .filter(|(version, _)| header(version).exists())
        .collect()
}

/// A copy to build in, because each version has its own objects.
fn build_folder(name: &str) -> Result<PathBuf> {
    let from = process::root().join("extension/sooner_locks");
    let into = process::root().join("target/extension").join(name);
    let _ = fs::remove_dir_all(&into);
    fs::create_dir_all(&into)?;
    for part in PARTS {
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(from.join(part)).arg(&into);
        let copied = copy.status().context("cp")?;
        ensure!(copied.success(), "cannot copy {part}");
    }
    Ok(into)
}

/// Puts it into that PostgreSQL, and whether all tests pass there.
fn build_and_test(version: &str, bin: &Path) -> Result<bool> {
    let folder = build_folder(version)?;
    install(&folder, bin)?;
    let mut test = Command::new("/usr/bin/python3");
    test.arg("functional.py")
        .arg("--bin")
        .arg(bin)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder.join("test"));
    Ok(process::run(&mut test)?.success)
}

fn install(folder: &Path, bin: &Path) -> Result<()> {
    let config = format!("PG_CONFIG={}", bin.join("pg_config").display());
    let mut make = Command::new("make");
    make.args(["--quiet", "install", &config])
        .arg("-C")
        .arg(folder);
    ensure!(process::run(&mut make)?.success, "it cannot be built");
    Ok(())
}
