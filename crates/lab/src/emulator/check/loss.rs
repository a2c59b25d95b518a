//! Loss rates: small packets one way, in both directions at the same time, for all clients at once.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde::Serialize;

use super::Bench;
use super::flow::{Arrived, Plan, one_way};
use crate::emulator::core::Direction;
use crate::emulator::report::Report;

/// The papers' range: thesis 4.3.1 and overload paper, Table II, up to 10 and 15 %.
const ASKED: [f64; 4] = [0.01, 0.03, 0.05, 0.15];
/// By which share of itself a rate may differ.
const ALLOWED_SHARE: f64 = 0.1;
/// Standard deviations a quick run may differ by chance: with its few packets that is more than the
/// above.
const CHANCE_DEVIATIONS: f64 = 4.0;
const PAYLOAD_BYTES: usize = 32;
/// Over all clients, in each direction.
const PACKETS_PER_SEC: f64 = 8_000.0;

/// One rate in one direction.
#[derive(Debug, Clone, Serialize)]
pub struct LossRow {
    /// `to_client` or `to_server`.
    pub direction: &'static str,
    /// Requested share.
    pub asked_loss: f64,
    /// Share that did not arrive at the socket.
    pub measured_loss: f64,
    /// By how much it may differ.
    pub allowed_difference: f64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets that arrived.
    pub packets_received: u64,
    /// Of them, those that came after one that was sent later.
    pub reordered_packets: u64,
    /// Whether the rate is as asked and the order was kept.
    pub passed: bool,
}

/// Measures all of them: 100 000 packets a client and direction, a tenth of that when quick.
pub fn measure(bench: &Bench, interrupted: &AtomicBool) -> Result<(Vec<LossRow>, Report)> {
    let clients = super::clients(ASKED.map(|loss| (0.0, loss)))?;
    let packets_sent = if bench.quick { 10_000 } else { 100_000 };
    let plans = Direction::BOTH.map(|direction| Plan {
        direction,
        packets_per_client: packets_sent,
        payload_bytes: PAYLOAD_BYTES,
        packets_per_sec: PACKETS_PER_SEC,
    });
    let emulating = bench.emulate(&clients)?;
    let outcomes = one_way(&bench.hosts, &clients, &plans, interrupted)?;
    let report = emulating.finish()?;
    let mut rows = Vec::new();
    for (direction, outcome) in ["to_client", "to_server"].into_iter().zip(&outcomes) {
        for (asked, arrived) in ASKED.into_iter().zip(&outcome.arrived) {
            rows.push(row(direction, asked, packets_sent, arrived, bench.quick));
        }
    }
    Ok((rows, report))
}

fn row(
    direction: &'static str,
    asked_loss: f64,
    packets_sent: u64,
    arrived: &Arrived,
    quick: bool,
) -> LossRow {
    let measured_loss = 1.0 - arrived.packets as f64 / packets_sent as f64;
    let by_chance =
        CHANCE_DEVIATIONS * (asked_loss * (1.0 - asked_loss) / packets_sent as f64).sqrt();
    let allowed_difference = if quick {
        by_chance.max(ALLOWED_SHARE * asked_loss)
    } else {
        ALLOWED_SHARE * asked_loss
    };
    LossRow {
        direction,
        asked_loss,
        measured_loss,
        allowed_difference,
        packets_sent,
        packets_received: arrived.packets,
        reordered_packets: arrived.reordered_packets,
        passed: (measured_loss - asked_loss).abs() <= allowed_difference
            && arrived.reordered_packets == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(received: u64, sent: u64, reordered_packets: u64, quick: bool) -> bool {
        let arrived = Arrived {
            packets: received,
            reordered_packets,
            ..Arrived::default()
        };
        row("to_client", 0.01, sent, &arrived, quick).passed
    }

    #[test]
    fn a_tenth_of_the_rate_is_allowed_and_no_reordering() {
        assert!(passed(99_000, 100_000, 0, false));
        assert!(passed(98_901, 100_000, 0, false));
        assert!(!passed(98_899, 100_000, 0, false));
        assert!(!passed(99_101, 100_000, 0, false));
        assert!(!passed(99_000, 100_000, 1, false));
    }

    #[test]
    fn a_quick_run_is_allowed_what_chance_does() {
        assert!(passed(9_865, 10_000, 0, true));
        assert!(!passed(9_865, 10_000, 0, false));
        assert!(!passed(9_850, 10_000, 0, true));
    }
}
