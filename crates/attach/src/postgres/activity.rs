//! What pg_stat_activity shows of all clients at a moment, and what pg_locks does.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::SystemTime;

use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};

use super::counts::Reading;
use sooner_postgres::locks::LockRow;

/// The view's own function, without its joins: names of users and databases change seldom.
const SESSIONS: &str = "SELECT pid, usesysid, datid, application_name, \
     pg_catalog.host(client_addr), state, wait_event_type, wait_event, xact_start, query_start, \
     backend_start, pg_catalog.statement_timestamp(), \
     CASE WHEN state OPERATOR(pg_catalog.<>) 'idle' THEN query END, \
     CASE WHEN backend_type OPERATOR(pg_catalog.=) 'parallel worker' THEN leader_pid END, \
     backend_type OPERATOR(pg_catalog.=) 'client backend' \
     FROM pg_catalog.pg_stat_get_activity(NULL) \
     WHERE (backend_type OPERATOR(pg_catalog.=) 'client backend' \
         OR backend_type OPERATOR(pg_catalog.=) 'parallel worker' \
         OR wait_event_type OPERATOR(pg_catalog.=) 'Lock') \
     AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()";
/// Virtual transactions are on the fast path until a process waits for one, as CREATE INDEX
/// CONCURRENTLY does.
const LOCKS: &str = "SELECT pid, granted, mode, locktype, database, relation, page, \
     tuple::pg_catalog.int4, classid, objid, objsubid::pg_catalog.int4, \
     coalesce(transactionid::pg_catalog.text, virtualxid), waitstart \
     FROM pg_catalog.pg_locks WHERE NOT fastpath";
const NAMES: &str = "SELECT oid, rolname::pg_catalog.text, true FROM pg_catalog.pg_roles \
     UNION ALL SELECT oid, datname::pg_catalog.text, false FROM pg_catalog.pg_database";
const FLUSH: &str = "SELECT pg_catalog.pg_stat_force_next_flush() IS NULL";
/// The time is when it is read: on a full processor a question may wait for long.
const TRANSACTIONS: &str = "SELECT pg_catalog.sum(xact_commit OPERATOR(pg_catalog.+) xact_rollback)::pg_catalog.int8, \
     pg_catalog.clock_timestamp() FROM pg_catalog.pg_stat_database";

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: its client is in no transaction.
    Idle,
    /// It runs a command.
    Active,
    /// It is in a transaction, and waits for its client.
    Between,
}

/// A client's session at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Its process, as the server numbers it.
    pub pid: i32,
    /// Its user's number.
    pub user_id: u32,
    /// Its database's number.
    pub database_id: u32,
    /// What it calls itself.
    pub application_name: String,
    /// Where it comes from; none through a socket file.
    pub address: Option<IpAddr>,
    /// What it does.
    pub phase: Phase,
    /// What it waits for: the kind and the event.
    pub wait: Option<(String, String)>,
    /// When its transaction began, microseconds of the epoch.
    pub transaction_us: Option<i64>,
    /// When its statement began.
    pub statement_us: i64,
    /// When the session began.
    pub began_us: i64,
    /// When it was looked at.
    pub now_us: i64,
    /// Its statement, or the last one between two; empty where it is idle.
    pub query: String,
}

/// A process that helps a session with a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker {
    /// As the server numbers it.
    pub pid: i32,
    /// When it began, microseconds of the epoch.
    pub began_us: i64,
    /// Whom it helps.
    pub leader: i32,
}

/// The server's processes at a moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Processes {
    /// Of clients.
    pub sessions: Vec<Session>,
    /// Those that help them.
    pub workers: Vec<Worker>,
    /// All that wait for a heavyweight lock, also those of no client and those that tell nothing else,
    /// as the server numbers them.
    pub waiting: Vec<i32>,
}

/// Asks the server, with statements that are prepared once.
pub struct Watcher<'a> {
    client: &'a Client,
    sessions: Statement,
    locks: Statement,
    names: Statement,
    transactions: Statement,
    flush: Statement,
    /// Users and databases.
    users: HashMap<u32, String>,
    databases: HashMap<u32, String>,
    /// How often it asked: each is a transaction that the server counts.
    pub asked: u64,
}

