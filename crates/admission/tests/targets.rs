//! Who goes in when there are targets or weights, written down as strings: `a` is the first job
//! that comes, `b` the second, and so on.

use sooner_admission::{
    Admission, AdmissionQueue, AdmissionSettings, Goal, JobId, Lateness, Order, Promise, Request,
    Time,
};
use std::collections::HashMap;

const MS: u64 = 1_000_000;

struct Play {
    admission: AdmissionQueue,
    jobs: u64,
    now: Time,
    order: String,
}

impl Play {
    /// One job inside at a time; the first, `a`, is inside from the beginning.
    fn new(order: Order) -> Self {
        let mut play = Self {
            admission: AdmissionQueue::new(order, 1, None),
            jobs: 0,
            now: Time::ZERO,
            order: String::new(),
        };
        play.come(0, None);
        play.admit();
        play
    }

    /// A job of a class comes; `due` in so many ms, by a target of so many.
    fn come(&mut self, class: u8, due: Option<(u64, u64)>) {
        let promise = due.map(|(slack_ms, target_ms)| Promise {
            due_at: self.now.after(slack_ms * MS),
            target_ns: target_ms * MS,
            group: class,
        });
        let coming = Request {
            class,
            number: class,
            expected_ns: Some(MS / 100),
            promise,
            ..Request::default()
        };
        let job = JobId(self.jobs);
        self.jobs += 1;
        self.admission.arrive(job, coming, self.now).unwrap();
    }

    /// Another order, in which classes have other numbers.
    fn set_order(&mut self, order: Order, class: impl Fn(u8) -> u8) {
        let renewed = |_, coming: Request| Request {
            class: class(coming.class),
            ..coming
        };
        self.admission.set_order(order, renewed, self.now);
    }

    fn admit(&mut self) {
        while let Some(job) = self.admission.admit(self.now) {
            self.order.push((b'a' + job.0 as u8) as char);
        }
    }

    /// The job inside leaves, so many ms after the last one.
    fn leave_after(&mut self, ms: u64) {
        self.now = self.now.after(ms * MS);
        let inside = self.order.chars().last().unwrap();
        let job = JobId(u64::from(inside as u32 - 'a' as u32));
        self.admission.leave(job, self.now);
        self.admit();
    }

    fn finish(mut self) -> String {
        while self.admission.waiting() > 0 {
            self.leave_after(1);
        }
        self.order
    }
}

#[test]
fn what_is_due_goes_first_then_what_has_no_target_then_what_will_be_due() {
    let mut play = Play::new(Order::Targets(Lateness::ByPriority));
    play.come(0, Some((1000, 1000)));
    play.come(0, Some((500, 600)));
    play.come(0, Some((3, 10)));
    play.come(7, None);
    play.come(7, None);
    play.come(6, None);
    // d is due after 3 ms; until then g and e, of which the first is more important, and f after
    // it.
    assert_eq!(play.finish(), "agedfcb");
}

#[test]
fn of_the_late_the_most_important_goes_first() {
    let mut play = Play::new(Order::Targets(Lateness::ByPriority));
    play.come(2, Some((0, 10)));
    play.come(1, Some((2, 1000)));
    play.come(1, Some((1, 1000)));
    play.come(2, Some((9, 10)));
    play.leave_after(5);
    assert_eq!(play.finish(), "adcbe");
}

#[test]
fn of_the_late_the_latest_by_its_target_goes_first() {
    let mut play = Play::new(Order::Targets(Lateness::InProportion));
    play.come(0, Some((0, 1000)));
    play.come(1, Some((30, 100)));
    play.come(2, Some((48, 50)));
    // After 50 ms 0.05, 0.2 and 0.04 of their targets, one later 0.051 and 0.06.
    play.leave_after(50);
    assert_eq!(play.finish(), "acdb");
}

#[test]
fn of_those_of_one_class_who_came_first_goes_first_whoever_is_late() {
    for lateness in [Lateness::ByPriority, Lateness::InProportion] {
        let mut play = Play::new(Order::Targets(lateness));
        (0..5).for_each(|_| play.come(0, Some((1, 5))));
        play.leave_after(100);
        assert_eq!(play.finish(), "abcdef");
    }
}

#[test]
fn classes_share_by_weight() {
    let mut play = Play::new(Order::Shares);
    play.admission.set_weight(1, 3);
    (0..4).for_each(|_| play.come(2, None));
    (0..6).for_each(|_| play.come(1, None));
    // One of class 2 for three of class 1; e comes after its turn.
    let order = play.finish();
    let classes: String = order[1..]
        .chars()
        .map(|job| if job < 'f' { '2' } else { '1' })
        .collect();
    assert_eq!(classes, "1211121122");
}

