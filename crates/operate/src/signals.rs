//! What signals ask of a command that runs for long.

use crate::lines::say;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGXFSZ, which tokio has no name for.
const FILE_TOO_LARGE: SignalKind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// SIGTERM, SIGINT or SIGQUIT: end; the second time at once.
    Stop,
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGUSR1: the log was renamed, open it anew.
    ReopenLogs,
}

/// The signals, from the moment this is made.
pub struct Signals {
    hang_up: Signal,
    user_defined: Signal,
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    /// What means nothing here, and would end the process with everything it has set up in place.
    others: [Signal; 2],
    /// A file at its size limit, which is an error of the write that meets it.
    _file_too_large: Signal,
    /// What SIGHUP means: a terminal that closes, unless there is a configuration file to read
    /// again.
    at_hang_up: Action,
}

impl Signals {
    /// Takes the signals over from the system's defaults; `reloads` says that SIGHUP means a reload
    /// and not the end.
    pub fn new(reloads: bool) -> io::Result<Self> {
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            user_defined: signal(SignalKind::user_defined1())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            others: [
                signal(SignalKind::user_defined2())?,
                signal(SignalKind::alarm())?,
            ],
            _file_too_large: signal(FILE_TOO_LARGE)?,
            // Ending for the terminal too: bands would outlive it.
            at_hang_up: if reloads {
                Action::Reload
            } else {
                Action::Stop
            },
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
                _ = self.hang_up.recv() => return self.at_hang_up,
                _ = self.user_defined.recv() => return Action::ReopenLogs,
                _ = user_defined.recv() => "SIGUSR2",
                _ = alarm.recv() => "SIGALRM",
            };
            say(format_args!(
                "{ignored} means nothing here: SIGTERM stops, SIGHUP reads the configuration again"
            ));
        }
    }
}
