//! At most so many of a class inside, whatever the limit is.

use proptest::prelude::*;
use sooner_admission::{
    Admission, AdmissionQueue, AdmissionSettings, ClientId, Goal, JobId, Lateness, Order, Payer,
    Promise, QueueFull, Request, Subject, Ticket, Time, Tuning, Within,
};
use std::collections::{BTreeMap, HashMap};

const MS: u64 = 1_000_000;

struct Play {
    queue: AdmissionQueue,
    jobs: u64,
    went: String,
}

impl Play {
    fn new(order: Order, limit: usize, caps: &[(u8, usize)]) -> Self {
        let mut queue = AdmissionQueue::new(order, limit, None);
        queue.set_caps(caps, Time::ZERO);
        Self {
            queue,
            jobs: 0,
            went: String::new(),
        }
    }

    fn come(&mut self, class: u8, expected_ms: u64) {
        let request = request(class, Some(expected_ms * MS));
        let job = JobId(self.jobs);
        self.jobs += 1;
        self.queue.arrive(job, request, Time::ZERO).unwrap();
        self.admit();
    }

    fn leave(&mut self, name: char) {
        let job = JobId(u64::from(name as u32 - 'a' as u32));
        self.queue.leave(job, Time::ZERO);
        self.admit();
    }

    fn caps(&mut self, caps: &[(u8, usize)]) {
        self.queue.set_caps(caps, Time::ZERO);
        self.admit();
    }

    fn admit(&mut self) {
        while let Some(job) = self.queue.admit(Time::ZERO) {
            self.went.push((b'a' + job.0 as u8) as char);
        }
    }
}

fn request(class: u8, expected_ns: Option<u64>) -> Request {
    Request {
        class,
        number: class,
        expected_ns,
        ..Request::default()
    }
}

#[test]
fn others_pass_a_class_at_its_cap() {
    let mut play = Play::new(Order::Fcfs, 3, &[(0, 1)]);
    for class in [0, 0, 0, 1, 1, 1] {
        play.come(class, 1);
    }
    assert_eq!(play.went, "ade", "though it matters more");
    assert_eq!((play.queue.waiting(), play.queue.held()), (3, 2));
    play.leave('d');
    assert_eq!(play.went, "adef");
    play.leave('a');
    assert_eq!(play.went, "adefb", "and then it does");
    play.leave('b');
    assert_eq!(play.went, "adefbc");
}

#[test]
fn the_order_within_a_class_at_its_cap_is_the_same() {
    let mut shortest = Play::new(Order::Expected, 2, &[(0, 1)]);
    shortest.come(0, 1);
    for expected_ms in [9, 5, 3] {
        shortest.come(0, expected_ms);
    }
    shortest.come(1, 4);
    shortest.leave('a');
    shortest.come(0, 1);
    shortest.come(0, 2);
    shortest.leave('d');
    shortest.leave('f');
    assert_eq!(shortest.went, "aedfg");
}

#[test]
fn a_cap_that_changes_holds_from_the_next_job_on() {
    let mut play = Play::new(Order::Fcfs, 9, &[(0, 3)]);
    for _ in 0..6 {
        play.come(0, 1);
    }
    assert_eq!(play.went, "abc");
    play.caps(&[(0, 1)]);
    play.leave('a');
    play.leave('b');
    assert_eq!(play.went, "abc");
    play.leave('c');
    assert_eq!(play.went, "abcd");
    play.caps(&[(0, 2)]);
    assert_eq!(play.went, "abcde");
    play.caps(&[]);
    assert_eq!(play.went, "abcdef");
}

#[test]
fn who_comes_back_waits_for_the_cap_too_and_goes_before_its_like() {
    let mut play = Play::new(Order::Fcfs, 2, &[(0, 1)]);
    play.come(0, 1);
    play.come(0, 1);
    play.leave('a');
    play.jobs += 1;
    play.queue.return_to(JobId(2), request(0, None));
    play.come(0, 1);
    play.come(1, 1);
    assert_eq!(play.went, "abe");
    play.leave('b');
    assert_eq!(play.went, "abec");
}

/// A long job of a class that is held is owed nothing meanwhile: the guard would give it one part
/// in twenty of what others get.
#[test]
fn the_guard_gives_nothing_to_those_whom_a_cap_holds() {
    let mut play = Play::new(Order::Expected, 1, &[(1, 1)]);
    play.queue.set_limit(2);
    play.come(1, 1);
    play.come(1, 40);
    for job in 1000..2000 {
        let one = request(0, Some(9 * MS));
        play.queue.arrive(JobId(job), one, Time::ZERO).unwrap();
        assert_eq!(play.queue.admit(Time::ZERO), Some(JobId(job)));
        play.queue.leave(JobId(job), Time::ZERO);
    }
    assert_eq!(play.went, "a");
}

