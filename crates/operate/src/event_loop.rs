//! The event loop of a command that runs for long.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::Cell;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::rc::Rc;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// Runs a future, and what it starts on this thread, until the future is over.
///
/// The future becomes a task: a task is polled when it is woken, and what the loop itself waits for
/// at every turn.
pub fn run_local<T: 'static>(runtime: &Runtime, work: impl Future<Output = T> + 'static) -> T {
    let result = Rc::new(Cell::new(None));
    let kept = result.clone();
    run_task(runtime, Box::pin(async move { kept.set(Some(work.await)) }));
    result.take().expect("a task that is over has its result")
}

/// Without a type of the caller's, so that the loop is compiled here, where it is optimised.
fn run_task(runtime: &Runtime, work: Pin<Box<dyn Future<Output = ()>>>) {
    let tasks = LocalSet::new();
    let task = tasks.spawn_local(work);
    if let Err(failed) = tasks.block_on(runtime, task) {
        resume_unwind(failed.into_panic());
    }
}

/// The future, polled only when it is woken itself: for one beside which a server runs in the same
/// task, which is woken for each packet.
pub async fn polled_when_woken<T>(future: impl Future<Output = T>) -> T {
    let mut one: FuturesUnordered<_> = [future].into_iter().collect();
    one.next().await.expect("a future has one output")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::task::{Context, Poll, Waker};

    fn runtime() -> Runtime {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    }

    #[test]
    fn what_it_starts_runs_beside_it_and_its_result_comes_back() {
        let found = run_local(&runtime(), async {
            let other = tokio::task::spawn_local(async { 41 });
            other.await.unwrap() + 1
        });
        assert_eq!(found, 42);
    }

    #[test]
    fn what_is_not_woken_is_not_polled() {
        let polls = Cell::new(0);
        let kept = Cell::new(None::<Waker>);
        let counted = poll_fn(|context| {
            polls.set(polls.get() + 1);
            kept.set(Some(context.waker().clone()));
            Poll::<()>::Pending
        });
        let mut future = std::pin::pin!(polled_when_woken(counted));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(future.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(polls.get(), 1);
        kept.take().unwrap().wake();
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert_eq!(polls.get(), 2);
    }

    #[test]
    fn a_panic_is_the_callers() {
        let runtime = runtime();
        let panics = AssertUnwindSafe(|| run_local(&runtime, async { panic!("no") }));
        assert!(catch_unwind(panics).is_err());
    }
}
