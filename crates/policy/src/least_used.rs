//! Who used most lately waits: inside a class the client goes first that has had the least service
//! of late, whatever the number of its jobs (least attained service over clients; foreground and
//! background, Kleinrock 1976, with a half-life).
//!
//! A client is charged what its jobs are served, or are expected to take, and the difference when
//! that is known ([`Scheduler::settle`]). What it had counts half after a half-life, in all classes
//! together. Within a client jobs go in the order that is inside.
//!
//! An attacker may have many addresses, so the network of a client is charged as well: no client
//! counts as having had less than one part in [`NETWORK_PART`] of what its network had. That many
//! busy clients in one network are not held against each other.

mod inner;
mod line;
mod usage;

use crate::{Arrival, ClientId, Grant, Hrrn, JobId, Order, Path, Payer, Queue, Scheduler, Time};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use inner::Inner;
use line::Line;
use usage::{Inflation, Usage};

/// After so long what a client had counts half, ns (a minute): pages that follow each other are
/// told from downloads, and a download of an hour ago is forgotten.
pub const HALF_LIFE_NS: u64 = 60_000_000_000;

/// Of what its network had, a client had one part in this many at least.
pub const NETWORK_PART: u128 = 16;

/// A payer in its network; jobs without one share a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    network: ClientId,
    client: ClientId,
}

impl Member {
    fn of(arrival: &Arrival) -> Self {
        let unnamed = Payer {
            client: ClientId(0),
            network: None,
        };
        let Payer { client, network } = arrival.payer.unwrap_or(unnamed);
        Self {
            // Alone in a network of its own, unless one is named.
            network: network.unwrap_or(client),
            client,
        }
    }
}

/// Serves, inside a class, the client that has had the least of late.
#[derive(Clone, Debug)]
pub struct LeastUsed<O> {
    /// Empty.
    prototype: Inner<O>,
    classes: BTreeMap<u8, Class<O>>,
    jobs: BTreeMap<JobId, (u8, Member)>,
    inflation: Inflation,
    clients: Usage,
    networks: Usage,
    arrivals: u64,
}

/// Those of one class, by network.
type Class<O> = Line<Network<O>>;

/// Those of one network, by client.
type Network<O> = Line<Inner<O>>;

impl<O: Order + Clone> LeastUsed<O> {
    /// Clients' jobs ordered by copies of `prototype`.
    pub fn new(prototype: O, half_life_ns: u64) -> Self {
        Self::of(Inner::Ranked(Queue::new(prototype)), half_life_ns)
    }

    /// Clients' jobs ordered by the ratio of wait to size ([`Hrrn::interrupting`]).
    pub fn by_ratio(half_life_ns: u64) -> Self {
        Self::of(Inner::Ratio(Hrrn::interrupting()), half_life_ns)
    }

    fn of(prototype: Inner<O>, half_life_ns: u64) -> Self {
        Self {
            prototype,
            classes: BTreeMap::new(),
            jobs: BTreeMap::new(),
            inflation: Inflation::new(half_life_ns),
            clients: Usage::default(),
            networks: Usage::default(),
            arrivals: 0,
        }
    }

    /// From here on clients had what they had in `from`; before the first job comes.
    pub fn take_accounts(&mut self, from: Self) {
        assert!(self.jobs.is_empty(), "accounts come before jobs");
        self.inflation = from.inflation;
        self.clients = from.clients.without_jobs();
        self.networks = from.networks.without_jobs();
    }

    /// The rank of a job among those of its client, lower first; `None` for an unknown job.
    pub fn rank_within(&mut self, job: JobId) -> Option<u64> {
        self.queue_of(job)?.rank(job)
    }

    fn queue_of(&mut self, job: JobId) -> Option<&mut Inner<O>> {
        let &(class, member) = self.jobs.get(&job)?;
        let network = self.classes.get_mut(&class)?.get(member.network)?;
        network.get(member.client)
    }

    fn queue_for(&mut self, class: u8, member: Member) -> &mut Inner<O> {
        let prototype = &self.prototype;
        let came = self.arrivals;
        let class = self.classes.entry(class).or_default();
        let network = class.entry(member.network, came, Line::default);
        network.entry(member.client, came, || prototype.clone())
    }

    fn come(&mut self, arrival: Arrival, is_ready: bool, now: Time) {
        if self.jobs.contains_key(&arrival.id) {
            return;
        }
        let (class, member) = (arrival.class, Member::of(&arrival));
        self.jobs.insert(arrival.id, (class, member));
        let sequence = self.arrivals;
        self.arrivals += 1;
        self.clients.enter(member.client);
        self.networks.enter(member.network);
        self.queue_for(class, member)
            .arrive_as(arrival, sequence, is_ready, now);
        self.place(class, member, now);
    }

    /// Changes a job's queue, and puts its client where it then belongs.
    fn change(&mut self, job: JobId, now: Time, change: impl FnOnce(&mut Inner<O>)) {
        if let Some(&(class, member)) = self.jobs.get(&job) {
            self.place_after(class, member, now, change);
        }
    }

