//! A project's tests by pytest: from its source distribution, in an environment of their own,
//! against a database directly and through the gate.
//!
//! A test that differs is run again, in both ways, because some of these tests depend on time: what
//! is equal then counts as equal, and is counted apart as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::case::{Case, Tried};
use super::fetch;
use super::run::Run;
use super::servers::{TestServer, die_by};
use crate::process;

/// A project with tests that pytest runs.
pub struct Project {
    /// Its source distribution, `NAME==VERSION`, which has the tests.
    pub source: &'static str,
    /// What is installed, as pip takes it; `NAME==VERSION`.
    pub requirements: &'static [&'static str],
    /// The database of the tests, made by these commands of psql's.
    pub database: &'static str,
    pub setup: &'static [&'static str],
    /// For pytest; `PORT` and `FOLDER` stand for where the database is.
    pub arguments: &'static [&'static str],
    /// Settings of PostgreSQL's, `NAME=VALUE`.
    pub settings: &'static [&'static str],
}

/// Places in the gate: some tests hold a dozen connections in transactions at a time.
const TRANSACTIONS: u32 = 40;
/// Seconds for one test; pytest-timeout ends it.
const TEST_PATIENCE_S: u32 = 60;
/// In which a test ends or another begins; a test that pytest-timeout could not end is over then.
const SILENCE_MAX: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Further runs of the tests that differ.
const REPETITIONS: usize = 2;
const PYTEST: [&str; 2] = ["pytest==8.4.2", "pytest-timeout==2.4.0"];

/// An outcome in one word, and what was said about it.
type Outcome = (String, String);
type Outcomes = BTreeMap<String, Outcome>;

/// Fetches the tests, and installs what they need.
pub fn prepare(project: &Project, folder: &Path) -> Result<()> {
    let requirements = PYTEST.iter().chain(project.requirements);
    fetch::python(folder, &requirements.copied().collect::<Vec<_>>())?;
    fetch::python_source(folder, project.source)
}

