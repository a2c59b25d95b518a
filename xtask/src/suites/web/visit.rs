//! One client's visit to a server, and what is compared of it: a text of a line for each thing
//! seen.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};

use super::super::case::{Case, Tried};
use super::super::expected::is_like;
use super::super::fetch;
use super::super::run::Run;
use super::pair::{Answered, Server, Setup, Way, Which};
use crate::process;
use sooner_testbed::certificate::Certificate;

/// What `timeout` ends with when it had to end the program.
const ENDED_BY_TIMEOUT: i32 = 124;

/// What of the requests is compared.
pub enum Counted {
    Nothing,
    /// Each method, target and status, and how often.
    Requests,
    /// Which statuses there were, where their number depends on the moment.
    KindsOfStatuses,
}

/// A client's visit to one server in one way.
pub struct Visit<'a> {
    pub server: &'a Server,
    pub way: Way,
    /// New, for what the client leaves behind.
    pub folder: PathBuf,
    /// What is served: a copy that may be changed.
    pub root: PathBuf,
    /// For clients that are to trust it.
    pub authority: PathBuf,
    /// Whether the client may end with an error, which elsewhere says that the case is wrong when
    /// nginx answers.
    pub may_fail: bool,
    seen: String,
    /// All that the client printed.
    printed: String,
}

impl Visit<'_> {
    pub fn url(&self, path: &str) -> String {
        self.server.url(self.way, path)
    }

    /// Notes a line that is compared.
    pub fn note(&mut self, line: impl Display) {
        let _ = writeln!(self.seen, "{line}");
    }

    /// Runs a client for so many seconds at most, and notes how it ended.
    pub fn run(&mut self, what: &str, seconds: u32, command: &Command) -> Result<Output> {
        let output = limited(seconds, command, &self.folder)?;
        let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let _ = writeln!(self.printed, "== {what}\n{}{}", texts[0], texts[1]);
        let is_wrong = self.server.which == Which::Nginx && !self.may_fail;
        ensure!(
            output.status.success() || !is_wrong,
            "{what} failed with nginx: {}",
            texts[1]
        );
        match output.status.code() {
            Some(ENDED_BY_TIMEOUT) => self.note(format!("{what}: no end within {seconds} s")),
            Some(code) => self.note(format!("{what}: exit code {code}")),
            None => self.note(format!("{what}: ended by a signal")),
        }
        Ok(output)
    }

    /// Notes what a file holds.
    pub fn hash(&mut self, name: &str, path: &Path) {
        match process::output(Command::new("sha256sum").arg(path)) {
            Ok(line) => self.note(format!("{name}: {}", line.get(..16).unwrap_or(&line))),
            Err(_) => self.note(format!("{name}: not there")),
        }
    }

    /// Notes what a client printed, without what differs for each server.
    pub fn text(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let server = self.server;
        let mut text = text.replace(&*self.folder.to_string_lossy(), "FOLDER");
        for port in [server.clear, server.clear2, server.tls] {
            text = text.replace(&format!(":{port}"), ":PORT");
        }
        self.note(text.trim_end());
    }
}

/// What of the requests is compared, in lines.
fn counts(counted: &Counted, answered: &[Answered]) -> String {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for one in answered {
        let key = match counted {
            Counted::Nothing => continue,
            Counted::KindsOfStatuses => one.status.to_string(),
            Counted::Requests => format!(
                "{} {} {}",
                one.method.as_deref().unwrap_or_default(),
                one.target.as_deref().unwrap_or_default(),
                one.status
            ),
        };
        *counts.entry(key).or_default() += 1;
    }
    let line = |(key, count)| match counted {
        Counted::KindsOfStatuses => format!("status: {key}\n"),
        _ => format!("requests: {count} x {key}\n"),
    };
    counts.into_iter().map(line).collect()
}

/// Plays a case in each way against both servers, and hands it to the run. An error in the client's
/// part is an outcome; only what keeps nginx from being asked is an error here.
pub fn compare(
    run: &mut Run,
    case: &str,
    ways: &[Way],
    setup: &Setup,
    talk: impl Fn(&mut Visit) -> Result<Counted>,
) -> Result<()> {
    if !is_chosen(run, case) {
        return Ok(());
    }
    eprintln!("{case}");
    let (mut reference, mut tried) = (String::new(), Vec::new());
    for way in ways {
        let text = |which| {
            play(run, case, *way, which, setup, &talk)
                .with_context(|| format!("{case}, {}, {}", way.name(), Which::name(which)))
        };
        let (nginx, sooner) = (text(Which::Nginx)?, text(Which::Sooner)?);
        tried.push(Tried::text(way.name(), &nginx, &sooner));
        reference = nginx;
    }
    let case = Case {
        name: case.to_owned(),
        reference: format!("{} lines", reference.lines().count()),
        tried,
    };
    run.case(&case)
}

/// Whether a case is to be run.
pub fn is_chosen(run: &Run, case: &str) -> bool {
    let is_named = run.only.iter().any(|only| is_like(only, case));
    (run.only.is_empty() || is_named) && !run.expected.leaves_out(case)
}

fn play(
    run: &Run,
    case: &str,
    way: Way,
    which: Which,
    setup: &Setup,
    talk: impl Fn(&mut Visit) -> Result<Counted>,
) -> Result<String> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path().join("client");
    fs::create_dir(&folder)?;
    let root = scratch.path().join("root");
    process::output(Command::new("cp").arg("-a").args([setup.root, &root]))?;
    let setup = Setup {
        root: &root,
        ..*setup
    };
    let mut server = Server::start(run, which, &setup, &scratch.path().join("server"))?;
    let mut visit = Visit {
        server: &server,
        way,
        folder,
        root: root.clone(),
        authority: Certificate::of_authority(&run.folder, &["localhost", "127.0.0.1"])?.certificate,
        may_fail: false,
        seen: String::new(),
        printed: String::new(),
    };
    let counted = talk(&mut visit)?;
    let Visit {
        mut seen, printed, ..
    } = visit;
    if server.is_over() {
        seen += "the server ended by itself\n";
    }
    let answered = server.stop()?;
    seen += &counts(&counted, &answered);
    let output = run.output(&format!("{}, {}", which.name(), way.name()), case)?;
    fs::write(output, format!("{}\n{}", seen, printed))?;
    Ok(seen)
}

/// The same command, in this folder and ended after so many seconds; what it prints is kept.
pub fn limited(seconds: u32, command: &Command, folder: &Path) -> Result<Output> {
    let mut limited = fetch::patient(seconds, command.get_program());
    limited.args(command.get_args());
    limited.current_dir(command.get_current_dir().unwrap_or(folder));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    for name in ["no_proxy", "NO_PROXY"] {
        limited.env(name, "127.0.0.1");
    }
    let output = limited.stdin(Stdio::null()).output();
    output.with_context(|| format!("cannot run {}", command.get_program().display()))
}
