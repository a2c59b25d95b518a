//! `packet-cost`: what the BPF programs of `sooner attach` cost, ns a packet by what it is and by how
//! many flows are remembered, and the instructions that the verifier looked at. Needs CAP_BPF and
//! CAP_NET_ADMIN, no device.
//!
//! The kernel times each run of a program by itself (BPF_PROG_TEST_RUN), so what calling it costs
//! is not in the figures.

use super::{Keys, Kind, NoKeys};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result};
use serde_json::{Map, json};
use sooner_kernel::classifier::{Classifier, Direction, Options};
use sooner_kernel::device;
use sooner_testbed::packet::Packet;
use std::time::Duration;

const PORT: u16 = 443;
const PAYLOAD: [u8; 1448] = [b'x'; 1448];
const REQUEST: &[u8] = b"GET /objects/17.html HTTP/1.1\r\nHost: example.org\r\n\r\n";
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 22 Nov 2026 12:00:00 GMT\r\nContent-Type: text/html\r\nLast-Modified: Sun, 22 Nov 2026 11:00:00 GMT\r\nConnection: keep-alive\r\nAccept-Ranges: bytes\r\n";
/// Two full packets.
const RESPONSE_BYTES: usize = 2 * PAYLOAD.len();

const FLOWS: [u32; 4] = [1, 1_000, 60_000, 1_000_000];
/// How often it is looked whether all is to end.
const LOOK_TURNS: u32 = 10_000;
const FLOWS_QUICK: [u32; 2] = [1, 1_000];

/// `packet-cost`.
#[derive(Debug)]
pub struct PacketCost;

impl PacketCost {
    /// Its keys: none.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        keys.own::<NoKeys>()?;
        Ok(Box::new(PacketCost))
    }
}

impl Kind for PacketCost {
    fn run(&self, bench: &Bench<'_>, _: &Measure, record: &mut Record) -> Result<()> {
        let packets = if bench.is_quick { 1_000 } else { 200_000 };
        let counts = if bench.is_quick {
            &FLOWS_QUICK[..]
        } else {
            &FLOWS
        };
        for &flows in counts {
            bench.tell(&format!("{flows} connections"));
            let mut programs = loaded()?;
            let counts = programs.verified_instructions()?;
            if flows == 1 {
                let names =
                    ["egress", "ingress"].map(|name| format!("{name}_verified_instructions"));
                let counts = counts.map(|count| json!(count.unwrap_or(0)));
                record.add(names.into_iter().zip(counts).collect())?;
            }
            for (packet, mean_ns) in costs(bench, &mut programs, flows, packets)? {
                record.add(Map::from_iter([
                    ("packet".to_owned(), packet.into()),
                    ("flows".to_owned(), flows.into()),
                    (
                        "packet_ns".to_owned(),
                        json!((mean_ns * 10.0).round() / 10.0),
                    ),
                ]))?;
            }
        }
        Ok(())
    }
}

fn loaded() -> Result<Classifier> {
    let loopback = device::by_name("lo").context("there is no loopback device")?;
    let options = Options::for_ports(vec![PORT]);
    Classifier::load(&loopback, &options).context("the programs cannot be loaded")
}

/// What each kind of packet costs, while `flows` connections take turns: each asks, is answered
/// with two packets, and says it has them.
fn costs(
    bench: &Bench<'_>,
    programs: &mut Classifier,
    flows: u32,
    turns: u32,
) -> Result<[(&'static str, f64); 6]> {
    let first = first_payload();
    let mut costs = [
        ("request", 0.0),
        ("first of a response", 0.0),
        ("next of a response", 0.0),
        ("acknowledgement", 0.0),
        ("SYN-ACK", 0.0),
        ("of others", 0.0),
    ];
    // Every connection at least twice, so that all are known when they are measured.
    let turns = turns.max(2 * flows);
    let measured_from = turns / 2;
    for turn in 0..turns {
        if turn % LOOK_TURNS == 0 {
            bench.pause(Duration::ZERO)?;
        }
        let flow = turn % flows;
        let from = |port: u16| {
            Packet::tcp(port, 1024 + (flow & 0xff) as u16).client_net((flow >> 8) as u16)
        };
        let begin = turn / flows * RESPONSE_BYTES as u32;
        let packet = || from(PORT).seq(begin);
        let second = begin + PAYLOAD.len() as u32;
        let end = begin + RESPONSE_BYTES as u32;
        let shown = [
            (
                Direction::Comes,
                packet().ack(begin).payload(REQUEST).reversed(),
            ),
            (Direction::Leaves, packet().payload(&first)),
            (Direction::Leaves, packet().seq(second).payload(&PAYLOAD)),
            (Direction::Comes, packet().ack(end).reversed()),
            // From a connection of its own, because it begins one.
            (Direction::Leaves, from(PORT).client_net(u16::MAX).syn()),
            (Direction::Leaves, from(9999).payload(&PAYLOAD)),
        ];
        for (cost, (direction, packet)) in costs.iter_mut().zip(shown) {
            let shown = programs.show(direction, &packet.bytes(), 1)?;
            if turn >= measured_from {
                cost.1 += shown.mean_ns as f64 / f64::from(turns - measured_from);
            }
        }
        while programs.next_event().is_some() {}
    }
    Ok(costs)
}

/// A whole packet that begins with the head of a response.
fn first_payload() -> Vec<u8> {
    let field = |bytes: usize| format!("Content-Length: {bytes}\r\n\r\n").into_bytes();
    // The length has as many digits with the head's own bytes taken off.
    let head_bytes = HEAD.len() + field(RESPONSE_BYTES).len();
    let mut payload = [HEAD, &field(RESPONSE_BYTES - head_bytes)].concat();
    payload.resize(PAYLOAD.len(), b'x');
    payload
}
