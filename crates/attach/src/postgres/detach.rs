//! Ending attachments to servers that run, and putting back what killed ones changed.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::leftovers::{self, NAME_BEGIN};
use crate::control;

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
    #[error("cannot put back what is attached to PostgreSQL servers: {0}")]
    System(#[from] io::Error),
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

/// Names of all attachments to servers that answer.
pub fn attached() -> io::Result<Vec<(String, Pid)>> {
    let mut found = Vec::new();
    for name in control::names(NAME_BEGIN)? {
        if let Some(pid) = control::holder(&name)? {
            found.push((name, pid));
        }
    }
    Ok(found)
}

/// Ends all attachments to servers, and puts back what killed ones changed. What could not be done
/// comes as well, a line each.
pub fn detach() -> Result<(Vec<Detached>, Vec<String>), DetachError> {
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for (name, pid) in attached()? {
        match end(&name, pid) {
            Ok(()) => done.push(Detached::Ended { name, pid }),
            Err(error) => problems.push(error.to_string()),
        }
    }
    let cleaned = leftovers::clean()?;
    let servers = cleaned.servers.into_iter();
    done.extend(servers.map(|server| Detached::Cleaned { server }));
    problems.extend(cleaned.problems);
    Ok((done, problems))
}

/// Asks one to end, and waits for it.
fn end(name: &str, pid: Pid) -> Result<(), DetachError> {
    kill_process(pid, Signal::TERM).map_err(|errno| DetachError::Signal {
        pid,
        source: errno.into(),
    })?;
    let begin = Instant::now();
    // Its socket goes last, when everything is put back.
    while control::holder(name)? == Some(pid) {
        if begin.elapsed() > PATIENCE {
            return Err(DetachError::Stays(pid));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
