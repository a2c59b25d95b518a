//! What the real gate holds in memory before a real PostgreSQL: little for clients that are silent,
//! and no more than a few pieces of what passes, however large that is and whether or not its
//! reader reads.
//!
//! Small versions of `sooner lab run gate --case gate-memory`, with a debug build's limits. Needs
//! PostgreSQL.

use crate::gate_fire::messages::query;
use crate::gate_fire::process::GateProcess;
use crate::gate_fire::wire::{ServerAddress, Wire};
use sooner_testbed::postgres::Database;

const MIB: u64 = 1 << 20;
/// Of the gate for whatever passes.
const GROWTH_BYTES_MAX: u64 = 16 * MIB;
const LIMIT: u32 = 10;

fn session(place: &ServerAddress) -> Wire {
    Wire::log_in(place, "postgres", "memory").unwrap().unwrap()
}

fn asks(wire: &mut Wire) {
    assert_eq!(wire.ask("SELECT 1").unwrap().values, ["1"]);
}

#[test]
fn silent_clients_hold_little() {
    let Some(database) = Database::start("silent_clients_hold_little") else {
        return;
    };
    let gate = GateProcess::start(database.folder(), LIMIT);
    let [_, place] = gate.places();
    asks(&mut session(&place));
    let before_bytes = gate.resident_bytes();
    let mut silent = Vec::new();
    for _ in 0..400 {
        let mut wire = session(&place);
        asks(&mut wire);
        silent.push(wire);
    }
    let each_bytes = (gate.resident_bytes() - before_bytes) / silent.len() as u64;
    assert!(each_bytes < 16 * 1024, "{each_bytes} bytes each");
}

#[test]
fn a_long_row_and_clients_that_do_not_read_hold_no_more() {
    let Some(database) = Database::start("a_long_row_and_clients_that_do_not_read") else {
        return;
    };
    let gate = GateProcess::start(database.folder(), LIMIT);
    let [_, place] = gate.places();
    let mut beside = session(&place);
    asks(&mut beside);
    let before_bytes = gate.resident_bytes();
    let answer = session(&place).ask("SELECT repeat('x', 64000000)").unwrap();
    assert_eq!(answer.values[0].len(), 64_000_000);
    let row_bytes = gate.peak_bytes() - before_bytes;
    assert!(row_bytes < GROWTH_BYTES_MAX, "{row_bytes} bytes for a row");
    let mut deaf = Vec::new();
    for _ in 1..LIMIT {
        let mut wire = session(&place);
        wire.send(&query(
            "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)",
        ));
        deaf.push(wire);
    }
    // One place is left, which is enough for a client that reads.
    for _ in 0..100 {
        asks(&mut beside);
    }
    let deaf_bytes = gate.peak_bytes() - before_bytes;
    assert!(deaf_bytes < GROWTH_BYTES_MAX, "{deaf_bytes} bytes");
}
