//! Ending attachments to servers' processes, and putting back what killed ones changed.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::control;
use crate::record::{self, Record, name_of};

/// How long a process has to end after it was asked to; said in an error.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Why an attachment could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum DetachError {
    /// It does not listen to us.
    #[error("cannot end process {pid}: {source}; run as the user it runs as, or as root")]
    Signal {
        /// The process.
        pid: Pid,
        /// What the kernel says.
        source: io::Error,
    },
    /// It does not end.
    #[error("process {0} has not ended 10 s after it was asked to")]
    Stays(Pid),
    /// What is attached cannot be found out, or put back.
    #[error("cannot restore what was changed for {kind}: {source}")]
    System {
        /// What.
        kind: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

/// What was done for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detached {
    /// A process was asked to end, and did.
    Ended {
        /// What it was called.
        name: String,
        /// The process.
        pid: Pid,
    },
    /// What a killed process changed was put back.
    Cleaned {
        /// The server's first process.
        server: u32,
    },
}

/// What is ended and put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All that is attached, and what killed processes left.
    All,
    /// Only what killed processes left: who lives goes on.
    OfKilled,
}

/// Attachments of a kind.
#[derive(Debug, Default)]
pub struct Found {
    /// The names and processes of those that answer.
    pub names: Vec<(String, Pid)>,
    /// Of which it cannot be found out whether they do, a line each.
    pub problems: Vec<String>,
}

/// All attachments of a kind, or the one to the server with this first process.
pub fn attached<R: Record>(server: Option<u32>) -> io::Result<Found> {
    let wanted = server.map(name_of::<R>);
    let mut found = Found::default();
    for name in control::names(R::NAME_BEGIN)? {
        if wanted.as_ref().is_some_and(|wanted| *wanted != name) {
            continue;
        }
        match control::holder(&name) {
            Ok(Some(pid)) => found.names.push((name, pid)),
            Ok(None) => {}
            Err(error) => {
                let words = format!("cannot find out what is attached: {error}");
                found.problems.push(words);
            }
        }
    }
    Ok(found)
}

/// Ends all attachments of a kind and puts back what killed ones changed, or only the latter; or
/// that of the server with this first process. What could not be done comes as well, a line each.
pub fn detach<R: Record>(
    which: Which,
    server: Option<u32>,
) -> Result<(Vec<Detached>, Vec<String>), DetachError> {
    let refused = |source| DetachError::System {
        kind: R::KIND,
        source,
    };
    let mut done = Vec::new();
    let Found {
        names,
        mut problems,
    } = match which {
        Which::All => attached::<R>(server).map_err(refused)?,
        Which::OfKilled => Found::default(),
    };
    for (name, pid) in names {
        match end::<R>(&name, pid) {
            Ok(()) => done.push(Detached::Ended { name, pid }),
            Err(error) => problems.push(error.to_string()),
        }
    }
    match record::clean_of::<R>(server) {
        Ok(cleaned) => {
            let servers = cleaned.servers.into_iter();
            done.extend(servers.map(|server| Detached::Cleaned { server }));
            problems.extend(cleaned.problems);
        }
        Err(source) => problems.push(refused(source).to_string()),
    }
    Ok((done, problems))
}

/// Asks one to end, and waits for it.
fn end<R: Record>(name: &str, pid: Pid) -> Result<(), DetachError> {
    kill_process(pid, Signal::TERM).map_err(|errno| DetachError::Signal {
        pid,
        source: errno.into(),
    })?;
    let begin = Instant::now();
    // Its socket goes last, when everything is put back.
    let holder = || {
        control::holder(name).map_err(|source| DetachError::System {
            kind: R::KIND,
            source,
        })
    };
    while holder()? == Some(pid) {
        if begin.elapsed() > PATIENCE {
            return Err(DetachError::Stays(pid));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
