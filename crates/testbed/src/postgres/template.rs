//! A cluster as `initdb` makes it; for tests made once and copied from then on.
//!
//! The template lies in `sooner-testbed-UID` of the folder for temporary files, by the programs
//! that made it. This user's tests own that folder: it may be removed whenever none of them runs. A
//! lock file keeps several processes from making the same template; it appears under its name only
//! when it is complete.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, ensure};

use super::Installation;

/// Its superuser is `postgres`, whom every client may claim to be.
const INITDB: [&str; 9] = [
    "-U",
    "postgres",
    "-A",
    "trust",
    "--no-sync",
    "--no-locale",
    "-E",
    "UTF8",
    "-D",
];

/// Copies a template to `data` in a folder that belongs to the server's user.
pub fn copy_cluster(installation: &Installation, folder: &Path) -> Result<()> {
    let Some(store) = store() else {
        return initdb(installation, folder);
    };
    let kept = store.join(name(installation)?);
    if !kept.exists() {
        let lock = File::create(store.join("lock"))?;
        lock.lock()?;
        // Another process may have made it meanwhile.
        if !kept.exists() {
            make(installation, &kept)?;
        }
    }
    // Owners and rights stay as they are.
    let mut copy = Command::new("cp");
    copy.args(["-a", "--reflink=auto"]).arg(&kept);
    run(copy.arg(folder.join("data")))
}

/// This user's folder of templates; none where the folder of that name is another user's.
fn store() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let store = tempfile::env::temp_dir().join(format!("sooner-testbed-{user}"));
    match DirBuilder::new().mode(0o755).create(&store) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return None,
        _ => {}
    }
    let found = fs::symlink_metadata(&store).ok()?;
    (found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0).then_some(store)
}

/// One for each set of programs: the version, and when and where its `initdb` was installed.
fn name(installation: &Installation) -> Result<String> {
    let program = installation.programs().join("initdb");
    let found =
        fs::metadata(&program).with_context(|| format!("cannot look at {}", program.display()))?;
    let changed = found.modified()?.duration_since(UNIX_EPOCH)?.as_secs();
    let version = installation.version().replace([' ', '/'], "-");
    Ok(format!("{version}-{}-{changed}", found.ino()))
}

/// Makes a template beside its place and moves it there once it is complete.
fn make(installation: &Installation, kept: &Path) -> Result<()> {
    let store = kept.parent().context("a template is in a folder")?;
    let scratch = tempfile::Builder::new()
        .prefix("making-")
        .tempdir_in(store)?;
    installation.give(scratch.path())?;
    initdb(installation, scratch.path())?;
    Ok(fs::rename(scratch.path().join("data"), kept)?)
}

/// Makes the cluster `data` in a folder that belongs to the server's user.
pub fn initdb(installation: &Installation, folder: &Path) -> Result<()> {
    let mut initdb = installation.server_program("initdb", folder);
    run(initdb.args(INITDB).arg("data"))
}

/// Runs a command to its end; an error has the last line of its standard error.
fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output();
    let name = Path::new(command.get_program());
    let name = name
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let output = output.with_context(|| format!("cannot start {name}"))?;
    let message = String::from_utf8_lossy(&output.stderr);
    let last = message.lines().rfind(|line| !line.trim().is_empty());
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        last.unwrap_or_default().trim()
    );
    Ok(())
}
