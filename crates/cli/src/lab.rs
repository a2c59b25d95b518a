//! `sooner lab`: the papers' experiments on this machine, against the servers of today.

mod chosen;

use crate::choice;
use crate::output;
use crate::progress;
use anyhow::{Context, Result, bail, ensure};
use chosen::Named;
use clap::{Args, Subcommand};
use sooner_lab::clients;
use sooner_lab::experiment::{self, Experiment};
use sooner_lab::guest;
use sooner_lab::known::KNOWN;
use sooner_lab::measure;
use sooner_lab::pages;
use sooner_lab::run::store::Store;
use sooner_lab::run::{self, Event, RunOptions, summary};
use sooner_report::number::duration;
use sooner_testbed::scratch::Scratch;
use sooner_workload::Trace;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where a clone of the source has its experiments.
const EXPERIMENTS: &str = "experiments";

/// Runs the published experiments in network namespaces of their own, beside nginx, Apache and
/// Caddy, and reports the results.
#[derive(Args)]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
    /// Directory with the experiments
    #[arg(long, value_name = "DIR", default_value = EXPERIMENTS, global = true)]
    experiments: PathBuf,
}

#[derive(Subcommand)]
enum LabCommand {
    /// List the experiments: name, rows of the published table, question, cases and time
    List {
        /// Print JSON, one object for each experiment
        #[arg(long)]
        json: bool,
    },
    /// Make the runs that an experiment still lacks; needs root, because it creates network
    /// namespaces
    Run(RunArgs),
    /// Write a page for each comparison that was run, and the table in README.md; print the tables
    /// of the named measurements
    Report {
        /// Experiments by name [default: all that were run]
        #[arg(value_name = "NAME", value_parser = choice::experiment(), hide_possible_values = true)]
        names: Vec<String>,
    },
    /// Be the first process in a guest.
    #[command(hide = true)]
    Guest {
        /// The order, and what the guest's kernel puts behind it.
        #[arg(required = true)]
        words: Vec<PathBuf>,
    },
    /// Be a client or a backend of an experiment.
    #[command(hide = true)]
    Client {
        #[arg(required = true)]
        words: Vec<String>,
    },
}

#[derive(Args)]
struct RunArgs {
    /// Experiments by name, as `sooner lab list` shows them, or rows of the published table such as C2
    #[arg(required = true, value_name = "NAME", value_parser = choice::experiment(), hide_possible_values = true)]
    names: Vec<String>,
    /// Run a few short cases with one seed, in a minute or two: a test of the setup, not a
    /// measurement
    #[arg(long)]
    quick: bool,
    /// Only these cases of a comparison, or parts of a measurement; repeatable
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<String>,
    /// Cases to measure at the same time, each with all its servers, 1 to 16
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    jobs: u8,
    /// Most attempts to measure a case that comes out INVALID, including earlier ones
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    attempts: u32,
    /// Leave out servers that are not installed
    #[arg(long)]
    without_missing: bool,
    /// Measure in a guest: user-mode Linux, a kernel with every queueing discipline that runs as a
    /// program; needs no root, and the package user-mode-linux
    #[arg(long)]
    guest: bool,
    /// Directory into which the package user-mode-linux was unpacked, instead of the installed one
    #[arg(long, value_name = "DIR", requires = "guest")]
    guest_kernel: Option<PathBuf>,
    /// Directory for the results [default: runs/DATE-MACHINE in the experiment's directory; none
    /// with --quick]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Trace to replay instead: epa, nasa, surge:SEED, sizes:LAW or the path of a NAME.csv.gz;
    /// requires --out, because the results are not the experiment's own
    #[arg(long, value_name = "TRACE", value_parser = choice::trace(), requires = "out")]
    trace: Option<String>,
    /// Print the valid runs and the verdicts as JSON, one object for each experiment
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    fn named(&self) -> Named<'_> {
        Named {
            names: &self.names,
            cases: &self.cases,
        }
    }
}