impl<'a> Watcher<'a> {
    /// On this connection.
    pub async fn new(client: &'a Client) -> Result<Watcher<'a>, Error> {
        Ok(Watcher {
            sessions: client.prepare(SESSIONS).await?,
            locks: client.prepare(LOCKS).await?,
            names: client.prepare(NAMES).await?,
            transactions: client.prepare(TRANSACTIONS).await?,
            flush: client.prepare(FLUSH).await?,
            users: HashMap::new(),
            databases: HashMap::new(),
            client,
            asked: 0,
        })
    }

    /// All clients' sessions but the own.
    pub async fn sessions(&mut self) -> Result<Vec<Session>, Error> {
        Ok(self.processes().await?.sessions)
    }

    /// Those, the parallel workers of all sessions, and all that wait for a lock.
    pub async fn processes(&mut self) -> Result<Processes, Error> {
        let rows = self.client.query(&self.sessions, &[]).await?;
        self.asked += 1;
        let workers = rows.iter().filter_map(worker).collect();
        let waits = |row: &&Row| text(row, 6).is_some_and(|kind| kind == "Lock");
        let waiting = rows.iter().filter(waits).map(|row| row.get(0)).collect();
        let sessions = rows.iter().filter(|row| row.get(14));
        let sessions: Vec<Session> = sessions.filter_map(session).collect();
        let is_known = |session: &Session| {
            self.users.contains_key(&session.user_id)
                && self.databases.contains_key(&session.database_id)
        };
        if !sessions.iter().all(is_known) {
            self.learn_names(&sessions).await?;
        }
        Ok(Processes {
            sessions,
            workers,
            waiting,
        })
    }

    /// All locks that could be waited for, and who waits.
    pub async fn locks(&mut self) -> Result<Vec<LockRow>, Error> {
        let rows = self.client.query(&self.locks, &[]).await?;
        self.asked += 1;
        Ok(rows.iter().map(lock).collect())
    }

    /// Transactions that the server has counted so far, in all databases, without our own.
    pub async fn transactions(&mut self) -> Result<Reading, Error> {
        // Our own are in it to the last.
        self.client.query_one(&self.flush, &[]).await?;
        self.asked += 1;
        let row = self.client.query_one(&self.transactions, &[]).await?;
        let counted = row.get::<_, Option<i64>>(0).unwrap_or(0);
        let count = counted - self.asked.cast_signed();
        self.asked += 1;
        let at_s = microseconds(row.get(1)) as f64 / 1e6;
        Ok(Reading { at_s, count })
    }

    /// A session's user.
    pub fn user(&self, session: &Session) -> &str {
        self.users.get(&session.user_id).map_or("", String::as_str)
    }

    /// A session's database.
    pub fn database(&self, session: &Session) -> &str {
        let name = self.databases.get(&session.database_id);
        name.map_or("", String::as_str)
    }

    async fn learn_names(&mut self, sessions: &[Session]) -> Result<(), Error> {
        let rows = self.client.query(&self.names, &[]).await?;
        self.asked += 1;
        for row in rows {
            let names = if row.get(2) {
                &mut self.users
            } else {
                &mut self.databases
            };
            names.insert(row.get(0), text(&row, 1).unwrap_or_default());
        }
        // Dropped meanwhile: not looked up again at each look.
        for session in sessions {
            self.users.entry(session.user_id).or_default();
            self.databases.entry(session.database_id).or_default();
        }
        Ok(())
    }
}

/// Text as it is in a database of any encoding: another database's statements are not converted.
struct Text(String);

impl<'a> FromSql<'a> for Text {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Text(String::from_utf8_lossy(raw).into_owned()))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TEXT || *of == Type::NAME
    }
}

fn text(row: &Row, at: usize) -> Option<String> {
    row.get::<_, Option<Text>>(at).map(|text| text.0)
}

/// None where it does not say: its user has switched track_activities off.
fn phase(state: &str) -> Option<Phase> {
    match state {
        "idle" => Some(Phase::Idle),
        "idle in transaction" | "idle in transaction (aborted)" => Some(Phase::Between),
        "disabled" => None,
        _ => Some(Phase::Active),
    }
}

/// Of a parallel worker, whom it helps.
fn leader(row: &Row) -> Option<i32> {
    row.get(13)
}

fn worker(row: &Row) -> Option<Worker> {
    Some(Worker {
        pid: row.get(0),
        began_us: row.get::<_, Option<SystemTime>>(10).map_or(0, microseconds),
        leader: leader(row)?,
    })
}

/// None where a role sees nothing of it, the session has only begun or says nothing.
fn session(row: &Row) -> Option<Session> {
    let text = |at| text(row, at);
    let phase = phase(&text(5)?)?;
    let time = |at| row.get::<_, Option<SystemTime>>(at).map(microseconds);
    Some(Session {
        pid: row.get(0),
        user_id: row.get::<_, Option<u32>>(1)?,
        database_id: row.get::<_, Option<u32>>(2).unwrap_or(0),
        application_name: text(3).unwrap_or_default(),
        address: text(4).and_then(|address| address.parse().ok()),
        phase,
        wait: text(6).zip(text(7)),
        transaction_us: time(8),
        statement_us: time(9).unwrap_or(0),
        began_us: time(10).unwrap_or(0),
        now_us: time(11).unwrap_or(0),
        query: text(12).unwrap_or_default(),
    })
}

fn lock(row: &Row) -> LockRow {
    let number = |at| row.get::<_, Option<u32>>(at).unwrap_or(0);
    let signed = |at| row.get::<_, Option<i32>>(at).unwrap_or(0).cast_unsigned();
    let numbers = [
        number(4),
        number(5),
        signed(6),
        signed(7),
        number(8),
        number(9),
        signed(10),
    ];
    let since = row.get::<_, Option<SystemTime>>(12);
    LockRow {
        pid: row.get::<_, Option<i32>>(0).unwrap_or(0),
        granted: row.get(1),
        mode: row.get(2),
        key: (
            row.get(3),
            numbers,
            row.get::<_, Option<String>>(11).unwrap_or_default(),
        ),
        waits_since_us: since.map_or(0, microseconds),
    }
}

fn microseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_nothing_is_in_no_phase() {
        assert_eq!(phase("disabled"), None);
        assert_eq!(phase("idle"), Some(Phase::Idle));
        assert_eq!(phase("fastpath function call"), Some(Phase::Active));
    }
}
