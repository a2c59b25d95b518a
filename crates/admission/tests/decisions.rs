//! Who goes in when, written down as strings: `a` is the first job that comes, `b` the second, and
//! so on.

use sooner_admission::{
    AdmissionQueue, ClientId, JobId, Order, Payer, QueueFull, Request, Time, Within,
};

const MS: u64 = 1_000_000;

fn coming(class: u8, expected_ns: Option<u64>) -> Request {
    Request {
        class,
        number: class,
        expected_ns,
        ..Request::default()
    }
}

struct Play {
    admission: AdmissionQueue,
    jobs: u64,
    order: String,
}

impl Play {
    fn new(order: Order, limit: usize) -> Self {
        Self {
            admission: AdmissionQueue::new(order, limit, None),
            jobs: 0,
            order: String::new(),
        }
    }

    /// The next job comes.
    fn come(&mut self, class: u8, expected_ms: u64) {
        let job = JobId(self.jobs);
        self.jobs += 1;
        self.admission
            .arrive(job, coming(class, Some(expected_ms * MS)), Time::ZERO)
            .unwrap();
        self.admit();
    }

    fn leave(&mut self, name: char) {
        let job = JobId(u64::from(name as u32 - 'a' as u32));
        self.admission.leave(job, Time::ZERO);
        self.admit();
    }

    fn admit(&mut self) {
        while let Some(job) = self.admission.admit(Time::ZERO) {
            self.order.push((b'a' + job.0 as u8) as char);
        }
    }

    /// The jobs inside leave, in the order in which they went in, until none is left.
    fn finish(mut self) -> String {
        let mut done = 0;
        while let Some(name) = self.order[done..].chars().next() {
            self.leave(name);
            done += 1;
        }
        self.order
    }
}

#[test]
fn the_shortest_expected_goes_first_and_equals_in_order_of_arrival() {
    let mut play = Play::new(Order::Expected, 1);
    for expected_ms in [5, 3, 1, 3, 2] {
        play.come(0, expected_ms);
    }
    assert_eq!(play.finish(), "acebd");
}

#[test]
fn first_come_first_served() {
    let mut play = Play::new(Order::Fcfs, 2);
    for expected_ms in [5, 3, 1, 3, 2] {
        play.come(0, expected_ms);
    }
    assert_eq!(play.finish(), "abcde");
}

#[test]
fn a_class_goes_before_the_next() {
    let mut play = Play::new(Order::Expected, 1);
    play.come(3, 1);
    play.come(3, 1);
    play.come(7, 1);
    play.come(0, 9);
    play.come(3, 5);
    assert_eq!(play.finish(), "adbec");
}

#[test]
fn who_gives_up_takes_no_place() {
    let mut play = Play::new(Order::Expected, 1);
    for expected_ms in [1, 2, 3, 4] {
        play.come(0, expected_ms);
    }
    play.leave('b');
    assert_eq!(play.order, "a");
    assert_eq!(play.finish(), "acd");
}

#[test]
fn a_smaller_limit_holds_from_the_next_job_on_and_a_larger_one_at_once() {
    let mut play = Play::new(Order::Fcfs, 2);
    for _ in 0..6 {
        play.come(0, 1);
    }
    assert_eq!(play.order, "ab");
    play.admission.set_limit(1);
    play.leave('a');
    assert_eq!(play.order, "ab");
    play.leave('b');
    assert_eq!(play.order, "abc");
    play.admission.set_limit(3);
    play.admit();
    assert_eq!(play.order, "abcde");
    assert_eq!((play.admission.inside(), play.admission.waiting()), (3, 1));
}

#[test]
fn a_bounded_queue_refuses_only_who_would_wait() {
    let mut admission = AdmissionQueue::new(Order::Expected, 1, Some(1));
    let mut come = |job| {
        let result = admission.arrive(JobId(job), coming(0, None), Time::ZERO);
        while admission.admit(Time::ZERO).is_some() {}
        result
    };
    assert_eq!(come(0), Ok(()));
    assert_eq!(come(1), Ok(()));
    assert_eq!(come(2), Err(QueueFull { waiting_max: 1 }));
}

