//! What is done to the database and the gate meanwhile.

use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::client::Arena;
use super::process::GateProcess;
use super::random::Random;
use super::wire::{ServerAddress, Wire};
use sooner_testbed::postgres::Database;

/// Between two server sessions that are ended.
const PAUSE: Duration = Duration::from_millis(250);
/// Between two of the larger misfortunes: the gate is killed, the database is stopped, both at
/// once.
const MISFORTUNE_PAUSE: Duration = Duration::from_secs(3);
/// How long there is no gate, or no database, at most.
const ABSENCE: Duration = Duration::from_millis(600);

/// Goes on for so long.
pub fn rage(arena: &Arena, database: &Database, gate: &mut GateProcess, duration: Duration) {
    let mut random = Random::new(arena.seed, 0);
    let (begin, mut misfortunes) = (Instant::now(), 0_u32);
    while begin.elapsed() < duration && arena.ledger.is_clean() {
        sleep(random.pause(PAUSE));
        end_a_session(arena, database, &mut random);
        if begin.elapsed() < MISFORTUNE_PAUSE * (misfortunes + 1) {
            continue;
        }
        assert!(gate.runs(), "the gate has ended: {}", gate.said());
        let absence = random.pause(ABSENCE);
        match misfortunes % 4 {
            0 | 2 => without_gate(arena, gate, || sleep(absence)),
            1 => without_database(arena, database, || sleep(absence)),
            _ => without_gate(arena, gate, || {
                without_database(arena, database, || sleep(absence));
            }),
        }
        misfortunes += 1;
    }
}

fn without_gate(arena: &Arena, gate: &mut GateProcess, meanwhile: impl FnOnce()) {
    arena.gate_age.fetch_add(1, Ordering::SeqCst);
    gate.kill();
    meanwhile();
    gate.restart();
    arena.gate_age.fetch_add(1, Ordering::SeqCst);
    arena.ledger.count("the gate was killed");
}

fn without_database(arena: &Arena, database: &Database, meanwhile: impl FnOnce()) {
    database.stop("immediate");
    meanwhile();
    database.restart();
    arena.ledger.count("the database was stopped at once");
}

/// Ends some server session, as an operator would.
fn end_a_session(arena: &Arena, database: &Database, random: &mut Random) {
    let place = ServerAddress::Unix(database.folder().join(".s.PGSQL.5432"));
    let session = Wire::log_in(&place, "postgres", "chaos");
    // It has no room for one more at the moment, or is starting.
    let Some(Ok(mut wire)) = session else { return };
    let sql = format!(
        "WITH those AS (SELECT pid, row_number() OVER (ORDER BY pid) - 1 AS i, count(*) OVER () AS n FROM pg_stat_activity \
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) \
         SELECT pg_terminate_backend(pid) FROM those WHERE i = {} % n",
        random.below(1_000_000)
    );
    if let Ok(answer) = wire.ask(&sql)
        && answer.values == ["t"]
    {
        arena.ledger.count("server sessions ended");
    }
}
