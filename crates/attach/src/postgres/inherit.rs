//! Who holds what raised processes wait for: asked only for those that wait.
//!
//! A process that has not run since the last look may wait for a lock; it is asked about once. If it
//! does wait for one it is asked about at every look until it runs again, if not, not again until
//! it has run.

use std::collections::{BTreeMap, HashMap};

use tokio_postgres::{Client, Error, Statement};

use super::levels::Level;
use super::processor::Processes;

/// Chains of waiters are followed so far.
const DEPTH_MAX: usize = 8;
const HOLDERS: &str = "SELECT waiter, pg_catalog.pg_blocking_pids(waiter) \
    FROM pg_catalog.unnest($1::pg_catalog.int4[]) AS waiter \
    WHERE EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity(waiter) AS own \
                  WHERE own.wait_event_type OPERATOR(pg_catalog.=) 'Lock')";

/// What is known of a raised process that sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asleep {
    /// Since this look.
    New,
    /// It waits for a lock.
    ForLock,
    /// It waits for something else.
    Otherwise,
}

/// Asks.
pub struct Holders<'a> {
    client: &'a Client,
    statement: Statement,
    asleep: HashMap<i32, Asleep>,
    /// Questions so far.
    pub asked: u64,
}

impl<'a> Holders<'a> {
    /// On this connection.
    pub async fn new(client: &'a Client) -> Result<Holders<'a>, Error> {
        Ok(Holders {
            client,
            statement: client.prepare(HOLDERS).await?,
            asleep: HashMap::new(),
            asked: 0,
        })
    }

    /// The holders of what these wait for, each with the highest level of those that do. Raised
    /// ones come by their number as the server has it, with that here and their level; others that
    /// are known to wait with their level.
    pub async fn of(
        &mut self,
        raised: &[(i32, u32, Level)],
        mut waiting: BTreeMap<i32, Level>,
        processes: &mut Processes,
    ) -> Result<BTreeMap<i32, Level>, Error> {
        let mut asleep = HashMap::new();
        for (inside, outside, level) in raised {
            let Ok(look) = processes.look(*outside) else {
                continue;
            };
            let has_run = look.since.run_ns > 0 || processes.is_on_processor(*outside);
            if has_run {
                continue;
            }
            let known = self.asleep.get(inside).copied().unwrap_or(Asleep::New);
            if known != Asleep::Otherwise {
                waiting.insert(*inside, *level);
            }
            asleep.insert(*inside, known);
        }
        self.asleep = asleep;
        let mut holders = BTreeMap::new();
        for depth in 0..DEPTH_MAX {
            if waiting.is_empty() {
                break;
            }
            let found = self.holders_of(&waiting).await?;
            if depth == 0 {
                let asked = self.asleep.iter_mut();
                for (inside, known) in asked.filter(|(inside, _)| waiting.contains_key(inside)) {
                    *known = match found.iter().any(|(waiter, _)| waiter == inside) {
                        true => Asleep::ForLock,
                        false => Asleep::Otherwise,
                    };
                }
            }
            let mut next = BTreeMap::new();
            for (waiter, pids) in &found {
                let level = waiting[waiter];
                // 0 is a prepared transaction: no process holds it.
                for holder in pids.iter().filter(|pid| **pid > 0) {
                    if holders.get(holder).is_none_or(|known| *known < level) {
                        holders.insert(*holder, level);
                        next.insert(*holder, level);
                    }
                }
            }
            waiting = next;
        }
        Ok(holders)
    }

    /// Of those that wait for a lock, who has it or is before them.
    async fn holders_of(
        &mut self,
        waiting: &BTreeMap<i32, Level>,
    ) -> Result<Vec<(i32, Vec<i32>)>, Error> {
        self.asked += 1;
        let pids: Vec<i32> = waiting.keys().copied().collect();
        let rows = self.client.query(&self.statement, &[&pids]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}
