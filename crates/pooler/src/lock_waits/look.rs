//! One look at the locks of a server, and what is done then.

use super::cancelling::{Cancelled, cancel_statements};
use super::target;
use crate::client::handle::ClientHandle;
use crate::client::preemption::RunningTransaction;
use crate::pool::ServerConnection;
use crate::pool::lease::{COMMAND_PATIENCE, LeaseRequest, RETRY_PAUSE, in_time};
use crate::pool::server_session::LoginError;
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use sooner_postgres::locks::{self, LockRow, Waiter, waiters};
use sooner_postgres::preemption::{Inside, Taken, taken};
use sooner_postgres::wire::message_of_error;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What a server refuses it refuses for long.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// A transaction is idle for long when its client has done nothing for so long: programs need some
/// time between two statements.
const IDLE_MIN: Duration = Duration::from_millis(10);

/// Asks the server of these clients who waits for whom, and has those make room that are in the
/// way of one of them and matter less.
pub async fn look(pooler: Rc<Pooler>, upstream: Rc<Upstream>, late: Vec<Rc<ClientHandle>>) {
    let begin = Instant::now();
    let asked = ask(&pooler, &upstream, &late).await;
    let (looks, took) = pooler.lock_waits.looks.get();
    let now = Instant::now();
    pooler
        .lock_waits
        .looks
        .set((looks + 1, took + (now - begin)));
    match asked {
        Ok((rows, now_us)) => {
            let told = act(&pooler, &upstream, &late, (&rows, now_us));
            if !told.is_empty() {
                cancel_statements(&upstream, &told).await;
                told.iter()
                    .for_each(|told| told.handle.preemption.arrived());
            }
        }
        Err(error) => {
            let address = &upstream.address;
            let (why, pause) = match &error {
                LoginError::Refused(message) => (message_of_error(message), REFUSED_PAUSE),
                error => (error.to_string(), RETRY_PAUSE),
            };
            pooler.lock_waits.failures.log(1, |_| {
                format!("{address} does not tell which sessions wait for which lock: {why}; wait_target has no effect until it does")
            });
            tokio::time::sleep(pause).await;
        }
    }
    // Where there are many locks it takes long, and half of the time is enough.
    tokio::time::sleep(now - begin).await;
    upstream.watches_locks.set(false);
}

async fn ask(
    pooler: &Pooler,
    upstream: &Rc<Upstream>,
    late: &[Rc<ClientHandle>],
) -> Result<(Vec<LockRow>, i64), LoginError> {
    let known = upstream.lock_watch.take();
    let mut server = match known {
        Some(server) => server,
        None => open(pooler, upstream, late).await?,
    };
    let rows = in_time(COMMAND_PATIENCE, server.query(locks::QUERY.as_bytes())).await?;
    server.used_at = Instant::now();
    upstream.lock_watch.replace(Some(server));
    let mut now_us = 0;
    let read = rows.iter().filter_map(|row| LockRow::of_texts(row));
    let rows = read
        .map(|(row, at_us)| {
            now_us = at_us;
            row
        })
        .collect();
    Ok((rows, now_us))
}

/// What the role or the database says of statements that take long is meant for its clients, and so
/// is what has them wait for other transactions. The first of these ends before any bound.
const WITHOUT_BOUND: &[u8] =
    b"SET statement_timeout = 0; SET default_transaction_isolation = 'read committed'";
const WITHOUT_BOUNDS: &[u8] = b"SELECT pg_catalog.set_config(name, '0', false) \
    FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) \
    ANY ('{lock_timeout,idle_session_timeout,transaction_timeout}'::pg_catalog.text[])";

