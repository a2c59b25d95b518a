//! Clients, server connections and pools, as tables. What is idle is known to its pool, what is in
//! use to its client.

use super::*;
use crate::client::handle::{Activity, ClientHandle};
use crate::config::OWN_DATABASES;
use crate::pool::ShownConnection;
use crate::pool::lease::owner;
use crate::pool::upstream::Upstream;
use std::collections::BTreeMap;

const LINES: [&str; 21] = [
    "type",
    "user",
    "database",
    "state",
    "addr",
    "port int4",
    "local_addr",
    "local_port int4",
    "connect_time",
    "request_time",
    "wait int4",
    "wait_us int4",
    "close_needed int4",
    "ptr",
    "link",
    "remote_pid int4",
    "tls",
    "application_name",
    "replication",
    "prepared_statements int4",
    "id int4",
];
/// Of PgBouncer's buffers, which the gate has not.
const BUFFERS: [&str; 7] = [
    "recv_pos int4",
    "pkt_pos int4",
    "pkt_remain int4",
    "send_pos int4",
    "send_remain int4",
    "pkt_avail int4",
    "send_avail int4",
];
/// The gate takes none that replicates.
const NO_REPLICATION: &str = "none";

fn time(time: SystemTime) -> String {
    let utc = time::OffsetDateTime::from(time);
    let (date, clock) = (utc.date(), utc.time());
    format!(
        "{date} {:02}:{:02}:{:02} UTC",
        clock.hour(),
        clock.minute(),
        clock.second()
    )
}

/// When something was, by the clock on the wall.
fn wall(at: Instant) -> String {
    let ago = at.elapsed();
    time(
        SystemTime::now()
            .checked_sub(ago)
            .unwrap_or(SystemTime::UNIX_EPOCH),
    )
}

fn state(handle: &ClientHandle) -> &'static str {
    match handle.shown_activity() {
        // PgBouncer's word for a client that is let in and has nothing to do.
        Activity::Idle => "idle",
        Activity::Waiting => "waiting",
        Activity::Active => "active",
    }
}

pub fn clients(pooler: &Pooler) -> Table {
    let mut table = Table::new(&LINES);
    add_clients(pooler, &mut table);
    add_consoles(pooler, &mut table);
    table
}

pub fn servers(pooler: &Pooler) -> Table {
    let mut table = Table::new(&LINES);
    add_servers(pooler, &mut table);
    table
}

pub fn sockets(pooler: &Pooler) -> Table {
    let mut table = Table::new(&LINES);
    add_clients(pooler, &mut table);
    add_consoles(pooler, &mut table);
    add_servers(pooler, &mut table);
    table.widen(&BUFFERS)
}

fn add_clients(pooler: &Pooler, table: &mut Table) {
    for handle in pooler.clients.borrow().values() {
        let waits = handle.activity.get() == Activity::Waiting;
        let waited = if waits {
            handle.activity_since.get().elapsed().as_micros() as u64
        } else {
            0
        };
        let peer = handle.peer;
        let server = handle
            .cancel_target
            .borrow()
            .as_ref()
            .map(|running| running.key.process_id);
        table.row([
            "C".into(),
            handle.user.clone().into(),
            handle.database.clone().into(),
            state(handle).into(),
            peer.map_or("unix".into(), |peer| peer.ip().to_string())
                .into(),
            peer.map_or(0, |peer| u64::from(peer.port())).into(),
            Field::Null,
            Field::Null,
            time(handle.since).into(),
            wall(handle.activity_since.get()).into(),
            (waited / 1_000_000).into(),
            (waited % 1_000_000).into(),
            (handle.termination() != crate::client::handle::Termination::No).into(),
            handle.id.to_string().into(),
            server.map(|id| id.to_string()).into(),
            0u64.into(),
            handle.tls.clone().into(),
            handle.application_name.borrow().clone().into(),
            NO_REPLICATION.into(),
            Field::Null,
            handle.id.into(),
        ]);
    }
}

