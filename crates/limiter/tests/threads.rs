//! Jobs that come, wait and leave on several threads.

use sooner_admission::{AdmissionSettings, KIND_MEMORY, Order};
use sooner_limiter::{Acquire, Limiter, Permit};
use std::array;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

const THREADS: usize = 4;
const LIMIT: usize = 2;
const JOBS_PER_THREAD: usize = 500;
/// Far longer than all of this takes.
const PATIENCE: Duration = Duration::from_secs(20);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread, which is polled again only when it was woken.
fn wait(acquire: Acquire) -> Permit {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut acquire = pin!(acquire);
    let until = Instant::now() + PATIENCE;
    loop {
        if let Poll::Ready(permit) = acquire.as_mut().poll(&mut context) {
            return permit.expect("the queue has no bound");
        }
        let left = until.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "a job waits for good");
        thread::park_timeout(left);
    }
}

/// What is as good as chance, and the same in each run.
fn choose(thread: usize, job: usize, of: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (thread, job).hash(&mut hasher);
    hasher.finish() % of
}

/// Jobs of one thread, one after the other; gives how many were completed.
fn come_and_go(thread: usize, limiter: &Limiter, inside: &AtomicUsize) -> u64 {
    let mut completed = 0;
    for job in 0..JOBS_PER_THREAD {
        let choice = choose(thread, job, 10);
        let acquire = limiter.acquire(0, "k".into());
        if choice == 0 {
            // Given up before it is polled, let in or not.
            continue;
        }
        let mut permit = wait(acquire);
        let before = inside.fetch_add(1, Ordering::SeqCst);
        assert!(before < LIMIT, "{before} are inside when one comes in");
        for _ in 0..choice {
            thread::yield_now();
        }
        inside.fetch_sub(1, Ordering::SeqCst);
        match choice {
            1 => drop(permit),
            2 => permit.fail(),
            _ => {
                permit.complete();
                completed += 1;
            }
        }
    }
    completed
}

#[test]
fn on_four_threads_no_more_than_the_limit_are_inside_and_all_come_in() {
    let limiter = Limiter::new(AdmissionSettings {
        limit: LIMIT,
        order: Order::Fcfs,
        waiting_max: None,
        kind_memory: KIND_MEMORY,
    });
    let inside = AtomicUsize::new(0);
    let completed: u64 = thread::scope(|scope| {
        let (limiter, inside) = (&limiter, &inside);
        let threads = array::from_fn::<_, THREADS, _>(|thread| {
            scope.spawn(move || come_and_go(thread, limiter, inside))
        });
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    let status = limiter.status();
    assert_eq!((status.inside, status.waiting), (0, 0));
    assert_eq!(status.completed, completed);
}