/// Runs the subcommand.
pub fn run(args: LabArgs) -> Result<ExitCode> {
    match args.command {
        LabCommand::List { json } if is_missing(&args.experiments) => list_known(json)?,
        LabCommand::List { json } => {
            list(&experiment::all(&args.experiments)?, json)?;
            list_measurements(&measure::all(&args.experiments)?, json)?;
        }
        LabCommand::Run(_) | LabCommand::Report { .. } if is_missing(&args.experiments) => bail!(
            "there is no directory `experiments` here: run this in a clone of the source, or name the directory with --experiments DIR"
        ),
        LabCommand::Run(run) => {
            let all = (
                experiment::all(&args.experiments)?,
                measure::all(&args.experiments)?,
            );
            run.named().check(&all.0, &all.1)?;
            return match run.guest {
                true => run_in_guest(&run, &args.experiments),
                false => run_named(&run, all),
            };
        }
        LabCommand::Report { names } => report(&args.experiments, &names)?,
        LabCommand::Guest { words } => guest::init::run(&words[0])?,
        LabCommand::Client { words } => {
            clients::run(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the experiments are looked for where they are in a clone, and are not there.
fn is_missing(folder: &Path) -> bool {
    folder == Path::new(EXPERIMENTS) && !folder.is_dir()
}

/// What experiments there are, where their directory is not at hand.
fn list_known(json: bool) -> Result<()> {
    for one in KNOWN {
        if json {
            let rows: Vec<&str> = one.rows.split_whitespace().collect();
            output::line(
                serde_json::json!({"name": one.name, "rows": rows, "question": one.question}),
            )?;
        } else {
            output::line(format_args!(
                "{:<22} {:<10} {}",
                one.name, one.rows, one.question
            ))?;
        }
    }
    output::say(format_args!(
        "sooner: cases and times are in the directory `experiments` of the source, which is not here; name it with --experiments DIR"
    ));
    Ok(())
}

fn list(experiments: &[Experiment], json: bool) -> Result<()> {
    for experiment in experiments {
        let runs = experiment.cases.iter().map(|case| case.setup.seeds.len());
        let runs = runs.sum::<usize>();
        if json {
            let cases = experiment.cases.iter().map(|case| case.name.as_str());
            let listed = serde_json::json!({"name": experiment.name, "rows": experiment.rows,
                "question": experiment.question, "published": experiment.published,
                "cases": cases.collect::<Vec<_>>(), "runs": runs, "seconds": experiment.seconds()});
            output::line(listed)?;
            continue;
        }
        output::line(format_args!(
            "{:<22} {:<10} {} ({} cases, {runs} runs, {})",
            experiment.name,
            experiment.rows.join(" "),
            experiment.question,
            experiment.cases.len(),
            duration(1e3 * experiment.seconds() as f64)
        ))?;
    }
    Ok(())
}

fn list_measurements(experiments: &[measure::Experiment], json: bool) -> Result<()> {
    for experiment in experiments {
        let parts = experiment.parts.iter().map(|part| part.name.as_str());
        let parts: Vec<&str> = parts.collect();
        if json {
            let listed = serde_json::json!({"name": experiment.name, "rows": experiment.rows,
                "question": experiment.question, "parts": parts});
            output::line(listed)?;
            continue;
        }
        output::line(format_args!(
            "{:<22} {:<10} {} ({})",
            experiment.name,
            experiment.rows.join(" "),
            experiment.question,
            parts.join(", ")
        ))?;
    }
    Ok(())
}

/// Pages of comparisons, and the tables of measurements that are named.
fn report(folder: &Path, names: &[String]) -> Result<()> {
    let measurements = measure::all(folder)?;
    let is_measurement = |name: &&String| measurements.iter().any(|one| one.name == **name);
    let (own, others): (Vec<&String>, Vec<&String>) = names.iter().partition(is_measurement);
    for name in own {
        let experiment = measurements.iter().filter(|one| one.name == *name);
        for shown in experiment.flat_map(measure::Experiment::kept) {
            let (place, shown) = shown?;
            output::print(&format!("# {place}\n\n{}\n", shown.markdown()))?;
        }
    }
    let others: Vec<String> = others.into_iter().cloned().collect();
    if names.is_empty() || !others.is_empty() {
        let written = progress::while_spinning("writing pages", || pages::write(folder, &others))?;
        for path in written {
            output::line(path.display())?;
        }
    }
    Ok(())
}

/// The same command without `--guest`, in a guest.
fn run_in_guest(args: &RunArgs, experiments: &Path) -> Result<ExitCode> {
    let kernel = guest::Kernel::find(args.guest_kernel.as_deref())?;
    let results = match &args.out {
        Some(out) => out,
        None => experiments,
    };
    let within = || format!("{}", results.display());
    fs::create_dir_all(results).with_context(within)?;
    let results = results.canonicalize().with_context(within)?;
    let job = guest::Job {
        program: env::current_exe().context("cannot find this program's own file")?,
        words: without_guest(
            env::args_os()
                .skip(1)
                .map(|word| word.to_string_lossy().into()),
        ),
        writable: vec![results],
    };
    let mut undelivered = None;
    let code = guest::run(&kernel, &job, &mut |said| match said {
        guest::Said::Out(line) => undelivered = output::line(line).err().or(undelivered.take()),
        guest::Said::Err(line) => output::say(line),
    })?;
    match undelivered {
        Some(undelivered) => Err(undelivered.into()),
        None => Ok(ExitCode::from(code)),
    }
}

/// The words of a command without the flags that start a guest.
fn without_guest(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut left = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--guest" => {}
            "--guest-kernel" => drop(words.next()),
            _ if word.starts_with("--guest-kernel=") => {}
            _ => left.push(word),
        }
    }
    left
}

/// Comparisons and measurements by their names.
fn run_named(
    args: &RunArgs,
    (comparisons, measurements): (Vec<Experiment>, Vec<measure::Experiment>),
) -> Result<ExitCode> {
    let named = args.named();
    let mut failed = false;
    if comparisons.iter().any(|one| named.has(one)) {
        failed |= run_all(args, comparisons)?;
    }
    for experiment in measurements.iter().filter(|one| named.has_measurement(one)) {
        if let Some(parts) = named.parts(experiment) {
            failed |= run_measurement(args, experiment, parts)?;
        }
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Measures an experiment's parts; whether a claim failed.
fn run_measurement(
    args: &RunArgs,
    experiment: &measure::Experiment,
    parts: Vec<String>,
) -> Result<bool> {
    ensure!(
        args.trace.is_none(),
        "--trace is for comparisons, and {} is a measurement; leave --trace out",
        experiment.name
    );
    let scratch = Scratch::new()?;
    let folder = match &args.out {
        Some(out) => out.join(&experiment.name),
        None if args.quick => scratch.path().to_owned(),
        None => measure::run::folder_of(experiment),
    };
    let options = measure::run::RunOptions {
        program: env::current_exe().context("cannot find this program's own file")?,
        folder,
        is_quick: args.quick,
        parts,
    };
    output::say(format_args!("{}: {}", experiment.name, experiment.question));
    let measured = measure::run::run(experiment, &options, &|line| output::say(line))?;
    let mut failed = false;
    for (part, shown) in measured {
        // So short a run proves nothing, either way.
        failed |= !args.quick && shown.verdicts.iter().any(|verdict| !verdict.holds);
        if args.json {
            let verdicts: Vec<_> = shown
                .verdicts
                .iter()
                .map(|one| serde_json::json!({"text": one.text, "holds": one.holds}))
                .collect();
            output::line(
                serde_json::json!({"experiment": experiment.name, "part": part,
                "tables": shown.tables, "findings": verdicts}),
            )?;
        } else {
            output::print(&shown.markdown())?;
        }
    }
    Ok(failed)
}

/// Measures what comparisons do not have yet; whether a claim failed.
fn run_all(args: &RunArgs, all: Vec<Experiment>) -> Result<bool> {
    let chosen = chosen(args, all)?;
    let program = env::current_exe().context("cannot find this program's own file")?;
    let mut failed = false;
    for experiment in chosen {
        let scratch = Scratch::new()?;
        let folder = match &args.out {
            Some(out) => out.join(&experiment.name),
            None if args.quick => scratch.path().to_owned(),
            None => run::folder_of(&experiment),
        };
        let options = RunOptions {
            program: program.clone(),
            folder,
            jobs: args.jobs.into(),
            attempts_max: if args.quick { 1 } else { args.attempts },
            waits_for_quiet: !args.quick,
            without_missing: args.without_missing,
        };
        output::say(format_args!("{}: {}", experiment.name, experiment.question));
        let measured = run::run(&experiment, &options, &mut show);
        // What was measured is shown even where something failed.
        let store = Store::read(&options.folder)?;
        // So short a run proves nothing, either way.
        let findings = if args.quick {
            Vec::new()
        } else {
            summary::findings(&experiment, &store)
        };
        if args.json {
            output::line(summary::as_json(&experiment, &store, &findings))?;
        } else {
            output::print(&summary::table(&experiment, &store))?;
            output::print(&summary::verdicts(&findings))?;
        }
        failed |= findings.iter().any(|finding| !finding.holds);
        measured?;
    }
    Ok(failed)
}

/// The named experiments, as long as is wanted.
fn chosen(args: &RunArgs, all: Vec<Experiment>) -> Result<Vec<Experiment>> {
    let named = args.named();
    let all = all.into_iter().filter(|one| named.has(one));
    let mut chosen: Vec<Experiment> = all
        .filter_map(|one| named.comparison(one, args.quick))
        .collect();
    if let Some(trace) = &args.trace {
        Trace::open(trace).with_context(|| format!("--trace {trace}"))?;
        for experiment in &mut chosen {
            experiment.replay(trace);
        }
    }
    Ok(chosen)
}

fn show(event: Event) {
    match event {
        Event::Planned { tasks: 0, .. } => output::say("everything is measured"),
        Event::Planned { tasks, seconds } => output::say(format_args!(
            "{tasks} to measure, {} one after the other",
            duration(1e3 * seconds as f64)
        )),
        Event::Missing { peer, why } => {
            output::say(format_args!("{peer} is left out: it {why}"));
        }
        Event::Begun { case, seed } => output::say(format_args!("{case}, seed {seed}")),
        Event::GivenUp { case, seed } => {
            output::say(format_args!(
                "{case}, seed {seed}: given up, the machine is busy"
            ));
        }
        Event::Failed(problem) => output::say(format_args!("not measured: {problem}")),
        Event::Kept(line) => {
            let mean = line.run["all"]["mean_response_ms"].as_f64();
            output::say(format_args!(
                "{}, seed {}, {}: mean {}, {}",
                line.case,
                line.seed,
                line.peer,
                mean.map_or("-".into(), duration),
                line.run["verdict"].as_str().unwrap_or("no verdict")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_is_told_everything_but_that_it_is_one() {
        let words = "lab run a --guest --quick --guest-kernel k --case b --guest-kernel=k --json";
        let left = without_guest(words.split(' ').map(String::from));
        assert_eq!(left.join(" "), "lab run a --quick --case b --json");
    }
}
