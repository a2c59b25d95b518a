//! The signals that end what is under way: Ctrl-C, a service manager, a terminal that is gone, a
//! pipe without a reader.

use crate::raw;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP, which end nothing by themselves as long as this is there.
pub struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl EndSignals {
    /// Listens from now on; needs a tokio runtime around it.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next of them; says what happened.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted",
            _ = self.terminate.recv() => "terminated",
            _ = self.hangup.recv() => "the terminal is gone",
        }
    }
}

/// Ends this process by SIGPIPE, as `cat` ends when its reader leaves. Destructors do not run: call
/// it last.
pub fn end_by_closed_pipe() {
    raw::raise_sigpipe();
}