#[test]
fn those_whom_a_cap_holds_do_not_fill_the_queue_for_others() {
    let mut queue = AdmissionQueue::new(Order::Fcfs, 1, Some(1));
    queue.set_caps(&[(0, 1)], Time::ZERO);
    let mut come = |job, class| {
        let result = queue.arrive(JobId(job), request(class, None), Time::ZERO);
        while queue.admit(Time::ZERO).is_some() {}
        result
    };
    let full = Err(QueueFull { waiting_max: 1 });
    assert_eq!([come(0, 0), come(1, 0), come(2, 0)], [Ok(()), Ok(()), full]);
    assert_eq!([come(3, 1), come(4, 1)], [Ok(()), full]);
}

/// Classes of these caps, at a limit.
fn backend(limit: usize, caps: &[Option<usize>]) -> Admission {
    let mut admission = Admission::new(AdmissionSettings {
        limit,
        order: Order::Fcfs,
        waiting_max: None,
        kind_memory: 64,
    });
    set_caps(&mut admission, caps);
    admission
}

fn set_caps(admission: &mut Admission, caps: &[Option<usize>]) {
    let goals = caps.iter().zip(["a", "b", "c"]);
    let goals = goals.map(|(&inside_max, name)| Goal {
        name: name.into(),
        weight: 1,
        inside_max,
        ..Goal::default()
    });
    admission.set_goals(Order::Fcfs, goals.collect(), &HashMap::new(), Time::ZERO);
}

fn come(admission: &mut Admission, class: u8) -> Ticket {
    let ticket = admission.arrive(class, Subject::default(), 0, Time::ZERO);
    while admission.admit(Time::ZERO).is_some() {}
    ticket.unwrap()
}

/// What looks for the limit sees that one waits where a larger limit would let it in.
#[test]
fn who_is_held_by_a_cap_does_not_wait_for_a_larger_limit() {
    let backlogged = |classes: &[u8]| {
        let mut admission = backend(3, &[Some(1), None]);
        let _tickets: Vec<Ticket> = classes.iter().map(|&it| come(&mut admission, it)).collect();
        admission.pass(Time::from_ns(MS));
        let status = admission.status();
        (
            status.waiting,
            status.held,
            admission.take_window().is_backlogged(),
        )
    };
    assert_eq!(backlogged(&[0, 0, 0]), (2, 2, false));
    assert_eq!(backlogged(&[0, 1, 1]), (0, 0, false));
    assert_eq!(backlogged(&[0, 0, 1, 1, 1]), (2, 1, true));
    assert_eq!(
        backlogged(&[1, 1, 1, 0]),
        (1, 0, true),
        "it has a place of its class"
    );
}

#[test]
fn goals_bring_their_caps_and_classes_say_how_many_are_inside() {
    let mut admission = backend(9, &[Some(2), None]);
    let tickets: Vec<Ticket> = [0, 0, 0, 1].map(|it| come(&mut admission, it)).into();
    let inside = |admission: &Admission| {
        let all = admission.class_statuses().into_iter();
        all.map(|class| (class.inside, class.inside_max))
            .collect::<Vec<_>>()
    };
    assert_eq!(inside(&admission), [(2, Some(2)), (1, None)]);
    set_caps(&mut admission, &[Some(1), None]);
    assert_eq!(admission.admit(Time::ZERO), None);
    set_caps(&mut admission, &[None, None]);
    assert_eq!(admission.admit(Time::ZERO), Some(tickets[2].job()));
    assert_eq!(inside(&admission), [(3, None), (1, None)]);
}

#[derive(Clone, Debug)]
enum Event {
    Come(u8, Option<u64>, Option<(u64, u64)>),
    Pass(u64),
    Settle(prop::sample::Index, u64),
    Leave(prop::sample::Index),
    Return(u8),
    Limit(usize),
    Caps([Option<usize>; 2]),
}

fn event() -> impl Strategy<Value = Event> {
    let cap = || prop::option::of(0..3usize);
    let promise = prop::option::of((0..900 * MS, 1..900 * MS));
    prop_oneof![
        8 => (0..3u8, prop::option::of(0..500 * MS), promise).prop_map(|(class, expected, promise)| Event::Come(class, expected, promise)),
        2 => (0..300 * MS).prop_map(Event::Pass),
        1 => (any::<prop::sample::Index>(), 0..900 * MS).prop_map(|(which, ns)| Event::Settle(which, ns)),
        6 => any::<prop::sample::Index>().prop_map(Event::Leave),
        1 => (0..3u8).prop_map(Event::Return),
        1 => (0..6usize).prop_map(Event::Limit),
        1 => (cap(), cap()).prop_map(|(one, other)| Event::Caps([one, other])),
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
        Just(Order::LeastUsed(Within::Longest)),
    ]
}

/// One of a few clients in two networks, or none.
fn payer(number: u64) -> Option<Payer> {
    let client = number.wrapping_mul(7) % 5;
    (client > 0).then_some(Payer {
        client: ClientId(client),
        network: Some(ClientId(100 + client % 2)),
    })
}

