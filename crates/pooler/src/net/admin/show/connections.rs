//! Clients, server connections and pools, as tables. What is idle is known to its pool, what is in use to its client.

use std::collections::BTreeMap;

use super::*;
use crate::net::here::Here;

const LINES: [&str; 21] = [
    "type",
    "user",
    "database",
    "state",
    "addr",
    "#port",
    "local_addr",
    "#local_port",
    "connect_time",
    "request_time",
    "#wait",
    "#wait_us",
    "#close_needed",
    "ptr",
    "link",
    "#remote_pid",
    "tls",
    "application_name",
    "replication",
    "#prepared_statements",
    "#id",
];
/// Of PgBouncer's buffers, which the gate has not.
const BUFFERS: [&str; 7] = [
    "#recv_pos",
    "#pkt_pos",
    "#pkt_remain",
    "#send_pos",
    "#send_remain",
    "#pkt_avail",
    "#send_avail",
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

fn state(here: &Here) -> &'static str {
    match here.doing.get() {
        Doing::Idle if here.has_server() => "active",
        // PgBouncer's word for a client that is let in and has nothing to do.
        Doing::Idle => "idle",
        Doing::Waits => "waiting",
        Doing::Works => "active",
    }
}

pub fn clients(shared: &Shared) -> Table {
    let mut table = Table::new(&LINES);
    add_clients(shared, &mut table);
    table
}

pub fn servers(shared: &Shared) -> Table {
    let mut table = Table::new(&LINES);
    add_servers(shared, &mut table);
    table
}

pub fn sockets(shared: &Shared) -> Table {
    let mut table = Table::new(&LINES);
    add_clients(shared, &mut table);
    add_servers(shared, &mut table);
    table.widen(&BUFFERS)
}

fn add_clients(shared: &Shared, table: &mut Table) {
    for here in shared.clients.borrow().values() {
        let waits = here.doing.get() == Doing::Waits;
        let waited = if waits {
            here.doing_since.get().elapsed().as_micros() as u64
        } else {
            0
        };
        let peer = here.peer;
        let server = here
            .running
            .borrow()
            .as_ref()
            .map(|running| running.key.process_id);
        table.row([
            "C".into(),
            here.user.clone().into(),
            here.database.clone().into(),
            state(here).into(),
            peer.map_or("unix".into(), |peer| peer.ip().to_string())
                .into(),
            peer.map_or(0, |peer| u64::from(peer.port())).into(),
            Field::Null,
            Field::Null,
            time(here.since).into(),
            wall(here.doing_since.get()).into(),
            (waited / 1_000_000).into(),
            (waited % 1_000_000).into(),
            (here.must() != crate::net::here::Leave::No).into(),
            here.id.to_string().into(),
            server.map(|id| id.to_string()).into(),
            0u64.into(),
            here.tls.clone().into(),
            here.application_name.borrow().clone().into(),
            NO_REPLICATION.into(),
            Field::Null,
            here.id.into(),
        ]);
    }
}

fn add_servers(shared: &Shared, table: &mut Table) {
    for here in shared.clients.borrow().values() {
        let running = here.running.borrow();
        let Some(running) = running.as_ref() else {
            continue;
        };
        let names = (here.user.as_str(), here.database.as_str());
        let place = running.backend.address.to_string();
        let process_id = running.key.process_id;
        add_server(
            table,
            names,
            "active",
            place,
            None,
            process_id,
            Some(here.id),
        );
    }
    for backend in shared.backends() {
        for (owner, server) in backend.pool.borrow().idle() {
            let names = (owner.user.as_str(), owner.database.as_str());
            let place = backend.address.to_string();
            let times = Some((server.opened_at, server.used_at));
            add_server(
                table,
                names,
                "idle",
                place,
                times,
                server.key().process_id,
                None,
            );
        }
    }
}

