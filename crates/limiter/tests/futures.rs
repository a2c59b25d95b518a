//! The futures: a task that was not woken is not polled, and still every job gets in.

use proptest::prelude::*;
use sooner_admission::{
    AdmissionSettings, ClientId, Goal, KIND_MEMORY, Lateness, Order, Payer, ResponseTarget,
    Subject, Within,
};
use sooner_limiter::{Acquire, Limiter, Permit};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) struct Task {
    enter: Option<Pin<Box<Acquire>>>,
    pub(crate) permit: Option<Permit>,
    called: Arc<Flag>,
}

impl Task {
    pub(crate) fn new(enter: Acquire) -> Self {
        let called = Arc::new(Flag(AtomicBool::new(true)));
        Self {
            enter: Some(Box::pin(enter)),
            permit: None,
            called,
        }
    }

    /// Polls if it was called, as a runtime would.
    pub(crate) fn run(&mut self) {
        if !self.called.0.swap(false, Ordering::Relaxed) {
            return;
        }
        let waker = Waker::from(self.called.clone());
        if let Some(enter) = &mut self.enter
            && let Poll::Ready(permit) = enter.as_mut().poll(&mut Context::from_waker(&waker))
        {
            self.permit = Some(permit.expect("the queue has no bound"));
            self.enter = None;
        }
    }
}

fn limiter(limit: usize) -> Limiter {
    Limiter::new(AdmissionSettings {
        limit,
        order: Order::Expected,
        waiting_max: None,
        kind_memory: KIND_MEMORY,
    })
}

/// Classes of these names, the first of which goes first.
pub(crate) fn goals(names: &[&str]) -> Vec<Goal> {
    let goal = |(name, priority): (&&str, u8)| Goal {
        name: (*name).to_owned(),
        priority,
        ..Goal::default()
    };
    names.iter().zip(0..).map(goal).collect()
}

#[test]
fn who_waits_goes_in_by_the_goals_of_now() {
    let limiter = limiter(1);
    limiter.set_goals(
        Order::Fcfs,
        goals(&["gold", "silver", "rest"]),
        &HashMap::new(),
    );
    let enter = |class| Task::new(limiter.acquire(class, "".into()));
    // One is inside; then come gold, silver, rest and rest again.
    let mut tasks = vec![enter(0), enter(0), enter(1), enter(2), enter(2)];
    let last = tasks[4].enter.as_ref().and_then(|enter| enter.job());
    let numbers = HashMap::from([(last.expect("it waits"), 1_u8.into())]);
    limiter.set_goals(Order::Fcfs, goals(&["rest", "silver", "others"]), &numbers);
    // Another one of what is silver now.
    tasks.push(enter(1));
    // Gold is gone: the second one is among the others; of the last one was told that it is silver
    // now.
    assert_eq!(order_of(&mut tasks), [0, 3, 2, 4, 5, 1]);
}

/// One is let in at a time, and leaves at once: in which order.
fn order_of(tasks: &mut [Task]) -> Vec<usize> {
    let mut order = Vec::new();
    while order.len() < tasks.len() {
        for (number, task) in tasks.iter_mut().enumerate() {
            task.run();
            if task.permit.take().is_some() {
                order.push(number);
                break;
            }
        }
    }
    order
}

#[test]
fn who_waits_is_due_by_the_targets_of_now() {
    let limiter = limiter(1);
    limiter.set_goals(Order::Fcfs, goals(&["gold", "rest"]), &HashMap::new());
    let enter = |class| Task::new(limiter.acquire(class, "".into()));
    // One is inside; then come the rest, gold, and the rest again.
    let mut tasks = vec![enter(1), enter(1), enter(0), enter(1)];
    let mut with_target = goals(&["gold", "rest"]);
    with_target[0].response_targets = vec![ResponseTarget::Mean(1)];
    limiter.set_goals(
        Order::Targets(Lateness::ByPriority),
        with_target,
        &HashMap::new(),
    );
    // Another one of gold, due later than the one that waits.
    tasks.push(enter(0));
    assert_eq!(order_of(&mut tasks), [0, 2, 4, 1, 3]);
}

#[derive(Clone, Debug)]
enum Event {
    Acquire(u8),
    /// Gives up or leaves, whatever the task is doing.
    Drop(prop::sample::Index),
    Complete(prop::sample::Index),
    Run(prop::sample::Index),
    Limit(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (0..3u8).prop_map(Event::Acquire),
        2 => index().prop_map(Event::Drop),
        2 => index().prop_map(Event::Complete),
        4 => index().prop_map(Event::Run),
        1 => (1..4usize).prop_map(Event::Limit),
    ]
}