#[test]
fn what_took_longer_than_expected_is_charged_afterwards() {
    let mut play = Play::new(Order::Shares);
    (0..3).for_each(|_| play.come(1, None));
    (0..3).for_each(|_| play.come(2, None));
    play.leave_after(1);
    // b is inside; it has taken three times what was expected.
    play.admission.settle(JobId(1), 3 * MS / 100);
    assert_eq!(play.finish(), "abefgcd");
}

#[test]
fn another_order_takes_those_who_wait_with_it() {
    let mut play = Play::new(Order::Fcfs);
    play.come(2, Some((0, 1)));
    play.come(1, None);
    play.come(0, None);
    play.set_order(Order::Targets(Lateness::ByPriority), |class| class);
    play.leave_after(1);
    play.set_order(Order::Fcfs, |class| class);
    assert_eq!(play.finish(), "abdc");
}

#[test]
fn who_waits_is_of_the_class_that_counts_now() {
    let mut play = Play::new(Order::Fcfs);
    (0..2).for_each(|_| play.come(1, None));
    (0..2).for_each(|_| play.come(2, None));
    play.set_order(Order::Fcfs, |class| 3 - class);
    play.come(1, None);
    assert_eq!(play.finish(), "adefbc");
}

#[test]
fn times_inside_stay_where_servers_come_and_go() {
    let mut admission = Admission::new(AdmissionSettings {
        limit: 16,
        order: Order::Fcfs,
        waiting_max: None,
        kind_memory: 8,
    });
    let now = Time::ZERO;
    admission.set_goals(Order::Fcfs, vec![Goal::default()], &HashMap::new(), now);
    let done = admission.arrive(0, "k".into(), 0, now).unwrap();
    assert_eq!(admission.admit(now), Some(done.job()));
    admission.complete(&done, 0, 5_000_000, now);
    admission.leave(&done, now);
    for _ in 0..40 {
        admission.arrive(0, "k".into(), 0, now).unwrap();
    }
    let inside_ns = |admission: &Admission| admission.class_statuses()[0].inside_ns;
    for limit in [0, 1, 16] {
        admission.set_capacity(limit);
        assert_eq!(inside_ns(&admission), Some(5_000_000), "{limit}");
    }
    // More at a time at the same servers is another thing.
    admission.set_limit(32);
    assert_eq!(inside_ns(&admission), Some(10_000_000));
    // So is a limit by turns with another one, though not all beyond it have left at the next turn.
    for _ in 0..3 {
        admission.rescale(32, 8);
        for inside in (20..=32).rev() {
            admission.set_capacity(inside);
        }
        assert_eq!(inside_ns(&admission), Some(2_500_000));
        admission.rescale(8, 32);
        admission.set_capacity(32);
        assert_eq!(inside_ns(&admission), Some(10_000_000));
    }
    // With the one limit forty are inside and none waits, with the other some wait.
    admission.set_limit(40);
    while admission.admit(now).is_some() {}
    assert_eq!(inside_ns(&admission), Some(12_500_000));
    for _ in 0..3 {
        admission.set_limit(16);
        assert_eq!(inside_ns(&admission), Some(5_000_000));
        admission.set_limit(40);
        assert_eq!(inside_ns(&admission), Some(12_500_000));
    }
    // No more are inside than there are.
    admission.set_limit(80);
    assert_eq!(inside_ns(&admission), Some(12_500_000));
}

#[test]
fn who_is_here_when_goals_change_is_counted_in_its_class() {
    let mut admission = Admission::new(AdmissionSettings {
        limit: 1,
        order: Order::Fcfs,
        waiting_max: None,
        kind_memory: 8,
    });
    let goals = |names: &[&str]| {
        let named = |name: &&str| Goal {
            name: (*name).into(),
            ..Goal::default()
        };
        names.iter().map(named).collect::<Vec<Goal>>()
    };
    let now = Time::ZERO;
    admission.set_goals(Order::Fcfs, goals(&["a", "b"]), &HashMap::new(), now);
    let tickets: Vec<_> = [1, 1, 0]
        .into_iter()
        .map(|class| admission.arrive(class, "k".into(), 0, now).unwrap())
        .collect();
    assert!(admission.admit(now).is_some());
    let counts = |admission: &Admission| {
        let statuses = admission.class_statuses().into_iter();
        let words = statuses.map(|one| format!("{} {} {}", one.name, one.present, one.done.jobs));
        words.collect::<Vec<String>>().join(", ")
    };
    assert_eq!(counts(&admission), "a 1 0, b 2 0");
    admission.set_goals(Order::Fcfs, goals(&["b", "c", "a"]), &HashMap::new(), now);
    assert_eq!(counts(&admission), "b 2 0, c 0 0, a 1 0");
    for ticket in &tickets {
        admission.complete(ticket, 0, 1, now);
        admission.leave(ticket, now);
        admission.admit(now);
    }
    assert_eq!(counts(&admission), "b 0 2, c 0 0, a 0 1");
}