/// How many jobs of `short_ms` that never end go in before one of `long_ms`.
fn shorts_before_a_long_job(short_ms: u64, long_ms: u64) -> u64 {
    let mut play = Play::new(Order::Expected, 1);
    play.come(0, 1);
    play.come(0, long_ms);
    let mut inside = JobId(0);
    for shorts in 0.. {
        let job = JobId(1000 + shorts);
        play.admission
            .arrive(job, coming(0, Some(short_ms * MS)), Time::ZERO)
            .unwrap();
        play.admission.leave(inside, Time::ZERO);
        match play.admission.admit(Time::ZERO) {
            Some(JobId(1)) => return shorts,
            admitted => assert_eq!(admitted, Some(job)),
        }
        inside = job;
    }
    unreachable!("it goes in at some time");
}

/// It is owed one part in twenty, so it goes in when the others have had 19 times as much. Without
/// the guard it would never go in.
#[test]
fn a_long_job_goes_in_when_the_short_ones_have_had_nineteen_times_as_much() {
    assert_eq!(shorts_before_a_long_job(9, 40), 19 * 40 / 9);
    // Less than one turn.
    assert_eq!(shorts_before_a_long_job(4, 5), 19 * 5 / 4);
    // Longer turns: what it lacks after the 28th is less than what a short one takes.
    let had = 28 * 600_000 / 32;
    let shorts = shorts_before_a_long_job(90_000, 600_000);
    assert_eq!(shorts, (19_u64 * had).div_ceil(90_000));
}

#[test]
fn leaving_twice_and_unknown_jobs_change_nothing() {
    let mut play = Play::new(Order::Expected, 1);
    play.come(0, 1);
    play.come(0, 1);
    play.leave('z');
    play.leave('a');
    play.leave('a');
    assert_eq!(play.order, "ab");
    assert_eq!((play.admission.inside(), play.admission.waiting()), (1, 0));
}

#[test]
fn who_has_made_room_goes_in_before_all_who_wait() {
    let mut play = Play::new(Order::Fcfs, 1);
    play.come(1, 5);
    play.come(0, 5);
    play.come(1, 5);
    // It steps out, and others go in, by class.
    play.leave('a');
    assert_eq!(play.order, "ab");
    let back = JobId(3);
    play.jobs += 1;
    play.admission.return_to(back, coming(1, Some(5 * MS)));
    play.come(0, 5);
    assert_eq!(play.admission.waiting(), 3);
    play.leave('b');
    assert_eq!(play.order, "abd", "before one of a higher class");
    play.admission.leave(back, Time::ZERO);
    play.admit();
    play.leave('e');
    assert_eq!(play.order, "abdec");
}

#[test]
fn who_comes_back_first_goes_in_first() {
    let mut play = Play::new(Order::Expected, 1);
    play.come(0, 5);
    play.jobs += 4;
    for back in [3, 1, 4, 2] {
        play.admission.return_to(JobId(back), coming(0, Some(back)));
    }
    play.leave('e');
    assert_eq!(play.admission.waiting(), 3);
    assert_eq!(play.finish(), "adbc");
}

#[test]
fn who_gives_up_coming_back_is_forgotten() {
    let mut play = Play::new(Order::Fcfs, 1);
    play.come(0, 5);
    play.admission.return_to(JobId(7), coming(0, None));
    play.admission.leave(JobId(7), Time::ZERO);
    assert_eq!(play.admission.waiting(), 0);
    play.come(0, 5);
    play.leave('a');
    assert_eq!(play.order, "ab");
}