/// A session of the first of the clients that can log in: every role may read locks.
async fn open(
    pooler: &Pooler,
    upstream: &Rc<Upstream>,
    late: &[Rc<ClientHandle>],
) -> Result<Box<ServerConnection>, LoginError> {
    let configuration = pooler.configuration();
    let mut last = LoginError::Impossible("none of its clients has a database there".into());
    for handle in late {
        let Some(db) = pooler.database(&handle.database) else {
            continue;
        };
        if !Rc::ptr_eq(&db.upstream, upstream) {
            continue;
        }
        let request = LeaseRequest {
            user: &handle.user,
            db,
            proof: handle.proof.as_deref(),
        };
        let owner = request.owner();
        let opened = in_time(
            configuration.patience(),
            request.open(&configuration, &owner),
        );
        let opened = async {
            let mut server = opened.await?;
            for sql in [WITHOUT_BOUND, WITHOUT_BOUNDS] {
                in_time(COMMAND_PATIENCE, server.execute(sql)).await?;
            }
            Ok(server)
        };
        match opened.await {
            Ok(server) => return Ok(server),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Clients with a transaction in this server, by their server processes.
fn clients_inside(
    pooler: &Pooler,
    upstream: &Rc<Upstream>,
) -> BTreeMap<i32, (Rc<ClientHandle>, RunningTransaction)> {
    let clients = pooler.clients.borrow();
    let inside = clients.values().filter_map(|handle| {
        let running = handle.preemption.running.get()?;
        let target = handle.cancel_target.borrow();
        let target = target.as_ref()?;
        let is_there = Rc::ptr_eq(&target.upstream, upstream);
        is_there.then(|| (target.key.process_id, (handle.clone(), running)))
    });
    inside.collect()
}

/// Those that are to make room while they do something.
fn act(
    pooler: &Pooler,
    upstream: &Rc<Upstream>,
    late: &[Rc<ClientHandle>],
    (rows, now_us): (&[LockRow], i64),
) -> Vec<Cancelled> {
    let mut told = Vec::new();
    // A rehearsal only counts, as `track` does.
    let only_observes = pooler.configuration().config.observe;
    let waiters = waiters(rows);
    let clients = clients_inside(pooler, upstream);
    let inside = states(&clients, rows);
    for (process_id, waiter) in waiters.iter().map(|waiter| (waiter.pid, waiter)) {
        let Some((handle, running)) = clients.get(&process_id) else {
            continue;
        };
        let is_late = late.iter().any(|own| Rc::ptr_eq(own, handle))
            && waits_too_long(waiter, now_us, handle);
        let (true, Some(wait)) = (is_late, running.lock_wait) else {
            continue;
        };
        let class = class_name(pooler, handle);
        let own = &pooler.lock_waits;
        if handle.preemption.counted_late.replace(running.number) != running.number {
            own.count(&class, |counts| counts.late += 1);
        }
        for (victim, how) in taken(&waiters, process_id, &inside, wait.preempt) {
            let Some((victim, its)) = clients.get(&victim) else {
                continue;
            };
            let only_counts = wait.only_tracks || only_observes;
            let is_told = !only_counts && victim.preemption.order(how, Instant::now());
            if (is_told || only_counts)
                && victim.preemption.counted_taken.replace(its.number) != its.number
            {
                own.count(&class, |counts| counts.add(how));
            }
            if is_told && how != Taken::RolledBack {
                let (handle, number) = (victim.clone(), its.number);
                let busy_since = victim.preemption.busy_since.get();
                told.push(Cancelled {
                    handle,
                    number,
                    busy_since,
                });
            }
        }
    }
    told
}

fn class_name(pooler: &Pooler, handle: &ClientHandle) -> String {
    let configuration = pooler.configuration();
    let classes = &configuration.config.class;
    let class = classes.get(handle.class(classes));
    class.map_or(String::new(), |class| class.name.get_ref().clone())
}

fn waits_too_long(waiter: &Waiter, now_us: i64, handle: &ClientHandle) -> bool {
    if waiter.since_us == 0 {
        return false;
    }
    let waited = handle.preemption.waited(waiter.since_us, now_us);
    target(handle).is_some_and(|target| waited >= target)
}

/// What is known of those inside: who is idle, who can be sent again, who is spared.
fn states(
    clients: &BTreeMap<i32, (Rc<ClientHandle>, RunningTransaction)>,
    rows: &[LockRow],
) -> BTreeMap<i32, Inside> {
    let mut locks: HashMap<i32, usize> = HashMap::new();
    for row in rows.iter().filter(|row| row.granted) {
        *locks.entry(row.pid).or_default() += 1;
    }
    let state =
        |(process_id, (handle, running)): (&i32, &(Rc<ClientHandle>, RunningTransaction))| {
            let idle = handle.idle_in_transaction_since.get();
            let inside = Inside {
                priority: running.priority,
                began: running.number,
                locks: locks.get(process_id).copied().unwrap_or(0),
                is_idle: idle.is_some(),
                is_idle_for_long: idle.is_some_and(|since| since.elapsed() >= IDLE_MIN),
                may_commit: handle.preemption.may_commit.get(),
                is_repeatable: handle.preemption.is_repeatable.get(),
                is_spared: handle.preemption.is_spared(),
            };
            (*process_id, inside)
        };
    clients.iter().map(state).collect()
}
