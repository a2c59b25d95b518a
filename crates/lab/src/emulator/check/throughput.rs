//! 100 Mbit/s with delay and loss: full packets to a client at a fixed rate, and half as many small
//! ones back, as TCP would acknowledge.
//!
//! UDP and not TCP, on purpose: at 5 % loss TCP sends what its congestion control allows, which is
//! far below 100 Mbit/s whatever program carries the packets. A fixed rate asks the emulator alone.
//! It is offered more than 100 Mbit/s, so that 100 Mbit/s are left after the loss.

use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use serde::Serialize;

use super::Bench;
use super::flow::{Outcome, Plan, one_way};
use crate::emulator::core::Direction;
use crate::emulator::report::Report;

const ASKED_BITS_PER_SEC: f64 = 100e6;
const ASKED_RTT_MS: f64 = 100.0;
const ASKED_LOSS: f64 = 0.05;
/// Of the asked rate may be missing by chance.
const MISSING_SHARE: f64 = 0.005;
const ALLOWED_LOSS_SHARE: f64 = 0.1;
const ALLOWED_DELAY_MS: f64 = 0.5;
/// An IP packet of 1500 bytes, and what it is on Ethernet.
const PAYLOAD_BYTES: usize = 1_472;
const WIRE_BITS: f64 = 1_514.0 * 8.0;
const BACK_PAYLOAD_BYTES: usize = 32;

/// What was carried.
#[derive(Debug, Clone, Serialize)]
pub struct ThroughputRow {
    /// Requested, milliseconds.
    pub asked_rtt_ms: f64,
    /// Requested share, in each direction.
    pub asked_loss: f64,
    /// What was sent to the client, with Ethernet headers, bit/s.
    pub offered_bits_per_sec: f64,
    /// What arrived there.
    pub delivered_bits_per_sec: f64,
    /// Share that did not arrive.
    pub measured_loss: f64,
    /// From the server to the client: the median, milliseconds; the requested delay is half of the
    /// round-trip time.
    pub median_delay_ms: Option<f64>,
    /// The 99th percentile, milliseconds.
    pub p99_delay_ms: Option<f64>,
    /// Packets a second sent to the server meanwhile.
    pub back_packets_per_sec: f64,
    /// How late packets were sent: the 99th percentile, microseconds.
    pub send_lag_p99_us: f64,
    /// Processor time of the emulator a second.
    pub emulator_cpu_share: f64,
    /// Packets dropped that the loss rate does not account for.
    pub unaccounted_packets: u64,
    /// Whether at least 100 Mbit/s arrived (within 0.5 %), the loss is within 10 % of the requested
    /// rate, the median delay within half a millisecond, the order was kept, and nothing else was
    /// dropped.
    pub passed: bool,
}

/// Measures for ten seconds, two when quick.
pub fn measure(bench: &Bench, interrupted: &AtomicBool) -> Result<(ThroughputRow, Report)> {
    let clients = super::clients([(ASKED_RTT_MS, ASKED_LOSS)])?;
    let packets_per_sec = ASKED_BITS_PER_SEC / WIRE_BITS / (1.0 - ASKED_LOSS);
    let seconds = if bench.quick { 2.0 } else { 10.0 };
    let plan = |direction, payload_bytes, packets_per_sec: f64| Plan {
        direction,
        packets_per_client: (packets_per_sec * seconds) as u64,
        payload_bytes,
        packets_per_sec,
    };
    let to_client = plan(Direction::ToClient, PAYLOAD_BYTES, packets_per_sec);
    let back = plan(
        Direction::ToServer,
        BACK_PAYLOAD_BYTES,
        packets_per_sec / 2.0,
    );
    let emulating = bench.emulate(&clients)?;
    let outcomes = one_way(&bench.hosts, &clients, &[to_client, back], interrupted)?;
    let report = emulating.finish()?;
    let [forth, back_outcome] = outcomes.as_slice() else {
        bail!("two plans had {} outcomes", outcomes.len());
    };
    let mut row = row(to_client, forth, &report);
    row.back_packets_per_sec = per_sec(back.packets_per_client as f64, back_outcome.sending_ns);
    Ok((row, report))
}

