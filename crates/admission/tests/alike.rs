//! Jobs that are alike go in as they came, whatever they turn out to take.

use sooner_admission::{
    Admission, AdmissionSettings, ClientId, KIND_MEMORY, Order, Subject, Ticket, Time,
};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
const PLACES: usize = 16;
const CLIENTS: u64 = 100;
const JOBS: usize = 20_000;

/// What the jobs of a client are known by.
type Known = fn(u64) -> Subject;
/// How long a job takes, by a number that chance gives, ms.
type Takes = fn(u64) -> u64;

/// Clients that each always wait for one job: the 99th percentile of their waits, over the mean.
fn p99_of_waits(order: Order, known: Known, takes: Takes) -> f64 {
    let mut admission = Admission::new(AdmissionSettings {
        limit: PLACES,
        order,
        waiting_max: None,
        kind_memory: KIND_MEMORY,
    });
    let mut waiting: BTreeMap<u64, (Ticket, u64, u64)> = BTreeMap::new();
    let mut inside: BTreeMap<(u64, u64), (Ticket, u64, u64)> = BTreeMap::new();
    let (mut chance, mut at_ns, mut waits_ns) = (7_u64, 0, Vec::new());
    let mut coming: Vec<u64> = (0..CLIENTS).collect();
    while waits_ns.len() < JOBS {
        for client in coming.drain(..) {
            let ticket = admission.arrive(0, known(client), 0, Time::from_ns(at_ns));
            let ticket = ticket.unwrap();
            waiting.insert(ticket.job().0, (ticket, client, at_ns));
        }
        while let Some(job) = admission.admit(Time::from_ns(at_ns)) {
            let (ticket, client, came_ns) = waiting.remove(&job.0).unwrap();
            waits_ns.push(at_ns - came_ns);
            // Knuth's, of which the upper half is good.
            let next = chance.wrapping_mul(6_364_136_223_846_793_005);
            chance = next.wrapping_add(1);
            let takes_ns = takes(chance >> 33) * MS;
            inside.insert((at_ns + takes_ns, job.0), (ticket, client, takes_ns));
        }
        let ((done_ns, _), (ticket, client, takes_ns)) = inside.pop_first().unwrap();
        at_ns = done_ns;
        admission.complete(&ticket, 0, takes_ns, Time::from_ns(at_ns));
        admission.leave(&ticket, Time::from_ns(at_ns));
        coming.push(client);
    }
    // Without the beginning, of which nothing is known.
    let mut waits_ns = waits_ns.split_off(JOBS / 20);
    waits_ns.sort_unstable();
    let mean = waits_ns.iter().sum::<u64>() as f64 / waits_ns.len() as f64;
    waits_ns[waits_ns.len() * 99 / 100] as f64 / mean
}

#[test]
fn chance_does_not_order_them() {
    let one: Known = |_| "GET /".into();
    let of_clients: Known = |client| Subject {
        kind: "GET /".into(),
        client: Some(ClientId(client)),
        neighbourhood: Some(ClientId(1000 + client / 10)),
        amount: Some(1 + client % 7),
        ..Subject::default()
    };
    let even: Takes = |chance| 10 + chance % 131;
    let some_are_long: Takes = |chance| if chance % 20 == 0 { 1000 } else { 20 };
    for (known, takes) in [(one, even), (of_clients, even), (one, some_are_long)] {
        let fifo = p99_of_waits(Order::Fcfs, known, takes);
        for order in [Order::Expected, Order::Boost, Order::Hrrn, Order::Nudge] {
            let times = p99_of_waits(order, known, takes) / fifo;
            assert!(times <= 1.15, "{order:?}: {times:.2} times as long");
        }
    }
}
