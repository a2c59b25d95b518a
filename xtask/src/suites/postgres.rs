//! PostgreSQL's regression files, each run by psql as `pg_regress` runs it. The outputs of the run
//! through the gate are compared with those of the run without it, and not with what PostgreSQL
//! expects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result};
use regex::Regex;

use super::case::{Case, Tried};
use super::run::Run;
use super::servers::{Cluster, TestServer, programs};
use super::{Suite, fetch};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "postgres",
    about: "PostgreSQL's regression files by psql; needs postgresql, gcc and Debian's packages",
    prepare,
    run,
};

/// Files that touch what the gate has to see, need no others, and take a second.
pub const FEW: [&str; 12] = [
    "advisory_lock",
    "async",
    "copy",
    "copy2",
    "plancache",
    "portals",
    "portals_p2",
    "prepare",
    "prepared_xacts",
    "privileges",
    "psql",
    "transactions",
];

/// Seconds for one file; the longest takes a tenth without a gate.
const FILE_PATIENCE_S: u32 = 120;
/// Places in the gate: fewer than the files that run at once, so that connections pass from one to
/// another.
const TRANSACTIONS: u32 = 8;
const SETTINGS: [&str; 2] = ["max_prepared_transactions=2", "autovacuum_naptime=1d"];
const DATABASE: &str = "regression";
/// The file that makes what all others use.
const SETUP: &str = "test_setup";

/// Fetches the files, and builds the library of functions in C that some of them use.
fn prepare(folder: &Path) -> Result<()> {
    let major = major()?;
    let server = format!("postgresql-{major}");
    let version = fetch::installed_version(&server);
    let version = version.as_deref();
    let source = fetch::debian_source(folder, &server, version)?;
    let library = folder.join("regress.so");
    if library.exists() {
        return Ok(());
    }
    let headers = format!("postgresql-server-dev-{major}");
    let headers = fetch::debian_files(folder, &headers, version)?;
    let include = headers.join(format!("usr/include/postgresql/{major}/server"));
    let mut gcc = fetch::patient(120, "gcc");
    gcc.args(["-O2", "-fPIC", "-shared", "-w", "-o"])
        .arg(&library)
        .arg(source.join("src/test/regress/regress.c"))
        .arg("-I")
        .arg(include)
        .arg("-I/usr/include/postgresql");
    fetch::quietly(&mut gcc)
}

fn major() -> Result<String> {
    let programs = programs()?;
    let version = programs.parent().and_then(Path::file_name);
    let version = version.context("no version in the path of PostgreSQL's programs")?;
    Ok(version.to_string_lossy().into_owned())
}

/// A server, or a gate before one, and the files that are run there.
struct Files {
    place: TestServer,
    /// What the files read and write: `sql`, `data`, `results`, `expected`.
    files: PathBuf,
    libraries: PathBuf,
}

/// Runs all files, group by group, in each place.
fn run(run: &mut Run) -> Result<()> {
    let places = TestServer::all(run, &SETTINGS, TRANSACTIONS)?;
    let places: Result<Vec<Files>> = places
        .into_iter()
        .map(|place| Files::new(run, place))
        .collect();
    let mut places = places?;
    let version = places[0].place.cluster.ask(&["SHOW server_version"])?;
    run.version("PostgreSQL", &version);
    let replacements = Replacements::new(run)?;
    for group in groups(run)? {
        eprintln!("postgres: {}", group.join(" "));
        let outputs: Result<Vec<Vec<String>>> =
            places.iter().map(|place| place.outputs(&group)).collect();
        let outputs = outputs?;
        for (number, name) in group.iter().enumerate() {
            let texts: Vec<String> = outputs
                .iter()
                .zip(&places)
                .map(|(outputs, place)| replacements.apply(name, &outputs[number], place))
                .collect();
            compare(run, name, &texts, &places)?;
        }
        for files in &mut places {
            files.place.must_be_there()?;
        }
    }
    Ok(())
}

fn compare(run: &mut Run, name: &str, texts: &[String], places: &[Files]) -> Result<()> {
    for (text, place) in texts.iter().zip(places) {
        fs::write(run.output(place.place.way, name)?, text)?;
    }
    let tried = texts
        .iter()
        .zip(places)
        .skip(1)
        .map(|(text, place)| Tried::text(place.place.way, &texts[0], text));
    run.case(&Case {
        name: name.to_owned(),
        reference: format!("{} lines", texts[0].lines().count()),
        tried: tried.collect(),
    })
}

/// The files in the order of PostgreSQL's own schedule; those of a group run at the same time.
fn groups(run: &Run) -> Result<Vec<Vec<String>>> {
    let schedule = regress(run).join("parallel_schedule");
    let text = fs::read_to_string(schedule)?;
    let groups = text.lines().filter_map(|line| line.strip_prefix("test:"));
    let is_wanted = |name: &str| {
        let is_chosen = run.only.is_empty() || name == SETUP;
        (is_chosen || run.only.iter().any(|only| only == name)) && !run.expected.leaves_out(name)
    };
    let groups = groups.map(|group| {
        let names = group.split_whitespace().filter(|name| is_wanted(name));
        names.map(str::to_owned).collect::<Vec<_>>()
    });
    Ok(groups.filter(|group| !group.is_empty()).collect())
}

