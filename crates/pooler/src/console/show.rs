//! The tables that can be shown: PgBouncer's, with its columns, so that what reads those reads
//! ours, and our own, with percentiles.

use super::SESSION_SETTINGS;
use super::table::{Field, Table};
use crate::config::{Endpoint, FIXED_KEYS, Mode};
use crate::pool::database::Database;
use crate::pool::upstream;
use crate::pooler::Pooler;
use crate::readings;
use crate::statistics::{Phase, Sums, Tally};
use sooner_postgres::wire::truncate_name;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Instant, SystemTime};

mod connections;
mod databases;
mod prediction;
mod statistics;

/// PgBouncer's name for its own database, and for the user in its pool.
const PGBOUNCER: &str = "pgbouncer";

/// Makes a table.
type Make = fn(&Rc<Pooler>) -> Table;

/// What can be shown, what that is, and how it is made.
const TABLES: &[(&str, &str, Make)] = &[
    (
        "CLASSES",
        "classes: who waits, times outside and inside, percentiles of the last minutes",
        |pooler| statistics::classes(pooler),
    ),
    ("CLIENTS", "clients that are here", |pooler| {
        connections::clients(pooler)
    }),
    ("CONFIG", "the configuration in force", |pooler| {
        config(pooler)
    }),
    ("DATABASES", "databases", |pooler| {
        databases::databases(pooler)
    }),
    (
        "GATES",
        "servers: how many transactions may be inside, are, and wait",
        |pooler| gates(pooler),
    ),
    ("HELP", "this table", |_| help()),
    ("LISTS", "how many there are of what", |pooler| {
        lists(pooler)
    }),
    (
        "LOCK_WAITS",
        "classes with a wait_target: who waited too long for a lock, and who made room",
        |pooler| statistics::lock_waits(pooler),
    ),
    ("MEM", "memory of the process", |_| memory()),
    (
        "PERCENTILES",
        "response times of databases, users and classes in the last minutes",
        |pooler| statistics::percentiles(pooler),
    ),
    (
        "POOLS",
        "clients and server connections of each database and user",
        |pooler| connections::pools(pooler),
    ),
    (
        "PREDICTION",
        "servers: how well times inside were expected of late, and what each order would have given",
        |pooler| prediction::prediction(pooler),
    ),
    ("SERVERS", "server connections", |pooler| {
        connections::servers(pooler)
    }),
    ("SOCKETS", "clients and server connections", |pooler| {
        connections::sockets(pooler)
    }),
    (
        "STATEMENTS",
        "kinds of transactions, where classes or the order depend on them",
        |pooler| statistics::statements(pooler),
    ),
    (
        "STATE",
        "whether the gate is active, paused or stopping",
        |pooler| state(pooler),
    ),
    ("STATS", "sums and averages of each database", |pooler| {
        statistics::stats(pooler)
    }),
    ("STATS_AVERAGES", "averages of the last minute", |pooler| {
        statistics::averages(pooler)
    }),
    ("STATS_TOTALS", "sums since the start", |pooler| {
        statistics::totals_by_database(pooler)
    }),
    (
        "TARGETS",
        "targets of classes: what was achieved of them recently, in each server",
        |pooler| statistics::targets(pooler),
    ),
    ("TOTALS", "sums of all databases", |pooler| {
        statistics::totals(pooler)
    }),
    ("USERS", "users", |pooler| users(pooler)),
    ("VERSION", "the gate's version", |_| version()),
];

/// Names that a client may know from PgBouncer, beside those of [`TABLES`].
const MORE_TABLES: &[(&str, Make)] = &[
    ("ACTIVE_SOCKETS", |pooler| connections::sockets(pooler)),
    // There is no resolver here: the system's is asked at every connection.
    ("DNS_HOSTS", |_| {
        Table::new(&["hostname", "ttl int8", "addrs"])
    }),
    ("DNS_ZONES", |_| {
        Table::new(&["zonename", "serial int8", "count int4"])
    }),
    // A gate has no peers.
    ("PEERS", |_| {
        Table::new(&["peer_id int4", "host", "port int4", "pool_size int4"])
    }),
    ("PEER_POOLS", |_| Table::new(PEER_POOLS)),
];
const PEER_POOLS: &[&str] = &[
    "database int4",
    "cl_active_cancel_req int4",
    "cl_waiting_cancel_req int4",
    "sv_active_cancel int4",
    "sv_login int4",
];

/// What can be said besides, as PgBouncer's own help has it.
pub const COMMANDS: &str = "besides SHOW: RELOAD, PAUSE [DATABASE], RESUME [DATABASE], DISABLE DATABASE, ENABLE DATABASE, RECONNECT [DATABASE], WAIT_CLOSE [DATABASE], KILL DATABASE, KILL_CLIENT NUMBER, SHUTDOWN [WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS]";

/// A table by its name in upper case; `None` where there is none.
pub fn show(pooler: &Rc<Pooler>, what: &str) -> Option<Table> {
    let tables = TABLES.iter().map(|(name, _, make)| (name, make));
    let more = MORE_TABLES.iter().map(|(name, make)| (name, make));
    let mut all = tables.chain(more);
    let found = all.find(|(name, _)| **name == what);
    match found {
        Some((_, make)) => Some(make(pooler)),
        None => setting(what),
    }
}

/// A setting of the session, as it was told at its beginning.
fn setting(what: &str) -> Option<Table> {
    let mut settings = SESSION_SETTINGS.iter();
    let (name, value) = settings.find(|(name, _)| name.eq_ignore_ascii_case(what))?;
    let mut table = Table::new(&[name]);
    table.row([(*value).into()]);
    Some(table)
}

fn help() -> Table {
    let mut table = Table::new(&["show", "what"]);
    for (name, what, _) in TABLES {
        table.row([(*name).into(), (*what).into()]);
    }
    table
}