fn add_server(
    table: &mut Table,
    (user, database): (&str, &str),
    state: &str,
    place: String,
    times: Option<(Instant, Instant)>,
    process_id: i32,
    link: Option<u64>,
) {
    table.row([
        "S".into(),
        user.into(),
        database.into(),
        state.into(),
        place.into(),
        Field::Null,
        Field::Null,
        Field::Null,
        times.map(|(opened_at, _)| wall(opened_at)).into(),
        times.map(|(_, used_at)| wall(used_at)).into(),
        0u64.into(),
        0u64.into(),
        false.into(),
        process_id.to_string().into(),
        link.map(|id| id.to_string()).into(),
        (process_id as u64).into(),
        "".into(),
        "".into(),
        NO_REPLICATION.into(),
        Field::Null,
        (process_id as u64).into(),
    ]);
}

/// Server connections of a database.
pub fn of_door(door: &Door) -> usize {
    let pool = door.backend.pool.borrow();
    let idle = pool.idle().filter(|(owner, _)| owner.database == door.name);
    door.lending.lent() + idle.count()
}

/// Server connections that are open for a user.
pub fn of_user(shared: &Shared, user: &str) -> usize {
    let clients = shared.clients.borrow();
    let with_server = clients
        .values()
        .filter(|here| here.running.borrow().is_some());
    let active = with_server.filter(|here| here.user == user).count();
    let of_pool = |backend: &Rc<crate::net::door::Backend>| {
        let pool = backend.pool.borrow();
        pool.idle().filter(|(owner, _)| owner.user == user).count()
    };
    active + shared.backends().iter().map(of_pool).sum::<usize>()
}

#[derive(Default)]
struct PoolFigures {
    active: usize,
    waiting: usize,
    idle_servers: usize,
    longest_wait_us: u64,
}

fn by_pool(shared: &Shared) -> BTreeMap<(String, String), PoolFigures> {
    let mut pools: BTreeMap<(String, String), PoolFigures> = BTreeMap::new();
    for here in shared.clients.borrow().values() {
        let pool = pools.entry((here.database.clone(), here.user.clone()));
        let pool = pool.or_default();
        match here.doing.get() {
            Doing::Waits => {
                pool.waiting += 1;
                let waited_us = here.doing_since.get().elapsed().as_micros() as u64;
                pool.longest_wait_us = pool.longest_wait_us.max(waited_us);
            }
            Doing::Works => pool.active += 1,
            // As in PgBouncer: a client that has a server connection is active.
            Doing::Idle if here.has_server() => pool.active += 1,
            Doing::Idle => {}
        }
    }
    for backend in shared.backends() {
        for (owner, _) in backend.pool.borrow().idle() {
            let pool = pools.entry((owner.database.clone(), owner.user.clone()));
            pool.or_default().idle_servers += 1;
        }
    }
    pools
}

pub fn pools_count(shared: &Shared) -> usize {
    by_pool(shared).len()
}

pub fn pools(shared: &Shared) -> Table {
    let mut table = Table::new(&[
        "database",
        "user",
        "#cl_active",
        "#cl_waiting",
        "#cl_active_cancel_req",
        "#cl_waiting_cancel_req",
        "#sv_active",
        "#sv_active_cancel",
        "#sv_being_canceled",
        "#sv_idle",
        "#sv_used",
        "#sv_tested",
        "#sv_login",
        "#maxwait",
        "#maxwait_us",
        "pool_mode",
        "load_balance_hosts",
    ]);
    let settings = shared.settings();
    for ((database, user), pool) in by_pool(shared) {
        let door = shared.door(&database);
        let by_session = door.is_some_and(|door| settings.by_session(&user, &door.table));
        let own_mode = if by_session {
            Mode::Session
        } else {
            Mode::Transaction
        };
        let zero = || Field::from(0u64);
        table.row([
            database.into(),
            user.into(),
            pool.active.into(),
            pool.waiting.into(),
            zero(),
            zero(),
            pool.active.into(),
            zero(),
            zero(),
            pool.idle_servers.into(),
            zero(),
            zero(),
            zero(),
            (pool.longest_wait_us / 1_000_000).into(),
            (pool.longest_wait_us % 1_000_000).into(),
            mode(own_mode).into(),
            Field::Null,
        ]);
    }
    table
}
