//! The signals that end what is under way: Ctrl-C, a service manager, a terminal that is gone, a
//! pipe without a reader.

use crate::raw;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a process by default and are meant for it: SIGINT, SIGTERM, SIGHUP, SIGQUIT,
/// SIGUSR1, SIGUSR2 and SIGALRM. None ends anything by itself as long as this is there.
pub struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
    /// What other programs take for a word of their operator's.
    others: [Signal; 3],
}

impl EndSignals {
    /// Listens from now on; needs a tokio runtime around it.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            others: [
                signal(SignalKind::user_defined1())?,
                signal(SignalKind::user_defined2())?,
                signal(SignalKind::alarm())?,
            ],
        })
    }

    /// Waits for the next of them; says what happened.
    pub async fn next(&mut self) -> &'static str {
        let [first, second, alarm] = &mut self.others;
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted",
            _ = self.terminate.recv() => "terminated",
            _ = self.hangup.recv() => "the terminal is gone",
            _ = self.quit.recv() => "quit",
            _ = first.recv() => "ended by SIGUSR1",
            _ = second.recv() => "ended by SIGUSR2",
            _ = alarm.recv() => "ended by SIGALRM",
        }
    }
}

/// Signals of this thread wait as long as this is there. While one is pending the kernel gives up
/// checking a BPF program, with EAGAIN, and what loads it would look for mistakes in it for a minute.
pub(crate) struct Held(raw::SignalMask);

impl Held {
    /// From now on.
    pub(crate) fn begin() -> io::Result<Self> {
        raw::block_signals().map(Self)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        raw::set_blocked_signals(&self.0);
    }
}

/// Ends this process by SIGPIPE, as `cat` ends when its reader leaves. Destructors do not run: call
/// it last.
pub fn end_by_closed_pipe() {
    raw::raise_sigpipe();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::{Workers, lacks_for_workers};
    use rustix::thread::gettid;
    use sooner_testbed::skip;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn programs_are_loaded_while_signals_come() {
        let test = "programs_are_loaded_while_signals_come";
        if let Some(lacks) = lacks_for_workers() {
            return skip(test, &format!("needs {lacks}"));
        }
        let (tell, told) = mpsc::channel();
        let loading = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let _signals = EndSignals::listen().unwrap();
                tell.send(gettid()).unwrap();
                Workers::watch().map(drop)
            })
        });
        let thread = told.recv().unwrap();
        while !loading.is_finished() {
            raw::signal_thread(thread.as_raw_nonzero().get(), libc::SIGHUP);
            thread::sleep(Duration::from_millis(1));
        }
        loading.join().unwrap().unwrap();
    }
}
