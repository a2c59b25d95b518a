//! A process above the one that changes workers: where that one is killed, it puts everything back.

use std::io;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use sooner_kernel::signals::EndSignals;
use tokio::signal::unix::{SignalKind, signal};

use super::changes::Changes;
use crate::record::{self, Cleaned};

/// How the process below ended.
#[derive(Debug)]
pub enum Ended {
    /// In good order.
    Well,
    /// With an error that it has told, or by a signal. What it may have left is put back.
    Badly {
        /// Its code; none: a signal ended it.
        code: Option<u8>,
        /// What came of putting back.
        cleaned: Cleaned,
    },
}

/// Called by the process below: it ends in good order where the one above is killed.
pub fn end_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// Begins the process below and waits for its end; hands on the signals that end it. Blocks.
pub fn watch(below: &mut Command) -> io::Result<Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let status = runtime.block_on(async {
        let mut ends = EndSignals::listen()?;
        let mut children = signal(SignalKind::child())?;
        let mut child = below.spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                return io::Result::Ok(status);
            }
            tokio::select! {
                _ = ends.next() => end(&child)?,
                _ = children.recv() => {}
            }
        }
    })?;
    ended(status)
}

fn end(child: &Child) -> io::Result<()> {
    let pid = Pid::from_raw(child.id().cast_signed());
    let Some(pid) = pid else { return Ok(()) };
    // One that ended meanwhile is seen by its caller.
    let _ = kill_process(pid, Signal::TERM);
    Ok(())
}

fn ended(status: ExitStatus) -> io::Result<Ended> {
    match status.code() {
        Some(0) => Ok(Ended::Well),
        code => Ok(Ended::Badly {
            code: code.map(|code| code as u8),
            cleaned: record::clean::<Changes>()?,
        }),
    }
}
