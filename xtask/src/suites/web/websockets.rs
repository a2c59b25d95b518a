//! WebSockets through a route: conversations of the package `websockets`, and the cases of the
//! Autobahn test suite, which `kosoku` plays with Python 3.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::super::case::{Case, Tried};
use super::super::run::Run;
use super::super::servers::die_with_us;
use super::super::{Suite, fetch};
use super::backend::Backend;
use super::needs;
use super::pair::{Kind, Route, Server, Setup, Way, Which};
use super::visit::{Counted, compare, is_chosen, limited};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "websockets",
    about: "websockets and Autobahn's cases by kosoku; needs python3 and Python's index",
    prepare,
    run,
};

const PATIENCE_S: u32 = 60;
const AUTOBAHN_PATIENCE_S: u32 = 300;
const SERVER: &str = include_str!("scripts/websocket_server.py");
const CLIENT: &str = include_str!("scripts/websocket_client.py");
const CASES: [&str; 12] = [
    "handshake",
    "frames",
    "compressed",
    "fragments",
    "pipelined",
    "ping",
    "close codes",
    "backend ends the connection",
    "backend resets the connection",
    "refused",
    "client leaves",
    "many at once",
];
/// Autobahn's cases but for most of those that measure (9) and of those that repeat compression
/// with other sizes and windows (12 and 13), which take hours: what is between sees bytes.
const AUTOBAHN: [&str; 21] = [
    "1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.1.6", "9.2.6", "9.7.1", "9.8.1", "10.*",
    "12.1.1", "12.2.1", "13.1.1", "13.2.1", "13.3.1", "13.4.1", "13.5.1", "13.6.1", "13.7.1",
];

fn prepare(folder: &Path) -> Result<()> {
    needs::debian(&[])?;
    fetch::python(folder, &["websockets==17.4", "kosoku==0.1.0"])
}

fn run(run: &mut Run) -> Result<()> {
    for package in ["websockets", "kosoku"] {
        run.version(package, &needs::python_version(&run.folder, package)?);
    }
    let python = needs::in_environment(&run.folder, "python");
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("root");
    fs::create_dir(&root)?;
    let mut serve = die_with_us();
    serve.arg(&python);
    let backend = Backend::start(serve.args(["-c", SERVER]), scratch.path())?;
    let routes = [Route {
        path: "/ws",
        port: backend.port,
        kind: Kind::WebSocket,
    }];
    let setup = Setup {
        root: &root,
        routes: &routes,
    };
    for case in CASES {
        compare(run, case, &Way::ALL, &setup, |visit| {
            let mut client = Command::new(&python);
            let url = visit.url("/ws").replacen("http", "ws", 1);
            client.args(["-c", CLIENT, &url, case]);
            if visit.way == Way::Tls {
                client.arg(&visit.authority);
            }
            let output = visit.run("client", PATIENCE_S, &client)?;
            visit.text(&output.stdout);
            Ok(Counted::Nothing)
        })?;
    }
    autobahn(run, &setup, scratch.path())
}

/// kosoku speaks in clear text only. What is between the backend and it sees bytes either way.
fn autobahn(run: &mut Run, setup: &Setup, scratch: &Path) -> Result<()> {
    let play = |which| {
        let server = Server::start(run, which, setup, &scratch.join(Which::name(which)))?;
        outcomes(
            run,
            &server,
            &scratch.join(format!("{}-report", Which::name(which))),
        )
    };
    let (nginx, sooner) = (play(Which::Nginx)?, play(Which::Sooner)?);
    for (number, reference) in nginx {
        let name = format!("autobahn {number}");
        if !is_chosen(run, &name) {
            continue;
        }
        let outcome = sooner.get(&number).map_or("not played", String::as_str);
        let tried = vec![Tried::word(Way::Clear.name(), &reference, outcome, "")];
        run.case(&Case {
            name,
            reference,
            tried,
        })?;
    }
    Ok(())
}

/// A case, in the report's index.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    behavior: String,
    behavior_close: String,
}

impl Outcome {
    /// The report counts the first three as conforming, and which of them it is depends on the
    /// moment at which an echo comes.
    fn word(&self) -> String {
        let conforms = ["OK", "NON-STRICT", "INFORMATIONAL"];
        let words = [&self.behavior, &self.behavior_close].map(|word| {
            if conforms.contains(&word.as_str()) {
                "conforms"
            } else {
                word
            }
        });
        words.join(", ")
    }
}

fn outcomes(run: &Run, server: &Server, report: &PathBuf) -> Result<BTreeMap<String, String>> {
    let mut kosoku = Command::new(needs::in_environment(&run.folder, "kosoku"));
    kosoku.args(["--mode", "fuzzingclient", "--parallelism", "4", "--outdir"]);
    kosoku.arg(report);
    for case in AUTOBAHN {
        kosoku.args(["--include", case]);
    }
    kosoku.arg(format!("ws://127.0.0.1:{}/ws", server.clear));
    let output = limited(AUTOBAHN_PATIENCE_S, &kosoku, &run.folder)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let index = fs::read(report.join("index.json")).with_context(|| format!("kosoku: {said}"))?;
    let agents: BTreeMap<String, BTreeMap<String, Outcome>> = serde_json::from_slice(&index)?;
    let cases = agents.into_values().flatten();
    Ok(cases
        .map(|(case, outcome)| (case, outcome.word()))
        .collect())
}