fn regress(run: &Run) -> PathBuf {
    run.folder.join("source/src/test/regress")
}

impl Files {
    fn new(run: &Run, place: TestServer) -> Result<Self> {
        let cluster = &place.cluster;
        let files = cluster.folder("regress")?;
        for part in ["sql", "data", "expected"] {
            let copied = cluster.folder(&format!("regress/{part}"))?;
            copy(&regress(run).join(part), &copied)?;
        }
        for part in ["results", "testtablespace"] {
            cluster.folder(&format!("regress/{part}"))?;
        }
        let libraries = cluster.folder("libraries")?;
        fs::copy(run.folder.join("regress.so"), libraries.join("regress.so"))?;
        let theirs = cluster.programs.join("../lib");
        for library in ["autoinc.so", "refint.so"] {
            fs::copy(theirs.join(library), libraries.join(library))?;
        }
        create_database(cluster)?;
        Ok(Self {
            files,
            libraries,
            place,
        })
    }

    /// What psql prints for each of these files, which are run at the same time.
    fn outputs(&self, names: &[String]) -> Result<Vec<String>> {
        thread::scope(|scope| {
            let threads: Vec<_> = names
                .iter()
                .map(|name| scope.spawn(|| self.output(name)))
                .collect();
            let outputs = threads.into_iter().map(|thread| {
                let output = thread.join();
                output.map_err(|_| anyhow::anyhow!("a thread panicked"))?
            });
            outputs.collect()
        })
    }

    fn output(&self, name: &str) -> Result<String> {
        let results = self.files.join("results").join(format!("{name}.out"));
        let out = fs::File::create(&results)?;
        let mut psql = self.psql(name);
        psql.stdin(fs::File::open(self.files.join(format!("sql/{name}.sql")))?)
            .stderr(Stdio::from(out.try_clone()?))
            .stdout(Stdio::from(out));
        let code = psql.status()?.code();
        let mut text = String::from_utf8_lossy(&fs::read(&results)?).into_owned();
        if code == Some(124) {
            text += "\n(does not end)\n";
        }
        Ok(text)
    }

    /// The command and the environment of `pg_regress`.
    fn psql(&self, name: &str) -> Command {
        let mut psql = fetch::patient(FILE_PATIENCE_S, self.place.cluster.programs.join("psql"));
        psql.args(["-X", "-a", "-q", "-d", DATABASE])
            .args(["-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on"])
            .current_dir(&self.files);
        let named = std::env::vars_os().map(|(name, _)| name);
        for name in named.filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with("PG") || name.starts_with("LC_") || name.starts_with("LANG")
        }) {
            psql.env_remove(name);
        }
        psql.env("PGAPPNAME", format!("pg_regress/{name}"))
            .env("PG_ABS_SRCDIR", &self.files)
            .env("PG_ABS_BUILDDIR", &self.files)
            .env("PG_LIBDIR", &self.libraries)
            .env("PG_DLSUFFIX", ".so")
            .env("LC_MESSAGES", "C")
            .env("PGTZ", "America/Los_Angeles")
            .env("PGDATESTYLE", "Postgres, MDY")
            .env("PGOPTIONS", "-c intervalstyle=postgres_verbose")
            .env("PGUSER", "postgres")
            .env("PGHOST", &self.place.address().folder)
            .env("PGPORT", self.place.address().port.to_string());
        psql
    }
}

/// The database as `pg_regress` makes it.
fn create_database(cluster: &Cluster) -> Result<()> {
    let create = format!("CREATE DATABASE {DATABASE} TEMPLATE template0");
    let settings = [
        "lc_messages TO 'C'",
        "lc_monetary TO 'C'",
        "lc_numeric TO 'C'",
        "lc_time TO 'C'",
        "bytea_output TO 'hex'",
        "timezone_abbreviations TO 'Default'",
    ]
    .map(|setting| format!("ALTER DATABASE {DATABASE} SET {setting}"));
    let commands = std::iter::once(&create).chain(&settings);
    cluster.ask(&commands.map(String::as_str).collect::<Vec<_>>())?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// What varies from run to run.
struct Replacements {
    /// Cases (empty for all), what is looked for, and what stands for it.
    patterns: Vec<(Vec<String>, Regex, String)>,
}

impl Replacements {
    fn new(run: &Run) -> Result<Self> {
        let replacements = run.expected.replacements.iter().map(|replacement| {
            let pattern = Regex::new(&format!("(?m){}", replacement.pattern))?;
            let cases = replacement.cases.clone();
            Ok((cases, pattern, replacement.with.clone()))
        });
        let patterns: Result<Vec<_>> = replacements.collect();
        Ok(Self {
            patterns: patterns?,
        })
    }

    fn apply(&self, name: &str, text: &str, place: &Files) -> String {
        let mut text = text.to_owned();
        for (folder, with) in [
            (&place.libraries, "LIBRARIES"),
            (&place.files, "FILES"),
            (&place.place.address().folder, "SOCKETS"),
            (&place.place.cluster.address.folder, "CLUSTER"),
        ] {
            text = text.replace(&folder.display().to_string(), with);
        }
        for (cases, pattern, with) in &self.patterns {
            if cases.is_empty() || cases.iter().any(|case| case == name) {
                text = pattern.replace_all(&text, with).into_owned();
            }
        }
        text
    }
}