/// Runs the tests in each place, then once more those that differ.
pub fn run(project: &Project, run: &mut Run) -> Result<()> {
    let places = TestServer::all(run, project.settings, TRANSACTIONS)?;
    for place in &places {
        let mut commands = vec![format!("CREATE DATABASE {}", project.database)];
        commands.push(format!("\\c {}", project.database));
        commands.extend(project.setup.iter().map(|&command| command.to_owned()));
        place
            .cluster
            .ask(&commands.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    let version = places[0].cluster.ask(&["SHOW server_version"])?;
    run.version("PostgreSQL", &version);
    for requirement in [project.source].iter().chain(project.requirements) {
        if let Some((name, version)) = requirement.split_once("==") {
            run.version(name, version);
        }
    }
    let chosen = if run.only.is_empty() {
        None
    } else {
        Some(run.only.clone())
    };
    let mut outcomes = Vec::new();
    for place in &places {
        outcomes.push(outcomes_of(
            project,
            run,
            place,
            "first",
            chosen.as_deref(),
        )?);
    }
    let mut repeated = BTreeSet::new();
    for repetition in 1..=REPETITIONS {
        let differing: BTreeSet<String> = differing(&places, &outcomes)
            .into_iter()
            .map(|(name, way)| {
                repeated.insert((name.clone(), way));
                name
            })
            .collect();
        if differing.is_empty() {
            break;
        }
        let again_only: Vec<String> = differing.into_iter().collect();
        for (place, outcomes) in places.iter().zip(&mut outcomes) {
            let name = format!("again-{repetition}");
            let again = outcomes_of(project, run, place, &name, Some(&again_only))?;
            outcomes.extend(again);
        }
    }
    report(run, &places, &outcomes, &repeated)
}

fn report(
    run: &mut Run,
    places: &[TestServer],
    outcomes: &[Outcomes],
    repeated: &BTreeSet<(String, &'static str)>,
) -> Result<()> {
    for (name, (reference, said)) in &outcomes[0] {
        let tried = places
            .iter()
            .zip(outcomes)
            .skip(1)
            .map(|(place, outcomes)| {
                let absent = ("absent".to_owned(), String::new());
                let (outcome, through) = outcomes.get(name).unwrap_or(&absent);
                // What failed only without the gate has its reason there.
                let said = if through.is_empty() { said } else { through };
                let mut tried = Tried::word(place.way, reference, outcome, said);
                tried.repeated =
                    tried.differences.is_empty() && repeated.contains(&(name.clone(), place.way));
                tried
            });
        run.case(&Case {
            name: name.clone(),
            reference: reference.clone(),
            tried: tried.collect(),
        })?;
    }
    Ok(())
}

/// The tests, and ways, with an outcome that is not that of the first place.
fn differing(places: &[TestServer], outcomes: &[Outcomes]) -> Vec<(String, &'static str)> {
    let word = |outcomes: &Outcomes, name: &str| outcomes.get(name).map(|(word, _)| word.clone());
    let mut differing = Vec::new();
    for (place, tried) in places.iter().zip(outcomes).skip(1) {
        let names = outcomes[0].keys();
        let names = names.filter(|name| word(tried, name) != word(&outcomes[0], name));
        differing.extend(names.map(|name| (name.clone(), place.way)));
    }
    differing
}

/// Runs the tests in one place, as often as it takes: one that hangs ends its run.
fn outcomes_of(
    project: &Project,
    run: &Run,
    place: &TestServer,
    name: &str,
    only: Option<&[String]>,
) -> Result<Outcomes> {
    let file = run.output(place.way, &format!("{name}.jsonl"))?;
    let log = run.output(place.way, &format!("{name}.log"))?;
    for old in [&file, &log] {
        let _ = fs::remove_file(old);
    }
    let begin = Instant::now();
    loop {
        let mut command = command(project, run, place);
        command.env("SUITES_OUTCOMES", &file);
        if let Some(only) = only {
            let list = run.output(place.way, &format!("{name}.only"))?;
            fs::write(&list, only.join("\n"))?;
            command.env("SUITES_ONLY", list);
        }
        let log = File::options().create(true).append(true).open(&log)?;
        command.stdout(log.try_clone()?).stderr(log);
        let hung = play(&mut command, &file)?;
        let (outcomes, begun) = read(&file)?;
        eprintln!(
            "{}: {name}: {} tests, {} s",
            place.way,
            outcomes.len(),
            begin.elapsed().as_secs()
        );
        match begun {
            // The test that ran when pytest was ended, or crashed.
            Some(test) => append(&file, &test, if hung { "hang" } else { "crash" })?,
            None => {
                ensure!(!outcomes.is_empty(), "no test was run: see {}.log", name);
                return Ok(outcomes);
            }
        }
    }
}

fn command(project: &Project, run: &Run, place: &TestServer) -> Command {
    let address = place.address();
    let mut command = die_by("KILL");
    command
        .arg(run.folder.join("venv/bin/pytest"))
        .args(["-p", "outcomes", "-p", "no:cacheprovider", "-q"])
        .arg(format!("--timeout={TEST_PATIENCE_S}"))
        .args(project.arguments.iter().map(|argument| {
            let argument = argument.replace("PORT", &address.port.to_string());
            argument.replace("FOLDER", &address.folder.display().to_string())
        }))
        .current_dir(run.folder.join("source"));
    command
        .env("PYTHONPATH", process::root().join("xtask/suites"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", address.port.to_string())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", project.database)
        .env("PSYCOPG2_TESTDB", project.database)
        .stdin(Stdio::null())
        .process_group(0);
    command
}

/// Runs pytest to its end, or until no test has begun or ended for too long; whether it was ended.
fn play(command: &mut Command, outcomes: &Path) -> Result<bool> {
    let mut pytest = Pytest(command.spawn()?);
    let length = || fs::metadata(outcomes).map_or(0, |file| file.len());
    let (mut written, mut since) = (length(), Instant::now());
    while pytest.0.try_wait()?.is_none() {
        if length() != written {
            (written, since) = (length(), Instant::now());
        }
        if since.elapsed() > SILENCE_MAX {
            return Ok(true);
        }
        sleep(LOOK_EVERY);
    }
    Ok(false)
}

/// pytest and what it has started, ended when dropped.
struct Pytest(Child);

impl Drop for Pytest {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// The outcomes in the file, and the test that has begun and not ended.
fn read(file: &Path) -> Result<(Outcomes, Option<String>)> {
    let text = fs::read_to_string(file).with_context(|| format!("no {}", file.display()))?;
    let (mut outcomes, mut begun) = (Outcomes::new(), None);
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        if line["begun"].is_string() {
            begun = Some(word("begun"));
        } else {
            begun = None;
            outcomes.insert(word("ended"), (word("outcome"), word("said")));
        }
    }
    Ok((outcomes, begun))
}

fn append(file: &Path, test: &str, outcome: &str) -> Result<()> {
    use std::io::Write;
    let line = json!({"ended": test, "outcome": outcome, "said": "pytest did not go on"});
    Ok(writeln!(
        File::options().append(true).open(file)?,
        "{line}"
    )?)
}
