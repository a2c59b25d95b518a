//! Orders that bear doubt, written down as strings: `a` is the first job that comes, `b` the
//! second, and so on.

use sooner_admission::{
    Admission, AdmissionQueue, AdmissionSettings, ClientId, JobId, Order, Payer, Request, Time,
    Tuning, Within,
};
use std::collections::HashMap;

const MS: u64 = 1_000_000;

/// Boosts of a scale of 100 ms; jobs of up to 20 ms are small, and pass two others.
const TUNING: Tuning = Tuning {
    boost_scale_ns: 100 * MS,
    places: 1,
    small_max_ns: 20 * MS,
    nudge_places: 2,
};

struct Play {
    queue: AdmissionQueue,
    jobs: u64,
    went: String,
    now: Time,
}

impl Play {
    fn new(order: Order) -> Self {
        let mut queue = AdmissionQueue::new(order, 1, None);
        queue.set_tuning(TUNING);
        Self {
            queue,
            jobs: 0,
            went: String::new(),
            now: Time::ZERO,
        }
    }

    /// The next job comes after `ms`, of a class, a client and an expected time.
    fn come(&mut self, after_ms: u64, class: u8, client: u64, expected_ms: u64) {
        self.now = self.now.after(after_ms * MS);
        let request = Request {
            class,
            number: class,
            expected_ns: Some(expected_ms * MS),
            payer: Some(Payer {
                client: ClientId(client),
                network: None,
            }),
            ..Request::default()
        };
        let job = JobId(self.jobs);
        self.jobs += 1;
        self.queue.arrive(job, request, self.now).unwrap();
        self.admit();
    }

    /// One leaves after `ms`, and the next goes in.
    fn leave(&mut self, after_ms: u64, name: char) {
        self.now = self.now.after(after_ms * MS);
        let job = JobId(u64::from(name as u32 - 'a' as u32));
        self.queue.leave(job, self.now);
        self.admit();
    }

    fn admit(&mut self) {
        while let Some(job) = self.queue.admit(self.now) {
            self.went.push((b'a' + job.0 as u8) as char);
        }
    }

    fn follow(&mut self, order: Order) {
        self.queue.set_order(order, |_, request| request, self.now);
        self.admit();
    }

    /// Those inside leave, in the order in which they went in, until none is left.
    fn finish(mut self) -> String {
        let mut done = 0;
        while let Some(name) = self.went[done..].chars().next() {
            self.leave(0, name);
            done += 1;
        }
        self.went
    }
}

/// One is inside; then come, 10 ms after each other, jobs of these times and clients, in ms.
fn waiting(order: Order, jobs: &[(u64, u64)]) -> Play {
    let mut play = Play::new(order);
    play.come(0, 0, 0, 1);
    for &(client, expected_ms) in jobs {
        play.come(10, 0, client, expected_ms);
    }
    play
}

fn order_of(order: Order, times_ms: &[u64]) -> String {
    let jobs: Vec<_> = times_ms.iter().map(|&ms| (1, ms)).collect();
    waiting(order, &jobs).finish()
}

#[test]
fn boost_counts_a_short_job_as_if_it_had_come_earlier() {
    // Boosts of 200, 20 and 80 ms are 15, 171 and 60.
    assert_eq!(order_of(Order::Boost, &[200, 200, 20, 80]), "adebc");
    // One that came 200 ms later is passed no more: 171 earlier is too little.
    let mut play = waiting(Order::Boost, &[(1, 200)]);
    play.come(200, 0, 1, 20);
    assert_eq!(play.finish(), "abc");
    let mut play = waiting(Order::Boost, &[(1, 200)]);
    play.come(140, 0, 1, 20);
    assert_eq!(play.finish(), "acb");
}

#[test]
fn nudge_passes_long_jobs_among_the_last_few() {
    // E passes c and d, the last two before it, and f only d.
    assert_eq!(order_of(Order::Nudge, &[200, 200, 200, 20, 20]), "abecfd");
    assert_eq!(order_of(Order::Nudge, &[20, 200, 10]), "abdc");
}

#[test]
fn hrrn_weighs_the_wait_by_what_is_expected() {
    // After 20 ms b has waited 20 for 10, c 10 for 200.
    let mut play = waiting(Order::Hrrn, &[(1, 200), (1, 10)]);
    play.leave(10, 'a');
    assert_eq!(play.went, "ac", "20 / 200 against 10 / 10");
    // After 300 ms the long one has waited for more than twice its time, a new short one not yet.
    play.come(295, 0, 1, 10);
    play.leave(5, 'c');
    assert_eq!(play.finish(), "acbd");
}

