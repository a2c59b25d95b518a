//! A backend stalls and recovers: how long those wait that came in between.

use sooner_admission::{Admission, AdmissionSettings, KIND_MEMORY, Order, Ticket, Time};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
const PLACES: usize = 2;

/// What comes, one after the other in equal steps: kinds, and how long each takes, ms.
type Kinds = &'static [(&'static str, u64)];

struct Backend {
    admission: Admission,
    /// Those that wait, with their kind and when they came.
    waiting: BTreeMap<u64, (Ticket, u64, u64)>,
    /// Those inside, by when they will be done.
    inside: Vec<(u64, Ticket, u64)>,
    longest_wait_ms: u64,
}

impl Backend {
    fn new(order: Order) -> Self {
        Self {
            admission: Admission::new(AdmissionSettings {
                limit: PLACES,
                order,
                waiting_max: None,
                kind_memory: KIND_MEMORY,
            }),
            waiting: BTreeMap::new(),
            inside: Vec::new(),
            longest_wait_ms: 0,
        }
    }

    fn come(&mut self, kind: &str, takes_ms: u64, at_ms: u64) {
        let now = Time::from_ns(at_ms * MS);
        let ticket = self.admission.arrive(0, kind.into(), 0, now).unwrap();
        let job = ticket.job().0;
        self.waiting.insert(job, (ticket, takes_ms, at_ms));
    }

    /// Who may goes in; nothing is done before the stall is over.
    fn admit(&mut self, at_ms: u64, stalled_until_ms: u64) {
        while let Some(job) = self.admission.admit(Time::from_ns(at_ms * MS)) {
            let (ticket, takes_ms, came_ms) = self.waiting.remove(&job.0).unwrap();
            self.longest_wait_ms = self.longest_wait_ms.max(at_ms - came_ms);
            let done_ms = (at_ms + takes_ms).max(stalled_until_ms);
            self.inside.push((done_ms, ticket, at_ms));
        }
    }

    fn complete(&mut self, at_ms: u64) {
        let now = Time::from_ns(at_ms * MS);
        while let Some(at) = self.inside.iter().position(|(done, ..)| *done <= at_ms) {
            let (_, ticket, began_ms) = self.inside.swap_remove(at);
            let inside_ns = (at_ms - began_ms) * MS;
            self.admission.complete(&ticket, 0, inside_ns, now);
            self.admission.leave(&ticket, now);
        }
    }
}

/// The longest wait, ms, where a backend stalls for 10 s after 2 s, and something comes each
/// `every_ms` for 200 s.
fn longest_wait_ms(order: Order, kinds: Kinds, every_ms: u64) -> u64 {
    let stall_ms = 2_000..12_000;
    let mut backend = Backend::new(order);
    let mut came = 0;
    for at_ms in 0..200_000 {
        backend.complete(at_ms);
        if at_ms % every_ms == 0 {
            let (kind, takes_ms) = kinds[came % kinds.len()];
            backend.come(kind, takes_ms, at_ms);
            came += 1;
        }
        let is_stalled = stall_ms.contains(&at_ms);
        backend.admit(at_ms, if is_stalled { stall_ms.end } else { 0 });
    }
    assert_eq!(backend.admission.status().waiting, 0, "it has caught up");
    backend.longest_wait_ms
}

#[test]
fn who_came_in_a_stall_does_not_wait_as_if_it_went_on() {
    let one: Kinds = &[("GET /", 10)];
    let two: Kinds = &[("GET /a", 5), ("GET /b", 15)];
    for kinds in [one, two] {
        let fifo_ms = longest_wait_ms(Order::Fcfs, kinds, 6);
        for order in [Order::Expected, Order::Boost, Order::Hrrn, Order::Nudge] {
            let wait_ms = longest_wait_ms(order, kinds, 6);
            let times = wait_ms as f64 / fifo_ms as f64;
            assert!(
                times <= 1.3,
                "{order:?} of {kinds:?}: {times:.2} times as long"
            );
        }
    }
}