/// Sessions in the gate's own database, by PgBouncer's name for it.
fn add_consoles(pooler: &Pooler, table: &mut Table) {
    for (number, session) in pooler.consoles.borrow().iter() {
        let peer = session.peer;
        table.row([
            "C".into(),
            session.user.clone().into(),
            session.database.clone().into(),
            "active".into(),
            peer.map_or("unix".into(), |peer| peer.ip().to_string())
                .into(),
            peer.map_or(0, |peer| u64::from(peer.port())).into(),
            Field::Null,
            Field::Null,
            time(session.since).into(),
            wall(session.asked_at).into(),
            0u64.into(),
            0u64.into(),
            false.into(),
            number.to_string().into(),
            Field::Null,
            0u64.into(),
            session.tls.clone().into(),
            session.application_name.clone().into(),
            NO_REPLICATION.into(),
            Field::Null,
            (*number).into(),
        ]);
    }
}

fn add_servers(pooler: &Pooler, table: &mut Table) {
    for handle in pooler.clients.borrow().values() {
        let running = handle.cancel_target.borrow();
        let Some(running) = running.as_ref() else {
            continue;
        };
        table.row(server_row(&ServerLine {
            user: &running.shown.user,
            database: &handle.database,
            state: "active",
            upstream: &running.upstream,
            shown: &running.shown,
            used_at: handle.activity_since.get(),
            process_id: running.key.process_id,
            client: Some(handle),
        }));
    }
    for upstream in pooler.upstreams() {
        for (owner, server) in upstream.pool.borrow().idle() {
            table.row(server_row(&ServerLine {
                user: &owner.user,
                database: &owner.database,
                state: "idle",
                upstream: &upstream,
                shown: &server.shown,
                used_at: server.used_at,
                process_id: server.key().process_id,
                client: None,
            }));
        }
    }
}

/// A server connection.
struct ServerLine<'a> {
    user: &'a str,
    database: &'a str,
    state: &'static str,
    upstream: &'a Upstream,
    shown: &'a ShownConnection,
    used_at: Instant,
    process_id: i32,
    client: Option<&'a ClientHandle>,
}

fn server_row(line: &ServerLine<'_>) -> [Field; 21] {
    let (host, port) = match (&line.upstream.address.endpoint, line.shown.peer) {
        (_, Some(peer)) => (peer.ip().to_string(), peer.port()),
        (Endpoint::Tcp(host, port), None) => (host.clone(), *port),
        (Endpoint::Unix(_, port), None) => ("unix".to_owned(), *port),
    };
    // As in PgBouncer: through a socket file both ends are the same.
    let local = line.shown.local;
    let (local_host, local_port) = match (local, &line.upstream.address.endpoint) {
        (Some(local), _) => (Some(local.ip().to_string()), Some(local.port())),
        (None, Endpoint::Unix(_, port)) => (Some("unix".to_owned()), Some(*port)),
        (None, Endpoint::Tcp(..)) => (None, None),
    };
    let name = line
        .client
        .map(|client| client.application_name.borrow().clone());
    let number = line.process_id as u64;
    [
        "S".into(),
        line.user.into(),
        line.database.into(),
        line.state.into(),
        host.into(),
        u64::from(port).into(),
        local_host.into(),
        local_port.map(u64::from).into(),
        wall(line.shown.opened_at).into(),
        wall(line.used_at).into(),
        0u64.into(),
        0u64.into(),
        false.into(),
        line.process_id.to_string().into(),
        line.client.map(|client| client.id.to_string()).into(),
        number.into(),
        line.shown.tls.clone().unwrap_or_default().into(),
        name.unwrap_or_default().into(),
        NO_REPLICATION.into(),
        Field::Null,
        number.into(),
    ]
}

/// Server connections of a database.
pub fn of_database(db: &Database) -> usize {
    let pool = db.upstream.pool.borrow();
    let idle = pool.idle().filter(|(owner, _)| owner.database == db.name);
    db.leases.count() + idle.count()
}

