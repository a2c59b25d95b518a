//! Requests before a backend, held back by the very code that holds them back in `sooner serve`, in
//! the time of the simulation; and how far each was passed by others. Pure.

use super::sums::Sums;
use super::world::Coming;
use sooner_admission::{
    Admission, AdmissionQueue, AdmissionSettings, ClientId, Follower, JobId, KIND_MEMORY, Order,
    Payer, Player, Request, Subject, TURN_NS, Ticket, Time, Within,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The last jobs that are remembered, as the server does.
const REMEMBERED: usize = 4096;
/// How often it looks whether another order is better, ns.
const LOOK_NS: u64 = 1_000_000_000;
/// What others get for each part of the oldest.
const OTHERS: u64 = 19;
/// In which networks clients are.
const NETWORKS: u64 = 8;

/// What is expected of a request, ns; and what goes in next.
trait Gate {
    fn arrive(&mut self, job: usize, coming: &Coming, now: Time) -> Option<u64>;
    /// Who goes in, and what is expected of it by then.
    fn admit(&mut self, now: Time) -> Option<(usize, Option<u64>)>;
    fn leave(&mut self, job: usize, waited_ns: u64, service_ns: u64, now: Time);
}

/// As the server holds them back.
struct Real {
    admission: Admission,
    player: Player,
    follower: Follower,
    look_at: Time,
    tickets: Vec<Ticket>,
}

impl Real {
    fn new(order: Order, places: usize) -> Self {
        let mut admission = Admission::new(AdmissionSettings {
            limit: places,
            order,
            waiting_max: None,
            kind_memory: KIND_MEMORY,
        });
        admission.remember(REMEMBERED);
        Self {
            admission,
            player: Player::default(),
            follower: Follower::default(),
            look_at: Time::ZERO,
            tickets: Vec::new(),
        }
    }

    /// Follows what is played, if it is time for that.
    fn look(&mut self, now: Time) {
        if !self.admission.follows() || now < self.look_at {
            return;
        }
        self.look_at = now.after(LOOK_NS);
        let has_ended = loop {
            let seen = self.admission.seen();
            let has_ended = self.player.play(seen, || self.admission.recorded(), now);
            if has_ended || !self.player.is_playing() {
                break has_ended;
            }
        };
        let played = self.player.played().filter(|_| has_ended);
        if played.is_some_and(|played| self.follower.look(played, now).is_some()) {
            self.admission.follow(self.follower.taken(), now);
        }
    }
}

impl Gate for Real {
    fn arrive(&mut self, job: usize, coming: &Coming, now: Time) -> Option<u64> {
        self.look(now);
        let client = ClientId(coming.client);
        let network = Some(ClientId(coming.client % NETWORKS));
        let subject = Subject {
            kind: format!("k{}", coming.kind),
            amount: None,
            client: Some(client),
            neighbourhood: network,
            payer: Some(Payer { client, network }),
            ..Subject::default()
        };
        let ticket = self.admission.arrive(0, subject, 0, now);
        let ticket = ticket.expect("nothing bounds how many wait");
        assert_eq!(ticket.job().0, job as u64, "jobs are numbered as they come");
        let prediction = ticket.prediction();
        self.tickets.push(ticket);
        prediction.map(|prediction| prediction.expected_ns)
    }

    fn admit(&mut self, now: Time) -> Option<(usize, Option<u64>)> {
        let job = self.admission.admit(now)?.0 as usize;
        Some((job, self.admission.expected_ns(&self.tickets[job])))
    }

    fn leave(&mut self, job: usize, waited_ns: u64, service_ns: u64, now: Time) {
        let ticket = &self.tickets[job];
        self.admission.complete(ticket, waited_ns, service_ns, now);
        self.admission.leave(ticket, now);
    }
}

/// The shortest first, where all is known.
struct Perfect(AdmissionQueue);

impl Gate for Perfect {
    fn arrive(&mut self, job: usize, coming: &Coming, now: Time) -> Option<u64> {
        let expected_ns = Some(coming.service_ns);
        let request = Request {
            expected_ns,
            ..Request::default()
        };
        let arrived = self.0.arrive(JobId(job as u64), request, now);
        arrived.expect("nothing bounds how many wait");
        expected_ns
    }

    fn admit(&mut self, now: Time) -> Option<(usize, Option<u64>)> {
        let job = self.0.admit(now)?;
        Some((job.0 as usize, self.0.expected_ns(job)))
    }

    fn leave(&mut self, job: usize, _waited_ns: u64, _service_ns: u64, now: Time) {
        self.0.leave(JobId(job as u64), now);
    }
}

/// What was promised to a request that waits, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Promised {
    /// What is expected of it and of those that waited when it came, and one turn where nothing is.
    expected: u64,
    /// The same in truth, and one turn.
    truth: u64,
}

/// How far promises were used up: 1 is the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worst {
    /// In expected time.
    pub expected: f64,
    /// By what passed it in truth, of what was promised in expected time, but for those that were
    /// inside when the last of them went in.
    pub settled: f64,
    /// By what passed it in truth, of the same where all had been known.
    pub truth: f64,
    /// The most time of others by which one was passed, ns.
    pub passed_ns: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct Played {
    /// Of each request, from when it came until it was answered, ns.
    pub responses_ns: Vec<u64>,
    pub worst: Worst,
}

/// An order; with no `within` the shortest first where all is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub within: Option<Within>,
    /// Whether clients share who wait.
    pub is_shared: bool,
}