proptest! {
    #[test]
    fn no_call_is_lost_whoever_gives_up(events in prop::collection::vec(event(), 1..300)) {
        let limiter = limiter(2);
        let mut tasks: Vec<Task> = Vec::new();
        for event in events {
            match event {
                Event::Acquire(class) => tasks.push(Task::new(limiter.acquire(class, format!("{class}").into()))),
                _ if tasks.is_empty() => {}
                Event::Drop(index) => drop(tasks.remove(index.index(tasks.len()))),
                Event::Complete(index) => {
                    let index = index.index(tasks.len());
                    if let Some(permit) = tasks[index].permit.take() {
                        permit.complete();
                        tasks.remove(index);
                    }
                }
                Event::Run(index) => {
                    let index = index.index(tasks.len());
                    tasks[index].run();
                }
                Event::Limit(limit) => limiter.set_limit(limit),
            }
            let status = limiter.status();
            prop_assert_eq!(status.inside + status.waiting, tasks.len());
            prop_assert!(status.waiting == 0 || status.inside >= status.limit);
        }
        while !tasks.is_empty() {
            let before = tasks.len();
            for task in &mut tasks {
                task.run();
            }
            tasks.retain(|task| task.permit.is_none());
            prop_assert!(tasks.len() < before, "{} wait and nobody is called", before);
        }
        prop_assert_eq!(limiter.status().inside, 0);
    }
}

#[test]
fn a_permit_that_is_dropped_lets_the_next_one_in_and_teaches_nothing() {
    let limiter = limiter(1);
    let mut first = Task::new(limiter.acquire(0, "k".into()));
    let mut second = Task::new(limiter.acquire(0, "k".into()));
    first.run();
    second.run();
    assert!(first.permit.is_some() && second.permit.is_none());
    drop(first);
    second.run();
    assert_eq!(limiter.status().mean_service_ns, None);
    second.permit.take().expect("it was called").complete();
    let status = limiter.status();
    assert!(status.mean_service_ns.is_some());
    assert_eq!(
        (status.admitted, status.completed, status.inside),
        (2, 1, 0)
    );
}

#[test]
fn a_permit_whose_job_was_void_counts_as_none_that_was_done() {
    let limiter = limiter(1);
    let mut task = Task::new(limiter.acquire(0, "k".into()));
    task.run();
    let mut permit = task.permit.take().expect("nobody else is there");
    permit.fail();
    permit.complete();
    let status = limiter.status();
    assert_eq!((status.completed, status.inside), (0, 0));
    assert_eq!(status.mean_service_ns, None);
}

/// One that is given up when it was let in and did not know it yet.
#[test]
fn who_goes_before_it_begins_has_had_no_more_than_its_place() {
    let limiter = limiter(1);
    limiter.set_goals(
        Order::LeastUsed(Within::Fcfs),
        goals(&["all"]),
        &HashMap::new(),
    );
    let come = |client, kind: &str| {
        let payer = Payer {
            client: ClientId(client),
            network: None,
        };
        let subject = Subject {
            payer: Some(payer),
            ..Subject::from(kind)
        };
        limiter.acquire(0, subject)
    };
    let inside = |client, kind, ms| {
        let mut task = Task::new(come(client, kind));
        task.run();
        thread::sleep(Duration::from_millis(ms));
        task.permit.take().expect("it is the only one")
    };
    inside(0, "long", 300).complete();
    inside(0, "short", 0).complete();
    drop(come(1, "long"));
    drop(inside(2, "short", 100));
    let last = inside(3, "short", 0);
    let mut tasks = [2, 1].map(|client| Task::new(come(client, "short")));
    drop(last);
    assert_eq!(order_of(&mut tasks), [1, 0]);
}

#[test]
fn a_full_queue_says_so() {
    let limiter = Limiter::new(AdmissionSettings {
        limit: 0,
        order: Order::Fcfs,
        waiting_max: Some(0),
        kind_memory: KIND_MEMORY,
    });
    let mut enter = Box::pin(limiter.acquire(0, "".into()));
    let polled = enter.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(_))));
}

#[test]
fn a_place_that_is_kept_makes_room_for_another_and_counts_once() {
    let limiter = limiter(1);
    let mut first = Task::new(limiter.acquire(0, "k".into()));
    let mut second = Task::new(limiter.acquire(0, "k".into()));
    first.run();
    second.run();
    let mut permit = first.permit.take().expect("nobody else is there");
    permit.done();
    let mean = limiter.status().mean_service_ns;
    assert_eq!(
        (limiter.status().inside, limiter.status().completed),
        (1, 1)
    );
    limiter.set_kept(1);
    second.run();
    assert!(second.permit.is_some());
    permit.done();
    assert_eq!(
        (limiter.status().completed, limiter.status().mean_service_ns),
        (1, mean)
    );
    // What its client does next in the place that it keeps is work of the backend, and tells
    // nothing else.
    permit.done_again(7);
    drop(permit);
    assert_eq!(
        (limiter.status().completed, limiter.status().mean_service_ns),
        (2, mean)
    );
    let window = limiter.take_window();
    assert_eq!(window.completed, 2);
    limiter.set_kept(0);
    assert_eq!(limiter.status().limit, 1);
}