const NEW: [Order; 3] = [Order::Boost, Order::Hrrn, Order::Nudge];

#[test]
fn a_class_goes_before_the_next_in_each() {
    for order in NEW {
        let mut play = Play::new(order);
        play.come(0, 3, 1, 1);
        play.come(1, 3, 1, 100);
        play.come(1, 3, 1, 1);
        play.come(1, 0, 1, 100);
        play.come(1, 0, 1, 1);
        play.leave(50, 'a');
        assert_eq!(play.finish(), "aedcb", "{order:?}");
    }
}

#[test]
fn who_gives_up_takes_no_place_in_any() {
    for order in NEW {
        let mut play = waiting(order, &[(1, 100), (1, 1), (1, 100)]);
        play.leave(0, 'c');
        assert_eq!(play.went, "a", "{order:?}");
        assert_eq!(play.finish(), "abd", "{order:?}");
    }
}

#[test]
fn clients_share_and_each_has_its_own_order() {
    for (within, expected) in [
        (Within::Boost, "adceb"),
        (Within::Hrrn, "adceb"),
        // E came three after b, and passes two.
        (Within::Nudge, "adcbe"),
    ] {
        // The first has been charged 1 ms; b, c and e are its, d of another one.
        let mut play = waiting(
            Order::LeastUsed(within),
            &[(0, 100), (0, 1), (1, 50), (0, 2)],
        );
        play.leave(50, 'a');
        assert_eq!(play.finish(), expected, "{within:?}");
    }
}

/// How many jobs of 9 ms that never end go in before one of 400 ms, after which the owed turns are
/// paid.
fn shorts_before_a_long_job(order: Order) -> u64 {
    let mut play = Play::new(order);
    // None is ever passed by time alone.
    play.queue.set_tuning(Tuning {
        boost_scale_ns: u64::MAX,
        nudge_places: u64::MAX / 4,
        ..TUNING
    });
    play.come(0, 0, 1, 1);
    play.come(0, 0, 1, 400);
    let mut inside = JobId(0);
    for shorts in 0.. {
        play.come(0, 0, 1, 9);
        play.queue.leave(inside, play.now);
        inside = play.queue.admit(play.now).unwrap();
        if inside == JobId(1) {
            return shorts;
        }
        assert_eq!(inside, JobId(shorts + 2), "{order:?}");
    }
    unreachable!("it goes in at some time");
}

#[test]
fn a_long_job_goes_in_when_short_ones_have_had_nineteen_times_as_much() {
    for order in [
        Order::Boost,
        Order::Nudge,
        Order::LeastUsed(Within::Boost),
        Order::LeastUsed(Within::Nudge),
    ] {
        assert_eq!(shorts_before_a_long_job(order), 19 * 400 / 9, "{order:?}");
    }
}

#[test]
fn who_waits_while_the_order_changes_is_there_since_it_came() {
    // As if boosts had been there from the beginning: c is passed by d, which came 140 ms later.
    let jobs = [(1, 20), (1, 200)];
    for from in [Order::Fcfs, Order::Expected, Order::Hrrn, Order::Nudge] {
        let mut play = waiting(from, &jobs);
        play.come(140, 0, 1, 20);
        play.follow(Order::Boost);
        assert_eq!(play.finish(), "abdc", "{from:?}");
        let mut play = waiting(from, &jobs);
        play.come(200, 0, 1, 20);
        play.follow(Order::Boost);
        play.come(10, 0, 1, 20);
        assert_eq!(play.finish(), "abcde", "{from:?}");
    }
    // And as to the ratio: b has waited for 440 ms by then, and c for 1.
    let mut play = waiting(Order::Fcfs, &[(1, 200)]);
    play.come(439, 0, 1, 2);
    play.follow(Order::Hrrn);
    play.leave(1, 'a');
    assert_eq!(play.finish(), "abc");
}