#[test]
fn what_was_expected_too_long_is_paid_back_as_it_was_charged() {
    let mut admission = AdmissionQueue::new(Order::LeastUsed(Within::Fcfs), 2, None);
    let of = |client, expected_s: u64| Request {
        payer: Some(Payer {
            client: ClientId(client),
            network: None,
        }),
        ..coming(0, Some(expected_s * 1000 * MS))
    };
    // Both take 30 s, and two half-lives later both have had the same.
    for (job, expected_s) in [(0, 120), (1, 30)] {
        let came = admission.arrive(JobId(job), of(job, expected_s), Time::ZERO);
        assert!(came.is_ok() && admission.admit(Time::ZERO) == Some(JobId(job)));
    }
    let later = Time::from_ns(120_000 * MS);
    (0..2).for_each(|job| admission.settle(JobId(job), 30_000 * MS));
    for (job, client) in [(2, 1), (3, 0)] {
        admission.arrive(JobId(job), of(client, 1), later).unwrap();
    }
    admission.leave(JobId(0), later);
    assert_eq!(
        admission.admit(later),
        Some(JobId(2)),
        "of equals who came first"
    );
}

fn of_client(class: u8, client: u64, expected_ms: u64) -> Request {
    Request {
        payer: Some(Payer {
            client: ClientId(client),
            network: None,
        }),
        ..coming(class, Some(expected_ms * MS))
    }
}

/// Client 2 has had 50 ms. A job of client 0 waits, the oldest of a class that goes last, and has had
/// 100 of its 320 ms in the imagination.
fn with_one_that_had_parts() -> AdmissionQueue {
    let mut queue = AdmissionQueue::new(Order::LeastUsed(Within::Fcfs), 1, None);
    let comes = |queue: &mut AdmissionQueue, job, request| {
        queue.arrive(JobId(job), request, Time::ZERO).unwrap();
        assert_eq!(queue.admit(Time::ZERO), Some(JobId(job)));
        queue.leave(JobId(job), Time::ZERO);
    };
    comes(&mut queue, 0, of_client(0, 2, 50));
    let waits = queue.arrive(JobId(1), of_client(1, 0, 320), Time::ZERO);
    waits.unwrap();
    // 1.9 s of others: ten turns of 10 ms; and a little more, of which too little is owed for a turn.
    (2..21).for_each(|job| comes(&mut queue, job, of_client(0, 1, 100)));
    comes(&mut queue, 21, of_client(0, 1, 10));
    queue
}

/// Which of two clients goes first, 0 or 2, the job of which came first.
fn first_of(queue: &mut AdmissionQueue) -> u64 {
    for (job, client) in [(32, 2), (30, 0)] {
        let came = queue.arrive(JobId(job), of_client(0, client, 1), Time::ZERO);
        came.unwrap();
    }
    queue.admit(Time::ZERO).unwrap().0 - 30
}

#[test]
fn what_was_only_imagined_is_charged_to_none() {
    let mut queue = with_one_that_had_parts();
    assert_eq!(first_of(&mut queue), 2, "it was charged for");
    let mut queue = with_one_that_had_parts();
    queue.leave(JobId(1), Time::ZERO);
    assert_eq!(first_of(&mut queue), 0);
    // 10 ms are as large a part of 32 as it had.
    let mut queue = with_one_that_had_parts();
    queue.expect_less(|job| (job == JobId(1)).then_some(32 * MS), Time::ZERO);
    assert_eq!(first_of(&mut queue), 0);
}

#[test]
fn what_was_expected_under_another_order_was_charged_to_none() {
    let mut queue = AdmissionQueue::new(Order::Fcfs, 1, None);
    let now = Time::ZERO;
    queue
        .arrive(JobId(0), of_client(0, 0, 60_000), now)
        .unwrap();
    assert_eq!(queue.admit(now), Some(JobId(0)));
    queue.set_order(Order::LeastUsed(Within::Fcfs), |_, request| request, now);
    for (job, client) in [(1, 0), (2, 2)] {
        queue
            .arrive(JobId(job), of_client(0, client, 1), now)
            .unwrap();
    }
    queue.settle(JobId(0), 10 * MS);
    queue.leave(JobId(0), now);
    assert_eq!(queue.admit(now), Some(JobId(2)), "the other has had 10 ms");
}
