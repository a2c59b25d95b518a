//! Round-trip times: small packets to the server and back, for all clients at once.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde::Serialize;

use super::Bench;
use super::flow::{Plan, there_and_back};
use crate::emulator::core::Direction;
use crate::emulator::report::Report;

/// The papers' range (thesis 4.3.1: 0 to 100 ms; 4.3.2: 150 ms), and none.
const ASKED_MS: [f64; 5] = [0.0, 20.0, 50.0, 100.0, 150.0];
/// By how much the median may differ.
const ALLOWED_MS: f64 = 0.5;
/// What `ping` sends.
const PAYLOAD_BYTES: usize = 56;
/// Of each client.
const PACKETS_PER_SEC: f64 = 100.0;

/// One round-trip time.
#[derive(Debug, Clone, Serialize)]
pub struct RttRow {
    /// Asked for, milliseconds.
    pub asked_rtt_ms: f64,
    /// Measured between sockets: the median, milliseconds.
    pub median_rtt_ms: Option<f64>,
    /// The 99th percentile, milliseconds.
    pub p99_rtt_ms: Option<f64>,
    /// The longest, milliseconds.
    pub max_rtt_ms: Option<f64>,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets that came back; no loss was asked for.
    pub packets_returned: u64,
    /// Whether the median is within half a millisecond of the asked time, and every packet came back.
    pub passed: bool,
}

/// Measures all of them; a second when quick, else ten.
pub fn measure(bench: &Bench, interrupted: &AtomicBool) -> Result<(Vec<RttRow>, Report)> {
    let clients = super::clients(ASKED_MS.map(|rtt_ms| (rtt_ms, 0.0)))?;
    let packets_sent = if bench.quick { 100 } else { 1_000 };
    let plan = Plan {
        direction: Direction::ToServer,
        packets_per_client: packets_sent,
        payload_bytes: PAYLOAD_BYTES,
        packets_per_sec: PACKETS_PER_SEC * ASKED_MS.len() as f64,
    };
    let emulating = bench.emulate(&clients)?;
    let outcome = there_and_back(&bench.hosts, &clients, plan, interrupted)?;
    let report = emulating.finish()?;
    let rows = ASKED_MS
        .iter()
        .zip(&outcome.arrived)
        .map(|(asked_rtt_ms, arrived)| {
            let median_rtt_ms = arrived.delay_ms(0.5);
            let is_right =
                median_rtt_ms.is_some_and(|rtt_ms| (rtt_ms - asked_rtt_ms).abs() <= ALLOWED_MS);
            RttRow {
                asked_rtt_ms: *asked_rtt_ms,
                median_rtt_ms,
                p99_rtt_ms: arrived.delay_ms(0.99),
                max_rtt_ms: arrived.delay_ms(1.0),
                packets_sent,
                packets_returned: arrived.packets,
                passed: is_right && arrived.packets == packets_sent,
            }
        });
    Ok((rows.collect(), report))
}