/// Jobs as the test sees them: the class of each, and whether it is inside.
struct World {
    queue: AdmissionQueue,
    jobs: BTreeMap<u64, (u8, bool)>,
    came: u64,
    now: Time,
}

impl World {
    fn new(order: Order) -> Self {
        let mut queue = AdmissionQueue::new(order, 2, None);
        queue.set_weight(1, 7);
        queue.set_tuning(Tuning {
            boost_scale_ns: 300_000_000,
            places: 2,
            small_max_ns: 100_000_000,
            nudge_places: 4,
        });
        Self {
            queue,
            jobs: BTreeMap::new(),
            came: 0,
            now: Time::ZERO,
        }
    }

    fn job(&mut self, class: u8) -> JobId {
        self.jobs.insert(self.came, (class, false));
        self.came += 1;
        JobId(self.came - 1)
    }

    fn one(&self, index: prop::sample::Index) -> Option<u64> {
        let count = self.jobs.len();
        self.jobs
            .keys()
            .nth((count > 0).then(|| index.index(count))?)
            .copied()
    }

    /// What happens, but for caps.
    fn play(&mut self, event: &Event) {
        match *event {
            Event::Come(class, expected_ns, promise) => {
                let promise = promise.map(|(slack_ns, target_ns)| Promise {
                    due_at: self.now.after(slack_ns),
                    target_ns,
                    group: class,
                });
                let request = Request {
                    promise,
                    payer: payer(self.came),
                    ..request(class, expected_ns)
                };
                let job = self.job(class);
                self.queue.arrive(job, request, self.now).unwrap();
            }
            Event::Pass(ns) => self.now = self.now.after(ns),
            Event::Settle(index, ns) => {
                if let Some(job) = self.one(index) {
                    self.queue.settle(JobId(job), ns);
                }
            }
            Event::Leave(index) => {
                if let Some(job) = self.one(index) {
                    self.jobs.remove(&job);
                    self.queue.leave(JobId(job), self.now);
                }
            }
            Event::Return(class) => {
                let job = self.job(class);
                self.queue.return_to(job, request(class, None));
            }
            Event::Limit(limit) => self.queue.set_limit(limit),
            Event::Caps(_) => {}
        }
    }

    fn admit(&mut self) -> Vec<u64> {
        let mut went = Vec::new();
        while let Some(JobId(job)) = self.queue.admit(self.now) {
            self.jobs.get_mut(&job).expect("present").1 = true;
            went.push(job);
        }
        went
    }

    fn count(&self, is_counted: impl Fn(u8, bool) -> bool) -> usize {
        let all = self.jobs.values();
        all.filter(|&&(class, is_inside)| is_counted(class, is_inside))
            .count()
    }
}

proptest! {
    /// None goes in above a cap, and none waits for a place that is free but for a cap.
    #[test]
    fn caps_hold_and_nothing_else_does(order in order(), events in prop::collection::vec(event(), 1..300)) {
        let mut world = World::new(order);
        let mut caps: [Option<usize>; 2] = [Some(1), None];
        let set = |world: &mut World, caps: &[Option<usize>; 2]| {
            let caps: Vec<_> = (0..).zip(caps).filter_map(|(class, cap)| Some((class, (*cap)?))).collect();
            world.queue.set_caps(&caps, world.now);
        };
        set(&mut world, &caps);
        let cap_of = |caps: &[Option<usize>; 2], class: u8| {
            caps.get(usize::from(class)).copied().flatten().unwrap_or(usize::MAX)
        };
        for event in &events {
            world.play(event);
            if let Event::Caps(new) = event {
                caps = *new;
                set(&mut world, &caps);
            }
            let before: Vec<usize> = (0..3).map(|class| world.count(|own, inside| own == class && inside)).collect();
            world.admit();
            let is_free = world.count(|_, inside| inside) < world.queue.limit();
            let mut held = 0;
            for class in 0..3 {
                let inside = world.count(|own, inside| own == class && inside);
                let waiting = world.count(|own, inside| own == class && !inside);
                let cap = cap_of(&caps, class);
                prop_assert!(inside <= cap.max(before[usize::from(class)]), "a cap is broken");
                prop_assert!(!is_free || waiting == 0 || inside >= cap, "a place is wasted");
                held += if inside >= cap { waiting } else { 0 };
            }
            prop_assert_eq!(world.queue.held(), held);
            prop_assert_eq!(world.queue.waiting(), world.count(|_, inside| !inside));
        }
    }

    /// A cap that is never reached changes nothing: not the order, not the guard's promise.
    #[test]
    fn a_cap_that_is_never_reached_changes_nothing(order in order(), events in prop::collection::vec(event(), 1..300)) {
        let (mut capped, mut free) = (World::new(order), World::new(order));
        capped.queue.set_caps(&[(0, 1000), (1, 1000), (2, 1000)], Time::ZERO);
        for event in &events {
            capped.play(event);
            free.play(event);
            prop_assert_eq!(capped.admit(), free.admit());
        }
    }
}
