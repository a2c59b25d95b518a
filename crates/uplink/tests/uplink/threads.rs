//! Connections on several threads, each with a runtime of its own, on one uplink.

use crate::engine::{Ends, start};
use crate::stream::{RATE_BITS_PER_SEC, connect, in_order_of, serve};
use crate::stream_flows;
use sooner_link::{JobReport, ResponseStart, StreamOrder};
use sooner_policy::{PolicyName, Time};
use sooner_uplink::{Flow, Observer, StreamFlow, Uplink};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, spawn_blocking};
use tokio::time::timeout;

/// Far longer than any of this takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// What a link may be ahead of its rate: credit, and grants that threads have at the same time.
const SLACK_BYTES: u64 = 100_000;

fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

/// What `work` gives, on a thread with a runtime of its own, as the workers of a server are. The
/// runtime ends with it.
async fn on_a_thread<T: Send + 'static>(work: impl AsyncFnOnce() -> T + Send + 'static) -> T {
    let thread = thread::spawn(move || {
        let work = async {
            timeout(PATIENCE, work())
                .await
                .expect("none waits for good")
        };
        let runtime = runtime();
        LocalSet::new().block_on(&runtime, work)
    });
    let joined = spawn_blocking(move || thread.join().expect("no panic"));
    joined.await.expect("no panic")
}

#[tokio::test]
async fn two_threads_share_the_link_and_its_rate() {
    const SIZES: [usize; 2] = [300_000; 2];
    let uplink = in_order_of(PolicyName::Fair);
    let begun = Instant::now();
    let worker = || {
        let uplink = uplink.clone();
        on_a_thread(async move || serve(&uplink, &SIZES).await)
    };
    let (one, other) = tokio::join!(worker(), worker());
    let passed_us = begun.elapsed().as_micros() as u64;
    for (_, report) in one.iter().chain(&other) {
        assert!(report.completed, "{report:?}");
        // More than the other response of its own thread.
        let of_others = report.bytes_of_others_meanwhile;
        assert!(of_others > 400_000, "both threads have turns: {report:?}");
    }
    let carried_bytes = RATE_BITS_PER_SEC * passed_us / 8_000_000;
    let written_bytes = 4 * SIZES[0] as u64;
    assert!(
        written_bytes <= carried_bytes + SLACK_BYTES,
        "{written_bytes} bytes in {passed_us} us"
    );
}

#[tokio::test]
async fn streams_on_two_threads_all_have_their_turns() {
    for uplink in [in_order_of(PolicyName::Srpt), Uplink::unlimited()] {
        let worker = || {
            let uplink = uplink.clone();
            on_a_thread(async move || {
                let streams = [
                    (150_000, StreamOrder::Shared),
                    (50_000, StreamOrder::BySize),
                    (100_000, StreamOrder::InSequence),
                ];
                stream_flows::serve(&uplink, &streams).await
            })
        };
        let (one, other) = tokio::join!(worker(), worker());
        let ends = || one.iter().chain(&other);
        assert_eq!(ends().count(), 6);
        assert!(ends().all(|(_, report)| report.completed));
        assert_eq!(uplink.snapshot().streams, 0);
    }
}

#[tokio::test]
async fn a_thread_that_ends_its_runtime_leaves_the_link_to_the_other() {
    let uplink = in_order_of(PolicyName::Fair);
    let ends_early = {
        let uplink = uplink.clone();
        on_a_thread(async move || {
            let responses = serve(&uplink, &[5_000_000; 2]);
            timeout(Duration::from_millis(30), responses).await.is_err()
        })
    };
    let stays = {
        let uplink = uplink.clone();
        on_a_thread(async move || serve(&uplink, &[300_000; 2]).await)
    };
    let (is_cut, ends) = tokio::join!(ends_early, stays);
    assert!(is_cut);
    assert!(ends.len() == 2 && ends.iter().all(|(_, report)| report.completed));
    assert_eq!(uplink.snapshot().connections, 0);
}