    /// Puts a client and its network where they belong in a class.
    fn place(&mut self, class: u8, member: Member, now: Time) {
        self.place_after(class, member, now, |_| {});
    }

    /// The same when the client's queue there has changed.
    fn place_after(
        &mut self,
        class: u8,
        member: Member,
        now: Time,
        change: impl FnOnce(&mut Inner<O>),
    ) {
        let had = self.clients.had(member.client);
        let network_had = self.networks.had(member.network) / NETWORK_PART;
        let Some(line) = self.classes.get_mut(&class) else {
            return;
        };
        let Some(network) = line.get(member.network) else {
            return;
        };
        if let Some(queue) = network.get(member.client) {
            change(queue);
            let (is_empty, can_go) = (queue.is_empty(), queue.next(now).is_some());
            network.put(member.client, can_go.then_some(had));
            if is_empty {
                network.remove(member.client);
            }
        }
        let first = network
            .places
            .first()
            .map(|&(had, ..)| had.max(network_had));
        let is_empty = network.present.is_empty();
        line.put(member.network, first);
        if is_empty {
            line.remove(member.network);
        }
        if line.present.is_empty() {
            self.classes.remove(&class);
        }
    }

    /// Counts what a client had in addition, or less than was counted.
    fn charge(&mut self, member: Member, more: u64, less: u64, now: Time) {
        let bits = self.inflation.shrinks_by(now);
        if bits > 0 {
            self.shrink(bits, now);
        }
        let count = |amount: u64| (amount > 0).then(|| self.inflation.count(amount, now));
        let (more, less) = (count(more), count(less));
        for (usage, id) in [
            (&mut self.clients, member.client),
            (&mut self.networks, member.network),
        ] {
            if let Some(count) = more {
                usage.add(id, count);
            }
            if let Some(count) = less {
                usage.take_off(id, count);
            }
        }
        let classes: Vec<u8> = self.classes.keys().copied().collect();
        for class in classes {
            self.place(class, member, now);
        }
    }

    fn shrink(&mut self, bits: u32, now: Time) {
        self.clients.shrink(bits);
        self.networks.shrink(bits);
        let places: BTreeMap<_, _> = self
            .jobs
            .values()
            .map(|&(class, member)| ((class, member.network, member.client), member))
            .collect();
        for ((class, ..), member) in places {
            self.place(class, member, now);
        }
    }
}

impl<O: Order + Clone> Scheduler for LeastUsed<O> {
    fn arrive(&mut self, arrival: Arrival, now: Time) {
        self.come(arrival, true, now);
    }

    fn arrive_blocked(&mut self, arrival: Arrival, now: Time) {
        self.come(arrival, false, now);
    }

    fn progress(&mut self, job: JobId, amount: u64, now: Time) {
        if let Some(&(_, member)) = self.jobs.get(&job) {
            if let Some(queue) = self.queue_of(job) {
                queue.progress(job, amount, now);
            }
            self.charge(member, amount, 0, now);
        }
    }

    fn depart(&mut self, job: JobId, now: Time) {
        self.change(job, now, |queue| queue.depart(job, now));
        if let Some((_, member)) = self.jobs.remove(&job) {
            self.clients.leave(member.client);
            self.networks.leave(member.network);
        }
    }

    fn block(&mut self, job: JobId, now: Time) {
        self.change(job, now, |queue| queue.block(job, now));
    }

    fn unblock(&mut self, job: JobId, now: Time) {
        self.change(job, now, |queue| queue.unblock(job, now));
    }

    fn enlarge(&mut self, job: JobId, additional: u64, now: Time) {
        self.change(job, now, |queue| queue.enlarge(job, additional, now));
    }

    fn reclassify(&mut self, job: JobId, class: u8, now: Time) {
        let Some(&(before, member)) = self.jobs.get(&job) else {
            return;
        };
        if before == class {
            return;
        }
        if let Some(moved) = self.queue_of(job).and_then(|queue| queue.take(job)) {
            self.queue_for(class, member).put(moved);
            self.jobs.insert(job, (class, member));
            self.place(before, member, now);
            self.place(class, member, now);
        }
    }

    fn observe(&mut self, job: JobId, path: Path, now: Time) {
        self.change(job, now, |queue| queue.observe(job, path, now));
    }

    fn settle(&mut self, arrival: &Arrival, actual: u64, now: Time) {
        let expected = arrival.size.unwrap_or(1);
        let (more, less) = (
            actual.saturating_sub(expected),
            expected.saturating_sub(actual),
        );
        if actual != expected {
            self.charge(Member::of(arrival), more, less, now);
        }
    }

    fn next(&mut self, now: Time) -> Option<Grant> {
        let mut classes = self.classes.values_mut();
        classes.find_map(|class| class.first()?.first()?.next(now))
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    /// What its client had of late, in the unit of service.
    fn rank(&self, job: JobId) -> Option<u64> {
        let (_, member) = self.jobs.get(&job)?;
        Some(self.inflation.amount(self.clients.had(member.client)))
    }
}
