//! Databases: those that are configured, in use or not, and those that clients asked for by `*`.

use super::*;
use crate::config::{Config, DatabaseTable};
use sooner_postgres::wire::truncate_name;

/// One of them.
enum Known {
    InUse(Rc<Database>),
    Unused(String, Box<DatabaseTable>),
}

impl Known {
    fn name(&self) -> &str {
        match self {
            Self::InUse(db) => &db.name,
            Self::Unused(name, _) => name,
        }
    }

    fn table(&self) -> &DatabaseTable {
        match self {
            Self::InUse(db) => &db.table,
            Self::Unused(_, table) => table,
        }
    }
}

/// By name. The entry for all others is none.
fn all(pooler: &Pooler, config: &Config) -> Vec<Known> {
    let mut all: Vec<Known> = pooler.databases().into_iter().map(Known::InUse).collect();
    let in_use: Vec<String> = all.iter().map(|known| known.name().to_owned()).collect();
    let unused = config.database.iter().filter_map(|table| {
        let name = truncate_name(table.name.get_ref()).to_owned();
        let is_new = name != "*" && !in_use.contains(&name);
        is_new.then(|| Known::Unused(name, Box::new(table.clone())))
    });
    all.extend(unused);
    all.sort_by(|one, other| one.name().cmp(other.name()));
    all
}

/// How many, with the gate's own.
pub fn count(pooler: &Pooler) -> usize {
    all(pooler, &pooler.configuration().config).len() + 1
}

pub fn databases(pooler: &Pooler) -> Table {
    let mut table = Table::new(&[
        "name",
        "host",
        "port int4",
        "database",
        "force_user",
        "pool_size int4",
        "min_pool_size int4",
        "reserve_pool int4",
        "pool_mode",
        "max_connections int4",
        "current_connections int4",
        "paused int4",
        "disabled int4",
        "reserve_pool_size int4",
        "server_lifetime int4",
        "load_balance_hosts",
        "max_client_connections int4",
        "current_client_connections int4",
    ]);
    let configuration = pooler.configuration();
    let config = &configuration.config;
    let all = all(pooler, config);
    // A database of a server cannot have this name.
    let before = all.partition_point(|known| known.name() < PGBOUNCER);
    for known in &all[..before] {
        table.row(row(pooler, config, known));
    }
    table.row(own_row(pooler, config));
    for known in &all[before..] {
        table.row(row(pooler, config, known));
    }
    table
}

/// The gate itself, as PgBouncer has itself there. The pool of its own console has two places.
fn own_row(pooler: &Pooler, config: &Config) -> [Field; 18] {
    let port = config.listen.iter().find_map(|place| {
        let port = place.get_ref().rsplit([':', '.']).next()?;
        port.parse::<u16>().ok()
    });
    let zero = || Field::from(0u64);
    [
        PGBOUNCER.into(),
        Field::Null,
        port.map(u64::from).into(),
        PGBOUNCER.into(),
        PGBOUNCER.into(),
        2u64.into(),
        zero(),
        zero(),
        "statement".into(),
        zero(),
        zero(),
        zero(),
        zero(),
        zero(),
        zero(),
        Field::Null,
        zero(),
        pooler.consoles.borrow().len().into(),
    ]
}

fn row(pooler: &Pooler, config: &Config, known: &Known) -> [Field; 18] {
    let (table, name) = (known.table(), known.name());
    let address = table.server.get_ref();
    let (host, port) = match &address.endpoint {
        Endpoint::Tcp(host, port) => (host.clone(), *port),
        Endpoint::Unix(folder, port) => (folder.display().to_string(), *port),
    };
    let upstreams = pooler.upstreams();
    let upstream = upstreams.iter().find(|own| own.address == *address);
    let limits = &config.limits;
    let (limit, connections) = match upstream {
        Some(own) => (own.limiter.status().limit, own.connections(limits)),
        None => upstream::bounds_unasked(limits),
    };
    let limit = table.transactions.map_or(limit, |own| own.get());
    let (open, clients, is_paused, is_disabled) = match known {
        Known::InUse(db) => (
            connections::of_database(db),
            db.clients.get(),
            db.is_paused(),
            db.is_disabled.get(),
        ),
        Known::Unused(..) => (0, 0, pooler.is_paused(), false),
    };
    let there = table.name_there.clone();
    [
        name.into(),
        host.into(),
        u64::from(port).into(),
        there.unwrap_or_else(|| name.to_owned()).into(),
        table.user.clone().into(),
        limit.into(),
        0u64.into(),
        0u64.into(),
        table.mode.map(Mode::as_str).into(),
        connections.into(),
        open.into(),
        is_paused.into(),
        is_disabled.into(),
        0u64.into(),
        limits.server_lifetime_seconds.into(),
        Field::Null,
        table.clients.map_or(0, |limit| limit.get()).into(),
        clients.into(),
    ]
}