/// Three streams: the first had its turn and does not come back, the second is called in its place
/// and does not come either. Only the task that looks after absent streams gives the third, the
/// last, its turn.
async fn left_to_wait(flow: &Flow) -> ([StreamFlow; 2], StreamFlow) {
    let ends = Ends::default();
    let [mut first, mut second, third] = [0, 1, 2].map(|index| {
        let mut stream = flow.open_stream();
        stream.set_urgency(3 + index, StreamOrder::InSequence);
        start(&stream, index, 10_000, 0, &ends);
        stream
    });
    let granted = poll_fn(|cx| first.poll_grant(cx, 1_000)).await;
    let mut deaf = Context::from_waker(Waker::noop());
    let asked = second.poll_grant(&mut deaf, 1_000);
    assert!(asked.is_pending(), "it goes second");
    first.settle(granted);
    ([first, second], third)
}

async fn granted(mut stream: StreamFlow) -> u64 {
    poll_fn(|cx| stream.poll_grant(cx, 1_000)).await
}

/// A thread on which streams were the first to wait: what looks after the absent ones runs there,
/// until the thread stands still. Dropping the sender ends the thread's runtime.
fn first_to_wait(uplink: &Uplink) -> (mpsc::Sender<()>, thread::JoinHandle<()>) {
    let (end, ended) = mpsc::channel();
    let (stands, stands_still) = mpsc::channel();
    let uplink = uplink.clone();
    let thread = thread::spawn(move || {
        let runtime = runtime();
        runtime.block_on(async {
            let (_client, _stream, flow) = connect(&uplink).await;
            let (_absent, third) = left_to_wait(&flow).await;
            let granted = timeout(PATIENCE, granted(third)).await;
            assert_eq!(granted.expect("it does not wait for good"), 1_000);
        });
        stands.send(()).expect("the test waits for it");
        // Nothing is ever sent.
        let _ = ended.recv();
    });
    stands_still.recv().expect("no panic");
    (end, thread)
}

/// The uplink was made before any runtime, so none of them is its own.
#[test]
fn streams_have_their_turns_when_the_runtime_ends_on_which_others_waited_first() {
    for waits_before in [true, false] {
        let uplink = Uplink::unlimited();
        let (end, thread) = first_to_wait(&uplink);
        let end_it = || {
            drop(end);
            thread.join().expect("no panic");
        };
        runtime().block_on(async {
            let (_client, _stream, flow) = connect(&uplink).await;
            if !waits_before {
                end_it();
                let (_absent, third) = left_to_wait(&flow).await;
                let granted = timeout(PATIENCE, granted(third)).await;
                assert_eq!(granted.expect("it does not wait for good"), 1_000);
                return;
            }
            let (_absent, third) = left_to_wait(&flow).await;
            let waits = tokio::spawn(granted(third));
            tokio::task::yield_now().await;
            assert!(
                !waits.is_finished(),
                "the thread that looks after it stands still"
            );
            end_it();
            let granted = timeout(PATIENCE, waits).await;
            let granted = granted.expect("it does not wait for good");
            assert_eq!(granted.expect("no panic"), 1_000);
        });
    }
}

/// When responses began, by their numbers.
#[derive(Default)]
struct Begun(Mutex<Vec<(u64, Time)>>);

impl Observer for Begun {
    fn started(&self, job: u64, _wire_bytes: Option<u64>, now: Time) {
        self.0.lock().expect("no panic").push((job, now));
    }

    fn ended(&self, _job: u64, _now: Time, _report: &JobReport) {}
}

#[test]
fn what_is_decided_later_has_the_later_time() {
    const RESPONSES: usize = 20_000;
    let uplink = Uplink::unlimited();
    let begun = Arc::<Begun>::default();
    uplink.observe(begun.clone());
    let begin_all = || {
        runtime().block_on(async {
            let (_client, _stream, flow) = connect(&uplink).await;
            for _ in 0..RESPONSES {
                flow.start(ResponseStart::default(), |_| {});
            }
        });
    };
    thread::scope(|scope| {
        scope.spawn(begin_all);
        scope.spawn(begin_all);
    });
    let mut begun = begun.0.lock().expect("no panic");
    assert_eq!(begun.len(), 2 * RESPONSES);
    begun.sort_unstable_by_key(|(job, _)| *job);
    assert!(begun.is_sorted_by_key(|(_, at)| *at));
}
