//! Whatever comes and goes, in whatever order.

use proptest::prelude::*;
use sooner_gate::{Admission, JobId, Order, TURN_NS, Time};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Event {
    Come {
        class: u8,
        expected_ns: Option<u64>,
    },
    /// One of those present, inside or outside, leaves.
    Leave(prop::sample::Index),
    Limit(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => (0..3u8, prop::option::of(0..500_000_000u64))
            .prop_map(|(class, expected_ns)| Event::Come { class, expected_ns }),
        4 => any::<prop::sample::Index>().prop_map(Event::Leave),
        1 => (0..5usize).prop_map(Event::Limit),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Expected), Just(Order::Fcfs)]
}

/// A job that has come, as the test sees it.
struct Seen {
    expected_ns: u64,
    is_inside: bool,
    /// The expected time of those that waited when it came.
    older_ns: u64,
    /// The expected time of those that came later and went in earlier.
    overtaken_by_ns: u64,
}

#[derive(Default)]
struct World {
    seen: BTreeMap<u64, Seen>,
    came: u64,
}

impl World {
    fn come(&mut self, expected_ns: u64) -> JobId {
        let waiting = self.seen.values().filter(|job| !job.is_inside);
        let older_ns = waiting.map(|job| job.expected_ns).sum();
        let id = self.came;
        self.came += 1;
        let seen = Seen {
            expected_ns,
            is_inside: false,
            older_ns,
            overtaken_by_ns: 0,
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
        let expected_ns = seen.expected_ns;
        for (_, older) in self
            .seen
            .range_mut(..job.0)
            .filter(|(_, seen)| !seen.is_inside)
        {
            older.overtaken_by_ns += expected_ns;
            let bound = 19 * (older.expected_ns + older.older_ns + TURN_NS);
            prop_assert!(older.overtaken_by_ns <= bound, "starved");
        }
        Ok(())
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
        let mut admission = Admission::new(order, limit, None);
        let mut world = World::default();
        for event in events {
            match event {
                Event::Come { class, expected_ns } => {
                    let job = world.come(expected_ns.unwrap_or(1).max(1));
                    admission.arrive(job, class, expected_ns, Time::ZERO).unwrap();
                }
                Event::Leave(index) if !world.seen.is_empty() => {
                    let id = *world.seen.keys().nth(index.index(world.seen.len())).unwrap();
                    world.seen.remove(&id);
                    admission.leave(JobId(id), Time::ZERO);
                }
                Event::Leave(_) => {}
                Event::Limit(new) => {
                    limit = new;
                    admission.set_limit(limit);
                }
            }
            let inside_before = world.inside();
            while let Some(job) = admission.admit(Time::ZERO) {
                world.admitted(job)?;
                prop_assert!(world.inside() <= limit);
            }
            prop_assert_eq!(admission.inside(), world.inside());
            prop_assert_eq!(admission.waiting(), world.seen.len() - world.inside());
            prop_assert!(world.inside() <= limit.max(inside_before));
            prop_assert!(admission.waiting() == 0 || world.inside() >= limit, "a place is wasted");
        }
        // All that wait go in once those inside leave.
        admission.set_limit(1);
        while let Some(job) = admission.admit(Time::ZERO) {
            world.admitted(job)?;
        }
        while let Some(id) = world.seen.iter().find(|(_, job)| job.is_inside).map(|(id, _)| *id) {
            world.seen.remove(&id);
            admission.leave(JobId(id), Time::ZERO);
            while let Some(job) = admission.admit(Time::ZERO) {
                world.admitted(job)?;
            }
        }
        prop_assert!(world.seen.is_empty(), "somebody was forgotten");
    }
}