/// Server connections that are open for a user, as the server knows it.
pub fn of_user(pooler: &Pooler, user: &str) -> usize {
    let clients = pooler.clients.borrow();
    let is_its = |handle: &&Rc<ClientHandle>| {
        let running = handle.cancel_target.borrow();
        running.as_ref().is_some_and(|own| own.shown.user == user)
    };
    let active = clients.values().filter(is_its).count();
    let of_pool = |upstream: &Rc<crate::pool::upstream::Upstream>| {
        let pool = upstream.pool.borrow();
        pool.idle().filter(|(owner, _)| owner.user == user).count()
    };
    active + pooler.upstreams().iter().map(of_pool).sum::<usize>()
}

#[derive(Default)]
struct PoolFigures {
    /// Where it has clients, whether one of them keeps its connection.
    is_by_session: Option<bool>,
    active: usize,
    waiting: usize,
    idle_servers: usize,
    longest_wait_us: u64,
}

/// Pools by their databases and the users that the servers know: clients of several users share
/// one where the database's entry names its own.
fn by_pool(pooler: &Pooler) -> BTreeMap<(String, String), PoolFigures> {
    let mut pools: BTreeMap<(String, String), PoolFigures> = BTreeMap::new();
    let configuration = pooler.configuration();
    for handle in pooler.clients.borrow().values() {
        let db = pooler.database(&handle.database);
        let own = db.as_ref().map(|db| owner(&handle.user, db).user);
        let user = own.unwrap_or_else(|| handle.user.clone());
        let pool = pools.entry((handle.database.clone(), user));
        let pool = pool.or_default();
        let keeps = db.is_some_and(|db| configuration.by_session(&handle.user, &db.table));
        pool.is_by_session = Some(keeps || pool.is_by_session == Some(true));
        match handle.shown_activity() {
            Activity::Waiting => {
                pool.waiting += 1;
                let waited_us = handle.activity_since.get().elapsed().as_micros() as u64;
                pool.longest_wait_us = pool.longest_wait_us.max(waited_us);
            }
            Activity::Active => pool.active += 1,
            Activity::Idle => {}
        }
    }
    // As in PgBouncer: one pool, of a user of the same name.
    let consoles = pooler.consoles.borrow().len();
    if consoles > 0 {
        let pool = pools.entry((PGBOUNCER.to_owned(), PGBOUNCER.to_owned()));
        pool.or_default().active = consoles;
    }
    for upstream in pooler.upstreams() {
        for (owner, _) in upstream.pool.borrow().idle() {
            let pool = pools.entry((owner.database.clone(), owner.user.clone()));
            pool.or_default().idle_servers += 1;
        }
    }
    pools
}

pub fn pools_count(pooler: &Pooler) -> usize {
    by_pool(pooler).len()
}

pub fn pools(pooler: &Pooler) -> Table {
    let mut table = Table::new(&[
        "database",
        "user",
        "cl_active int4",
        "cl_waiting int4",
        "cl_active_cancel_req int4",
        "cl_waiting_cancel_req int4",
        "sv_active int4",
        "sv_active_cancel int4",
        "sv_being_canceled int4",
        "sv_idle int4",
        "sv_used int4",
        "sv_tested int4",
        "sv_login int4",
        "maxwait int4",
        "maxwait_us int4",
        "pool_mode",
        "load_balance_hosts",
    ]);
    let configuration = pooler.configuration();
    for ((database, user), pool) in by_pool(pooler) {
        let is_own = OWN_DATABASES.contains(&database.as_str());
        let db = (!is_own).then(|| pooler.database(&database)).flatten();
        let by_session = db.is_some_and(|db| configuration.by_session(&user, &db.table));
        let own_mode = match pool.is_by_session.unwrap_or(by_session) {
            // Commands are no transactions.
            _ if is_own => "statement",
            true => Mode::Session.as_str(),
            false => Mode::Transaction.as_str(),
        };
        let zero = || Field::from(0u64);
        table.row([
            database.into(),
            user.into(),
            pool.active.into(),
            pool.waiting.into(),
            zero(),
            zero(),
            if is_own { zero() } else { pool.active.into() },
            zero(),
            zero(),
            pool.idle_servers.into(),
            zero(),
            zero(),
            zero(),
            (pool.longest_wait_us / 1_000_000).into(),
            (pool.longest_wait_us % 1_000_000).into(),
            own_mode.into(),
            Field::Null,
        ]);
    }
    table
}