fn version() -> Table {
    let mut table = Table::new(&["version"]);
    table.row([concat!("sooner ", env!("CARGO_PKG_VERSION")).into()]);
    table
}

fn state(pooler: &Pooler) -> Table {
    let mut table = Table::new(&["key", "value"]);
    let yes = |is_so: bool| Field::from(if is_so { "yes" } else { "no" });
    let (is_paused, is_stopping) = (pooler.is_paused(), pooler.is_stopping());
    table.row(["active".into(), yes(!is_paused && !is_stopping)]);
    table.row(["paused".into(), yes(is_paused)]);
    table.row(["suspended".into(), yes(false)]);
    table.row(["stopping".into(), yes(is_stopping)]);
    table
}

fn config(pooler: &Pooler) -> Table {
    let mut table = Table::new(&["key", "value", "default", "changeable"]);
    let configuration = pooler.configuration();
    for (key, value, default) in configuration.config.as_rows() {
        let is_fixed = FIXED_KEYS.contains(&key.as_str());
        let changeable = if is_fixed { "no" } else { "yes" };
        table.row([key.into(), value.into(), default.into(), changeable.into()]);
    }
    for row in configuration.config.as_pgbouncer_rows() {
        let changeable = if row.is_changeable { "yes" } else { "no" };
        table.row([
            row.key.into(),
            row.value.into(),
            row.default.into(),
            changeable.into(),
        ]);
    }
    table
}

fn gates(pooler: &Pooler) -> Table {
    let mut table = Table::new(&[
        "server",
        "limit int8",
        "inside int8",
        "waiting int8",
        "admitted int8",
        "connections int8",
        "idle int8",
        "connections_max int8",
        "yielded int8",
    ]);
    for server in readings::servers(pooler) {
        table.row([
            server.address.into(),
            server.limit.into(),
            server.inside.into(),
            server.waiting.into(),
            server.admitted.into(),
            server.connections.into(),
            server.idle_connections.into(),
            server.limit_connections.into(),
            server.yielded.into(),
        ]);
    }
    table
}

/// Those that are configured or were here, those of databases' entries, and PgBouncer's own.
fn user_names(pooler: &Pooler) -> BTreeSet<String> {
    let configuration = pooler.configuration();
    let mut names: BTreeSet<String> = configuration.users.keys().cloned().collect();
    let tables = configuration.config.user.iter();
    names.extend(tables.map(|table| truncate_name(table.name.get_ref()).to_owned()));
    names.extend(pooler.users().into_iter().map(|(name, _)| name));
    let databases = configuration.config.database.iter();
    names.extend(databases.filter_map(|table| table.user.clone()));
    names.insert(PGBOUNCER.to_owned());
    names
}

fn users(pooler: &Pooler) -> Table {
    let mut table = Table::new(&[
        "name",
        "pool_mode",
        "max_user_connections int4",
        "clients int8",
        "pool_size",
        "reserve_pool_size",
        "current_connections int4",
        "max_user_client_connections int4",
        "current_client_connections int4",
    ]);
    let configuration = pooler.configuration();
    let in_use = pooler.users();
    for name in &user_names(pooler) {
        let name = name.as_str();
        let own = configuration.user(name);
        let bound = own.and_then(|table| table.transactions);
        let clients = in_use.iter().find(|(known, _)| known == name);
        let clients = clients.map_or(0, |(_, user)| user.clients.get());
        let clients_max = own.and_then(|table| table.clients);
        table.row([
            name.into(),
            own.and_then(|table| table.mode).map(Mode::as_str).into(),
            bound.map(|bound| bound.get()).into(),
            clients.into(),
            Field::Null,
            Field::Null,
            connections::of_user(pooler, name).into(),
            clients_max.map_or(0, |limit| limit.get()).into(),
            clients.into(),
        ]);
    }
    table
}

fn lists(pooler: &Pooler) -> Table {
    let mut table = Table::new(&["list", "items int4"]);
    let upstreams = pooler.upstreams();
    let open = upstreams.iter().map(|own| own.pool.borrow().open()).sum();
    let (logins, consoles) = (pooler.slots.logins(), pooler.consoles.borrow().len());
    for (list, items) in [
        ("databases", databases::count(pooler)),
        ("users", user_names(pooler).len()),
        ("pools", connections::pools_count(pooler)),
        ("free_clients", 0),
        (
            "used_clients",
            pooler.clients.borrow().len() + consoles + logins,
        ),
        ("login_clients", logins),
        ("waiting_clients", readings::clients(pooler).waiting),
        // In PgBouncer that is memory kept ready, as for clients; an idle connection is in use.
        ("free_servers", 0),
        ("used_servers", open),
        ("dns_names", 0),
        ("dns_zones", 0),
        ("dns_queries", 0),
        ("dns_pending", 0),
        ("peers", 0),
        ("peer_pools", 0),
    ] {
        table.row([list.into(), items.into()]);
    }
    table
}

fn memory() -> Table {
    // In pieces of a kilobyte, as PgBouncer counts those of its slabs.
    let mut table = Table::new(&[
        "name",
        "size int4",
        "used int4",
        "free int4",
        "memtotal int4",
        "kilobytes int8",
    ]);
    // Where there is no /proc nothing is known.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("Vm")) {
        if let Some((name, rest)) = line.split_once(':') {
            let number = rest.split_whitespace().next();
            let kilobytes: u64 = number.and_then(|text| text.parse().ok()).unwrap_or(0);
            table.row([
                name.into(),
                1024u64.into(),
                kilobytes.into(),
                0u64.into(),
                (kilobytes * 1024).into(),
                kilobytes.into(),
            ]);
        }
    }
    table
}
