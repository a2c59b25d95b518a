//! `sooner package DIR`: manual pages and shell completions, made from the description that the
//! command line itself is read by.

mod completions;
mod facts;
mod manual;

use crate::output;
use anyhow::Context;
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use time::OffsetDateTime;

/// The day of the source, in seconds since 1970, as builds that can be repeated say it.
const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// Arguments of `sooner package`.
#[derive(Args)]
pub struct PackageArgs {
    /// Directory to write to; made if it is not there
    dir: PathBuf,
}

/// Writes `man/` and `completions/` below the directory.
pub fn run(args: &PackageArgs, command: clap::Command) -> anyhow::Result<ExitCode> {
    let date = date(std::env::var(EPOCH_VARIABLE).ok().as_deref())?;
    let (man, completions) = (args.dir.join("man"), args.dir.join("completions"));
    make(&man)?;
    make(&completions)?;
    completions::write(&command, &completions)?;
    manual::write(command, &date, &man)
        .with_context(|| format!("cannot write manual pages to {}", man.display()))?;
    output::line(args.dir.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Of these seconds; nothing where they are not told, because two runs are to give the same bytes.
fn date(epoch: Option<&str>) -> anyhow::Result<String> {
    let Some(epoch) = epoch else {
        return Ok(String::new());
    };
    let time = epoch.parse().ok();
    let time = time.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    let time = time.with_context(|| {
        format!("{EPOCH_VARIABLE}: `{epoch}` is not a time; write seconds since 1970, such as 1767225600")
    })?;
    Ok(time.date().to_string())
}

fn make(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn the_date_is_the_one_that_is_told() {
        assert_eq!(date(Some("1767225600")).unwrap(), "2026-01-01");
        assert_eq!(date(None).unwrap(), "");
        assert!(date(Some("soon")).is_err());
    }
}
