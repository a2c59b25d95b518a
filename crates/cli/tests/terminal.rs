//! A program on a terminal of its own, which can be closed: `script` of util-linux makes it.

use rustix::process::{Pid, Signal, kill_process};
use sooner_testbed::ChildGuard;
use sooner_testbed::skip;
use std::io::{BufRead, BufReader, Lines};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than the end of any program here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// `sooner` on a terminal.
pub struct OnTerminal {
    script: ChildGuard,
    pid: Pid,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Whether there can be a terminal; says so if not.
pub fn has_script(test: &str) -> bool {
    let version = Command::new("script").arg("--version").output();
    let is_there = version.is_ok_and(|output| output.status.success());
    if !is_there {
        skip(test, "needs script (apt install bsdutils)");
    }
    is_there
}

impl OnTerminal {
    /// Starts it with `arguments` by a shell that does `before` first; `script` is the command of
    /// that name.
    pub fn start(mut script: Command, before: &str, arguments: &[&str]) -> Self {
        let program = env!("CARGO_BIN_EXE_sooner");
        let line = format!("echo $$; {before} exec {program} {}", arguments.join(" "));
        script.args(["--quiet", "--command", &line, "/dev/null"]);
        script.env("SHELL", "/bin/sh");
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = ChildGuard(script.spawn().unwrap());
        let mut lines = BufReader::new(script.stdout.take().unwrap()).lines();
        let pid = lines.next().unwrap().unwrap();
        Self {
            script,
            pid: Pid::from_raw(pid.trim().parse().unwrap()).unwrap(),
            lines,
        }
    }

    /// What it says up to the line with this word, that one last.
    pub fn until(&mut self, word: &str) -> String {
        let mut said = String::new();
        while !said.contains(word) {
            let line = self.lines.next();
            said += &line
                .unwrap_or_else(|| panic!("no {word} in {said}"))
                .unwrap();
            said.push('\n');
        }
        said
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Waits for its end; it may be left to be collected by another process.
    pub fn wait_for_end(&self) {
        let stat = format!("/proc/{}/stat", self.pid.as_raw_nonzero());
        let began = Instant::now();
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(began.elapsed() < PATIENCE, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Closes its terminal.
    pub fn close(&mut self) {
        self.script.signal(Signal::KILL).unwrap();
        self.script.wait().unwrap();
    }
}
