//! `cargo xtask suites`: the test suites of other projects, run without Sooner and through it, and
//! compared.
//!
//! A suite is fetched by the name of its package into `target/suites` and never committed. Its run
//! gives cases; a case has an outcome without Sooner (directly, or through another server) and one
//! in each way through Sooner. Differences that have a known reason are data, in
//! `experiments/suites/expected/SUITE.toml`. A difference that is not there fails the run, and so
//! does one that is there and did not occur. Results are under `experiments/suites`.

mod case;
mod expected;
mod fetch;
mod page;
mod postgres;
mod pytest;
mod python;
mod run;
mod servers;
mod web;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::process;
use crate::tally::Tally;
use run::Run;

/// A project's tests.
struct Suite {
    name: &'static str,
    /// What it tries, and what it needs.
    about: &'static str,
    /// Fetches and builds in the suite's folder below `target/suites`; an error skips the suite.
    prepare: fn(&Path) -> Result<()>,
    /// Runs the cases and hands each to [`Run::case`].
    run: fn(&mut Run) -> Result<()>,
}

const GATE: [Suite; 4] = [
    postgres::SUITE,
    python::PSYCOPG,
    python::ASYNCPG,
    python::SQLALCHEMY,
];

/// What `cargo xtask test` runs: a step, the suite and its cases.
type Few = (&'static str, &'static Suite, &'static [&'static str]);
const FEW: [Few; 3] = [
    (
        "a few of PostgreSQL's regression files",
        &postgres::SUITE,
        &postgres::FEW,
    ),
    (
        "zsync beside nginx",
        &web::ZSYNC,
        &["hundreds of small changes"],
    ),
    (
        "git beside nginx",
        &web::GIT,
        &["files: clone", "backend: push in chunks"],
    ),
];

fn all() -> impl Iterator<Item = &'static Suite> {
    GATE.iter().chain(&web::SUITES)
}

/// What the command line says.
#[derive(Default)]
struct Chosen {
    suites: Vec<&'static Suite>,
    only: Vec<String>,
    sooner: Option<PathBuf>,
}

/// Runs the named suites, or all; whether every difference was expected and every expected one
/// came.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let chosen = parse(arguments)?;
    let sooner = match &chosen.sooner {
        Some(program) => program.canonicalize().context("--sooner")?,
        None => build()?,
    };
    let (mut table, mut is_good) = (page::Table::default(), true);
    for suite in &chosen.suites {
        eprintln!("== {}: {}", suite.name, suite.about);
        let folder = folder(suite.name)?;
        if let Err(error) = (suite.prepare)(&folder) {
            let reason = format!("{error:#}");
            eprintln!("skipped: {}: {reason}", suite.name);
            table.skipped(suite.name, &reason);
            continue;
        }
        let mut run = Run::begin(suite.name, folder, sooner.clone(), chosen.only.clone())?;
        let ended = (suite.run)(&mut run);
        let summary = run.end();
        // Why it came to no end says more than what did not come.
        ended.with_context(|| format!("suite {}", suite.name))?;
        let summary = summary?;
        is_good &= summary.is_good();
        table.add(&summary);
    }
    print!("{table}");
    if chosen.only.is_empty() {
        page::update(&process::root().join("experiments/suites"))?;
    }
    Ok(is_good)
}

/// A few cases for `cargo xtask test`, which take seconds, by the program that its tests left.
pub fn few(tally: &mut Tally) -> Result<()> {
    for (step, suite, cases) in FEW {
        let folder = folder(suite.name)?;
        if let Err(error) = (suite.prepare)(&folder) {
            tally.skip(step, &format!("{error:#}"));
            continue;
        }
        let mut why = few_of(suite, folder.clone(), cases)?;
        if let Some(why) = &why {
            eprintln!("{step}: {why}");
            tally.reason(step, why);
        }
        // Like a test that failed: once more.
        if why.is_some() {
            why = few_of(suite, folder, cases)?;
            if why.is_none() {
                tally.unsteady(step);
            }
        }
        tally.step(step, why.is_none());
    }
    Ok(())
}

/// Runs these cases; why they are not good.
fn few_of(suite: &Suite, folder: PathBuf, cases: &[&str]) -> Result<Option<String>> {
    let only = cases.iter().map(|case| (*case).to_owned()).collect();
    let mut run = Run::begin(suite.name, folder, built(), only)?;
    let ended = (suite.run)(&mut run).and_then(|()| run.end());
    Ok(match ended {
        Ok(summary) if summary.is_good() => None,
        Ok(summary) => Some(summary.why()),
        Err(error) => Some(format!("{error:#}")),
    })
}

/// The suites by name, for the usage text.
pub fn names() -> String {
    let names: Vec<&str> = all().map(|suite| suite.name).collect();
    names.join(" ")
}

fn parse(arguments: &[&str]) -> Result<Chosen> {
    let mut chosen = Chosen::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("{word} needs a value"))
        };
        match *word {
            "--only" => chosen.only.extend(value()?.split(',').map(str::to_owned)),
            "--sooner" => chosen.sooner = Some(value()?.into()),
            name => match all().find(|suite| suite.name == name) {
                Some(suite) => chosen.suites.push(suite),
                None => bail!("no suite {name}; there are: {}", names()),
            },
        }
    }
    if chosen.suites.is_empty() {
        ensure!(
            chosen.only.is_empty(),
            "--only CASE,... needs the name of a suite"
        );
        chosen.suites.extend(all());
    }
    Ok(chosen)
}

/// The program with its debug assertions, which other projects' tests may well break.
fn build() -> Result<PathBuf> {
    let arguments = ["build", "-p", "sooner-cli"];
    let finished = process::run(&mut process::cargo(&arguments))?;
    ensure!(finished.success, "the build of sooner failed");
    Ok(built())
}

fn built() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| process::root().join("target"));
    target.join("debug/sooner")
}

/// Where a suite keeps what it fetched, and all its outputs.
fn folder(suite: &str) -> Result<PathBuf> {
    let folder = process::root().join("target/suites").join(suite);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
