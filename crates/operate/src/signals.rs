//! What signals ask of a command that runs for long.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// SIGTERM or SIGINT: end; the second time at once.
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
            // Ending for the terminal too: bands would outlive it.
            at_hang_up: if reloads {
                Action::Reload
            } else {
                Action::Stop
            },
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Action {
        tokio::select! {
            _ = self.terminate.recv() => Action::Stop,
            _ = self.interrupt.recv() => Action::Stop,
            _ = self.hang_up.recv() => self.at_hang_up,
            _ = self.user_defined.recv() => Action::ReopenLogs,
        }
    }
}
