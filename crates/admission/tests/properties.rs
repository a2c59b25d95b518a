//! Whatever comes and goes, in whatever order.

use proptest::prelude::*;
use sooner_admission::{
    AdmissionQueue, ClientId, JobId, Lateness, Order, Payer, Promise, Request, TURN_NS, Time,
    Tuning, Within,
};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Event {
    Come {
        class: u8,
        expected_ns: Option<u64>,
        /// By when it was promised a start, from now on, and its target.
        promise: Option<(u64, u64)>,
    },
    /// Time passes, ns.
    Pass(u64),
    /// One of those inside took so long, whatever was expected.
    Settle(prop::sample::Index, u64),
    /// One of those present, inside or outside, leaves.
    Leave(prop::sample::Index),
    Limit(usize),
    /// All that wait are expected to take a part of what they were, or what they were.
    ExpectLess {
        from: usize,
        halvings: u32,
    },
}

/// The most grants of the imagined server in one decision.
const GRANTS_MAX: u64 = 64;

/// Up to half a second, and of all magnitudes up to an hour.
fn expected_ns() -> impl Strategy<Value = u64> {
    let any = (0..32u32, 0..3_600_000_000_000u64).prop_map(|(halvings, ns)| ns >> halvings);
    prop_oneof![0..500_000_000u64, any]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => (0..3u8, prop::option::of(expected_ns()), prop::option::of((0..900_000_000u64, 1..900_000_000u64)))
            .prop_map(|(class, expected_ns, promise)| Event::Come { class, expected_ns, promise }),
        2 => (0..300_000_000u64).prop_map(Event::Pass),
        1 => (any::<prop::sample::Index>(), 0..900_000_000u64)
            .prop_map(|(which, actual_ns)| Event::Settle(which, actual_ns)),
        4 => any::<prop::sample::Index>().prop_map(Event::Leave),
        1 => (0..5usize).prop_map(Event::Limit),
        1 => (0..3usize, 0..24u32)
            .prop_map(|(from, halvings)| Event::ExpectLess { from, halvings }),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Expected),
        Just(Order::Fcfs),
        Just(Order::Longest),
        Just(Order::Boost),
        Just(Order::Hrrn),
        Just(Order::Nudge),
        Just(Order::Targets(Lateness::ByPriority)),
        Just(Order::Targets(Lateness::InProportion)),
        Just(Order::Shares),
        Just(Order::LeastUsed(Within::Expected)),
        Just(Order::LeastUsed(Within::Fcfs)),
        Just(Order::LeastUsed(Within::Boost)),
        Just(Order::LeastUsed(Within::Hrrn)),
        Just(Order::LeastUsed(Within::Nudge)),
    ]
}

/// Who is charged for a job: one of three, two of which are neighbours.
fn payer(job: JobId) -> Option<Payer> {
    let client = job.0 % 3;
    Some(Payer {
        client: ClientId(client),
        network: Some(ClientId(client / 2)),
    })
}

/// A job that has come, as the test sees it.
struct Observed {
    /// When it came.
    expected_ns: u64,
    /// By now.
    expected_now_ns: u64,
    is_known: bool,
    is_inside: bool,
    /// The expected time of those that waited when it came.
    older_ns: u64,
    /// One turn, where nothing is known of it or of one of those.
    turn_ns: u64,
    /// The expected time of those that came later and went in earlier, and what those that are
    /// done took beyond that, where something was known.
    overtaken_by_ns: u64,
    is_settled: bool,
}

#[derive(Default)]
struct World {
    seen: BTreeMap<u64, Observed>,
    came: u64,
}

impl World {
    fn come(&mut self, expected_ns: Option<u64>) -> JobId {
        let waiting = || self.seen.values().filter(|job| !job.is_inside);
        let older_ns = waiting().map(|job| job.expected_now_ns).sum();
        let is_known = expected_ns.is_some();
        let are_known = is_known && waiting().all(|job| job.is_known);
        let id = self.came;
        self.came += 1;
        let expected_or_least_ns = expected_ns.unwrap_or(1).max(1);
        let seen = Observed {
            expected_ns: expected_or_least_ns,
            expected_now_ns: expected_or_least_ns,
            is_known,
            is_inside: false,
            older_ns,
            turn_ns: if are_known { 0 } else { TURN_NS },
            overtaken_by_ns: 0,
            is_settled: false,
        };
        self.seen.insert(id, seen);
        JobId(id)
    }

