//! h2spec, a program that knows what HTTP/2 demands of a server. It is in no distribution, so it is
//! built from its Go modules, of which `xtask/h2spec` pins versions and checksums.
//! `crates/cli/tests/clients` runs it.

use crate::process;
use crate::tally::Tally;
use anyhow::Result;
use std::process::Command;

/// The name under which it is counted.
const STEP: &str = "the build of h2spec";
/// Seconds for a download of a few megabytes; a network that swallows packets must not hold up the
/// tests.
const DOWNLOAD_SECONDS_MAX: &str = "120";
const PACKAGE: &str = "github.com/summerwind/h2spec/cmd/h2spec";

/// Builds it by itself; whether that worked.
pub fn run() -> Result<bool> {
    let mut tally = Tally::default();
    build(&mut tally)?;
    tally.print();
    Ok(tally.is_good())
}

/// Builds `target/h2spec/h2spec`. Counts as skipped without a Go compiler, or where its modules
/// cannot be had.
pub fn build(tally: &mut Tally) -> Result<()> {
    if !process::is_installed("go") {
        tally.skip(STEP, "no Go compiler (Debian: golang-go)");
        return Ok(());
    }
    let mut download = in_module("timeout");
    download.args([DOWNLOAD_SECONDS_MAX, "go", "mod", "download"]);
    let downloaded = process::run_quietly(&mut download)?;
    if !downloaded.success {
        let said = downloaded.lines.last().map_or("", String::as_str);
        let reason = format!("its Go modules cannot be downloaded: {said}");
        tally.skip(STEP, &reason);
        return Ok(());
    }
    let program = process::root().join("target/h2spec/h2spec");
    let mut build = in_module("go");
    build.arg("build").arg("-o").arg(program).arg(PACKAGE);
    tally.step(STEP, process::run(&mut build)?.success);
    Ok(())
}

/// A command in the Go module, with the compiler that is installed and the versions that are
/// pinned.
fn in_module(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(process::root().join("xtask/h2spec"))
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=readonly")
        .env("GOWORK", "off");
    command
}
