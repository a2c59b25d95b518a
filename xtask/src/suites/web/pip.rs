//! pip resolves and downloads packages from an index of files.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::super::run::Run;
use super::super::{Suite, fetch};
use super::needs;
use super::pair::{Setup, Way};
use super::visit::{Counted, Visit, compare};
use crate::process;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "pip",
    about: "pip with an index of files; needs python3 and Python's index for pip itself",
    prepare,
    run,
};

const PATIENCE_S: u32 = 90;
const WHEELS: &str = include_str!("scripts/wheels.py");

type Case = (&'static str, fn(&mut Visit, &Path) -> Result<Counted>);
const CASES: [Case; 7] = [
    ("index", |visit, python| {
        let mut pip = pip(visit, python, "download", &["suite-a"]);
        index(visit, &mut pip);
        download(visit, &pip)
    }),
    ("index, with a cache", |visit, python| {
        for _ in 0..2 {
            let mut pip = pip(visit, python, "download", &["suite-a"]);
            pip.arg("--cache-dir").arg(visit.folder.join("cache"));
            index(visit, &mut pip);
            download(visit, &pip)?;
            fs::remove_dir_all(visit.folder.join("out"))?;
        }
        Ok(Counted::Requests)
    }),
    ("listing", |visit, python| {
        let mut pip = pip(visit, python, "download", &["suite-a"]);
        pip.args(["--no-index", "--find-links", &visit.url("/wheels/")]);
        download(visit, &pip)
    }),
    ("hashes are demanded", |visit, python| {
        let file = visit.root.join("hashes").display().to_string();
        let mut pip = pip(
            visit,
            python,
            "download",
            &["--require-hashes", "-r", &file],
        );
        index(visit, &mut pip);
        download(visit, &pip)
    }),
    ("another file than the hash says", |visit, python| {
        visit.may_fail = true;
        let mut file = fs::read(visit.root.join("wheels/suite_c-0.1-py3-none-any.whl"))?;
        file.extend(b"more");
        fs::write(visit.root.join("wheels/suite_c-0.1-py3-none-any.whl"), file)?;
        let mut pip = pip(visit, python, "download", &["suite-c"]);
        index(visit, &mut pip);
        download(visit, &pip)
    }),
    ("no such package", |visit, python| {
        visit.may_fail = true;
        let mut pip = pip(visit, python, "download", &["suite-x"]);
        index(visit, &mut pip);
        download(visit, &pip)
    }),
    ("only the metadata of large wheels", |visit, python| {
        let report = visit.folder.join("report").display().to_string();
        let more = [
            "suite-a",
            "--dry-run",
            "--use-feature=fast-deps",
            "--report",
            &report,
        ];
        let mut pip = pip(visit, python, "install", &more);
        index(visit, &mut pip);
        visit.run("pip", PATIENCE_S, &pip)?;
        installed(visit, &report);
        Ok(Counted::Requests)
    }),
];

fn prepare(folder: &Path) -> Result<()> {
    needs::debian(&[])?;
    fetch::python(folder, &["pip==26.3"])
}

fn run(run: &mut Run) -> Result<()> {
    run.version("pip", &needs::python_version(&run.folder, "pip")?);
    let python = needs::in_environment(&run.folder, "python");
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("root");
    fs::create_dir(&root)?;
    process::output(Command::new(&python).args(["-c", WHEELS]).arg(&root))?;
    let setup = Setup {
        root: &root,
        routes: &[],
    };
    for (name, talk) in CASES {
        compare(run, name, &Way::ALL, &setup, |visit| talk(visit, &python))?;
    }
    Ok(())
}

fn pip(visit: &Visit, python: &Path, what: &str, more: &[&str]) -> Command {
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "--isolated",
        "--disable-pip-version-check",
        what,
    ]);
    pip.args(["--retries", "0", "--timeout", "20", "--cert"])
        .arg(&visit.authority);
    // They would go before what `--cert` says.
    pip.env_remove("REQUESTS_CA_BUNDLE")
        .env_remove("CURL_CA_BUNDLE");
    if what == "download" {
        pip.arg("--dest").arg(visit.folder.join("out"));
    }
    pip.arg("--no-cache-dir").args(more);
    pip
}

fn index(visit: &Visit, pip: &mut Command) {
    pip.args(["--index-url", &visit.url("/simple/")]);
}

/// Runs it, and notes the files that came.
fn download(visit: &mut Visit, pip: &Command) -> Result<Counted> {
    visit.run("pip", PATIENCE_S, pip)?;
    let out = fs::read_dir(visit.folder.join("out")).into_iter().flatten();
    let mut files: Vec<_> = out.flatten().map(|file| file.path()).collect();
    files.sort();
    for file in files {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        visit.hash(&name, &file);
    }
    Ok(Counted::Requests)
}

/// Notes what would be installed.
fn installed(visit: &mut Visit, report: &str) {
    let report = fs::read(report).unwrap_or_default();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap_or_default();
    let items = report["install"].as_array().into_iter().flatten();
    let mut names: Vec<String> = items
        .map(|item| {
            format!(
                "{} {}",
                item["metadata"]["name"], item["metadata"]["version"]
            )
        })
        .collect();
    names.sort();
    visit.note(format!("would install: {}", names.join(", ")));
}
