//! What signals ask of a command that runs for long.

use crate::lines::say;
use std::fs;
use std::future::pending;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGXFSZ, which tokio has no name for.
const FILE_TOO_LARGE: SignalKind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// SIGTERM, SIGINT or SIGQUIT: end; the second time at once.
    Stop,
    /// SIGHUP: read again what there is to read.
    Reload,
    /// SIGUSR1: the log was renamed, open it anew.
    ReopenLogs,
}

/// What SIGHUP means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HangUp {
    /// Files are to be read again.
    Reread,
    /// The terminal closes. Ending for it too: bands would outlive it.
    Stop,
    /// There are no files, and no terminal that could close: a reload that finds nothing new.
    Nothing,
    /// The terminal closes, and the process is to go on: it was started so, as by nohup.
    Ignored,
}

impl HangUp {
    /// What it means to this process; `has_files` says whether there are files to read again. To be
    /// called before signals are taken over.
    fn here(has_files: bool) -> Self {
        // What cannot be read is taken for the common case.
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        if has_files {
            Self::Reread
        } else if ignores_hang_up(&read("/proc/self/status")) {
            Self::Ignored
        } else if has_terminal(&read("/proc/self/stat")) {
            Self::Stop
        } else {
            Self::Nothing
        }
    }

    /// Which signals do something.
    fn in_words(self) -> &'static str {
        match self {
            Self::Reread => "SIGTERM stops, SIGHUP reads the configuration again",
            Self::Stop => "SIGTERM and SIGHUP stop",
            Self::Nothing | Self::Ignored => "SIGTERM stops",
        }
    }
}

/// Out of `/proc/self/status`: whether SIGHUP, the first signal, is ignored.
fn ignores_hang_up(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & 1 != 0)
}

/// Out of `/proc/self/stat`: whether the process has a controlling terminal. The name in front may
/// have blanks and brackets.
fn has_terminal(stat: &str) -> bool {
    const AFTER_NAME: usize = 4;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(AFTER_NAME) != Some("0")
}

/// The signals, from the moment this is made.
pub struct Signals {
    /// None where it is ignored, and stays so.
    hang_up: Option<Signal>,
    user_defined: Signal,
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    /// What means nothing here, and would end the process with everything it has set up in place.
    others: [Signal; 2],
    /// A file at its size limit, which is an error of the write that meets it.
    _file_too_large: Signal,
    at_hang_up: HangUp,
}

impl Signals {
    /// Takes the signals over from the system's defaults; `has_files` says that SIGHUP means to read
    /// files again, not that a terminal closes.
    pub fn new(has_files: bool) -> io::Result<Self> {
        let at_hang_up = HangUp::here(has_files);
        let hang_up = match at_hang_up {
            HangUp::Ignored => None,
            _ => Some(signal(SignalKind::hangup())?),
        };
        Ok(Self {
            hang_up,
            user_defined: signal(SignalKind::user_defined1())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            others: [
                signal(SignalKind::user_defined2())?,
                signal(SignalKind::alarm())?,
            ],
            _file_too_large: signal(FILE_TOO_LARGE)?,
            at_hang_up,
        })
    }

    /// Waits for the next one that asks for something; says it of those that do not.
    pub async fn next(&mut self) -> Action {
        loop {
            let [user_defined, alarm] = &mut self.others;
            let ignored = tokio::select! {
                _ = self.terminate.recv() => return Action::Stop,
                _ = self.interrupt.recv() => return Action::Stop,
                _ = self.quit.recv() => return Action::Stop,
                () = next_of(&mut self.hang_up) => return match self.at_hang_up {
                    HangUp::Stop => Action::Stop,
                    HangUp::Reread | HangUp::Nothing | HangUp::Ignored => Action::Reload,
                },
                _ = self.user_defined.recv() => return Action::ReopenLogs,
                _ = user_defined.recv() => "SIGUSR2",
                _ = alarm.recv() => "SIGALRM",
            };
            let words = self.at_hang_up.in_words();
            say(format_args!("{ignored} means nothing here: {words}"));
        }
    }
}

async fn next_of(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_first_bit() {
        let ignores = |bits| ignores_hang_up(&format!("SigBlk:\t1\nSigIgn:\t{bits}\n"));
        assert!(ignores("0000000000000001") && ignores("0000000000001001"));
        assert!(!ignores("0000000000001000") && !ignores("") && !ignores_hang_up(""));
    }

    #[test]
    fn a_terminal_is_the_fifth_field_behind_the_name() {
        assert!(has_terminal("7 (a) 0) b) S 1 7 7 34816 7"));
        assert!(!has_terminal("7 (sooner) S 1 7 7 0 -1"));
        assert!(has_terminal(""), "not known");
    }
}
