//! The real gate before a real PostgreSQL, under everything that clients, operators and crashes do
//! to it at once: no transaction is lost, run twice or acknowledged without being there, no cancel
//! request hits a stranger, and no client waits without end.
//!
//! 200 clients move money between accounts and enter each of their transactions in a journal that
//! lets duplicates in. Meanwhile clients vanish in the middle of a transaction or a message, reset
//! or half close their connections, and cancel themselves, with the right key and wrong ones;
//! server sessions are terminated; the database is stopped at once and the gate killed, and both
//! started again. Each client remembers what it was told; at the end that is held against the
//! database. It stops at the first thing that must not be.
//!
//! `SOONER_FIRE_SECONDS` says how long it rages (12), `SOONER_FIRE_SEED` which choices are made;
//! both are printed. What is chosen depends on the seed alone, when it happens on the machine as
//! well. Needs PostgreSQL.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::gate_fire::chaos;
use crate::gate_fire::client::{Arena, Client, Kind};
use crate::gate_fire::process::GateProcess;
use crate::gate_fire::transfer::ACCOUNTS;
use crate::gate_fire::wire::{ServerAddress, Wire};
use sooner_testbed::postgres::{Database, until};

const CLIENTS: u64 = 200;
/// One client in so many cancels itself.
const VICTIM_EVERY: u64 = 8;
const LIMIT: u32 = 10;
const BALANCE: i64 = 1000;

#[test]
fn money_stays_whatever_happens() {
    let Some(database) = Database::start("money_stays_whatever_happens") else {
        return;
    };
    let seconds = number_of("SOONER_FIRE_SECONDS").unwrap_or(12);
    let seed = number_of("SOONER_FIRE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    say(&format!("{seconds} s with SOONER_FIRE_SEED={seed}"));
    database.ask("CREATE USER ann SUPERUSER");
    database.ask("CREATE TABLE accounts (id int PRIMARY KEY, balance bigint)");
    database.ask("CREATE TABLE journal (id bigint, src int, dst int, amount bigint, who text)");
    database.ask(&format!(
        "INSERT INTO accounts SELECT i, {BALANCE} FROM generate_series(0, {}) i",
        ACCOUNTS - 1
    ));
    let mut gate = GateProcess::start(database.folder(), LIMIT);
    let arena = Arc::new(Arena {
        places: gate.places(),
        ledger: Default::default(),
        is_over: Default::default(),
        gate_age: Default::default(),
        seed,
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let kind = match number % VICTIM_EVERY {
                0 => Kind::Victim,
                _ => Kind::Stranger,
            };
            let client = Client::new(arena.clone(), number, kind);
            thread::spawn(move || client.run())
        })
        .collect();
    chaos::rage(&arena, &database, &mut gate, Duration::from_secs(seconds));
    arena
        .is_over
        .store(true, std::sync::atomic::Ordering::SeqCst);
    for client in clients {
        client.join().unwrap();
    }
    assert!(gate.runs(), "the gate has ended: {}", gate.said());
    every_place_is_there(&arena.places[1]);
    let said = gate.said();
    assert!(!said.contains("panicked"), "{said}");
    let (resident_kib, peak_kib) = (gate.resident_bytes() / 1024, gate.peak_bytes() / 1024);
    say(&format!(
        "the gate has {resident_kib} KiB in memory, and had {peak_kib}"
    ));
    drop(gate);
    audit(&arena, &database);
}

/// As many transactions at a time as at the beginning: none has left without giving its place back.
fn every_place_is_there(place: &ServerAddress) {
    let mut held = Vec::new();
    for _ in 0..LIMIT {
        let mut wire = Wire::log_in(place, "ann", "last").unwrap().unwrap();
        let answer = wire.ask("BEGIN").unwrap();
        assert_eq!(answer.status, b'T', "{answer:?}");
        held.push(wire);
    }
}

fn audit(arena: &Arena, database: &Database) {
    // What clients have left behind may still run.
    until("all sessions are over", || {
        let others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        database.ask(others) == "0"
    });
    let journal = database.ask("SELECT id, src, dst, amount, who FROM journal ORDER BY id");
    let balances = database.ask("SELECT balance FROM accounts ORDER BY id");
    let ledger = &arena.ledger;
    ledger.audit(&journal, &balances, BALANCE);
    say(&ledger.summary());
    let violations = ledger.violations();
    let mut first = String::new();
    for violation in violations.iter().take(20) {
        let _ = writeln!(first, "{violation}");
    }
    assert!(violations.is_empty(), "seed {}: {first}", arena.seed);
    // All of this means something only if it has happened.
    for what in [
        "Acknowledged",
        "Failed",
        "Unknown",
        "a sleep was cancelled",
        "server sessions ended",
        "the gate was killed",
        "the database was stopped at once",
    ] {
        assert!(ledger.counted(what) > 0, "{what}: never");
    }
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "under fire: {words}");
}
