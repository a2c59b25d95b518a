//! Round-trip times: small packets to the server and back, for all clients at once.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde::Serialize;

use super::Bench;
use super::flow::{Arrived, Plan, there_and_back};
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
    /// Requested, milliseconds.
    pub asked_rtt_ms: f64,
    /// Measured between sockets: the median, milliseconds.
    pub median_rtt_ms: Option<f64>,
    /// The 99th percentile, milliseconds.
    pub p99_rtt_ms: Option<f64>,
    /// The longest, milliseconds.
    pub max_rtt_ms: Option<f64>,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets that came back; the check requests no loss.
    pub packets_returned: u64,
    /// Whether the median is within half a millisecond of the asked time, and every packet came
    /// back.
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
    let rows = ASKED_MS.into_iter().zip(&outcome.arrived);
    let rows = rows.map(|(asked_rtt_ms, arrived)| row(asked_rtt_ms, packets_sent, arrived));
    Ok((rows.collect(), report))
}

fn row(asked_rtt_ms: f64, packets_sent: u64, arrived: &Arrived) -> RttRow {
    let median_rtt_ms = arrived.delay_ms(0.5);
    let is_right = median_rtt_ms.is_some_and(|rtt_ms| (rtt_ms - asked_rtt_ms).abs() <= ALLOWED_MS);
    RttRow {
        asked_rtt_ms,
        median_rtt_ms,
        p99_rtt_ms: arrived.delay_ms(0.99),
        max_rtt_ms: arrived.delay_ms(1.0),
        packets_sent,
        packets_returned: arrived.packets,
        passed: is_right && arrived.packets == packets_sent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(asked_rtt_ms: f64, packets_sent: u64, delays_ns: &[u64]) -> bool {
        let arrived = Arrived {
            packets: delays_ns.len() as u64,
            delays_ns: delays_ns.to_vec(),
            ..Arrived::default()
        };
        row(asked_rtt_ms, packets_sent, &arrived).passed
    }

    #[test]
    fn half_a_millisecond_is_allowed_in_the_median_and_no_loss() {
        let delays_ns = [20_100_000, 20_400_000, 99_000_000];
        assert!(passed(20.0, 3, &delays_ns));
        assert!(!passed(20.0, 4, &delays_ns), "one did not come back");
        assert!(!passed(19.8, 3, &delays_ns), "too long");
        assert!(!passed(21.0, 3, &delays_ns), "too short");
        assert!(!passed(0.0, 0, &[]), "nothing measured");
    }
}
