//! The load of a plan beside the load of its requests once it is known which of them open a
//! connection.
//!
//! Three servers without overheads say how long each request takes, from the order with the most
//! requests waiting to the one with the fewest; a pool of clients then says who finds no connection
//! idle.

use sooner_load::ideal::{self, Work};
use sooner_workload::wire::WireModel;
use sooner_workload::{Plan, PlanOptions, Process, Rate, Trace, plan};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

const HEAD_BYTES: u64 = 250;
const WARM_UP_S: f64 = 6.0;
const MEASURED_S: f64 = 54.0;
/// Source addresses, each with connections of its own.
const CLIENTS_MAX: u32 = 4;

fn rate() -> Rate {
    "10mbit".parse().expect("a rate")
}

/// Planned as a replay is: exact in the part that is measured.
fn planned(trace: &Trace, load: f64, requests_per_connection: u32, clients: u32) -> Plan {
    let schedule = format!("{load},{load},{WARM_UP_S},{MEASURED_S}");
    let options = PlanOptions {
        schedule: schedule.parse().expect("a schedule"),
        duration_s: WARM_UP_S + MEASURED_S,
        rate: rate(),
        seed: 1,
        process: Process::Poisson,
        wire: WireModel::default(),
        head_bytes: HEAD_BYTES,
        requests_per_connection: NonZeroU32::new(requests_per_connection).expect("above 0"),
        clients: NonZeroU32::new(clients).expect("above 0"),
        visits: None,
        crowd: None,
    };
    plan(trace, &options).expect("a plan")
}

/// Response times in ns by server: first come first served, sharing, SRPT.
fn responses(plan: &Plan) -> [Vec<u64>; 3] {
    let works: Vec<Work> = plan
        .arrivals
        .iter()
        .map(|arrival| Work {
            arrival_ns: arrival.at_ns,
            work_bytes: arrival.work_bytes,
        })
        .collect();
    let ideals = ideal::responses(&works, rate().bits_per_sec());
    let mut free_ns = 0;
    let in_order = works.iter().map(|work| {
        free_ns = free_ns.max(work.arrival_ns)
            + (work.work_bytes as f64 / rate().bytes_per_sec() * 1e9) as u64;
        free_ns - work.arrival_ns
    });
    [
        in_order.collect(),
        ideals.iter().map(|ideal| ideal.ps_ns).collect(),
        ideals.iter().map(|ideal| ideal.srpt_ns).collect(),
    ]
}

/// Load of the measured requests, each with a connection if it finds none of its source address
/// idle.
fn realised_load(plan: &Plan, responses_ns: &[u64], requests_per_connection: u32) -> f64 {
    let warm_up_ns = (WARM_UP_S * 1e9) as u64;
    let (mut idle, mut busy) = (vec![Vec::new(); CLIENTS_MAX as usize], BinaryHeap::new());
    let mut sum_bytes = 0;
    for (arrival, response_ns) in plan.arrivals.iter().zip(responses_ns) {
        while let Some(&Reverse((end_ns, requests, client))) = busy.peek()
            && end_ns <= arrival.at_ns
        {
            busy.pop();
            if requests < requests_per_connection {
                idle[client as usize].push(requests);
            }
        }
        let kept: Option<u32> = idle[arrival.client as usize].pop();
        busy.push(Reverse((
            arrival.at_ns + response_ns,
            kept.unwrap_or(0) + 1,
            arrival.client,
        )));
        if arrival.at_ns >= warm_up_ns {
            sum_bytes +=
                WireModel::default().work_bytes(arrival.size_bytes, HEAD_BYTES, kept.is_none());
        }
    }
    sum_bytes as f64 / (rate().bytes_per_sec() * MEASURED_S)
}

#[test]
fn one_connection_in_k_requests_realises_the_load_asked_for() {
    for name in ["epa", "nasa"] {
        let trace = Trace::embedded(name).expect("it is built in");
        for load in [0.5, 0.6, 0.7, 0.8, 0.9] {
            for requests_per_connection in [2, 5, 50] {
                for clients in [1, CLIENTS_MAX] {
                    let plan = planned(&trace, load, requests_per_connection, clients);
                    for responses_ns in responses(&plan) {
                        let realised = realised_load(&plan, &responses_ns, requests_per_connection);
                        let miss = realised / load - 1.0;
                        assert!(
                            miss.abs() < 0.01,
                            "{name} at {load}, K = {requests_per_connection}, {clients} addresses: off by {miss}"
                        );
                    }
                }
            }
        }
    }
}