#[test]
fn what_the_oldest_was_given_stays_when_the_order_changes() {
    let shorts = |changes_every: u64| {
        let mut play = Play::new(Order::Expected);
        play.come(0, 0, 1, 1);
        play.come(0, 0, 1, 400);
        let mut inside = JobId(0);
        for shorts in 0..10_000 {
            let job = JobId(play.jobs);
            play.come(0, 0, 1, 9);
            play.queue.leave(inside, play.now);
            match play.queue.admit(play.now) {
                Some(JobId(1)) => return shorts,
                admitted => assert_eq!(admitted, Some(job)),
            }
            inside = job;
            if shorts % changes_every == changes_every - 1 {
                let order = [Order::Expected, Order::Boost][(shorts / changes_every % 2) as usize];
                play.queue.set_tuning(Tuning {
                    boost_scale_ns: 1 << 50,
                    ..TUNING
                });
                play.follow(order);
            }
        }
        unreachable!("it goes in at some time");
    };
    let without = shorts(u64::MAX);
    assert_eq!(without, 19 * 400 / 9);
    for changes_every in [3, 20, 200] {
        let with = shorts(changes_every);
        assert!(with.abs_diff(without) <= 32, "{changes_every}: {with}");
    }
}

#[test]
fn what_clients_had_stays_when_the_order_changes() {
    let of = Order::LeastUsed;
    // Client 0 has had 100 ms, client 1 nothing; then another order, and one of each waits.
    let mut play = Play::new(of(Within::Fcfs));
    play.come(0, 0, 0, 100);
    play.come(1, 0, 0, 10);
    play.come(1, 0, 1, 10);
    play.follow(of(Within::Boost));
    assert_eq!(play.finish(), "acb");
}

/// An order, and what has been learnt of jobs of 300 ms and of 20.
fn taught(order: Order) -> (Admission, Time) {
    let mut admission = Admission::new(AdmissionSettings {
        limit: 1,
        order,
        waiting_max: None,
        kind_memory: 8,
    });
    let mut now = Time::ZERO;
    // Nothing is known of the first.
    for (kind, took_ms) in [("long", 300), ("short", 20), ("long", 300), ("short", 20)] {
        let ticket = admission.arrive(0, kind.into(), 0, now).unwrap();
        assert!(admission.admit(now).is_some());
        now = now.after(took_ms * MS);
        admission.complete(&ticket, 0, took_ms * MS, now);
        admission.leave(&ticket, now);
    }
    (admission, now)
}

/// One is inside; in which order two long ones and two short ones go in that come then.
fn went(admission: &mut Admission, now: Time) -> String {
    let tickets = ["long", "long", "short", "long", "short"].map(|kind| {
        let ticket = admission.arrive(0, kind.into(), 0, now).unwrap();
        if admission.status().inside == 0 {
            admission.admit(now);
        }
        ticket
    });
    let mut went = String::from("a");
    let mut inside = 0;
    while went.len() < tickets.len() {
        admission.leave(&tickets[inside], now);
        let next = admission.admit(now).unwrap();
        inside = tickets.iter().position(|it| it.job() == next).unwrap();
        went.push((b'a' + inside as u8) as char);
    }
    admission.leave(&tickets[inside], now);
    went
}

#[test]
fn a_scale_is_learnt_from_jobs_that_are_done() {
    let (mut admission, now) = taught(Order::Boost);
    assert_eq!(went(&mut admission, now), "acebd");
    for (order, expected) in [
        (Order::Fcfs, "abcde"),
        (Order::Nudge, "acebd"),
        (Order::Boost, "acebd"),
    ] {
        admission.set_goals(order, Vec::new(), &HashMap::new(), now);
        assert_eq!(went(&mut admission, now), expected, "{order:?}");
    }
}

#[test]
fn an_order_that_follows_is_what_was_taken_last() {
    let (mut admission, now) = taught(Order::Auto);
    let set = |admission: &mut Admission, order| {
        admission.set_goals(order, Vec::new(), &HashMap::new(), now);
    };
    assert_eq!(admission.within(), Some(Within::Fcfs));
    assert_eq!(went(&mut admission, now), "abcde");
    for within in [Within::Expected, Within::Boost] {
        admission.follow(within, now);
        assert_eq!(admission.within(), Some(within));
        assert_eq!(went(&mut admission, now), "acebd", "{within:?}");
    }
    set(&mut admission, Order::Auto);
    assert_eq!(went(&mut admission, now), "acebd", "as it was");
    set(&mut admission, Order::Fcfs);
    assert_eq!(
        (admission.follows(), went(&mut admission, now)),
        (false, "abcde".into())
    );
    set(&mut admission, Order::LeastUsed(Within::Auto));
    assert_eq!(
        (admission.follows(), admission.within()),
        (true, Some(Within::Boost))
    );
}