/// Where it is only rehearsed, all go in at once, and one of two would have waited.
#[test]
fn a_rehearsal_holds_none_and_tells_who_would_have_waited() {
    let limiter = Limiter::new(AdmissionSettings {
        limit: 9,
        order: Order::Fcfs,
        waiting_max: None,
        kind_memory: KIND_MEMORY,
    });
    limiter.rehearse(true);
    limiter.set_rehearsed_limit(1);
    let mut tasks: Vec<Task> = (0..2)
        .map(|_| Task::new(limiter.acquire(0, "a".into())))
        .collect();
    tasks.iter_mut().for_each(Task::run);
    assert!(tasks.iter().all(|task| task.permit.is_some()));
    for task in &mut tasks {
        task.permit.take().expect("it is inside").complete();
    }
    let (limit, by_class) = limiter.rehearsed().expect("it rehearses");
    let would = by_class[&0];
    assert_eq!((limit, would.jobs, would.waited), (1, 2, 1));
    limiter.rehearse(false);
    assert!(limiter.rehearsed().is_none());
}

/// Ten come at a time; every other one is long.
fn come_and_go(limiter: &Limiter) -> String {
    let kinds = ["long", "short"].repeat(5);
    let mut tasks: Vec<Task> = kinds
        .iter()
        .map(|&kind| Task::new(limiter.acquire(0, kind.into())))
        .collect();
    let mut went = String::new();
    while went.len() < tasks.len() {
        for (task, kind) in tasks.iter_mut().zip(&kinds) {
            task.run();
            if let Some(permit) = task.permit.take() {
                let took_us = if *kind == "long" { 5000 } else { 200 };
                thread::sleep(Duration::from_micros(took_us));
                permit.complete();
                went.push_str(&kind[..1]);
                break;
            }
        }
    }
    went
}

#[test]
fn an_order_that_follows_what_is_played_is_another_one_then() {
    let limiter = Limiter::new(AdmissionSettings {
        limit: 1,
        order: Order::Auto,
        waiting_max: None,
        kind_memory: KIND_MEMORY,
    });
    limiter.remember(4096);
    let order = |limiter: &Limiter| limiter.quality().order.map(Within::name);
    assert_eq!(come_and_go(&limiter), "lslslslsls");
    assert_eq!((order(&limiter), limiter.played()), (Some("fifo"), None));
    let mut taken = None;
    for _ in 0..60 {
        taken = taken.or(limiter.play_orders());
        come_and_go(&limiter);
    }
    // What is played is played in turns, and begins after a while.
    for _ in 0..30_000 {
        if taken.is_some() {
            break;
        }
        taken = limiter.play_orders();
        thread::sleep(Duration::from_millis(1));
    }
    let taken = taken.expect("another one is better");
    assert!(taken.jobs >= 500, "{taken}");
    assert_eq!(
        (taken.before.name(), order(&limiter)),
        ("fifo", Some(taken.now.name()))
    );
    assert!(limiter.played().is_some());
    assert_eq!(come_and_go(&limiter), "lsssssllll");
}

/// The figures begin anew, and go by the bound of then.
#[test]
fn a_rehearsal_goes_by_the_bound_of_the_queue_that_is_said_at_last() {
    let limiter = Limiter::new(AdmissionSettings {
        limit: 9,
        order: Order::Fcfs,
        waiting_max: None,
        kind_memory: KIND_MEMORY,
    });
    limiter.rehearse(true);
    limiter.set_goals(Order::Fcfs, goals(&["gold", "rest"]), &HashMap::new());
    limiter.set_rehearsed_limit(1);
    limiter.set_waiting_max(Some(0));
    let mut tasks: Vec<Task> = (0..2)
        .map(|_| Task::new(limiter.acquire(1, "a".into())))
        .collect();
    tasks.iter_mut().for_each(Task::run);
    let (limit, by_class) = limiter.rehearsed().expect("it rehearses");
    assert_eq!((limit, by_class[&1].jobs, by_class[&1].refused), (1, 1, 1));
    limiter.set_waiting_max(None);
    let (limit, by_class) = limiter.rehearsed().expect("it rehearses");
    assert_eq!((limit, by_class.len()), (1, 0));
}

/// What another may ask of a job, and what counts as waiting of one that begins anew.
#[test]
fn a_job_that_begins_anew_has_waited_until_then() {
    let limiter = limiter(1);
    limiter.set_goals(Order::Fcfs, goals(&["gold", "rest"]), &HashMap::new());
    let mut task = Task::new(limiter.acquire(0, "k".into()));
    task.run();
    let mut permit = task.permit.take().expect("it is the only one");
    let class = permit.job_class();
    assert_eq!((permit.wait_ns(), class.number()), (0, 0));
    limiter.set_goals(Order::Fcfs, goals(&["rest", "gold"]), &HashMap::new());
    assert_eq!((class.number(), permit.class()), (1, 1));
    let pause = Duration::from_millis(20);
    let pause_ns = pause.as_nanos() as u64;
    thread::sleep(pause);
    permit.begin();
    assert!(permit.wait_ns() >= pause_ns && permit.waited_ns() == permit.wait_ns());
    // So does one for which there is no place after all, whatever it tried before.
    thread::sleep(pause);
    let mut again = Task::new(permit.come_again());
    again.run();
    let permit = again.permit.take().expect("it is the only one");
    assert!(permit.waited_ns() >= 2 * pause_ns);
    assert_eq!(permit.class(), 1);
    permit.complete();
    assert!(limiter.status().mean_service_ns < Some(pause_ns));
}
