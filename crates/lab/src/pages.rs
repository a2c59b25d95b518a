//! What was measured, for people: a page an experiment, and the table of all in
//! experiments/README.md.
//!
//! Nothing is measured here: everything is computed from the folders under `runs/`, so that it can
//! be computed again on any machine. Each file appears whole or not at all.

mod about;
mod assemble;
mod flatten;
mod judge;
mod place;
mod readme;

use crate::experiment::{self, Experiment};
use crate::run::store::{LINES, Store};
use anyhow::{Context, Result, bail};
use sooner_report::{experiment as report, whole_file};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "report.html";
const README: &str = "README.md";

/// Writes `report.html` for every experiment in `folder` that has runs, or for those of these
/// `names`, and the table in its README.md, which always tells of all. Returns what was written.
pub fn write(folder: &Path, names: &[String]) -> Result<Vec<PathBuf>> {
    let experiments = experiment::all(folder)?;
    check_names(&experiments, names)?;
    let mut written = Vec::new();
    let mut rows = Vec::new();
    for experiment in &experiments {
        let store = kept(&experiment.folder.join("runs"))?;
        let is_named = names.is_empty() || names.contains(&experiment.name);
        if let Some(store) = store.as_ref().filter(|_| is_named) {
            let page = report::render(&assemble::page(experiment, store)?);
            let path = experiment.folder.join(PAGE);
            write_whole(&path, &page)?;
            written.push(path);
        }
        rows.extend(readme::rows(experiment, store.as_ref()));
    }
    let path = folder.join(README);
    let old = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let new = readme::spliced(&old, &readme::table(rows))
        .with_context(|| format!("cannot put the table into {}", path.display()))?;
    if new != old {
        write_whole(&path, &new)?;
        written.push(path);
    }
    Ok(written)
}

fn check_names(experiments: &[Experiment], names: &[String]) -> Result<()> {
    let known = |name: &&String| experiments.iter().any(|one| one.name == **name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = experiments.iter().map(|one| one.name.as_str()).collect();
        bail!(
            "there is no experiment {unknown}; there are: {}",
            all.join(", ")
        );
    }
    Ok(())
}

/// All kept runs, those of the newest folder last: their names begin with the date. None where
/// nothing was kept.
fn kept(runs: &Path) -> Result<Option<Store>> {
    let Ok(entries) = fs::read_dir(runs) else {
        return Ok(None);
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        // One that was begun and ended before its first run is there without a line.
        .filter(|path| fs::metadata(path.join(LINES)).is_ok_and(|file| file.len() > 0))
        .collect();
    folders.sort();
    if folders.is_empty() {
        return Ok(None);
    }
    let store = Store::read_all(folders);
    let store = store.with_context(|| format!("cannot read the runs in {}", runs.display()))?;
    Ok(Some(store))
}

/// Writes a file that is there whole or not at all.
fn write_whole(path: &Path, text: &str) -> Result<()> {
    whole_file::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
