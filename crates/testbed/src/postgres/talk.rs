//! A psql that a test talks with, command by command.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::signal_child_of;

/// A psql that is talked with, command by command.
pub struct Talk {
    psql: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// What psql prints behind each answer.
const END: &str = "=end=";

impl Talk {
    /// Starts it.
    pub fn begin(psql: &mut Command) -> Talk {
        let mut psql = psql
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (psql.stdin.take().unwrap(), psql.stdout.take().unwrap());
        let from = BufReader::new(from);
        Talk { psql, to, from }
    }

    /// Sends a command.
    pub fn say(&mut self, sql: &str) {
        writeln!(self.to, "{sql};\n\\echo {END}").unwrap();
    }

    /// What it printed, without the tags of commands.
    pub fn hear(&mut self) -> String {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(
                self.from.read_line(&mut line).unwrap() > 0,
                "psql has ended: {lines:?}"
            );
            match line.trim_end() {
                END => return lines.join("\n"),
                text => lines.push(text.to_owned()),
            }
        }
    }

    /// Both.
    pub fn ask(&mut self, sql: &str) -> String {
        self.say(sql);
        self.hear()
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) {
        signal_child_of(self.psql.id(), "-KILL");
        let _ = self.psql.wait();
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = writeln!(self.to, "\\q");
        let _ = self.psql.wait();
    }
}