/// Plays `requests` before `places` places.
pub fn play(requests: &[Coming], places: usize, way: Way) -> Played {
    match (way.within, way.is_shared) {
        (None, _) => {
            let queue = AdmissionQueue::new(Order::Expected, places, None);
            Run::new(requests, Perfect(queue)).run()
        }
        (Some(within), false) => Run::new(requests, Real::new(within.into(), places)).run(),
        (Some(within), true) => {
            Run::new(requests, Real::new(Order::LeastUsed(within), places)).run()
        }
    }
}

struct Run<'a, G> {
    requests: &'a [Coming],
    gate: G,
    /// When those inside leave, and which.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    /// What is expected of those that came.
    expected_ns: Vec<Option<u64>>,
    promised: Vec<Promised>,
    admitted_ns: Vec<u64>,
    waiting: Promised,
    unknown_waiting: usize,
    /// Of those that went in, by when they came: what was expected, and the truth.
    went_in: [Sums; 2],
    /// Who went in, and who was inside then.
    log: Vec<(usize, Vec<usize>)>,
    worst: Worst,
}

impl<'a, G: Gate> Run<'a, G> {
    fn new(requests: &'a [Coming], gate: G) -> Self {
        let count = requests.len();
        Self {
            requests,
            gate,
            ends: BinaryHeap::new(),
            expected_ns: Vec::new(),
            promised: Vec::new(),
            admitted_ns: vec![0; count],
            waiting: Promised::default(),
            unknown_waiting: 0,
            went_in: [Sums::new(count), Sums::new(count)],
            log: Vec::new(),
            worst: Worst::default(),
        }
    }

    fn run(mut self) -> Played {
        let mut responses_ns = vec![0; self.requests.len()];
        let mut next = 0;
        loop {
            let end = self.ends.peek().map(|&Reverse((at_ns, _))| at_ns);
            let arrival = self.requests.get(next).map(|coming| coming.at_ns);
            let now = match (end, arrival) {
                (None, None) => break,
                (Some(at_ns), arrival) if arrival.is_none_or(|arrival| at_ns <= arrival) => {
                    let job = self.ends.pop().map_or(0, |Reverse((_, job))| job);
                    let coming = &self.requests[job];
                    responses_ns[job] = at_ns - coming.at_ns;
                    let waited_ns = self.admitted_ns[job] - coming.at_ns;
                    let now = Time::from_ns(at_ns);
                    self.gate.leave(job, waited_ns, coming.service_ns, now);
                    now
                }
                (_, arrival) => {
                    let now = Time::from_ns(arrival.unwrap_or_default());
                    self.come(next, now);
                    next += 1;
                    now
                }
            };
            while let Some((job, expected)) = self.gate.admit(now) {
                self.goes_in(job, expected, now);
            }
        }
        assert_eq!(self.log.len(), self.requests.len(), "all that come go in");
        Played {
            responses_ns,
            worst: self.worst,
        }
    }

    fn come(&mut self, job: usize, now: Time) {
        let coming = &self.requests[job];
        let expected = self.gate.arrive(job, coming, now).map(|ns| ns.max(1));
        let is_unknown = expected.is_none();
        let turn_ns = match is_unknown || self.unknown_waiting > 0 {
            true => TURN_NS,
            false => 0,
        };
        self.promised.push(Promised {
            expected: self.waiting.expected + expected.unwrap_or(1) + turn_ns,
            truth: self.waiting.truth + coming.service_ns + TURN_NS,
        });
        self.expected_ns.push(expected);
        self.waiting.expected += expected.unwrap_or(1);
        self.waiting.truth += coming.service_ns;
        self.unknown_waiting += usize::from(is_unknown);
    }

    /// What is expected of it may have fallen since it came.
    fn goes_in(&mut self, job: usize, expected_now: Option<u64>, now: Time) {
        let (service_ns, expected) = (self.requests[job].service_ns, self.expected_ns[job]);
        self.waiting.expected -= expected.unwrap_or(1);
        self.waiting.truth -= service_ns;
        self.unknown_waiting -= usize::from(expected.is_none());
        self.judge(job);
        self.went_in[0].add(job, expected_now.unwrap_or(1).max(1));
        self.went_in[1].add(job, service_ns);
        self.admitted_ns[job] = now.as_ns();
        self.ends
            .push(Reverse((now.after(service_ns).as_ns(), job)));
        let inside = self.ends.iter().map(|&Reverse((_, job))| job);
        self.log.push((job, inside.collect()));
    }

    /// Whether what was promised to a job was kept, when it goes in.
    fn judge(&mut self, job: usize) {
        let promised = self.promised[job];
        let passed = |sums: &Sums| sums.behind(job) as f64;
        let (expected, truth) = (passed(&self.went_in[0]), passed(&self.went_in[1]));
        let of = |passed: f64, promised: u64| passed / (OTHERS * promised) as f64;
        if truth == 0.0 {
            return;
        }
        let last = self.log.iter().rev().find(|(other, _)| *other > job);
        let inside = last.into_iter().flat_map(|(_, inside)| inside);
        let inside = inside.filter(|&&other| other > job);
        let unsettled: u64 = inside.map(|&other| self.requests[other].service_ns).sum();
        let worst = &mut self.worst;
        worst.expected = worst.expected.max(of(expected, promised.expected));
        worst.settled = worst
            .settled
            .max(of(truth - unsettled as f64, promised.expected));
        worst.truth = worst.truth.max(of(truth, promised.truth));
        worst.passed_ns = worst.passed_ns.max(truth as u64);
    }
}
