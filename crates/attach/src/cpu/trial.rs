//! Whether nice values and weights have an effect here: two processes of our own compete for one
//! processor for a moment, and what each gets is the answer.

use std::fmt;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal, setsid};
use serde::{Deserialize, Serialize};
use sooner_kernel::{priority, process_table};
use tokio::time::sleep;

use crate::self_test::{Outcome, compare, stay_on_one};

/// A competitor ends by itself after so long, whatever happens.
const COMPETES_MAX: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
/// Between two looks at the time.
const TURNS: u32 = 100_000;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tried {
    /// Nice values, between processes of one session.
    Nice,
    /// The nice value of a session's autogroup.
    Autogroup,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Of what.
    pub tried: Tried,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.tried {
            Tried::Nice => "nice values between workers",
            Tried::Autogroup => "weights of sessions",
        };
        let Outcome { share, refused } = &self.outcome;
        match (share, refused) {
            (Some(share), _) if self.outcome.works() => {
                write!(f, "{what} work ({:.0} % of a processor)", 100.0 * share)
            }
            (Some(share), _) => write!(f, "{what} have no effect ({:.0} %)", 100.0 * share),
            (None, refused) => {
                let refused = refused.as_deref().unwrap_or("not tried");
                write!(f, "{what} are refused ({refused})")
            }
        }
    }
}

/// Keeps a processor busy until it is ended: what a competitor does. Its arguments are those of
/// `program` in [`test()`].
pub fn compete(has_own_session: bool) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if has_own_session {
        setsid()?;
    }
    let begin = Instant::now();
    while begin.elapsed() < COMPETES_MAX {
        for turn in 0..TURNS {
            std::hint::black_box(turn);
        }
    }
    Ok(())
}

/// Tries one. `program` begins a competitor, with `--own-session` behind it where it is to have
/// one.
pub async fn test(tried: Tried, program: &dyn Fn() -> Command) -> Trial {
    Trial {
        tried,
        outcome: measure(tried, program).await.into(),
    }
}

async fn measure(tried: Tried, program: &dyn Fn() -> Command) -> io::Result<f64> {
    let begin = || {
        let mut program = program();
        if tried == Tried::Autogroup {
            program.arg("--own-session");
        }
        program.stdin(Stdio::null()).stdout(Stdio::null());
        program.spawn().map(Competitor)
    };
    let (first, second) = (begin()?, begin()?);
    let pids = [first.0.id(), second.0.id()];
    for pid in pids {
        stay_on_one(pid)?;
        if tried == Tried::Autogroup {
            // Until then it is in the session of this process, which is not to be weighed.
            has_own_session(pid).await?;
        }
    }
    let change = || match tried {
        Tried::Nice => {
            priority::set_nice(pids[0], -20)?;
            // Not what this process has given itself.
            priority::set_nice(pids[1], 0)
        }
        Tried::Autogroup => priority::set_autogroup(pids[0], -20),
    };
    let shares = compare(pids, change).await?;
    Ok(shares[0])
}

/// Waits until a competitor has made its session.
async fn has_own_session(pid: u32) -> io::Result<()> {
    let begin = Instant::now();
    while process_table::birth(pid)?.session != pid {
        if begin.elapsed() > COMPETES_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Ends with this.
struct Competitor(Child);

impl Drop for Competitor {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
