//! h2spec: what the standards of HTTP/2 demand, case by case. All should pass; where one does not,
//! nginx's outcome stands beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::super::Suite;
use super::super::case::{Case, Tried};
use super::super::run::Run;
use super::super::servers::die_with_us;
use super::backend::Backend;
use super::needs;
use super::pair::{Kind, Route, Server, Setup, Way, Which};
use super::visit::{is_chosen, limited};
use super::zsync::noise;
use crate::process;
use crate::tally::Tally;
use sooner_testbed::junit::{self, Outcome};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "h2spec",
    about: "all cases of h2spec, for a file and for a route; needs Go and its module proxy",
    prepare,
    run,
};

/// For all cases; nginx leaves a score of them to wait in vain.
const PATIENCE_S: u32 = 400;
const ANSWER_SECONDS_MAX: &str = "5";
const PASSED: &str = "passed";
/// Longer than the windows of a client that says nothing of them, so that a stream with this answer
/// is open until it opens them.
const BODY_BYTES: usize = 100_000;
const TARGETS: [(&str, &str); 2] = [("file", "/two-windows.bin"), ("route", "/backend/")];
const MODULES: &str = include_str!("../../../h2spec/go.mod");
const BACKEND: &str = include_str!("scripts/reader.py");

fn prepare(_: &Path) -> Result<()> {
    needs::debian(&[needs::program("python3", "python3")])?;
    crate::h2spec::build(&mut Tally::default())?;
    ensure!(program().exists(), "h2spec could not be built");
    Ok(())
}

fn program() -> std::path::PathBuf {
    process::root().join("target/h2spec/h2spec")
}

fn run(run: &mut Run) -> Result<()> {
    // The program gives the same version whatever it was built from.
    let mut words = MODULES.split_whitespace();
    let version = words.find(|word| word.ends_with("+incompatible"));
    run.version("h2spec", version.unwrap_or_default());
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("root");
    fs::create_dir(&root)?;
    fs::write(root.join("two-windows.bin"), noise(BODY_BYTES, 8))?;
    let mut serve = die_with_us();
    serve.arg("python3");
    let backend = Backend::start(
        serve.args(["-c", BACKEND, &BODY_BYTES.to_string()]),
        scratch.path(),
    )?;
    let routes = [Route {
        path: "/backend",
        port: backend.port,
        kind: Kind::Http,
    }];
    let setup = Setup {
        root: &root,
        routes: &routes,
    };
    let mut cases: BTreeMap<String, Vec<Tried>> = BTreeMap::new();
    for (target, path) in TARGETS {
        for way in Way::ALL {
            let play = |which| -> Result<Vec<Outcome>> {
                let folder =
                    scratch
                        .path()
                        .join(format!("{}-{target}-{}", Which::name(which), way.tag()));
                let server = Server::start(run, which, &setup, &folder)?;
                outcomes(&server, way, path, &folder)
            };
            // What nginx does with a case is told where sooner fails it.
            let (nginx, sooner) = (play(Which::Nginx)?, play(Which::Sooner)?);
            let way = format!("{target}, {}", way.name());
            for outcome in sooner {
                let also = nginx.iter().find(|other| other.case == outcome.case);
                let also = also.map_or("not played", word);
                let said = outcome.failure.clone().unwrap_or_default();
                let said = format!("{}: {said} (nginx: {also})", outcome.title);
                let tried = Tried::word(&way, PASSED, word(&outcome), &said);
                cases.entry(outcome.case).or_default().push(tried);
            }
        }
    }
    for (name, tried) in cases {
        if is_chosen(run, &name) {
            run.case(&Case {
                name,
                reference: PASSED.to_owned(),
                tried,
            })?;
        }
    }
    Ok(())
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome.failure {
        None => PASSED,
        Some(_) => "failed",
    }
}

fn outcomes(server: &Server, way: Way, path: &str, folder: &Path) -> Result<Vec<Outcome>> {
    let report = folder.join("report.xml");
    let port = if way == Way::Tls {
        server.tls
    } else {
        server.clear2
    };
    let mut h2spec = Command::new(program());
    h2spec
        .args(["--strict", "--path", path, "--timeout", ANSWER_SECONDS_MAX])
        .args(["--host", "127.0.0.1", "--port", &port.to_string()])
        .arg("--junit-report")
        .arg(&report);
    if way == Way::Tls {
        h2spec.args(["--tls", "--insecure"]);
    }
    let output = limited(PATIENCE_S, &h2spec, folder)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let report = fs::read_to_string(report).with_context(|| {
        format!(
            "h2spec ended before its end against {}: {said}",
            server.which.name()
        )
    })?;
    Ok(junit::read(&report))
}
