//! Which mechanism has an effect on a PostgreSQL server's processes.
//!
//! It follows from the kernel's settings and from the server's control group: a nice value does
//! nothing between sessions that autogroups weigh, and real time is refused in a control group
//! without a budget. So two sessions of our own compete.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use sooner_kernel::priority;

use super::connection::{ConnectError, Connection, Login};
use super::levels::Levels;
use super::mechanism::{Mechanism, objection};
use crate::self_test::{Outcome, compare, stay_on_one};

/// Keeps a processor busy for so long, without a table and without memory.
const WORK: &str = "WITH RECURSIVE work (n) AS (SELECT 1 UNION ALL \
    SELECT n OPERATOR(pg_catalog.+) 1 FROM work WHERE pg_catalog.clock_timestamp() \
    OPERATOR(pg_catalog.<) (pg_catalog.statement_timestamp() OPERATOR(pg_catalog.+) \
    '300 ms'::pg_catalog.interval)) SELECT pg_catalog.max(n) FROM work";

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Of which.
    pub mechanism: Mechanism,
    /// Whether the trial lowered one of the two, and raised none.
    #[serde(default)]
    pub lowers: bool,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trial { mechanism, .. } = self;
        let Outcome { share, refused } = &self.outcome;
        if self.lowers {
            f.write_str("lowering by ")?;
        }
        match (share, refused) {
            (Some(share), _) if self.outcome.works() => write!(
                f,
                "{mechanism} works ({:.0} % of a processor)",
                100.0 * share
            ),
            (Some(share), _) => write!(f, "{mechanism} has no effect ({:.0} %)", 100.0 * share),
            (None, Some(words)) => write!(f, "{mechanism} is refused ({words})"),
            (None, None) => write!(f, "{mechanism} was not tried"),
        }
    }
}

/// Tries with two sessions of our own, which it ends: to raise, where that is wanted, by the one
/// that is named or by all that nothing speaks against; and to lower, where that is, by what can.
pub async fn test(
    login: &Login,
    named: Option<Mechanism>,
    levels: &Levels,
) -> Result<Vec<Trial>, ConnectError> {
    let (first, second) = (login.connect().await?, login.connect().await?);
    let raising = named.map_or(Mechanism::ALL.to_vec(), |one| vec![one]);
    let raising = raising.into_iter().filter(|_| levels.raises());
    let raising = raising.map(|one| (one, false));
    let lowering = Mechanism::LOWERING.into_iter().filter(|_| levels.lowers());
    let mut trials = Vec::new();
    for (mechanism, lowers) in raising.chain(lowering.map(|one| (one, true))) {
        let is_named = named == Some(mechanism);
        let tried = match objection(mechanism) {
            Some(words) if !is_named => Err(io::Error::other(words)),
            // The other way round, so that the one that came first has no advantage.
            _ if lowers => compete(mechanism, &second, &first, lowers).await?,
            _ => compete(mechanism, &first, &second, lowers).await?,
        };
        trials.push(Trial {
            mechanism,
            lowers,
            outcome: tried.into(),
        });
    }
    Ok(trials)
}

/// Both work on one processor; the one that is `changed` is raised, or is lowered: what the one gets
/// that goes first.
async fn compete(
    mechanism: Mechanism,
    changed: &Connection,
    other: &Connection,
    lowers: bool,
) -> Result<io::Result<f64>, ConnectError> {
    let pids = [changed.own_process, other.own_process];
    if let Err(error) = pids.iter().try_for_each(|pid| stay_on_one(*pid)) {
        return Ok(Err(error));
    }
    // Of two that have real time the one that was there first gets all, whatever is tried.
    let usual = match priority::ordinary(pids[0]).and_then(|_| mechanism.usual_of(pids[0])) {
        Ok(usual) => usual,
        Err(error) => return Ok(Err(error)),
    };
    let measured = async {
        let set = |is_on| match lowers {
            true => mechanism.lower(pids[0], is_on, usual),
            false => mechanism.apply(pids[0], u8::from(is_on), 1, usual),
        };
        let shares = compare(pids, || set(true)).await?;
        set(false)?;
        Ok(shares[usize::from(lowers)])
    };
    let (one, another, share) = tokio::join!(
        changed.client.query_one(WORK, &[]),
        other.client.query_one(WORK, &[]),
        measured
    );
    one.and(another)?;
    Ok(share)
}
