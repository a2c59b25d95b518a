//! `[limits]`. What PgBouncer bounds by pools becomes one bound for a server; times become whole
//! seconds.

use crate::document::Group;
use crate::ini::ImportError;
use crate::source::Entry;
use crate::translation::{Translation, read_number};
use crate::values::Seconds;
use std::collections::BTreeMap;

const GROUP: Group = Group::Limits;
/// PgBouncer's own.
const DEFAULT_POOL: i64 = 20;
const DEFAULT_CLIENTS: i64 = 100;

/// The sizes of pools; `of_all` where there are none.
fn range(pools: &[u64], of_all: i64) -> String {
    match (pools.iter().min(), pools.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (Some(size), _) => size.to_string(),
        (None, _) => of_all.to_string(),
    }
}

impl Translation<'_> {
    /// All bounds.
    pub fn limits(&mut self) -> Result<(), ImportError> {
        self.document.table(GROUP, "[limits]");
        self.transactions()?;
        self.clients()?;
        self.query_wait()?;
        let why = "the gate has to have an end to waiting for a server";
        self.time("server_connect_timeout", "patience_seconds", Some(why))?;
        let why = "the gate has to have an end to waiting for a login";
        self.time("client_login_timeout", "login_seconds", Some(why))?;
        self.time(
            "idle_transaction_timeout",
            "idle_in_transaction_seconds",
            None,
        )?;
        self.time("server_idle_timeout", "server_idle_seconds", None)?;
        self.lifetime()?;
        self.time("server_check_delay", "server_check_seconds", None)?;
        self.statements()
    }

    /// The size of one pool of an entry.
    pub fn pool(&self, entry: &Entry) -> Result<u64, ImportError> {
        let own = match entry.get("pool_size") {
            Some(text) => Some(read_number("pool_size", text, &entry.at)?),
            None => None,
        };
        let of_all = self.number("default_pool_size")?.unwrap_or(DEFAULT_POOL);
        let size = own.filter(|size| *size >= 0).unwrap_or(of_all);
        // A pool of nothing serves no client, and the gate has none.
        Ok(size.max(1).unsigned_abs())
    }

    fn transactions(&mut self) -> Result<(), ImportError> {
        let mut servers: BTreeMap<String, u64> = BTreeMap::new();
        // Of each server, the connections of all its databases, while each of these has a bound.
        let mut connections: BTreeMap<String, Option<u64>> = BTreeMap::new();
        let mut pools = Vec::new();
        for entry in &self.source.databases {
            let Ok(server) = self.server(entry)? else {
                continue;
            };
            let pool = self.pool(entry)?;
            pools.push(pool);
            let bound = self.bound_of(entry, "max_db_connections")?;
            // The last one is any number of databases.
            let own = bound.filter(|_| entry.name != "*");
            let of_server = connections.entry(server.url.clone()).or_insert(Some(0));
            *of_server = of_server.and_then(|sum| Some(sum + own?));
            *servers.entry(server.url).or_default() += pool.min(bound.unwrap_or(pool));
        }
        let of_all = self.number("default_pool_size")?.unwrap_or(DEFAULT_POOL);
        let most = servers.values().max().copied();
        for words in [
            &format!(
                "PgBouncer had a pool of {} for each user and database. The gate has one queue for each server, and this is the sum",
                range(&pools, of_all)
            ),
            "of one pool for each database of the server that has most. Often far less is faster: 2 to 10 on two processors.",
        ] {
            self.document.comment(GROUP, words);
        }
        let sum = most.unwrap_or(of_all.max(1).unsigned_abs());
        self.document.value(GROUP, "transactions", sum);
        let connections: Option<Vec<u64>> = connections.into_values().collect();
        if let Some(most) = connections.and_then(|all| all.into_iter().max()) {
            self.document.value(GROUP, "connections", most.max(1));
        }
        Ok(())
    }

    fn clients(&mut self) -> Result<(), ImportError> {
        let clients = match self.number("max_client_conn")? {
            Some(clients) if clients < 1 => {
                let at = &self.source.settings["max_client_conn"].at;
                return Err(at.wrong("max_client_conn: no client could connect; write 1 or more"));
            }
            Some(clients) => clients,
            None => {
                let words = "PgBouncer's default; the gate's is 1000.";
                self.document.comment(GROUP, words);
                DEFAULT_CLIENTS
            }
        };
        self.document.value(GROUP, "clients", clients);
        Ok(())
    }

    fn query_wait(&mut self) -> Result<(), ImportError> {
        if self.seconds("query_wait_timeout")?.is_some() {
            return self.time("query_wait_timeout", "query_wait_seconds", None);
        }
        let words = "PgBouncer drops a client that has waited for 120 s. The gate drops none unless this is set:";
        self.document.comment(GROUP, words);
        self.document.comment(GROUP, "query_wait_seconds = 120");
        Ok(())
    }

    /// One time; `without_end` is why 0, which is never to PgBouncer, cannot be that here.
    fn time(&mut self, from: &str, to: &str, without_end: Option<&str>) -> Result<(), ImportError> {
        let Some(seconds) = self.seconds(from)? else {
            return Ok(());
        };
        match without_end {
            Some(why) if seconds.whole == 0 => self.leave_out(GROUP, from, why),
            _ => self.write_time(from, to, seconds),
        }
        Ok(())
    }

    fn write_time(&mut self, from: &str, to: &str, seconds: Seconds) {
        if seconds.is_rounded {
            let was = &self.source.settings[from].value;
            let words = format!("{from} = {was}, in whole seconds.");
            self.document.comment(GROUP, &words);
        }
        self.document.value(GROUP, to, seconds.whole);
    }

    /// 0 is after one use to PgBouncer, and never here.
    fn lifetime(&mut self) -> Result<(), ImportError> {
        let (from, to) = ("server_lifetime", "server_lifetime_seconds");
        match self.seconds(from)? {
            Some(seconds) if seconds.whole == 0 => {
                let why = "to PgBouncer that is after one use, and 1 is the nearest";
                self.leave_out(GROUP, from, why);
                self.document.value(GROUP, to, 1);
                Ok(())
            }
            _ => self.time(from, to, None),
        }
    }

    fn statements(&mut self) -> Result<(), ImportError> {
        match self.number("max_prepared_statements")? {
            None => {}
            Some(number) if number > 0 => self.document.value(GROUP, "statements", number),
            Some(_) => {
                let why = "in the gate prepared statements always follow their client";
                self.leave_out(GROUP, "max_prepared_statements", why);
            }
        }
        Ok(())
    }
}
