//! Measures an experiment's parts, one after the other.
//!
//! The work is done by a thread of its own, which looks often whether it is to end, so that SIGINT,
//! SIGTERM and SIGHUP end everything that was started.

use super::bench::{Bench, RunContext, runtime};
use super::rows::Record;
use super::{Experiment, Part, Shown};
use crate::machine;
use anyhow::{Context, Result, anyhow, bail};
use sooner_kernel::signals::EndSignals;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::sync::oneshot;

/// How an experiment is measured.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The `sooner` program.
    pub program: PathBuf,
    /// Where the results go.
    pub folder: PathBuf,
    /// Whether all is as short as can be: it only shows that everything works.
    pub is_quick: bool,
    /// Only these parts; none named: all.
    pub parts: Vec<String>,
}

/// Where an experiment's results of today on this machine go.
pub fn folder_of(experiment: &Experiment) -> PathBuf {
    let name = format!("{}-{}", machine::today(), machine::folder_name());
    experiment.folder.join("runs").join(name)
}

/// Measures the parts, one after the other, and returns each with what it shows. `tell` gets a line
/// whenever something begins.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Vec<(String, Shown)>> {
    let known = |name: &&String| experiment.parts.iter().any(|part| part.name == **name);
    if let Some(unknown) = options.parts.iter().find(|name| !known(name)) {
        let names: Vec<&str> = experiment
            .parts
            .iter()
            .map(|part| part.name.as_str())
            .collect();
        bail!(
            "experiment {} has no part {unknown}; it has {}",
            experiment.name,
            names.join(", ")
        );
    }
    let is_over = AtomicBool::new(false);
    let runtime = runtime()?;
    thread::scope(|scope| {
        let (done, ended) = oneshot::channel();
        let worker = scope.spawn(|| {
            let measured = measure_all(experiment, options, &is_over, tell);
            // Nothing waits for it where a signal came first.
            done.send(()).ok();
            measured
        });
        let why = runtime.block_on(async {
            let mut signals = EndSignals::listen()?;
            tokio::select! {
                biased;
                why = signals.next() => anyhow::Ok(Some(why)),
                _ = ended => Ok(None),
            }
        });
        is_over.store(true, Ordering::Relaxed);
        let measured = worker
            .join()
            .map_err(|_| anyhow!("the measuring thread panicked"))?;
        match why? {
            Some(why) => bail!("{why}"),
            None => measured,
        }
    })
}

fn measure_all(
    experiment: &Experiment,
    options: &RunOptions,
    is_over: &AtomicBool,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Vec<(String, Shown)>> {
    let mut all = Vec::new();
    for part in experiment.chosen_parts(options) {
        let context = RunContext {
            program: &options.program,
            folder: &options.folder,
            is_quick: options.is_quick,
            is_over,
            tell,
        };
        let bench = Bench::new(experiment, &part.name, context)?;
        let mut record = Record::begin(&options.folder, &part.name)?;
        for measure in &part.measures {
            let measured = measure.kind.run(&bench, measure, &mut record);
            measured.with_context(|| format!("{}, {}", experiment.name, measure.name))?;
        }
        record.finish()?;
        let mut shown = part
            .shown(record.rows())
            .map_err(|problem| anyhow!("part {}: {problem}", part.name))?;
        if options.is_quick {
            // So short a run proves nothing, either way.
            shown.verdicts.clear();
        }
        fs::write(
            options.folder.join(format!("{}.md", part.name)),
            shown.markdown(),
        )?;
        all.push((part.name.clone(), shown));
    }
    Ok(all)
}

impl Experiment {
    /// The named parts, or all; where all is short and none is named, one of each kind.
    fn chosen_parts(&self, options: &RunOptions) -> Vec<&Part> {
        let mut kinds = BTreeSet::new();
        let mut is_new = |part: &Part| {
            let known = kinds.len();
            kinds.extend(part.measures.iter().map(|one| one.kind_name.clone()));
            kinds.len() > known
        };
        let mut is_chosen = |part: &&Part| match (&options.parts[..], options.is_quick) {
            ([], true) => is_new(part),
            ([], false) => true,
            (named, _) => named.contains(&part.name),
        };
        self.parts.iter().filter(|part| is_chosen(part)).collect()
    }
}