fn row(plan: Plan, outcome: &Outcome, report: &Report) -> ThroughputRow {
    let arrived = &outcome.arrived[0];
    let (sent, received) = (plan.packets_per_client as f64, arrived.packets as f64);
    let measured_loss = 1.0 - received / sent;
    let receiving_ns = arrived.last_ns - arrived.first_ns;
    let delivered_bits_per_sec = per_sec(received * WIRE_BITS, receiving_ns);
    let median_delay_ms = arrived.delay_ms(0.5);
    let is_on_time = median_delay_ms
        .is_some_and(|delay_ms| (delay_ms - ASKED_RTT_MS / 2.0).abs() <= ALLOWED_DELAY_MS);
    ThroughputRow {
        asked_rtt_ms: ASKED_RTT_MS,
        asked_loss: ASKED_LOSS,
        offered_bits_per_sec: per_sec(sent * WIRE_BITS, outcome.sending_ns),
        delivered_bits_per_sec,
        measured_loss,
        median_delay_ms,
        p99_delay_ms: arrived.delay_ms(0.99),
        back_packets_per_sec: 0.0,
        send_lag_p99_us: outcome.send_lag.quantile_ns(0.99) as f64 / 1e3,
        emulator_cpu_share: report.cpu_s / report.elapsed_s,
        unaccounted_packets: report.unaccounted_packets(),
        passed: delivered_bits_per_sec >= ASKED_BITS_PER_SEC * (1.0 - MISSING_SHARE)
            && (measured_loss - ASKED_LOSS).abs() <= ASKED_LOSS * ALLOWED_LOSS_SHARE
            && is_on_time
            && arrived.reordered_packets == 0
            && report.unaccounted_packets() == 0,
    }
}

fn per_sec(amount: f64, ns: u64) -> f64 {
    amount * 1e9 / ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::flow::Arrived;
    use super::*;
    use crate::emulator::core::{Bounds, Emulator};
    use crate::emulator::lateness::Histogram;
    use crate::emulator::report::{DeviceCounts, Running};

    /// Whether a second passes in which that much arrived of 9000 packets.
    fn passed(received: u64, delay_ns: u64, reordered_packets: u64, unread_packets: u64) -> bool {
        let plan = Plan {
            direction: Direction::ToClient,
            packets_per_client: 9_000,
            payload_bytes: PAYLOAD_BYTES,
            packets_per_sec: 9_000.0,
        };
        let arrived = Arrived {
            packets: received,
            reordered_packets,
            delays_ns: vec![delay_ns; received as usize],
            last_ns: 1_000_000_000,
            ..Arrived::default()
        };
        let outcome = Outcome {
            arrived: vec![arrived],
            send_lag: Histogram::default(),
            sending_ns: 1_000_000_000,
        };
        let mut running = Running {
            elapsed_ns: 1_000_000_000,
            ..Running::default()
        };
        running.devices[0] = DeviceCounts {
            unread_packets: Some(unread_packets),
            refused_packets: 0,
        };
        let emulator = Emulator::new(&[], 0, Bounds::default()).unwrap();
        let report = Report::new(&emulator, &[], 0, running);
        row(plan, &outcome, &report).passed
    }

    #[test]
    fn the_rate_the_loss_the_delay_and_the_order_have_to_be_right() {
        assert!(passed(8_550, 50_100_000, 0, 0));
        assert!(
            !passed(8_200, 50_100_000, 0, 0),
            "too slow, and too much lost"
        );
        assert!(!passed(8_990, 50_100_000, 0, 0), "too little lost");
        assert!(!passed(8_550, 50_600_000, 0, 0), "too late");
        assert!(!passed(8_550, 49_400_000, 0, 0), "too early");
        assert!(!passed(8_550, 50_100_000, 1, 0), "reordered");
        assert!(!passed(8_550, 50_100_000, 0, 1), "dropped by a device");
    }
}
