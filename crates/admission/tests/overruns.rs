//! Jobs that take longer than was expected: how much of their time others wait for.

use sooner_admission::{AdmissionQueue, JobId, Order, Request, Time};

const MS: u64 = 1_000_000;

struct Play {
    queue: AdmissionQueue,
    now: Time,
    came: u64,
}

impl Play {
    fn new(order: Order) -> Self {
        Self {
            queue: AdmissionQueue::new(order, 1, None),
            now: Time::ZERO,
            came: 0,
        }
    }

    fn come(&mut self, jobs: u64, expected_ms: u64) {
        for _ in 0..jobs {
            self.comes(Request {
                expected_ns: Some(expected_ms * MS),
                ..Request::default()
            });
        }
    }

    fn comes(&mut self, request: Request) {
        let job = JobId(self.came);
        self.came += 1;
        self.queue.arrive(job, request, self.now).unwrap();
    }

    /// The next one goes in, and leaves after so long.
    fn serve(&mut self, takes_ms: impl Fn(u64) -> u64) -> u64 {
        let job = self.queue.admit(self.now).unwrap();
        let took_ns = takes_ms(job.0) * MS;
        self.now = self.now.after(took_ns);
        self.queue.settle(job, took_ns);
        self.queue.leave(job, self.now);
        job.0
    }
}

/// Of `later` jobs of which 1 ms is expected and which take `takes_ms`, how many go in before one
/// of 10 ms that came first.
fn passing(order: Order, later: u64, takes_ms: u64) -> u64 {
    let mut play = Play::new(order);
    play.come(1, 10);
    play.come(later, 1);
    (0..)
        .find(|_| play.serve(|job| if job == 0 { 10 } else { takes_ms }) == 0)
        .unwrap()
}

#[test]
fn what_is_expected_and_comes_passes_19_times_as_much() {
    for order in [Order::Expected, Order::Hrrn] {
        assert_eq!(passing(order, 500, 1), 190, "{order:?}");
    }
}

#[test]
fn what_takes_longer_than_was_expected_passes_for_less() {
    // 190 ms of others are the bound, and the one that is inside may pass it.
    assert_eq!(passing(Order::Expected, 500, 20), 10);
    assert_eq!(passing(Order::Expected, 500, 1000), 1);
    assert_eq!(passing(Order::Expected, 500, 3_600_000), 1);
}

#[test]
fn what_those_are_owed_who_are_gone_is_owed_to_none() {
    let mut play = Play::new(Order::Expected);
    play.come(1, 10);
    play.come(1, 1);
    let takes = |job| [10, 100_000, 10, 10, 10, 10][job as usize];
    // The second passes the first, and takes 100 s: that would pay for 5 s of the oldest.
    assert_eq!([play.serve(takes), play.serve(takes)], [1, 0]);
    // They came later: no one passed them.
    play.now = play.now.after(1);
    play.come(2, 100);
    play.come(2, 1);
    let order: Vec<u64> = (0..4).map(|_| play.serve(takes)).collect();
    assert_eq!(order, [4, 5, 2, 3]);
}

#[test]
fn one_that_was_the_oldest_owes_nothing() {
    let mut play = Play::new(Order::Expected);
    play.come(1, 1);
    play.come(1, 100);
    play.come(3, 1);
    let takes = |job| [10_000, 100, 1, 1, 1][job as usize];
    let order: Vec<u64> = (0..5).map(|_| play.serve(takes)).collect();
    assert_eq!(order, [0, 2, 3, 4, 1], "it was its turn");
}

/// At a cold start nothing is known of any, so what one took cannot be paid for by others.
#[test]
fn what_nothing_was_known_of_owes_nothing() {
    let mut play = Play::new(Order::Expected);
    let of = |class: u8| Request {
        class,
        number: class,
        ..Request::default()
    };
    for class in [1, 1, 1, 0, 0, 0] {
        play.comes(of(class));
    }
    let order: Vec<u64> = (0..6).map(|_| play.serve(|_| 30_000)).collect();
    assert_eq!(order, [3, 4, 5, 0, 1, 2]);
}

/// While one of a class with a cap is inside no other of it can go in, and was passed all the same.
#[test]
fn those_are_owed_whom_their_cap_holds() {
    let mut play = Play::new(Order::Expected);
    play.queue.set_limit(2);
    play.queue.set_caps(&[(0, 1)], play.now);
    play.come(1, 10);
    play.come(500, 1);
    let takes = |job| if job == 0 { 10 } else { 20 };
    let passed = (0..).find(|_| play.serve(takes) == 0);
    assert_eq!(passed, Some(10));
}
