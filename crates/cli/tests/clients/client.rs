//! How a client is tried: in every way it can speak, with the whole table.

use super::site::Site;
use super::table::{Case, Got, cases};
use super::way::Way;
use sooner_testbed::skip;
use std::process::{Command, Output, Stdio};

/// A program that asks for files.
pub struct Client {
    /// How it can speak.
    pub ways: &'static [Way],
    /// The cases that it cannot ask for.
    pub cannot: &'static [&'static str],
    /// Whether it unpacks what comes packed.
    pub unpacks: bool,
    /// Over how many connections it asks for all cases; `None`: for each over its own.
    pub connections_max: fn(Way) -> Option<usize>,
    /// Asks for the cases, one after the other.
    pub ask: fn(&Site, Way, &[Case]) -> Vec<Got>,
}

impl Client {
    /// Asks for everything, and compares what came with the files and with the server's log.
    pub fn check(&self) {
        for &way in self.ways {
            let site = Site::start();
            let mut cases = cases(&site);
            cases.retain(|case| !self.cannot.contains(&case.name));
            let answers = (self.ask)(&site, way, &cases);
            assert_eq!(answers.len(), cases.len(), "{way:?}");
            for (case, got) in cases.iter().zip(&answers) {
                case.check(got, &site, way, self.unpacks);
            }
            let visits = site.stop();
            visits.check(way);
            assert!(visits.count() >= cases.len(), "{way:?}");
            if let Some(connections_max) = (self.connections_max)(way) {
                assert!(visits.connections() <= connections_max, "{way:?}");
            }
        }
    }
}

/// Whether `words`, a program and what it can do at once, cannot be run; then says so in the way
/// `cargo xtask test` counts.
pub fn is_missing(test: &str, words: &[&str], package: &str) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_missing = !status.is_ok_and(|status| status.success());
    if is_missing {
        skip(
            test,
            &format!("no {package}; as root: apt-get install {package}"),
        );
    }
    is_missing
}

/// A command that asks this machine, whatever proxies its user has.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command
}

/// Runs `command` to its end, which must be a good one.
pub fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}