    fn admitted(&mut self, job: JobId) -> Result<(), TestCaseError> {
        let seen = self
            .seen
            .get_mut(&job.0)
            .expect("only those present are let in");
        prop_assert!(!seen.is_inside, "let in twice");
        seen.is_inside = true;
        let expected_ns = seen.expected_now_ns;
        for (_, older) in self
            .seen
            .range_mut(..job.0)
            .filter(|(_, seen)| !seen.is_inside)
        {
            older.overtaken_by_ns += expected_ns;
            let bound = 19 * (older.expected_ns + older.older_ns + older.turn_ns);
            prop_assert!(older.overtaken_by_ns <= bound, "starved");
        }
        Ok(())
    }

    /// One took so long in truth; whether that may be said: once of each that is inside.
    fn settled(&mut self, job: JobId, actual_ns: u64) -> bool {
        let Some(seen) = self.seen.get_mut(&job.0) else {
            return false;
        };
        if !seen.is_inside {
            return true;
        }
        if std::mem::replace(&mut seen.is_settled, true) {
            return false;
        }
        // Of what nothing was known nothing was promised.
        let more_ns = match seen.is_known {
            true => actual_ns.saturating_sub(seen.expected_now_ns),
            false => 0,
        };
        let older = self.seen.range_mut(..job.0);
        for (_, older) in older.filter(|(_, seen)| !seen.is_inside) {
            older.overtaken_by_ns += more_ns;
        }
        true
    }

    fn inside(&self) -> usize {
        self.seen.values().filter(|job| job.is_inside).count()
    }
}

proptest! {
    #[test]
    fn works_while_it_can_never_above_the_limit_and_starves_nobody(
        order in order(),
        events in prop::collection::vec(event(), 1..400),
    ) {
        let mut limit = 2;
        let mut admission = AdmissionQueue::new(order, limit, None);
        let mut world = World::default();
        let mut now = Time::ZERO;
        admission.set_weight(1, 7);
        admission.set_tuning(Tuning {
            boost_scale_ns: 300_000_000,
            places: 2,
            small_max_ns: 100_000_000,
            nudge_places: 4,
        });
        for event in events {
            match event {
                Event::Come { class, expected_ns, promise } => {
                    let job = world.come(expected_ns);
                    let promise = promise.map(|(slack_ns, target_ns)| Promise {
                        due_at: now.after(slack_ns),
                        target_ns,
                        group: class,
                    });
                    admission.arrive(job, Request { class, number: class, expected_ns, promise, payer: payer(job), ..Request::default() }, now).unwrap();
                }
                Event::Pass(ns) => now = now.after(ns),
                Event::Settle(index, actual_ns) if !world.seen.is_empty() => {
                    let id = *world.seen.keys().nth(index.index(world.seen.len())).unwrap();
                    if world.settled(JobId(id), actual_ns) {
                        admission.settle(JobId(id), actual_ns);
                    }
                }
                Event::Settle(..) => {}
                Event::Leave(index) if !world.seen.is_empty() => {
                    let id = *world.seen.keys().nth(index.index(world.seen.len())).unwrap();
                    world.seen.remove(&id);
                    admission.leave(JobId(id), now);
                }
                Event::Leave(_) => {}
                Event::ExpectLess { from, halvings } => {
                    let waiting = world.seen.iter_mut().filter(|(_, seen)| !seen.is_inside);
                    let mut less = BTreeMap::new();
                    for (&id, seen) in waiting.skip(from).filter(|(_, seen)| seen.is_known) {
                        seen.expected_now_ns = (seen.expected_now_ns >> halvings).max(1);
                        less.insert(JobId(id), seen.expected_now_ns);
                    }
                    admission.expect_less(|job| less.get(&job).copied(), now);
                }
                Event::Limit(new) => {
                    limit = new;
                    admission.set_limit(limit);
                }
            }
            let inside_before = world.inside();
            let grants = admission.grants();
            let mut decisions = 1;
            while let Some(job) = admission.admit(now) {
                decisions += 1;
                world.admitted(job)?;
                prop_assert!(world.inside() <= limit);
            }
            prop_assert!(admission.grants() - grants <= GRANTS_MAX * decisions, "too many grants");
            prop_assert_eq!(admission.inside(), world.inside());
            prop_assert_eq!(admission.waiting(), world.seen.len() - world.inside());
            prop_assert!(world.inside() <= limit.max(inside_before));
            prop_assert!(admission.waiting() == 0 || world.inside() >= limit, "a place is wasted");
        }
        // All that wait go in once those inside leave.
        admission.set_limit(1);
        while let Some(job) = admission.admit(now) {
            world.admitted(job)?;
        }
        while let Some(id) = world.seen.iter().find(|(_, job)| job.is_inside).map(|(id, _)| *id) {
            world.seen.remove(&id);
            admission.leave(JobId(id), now);
            while let Some(job) = admission.admit(now) {
                world.admitted(job)?;
            }
        }
        prop_assert!(world.seen.is_empty(), "a job was forgotten");
    }
}
