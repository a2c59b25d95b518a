//! Which connections make room, and which are ended.

use super::*;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn connections(text: &str) -> Connections {
    let limits: Limits = toml::from_str(text).unwrap();
    Connections::new(&limits, 1 << 20)
}

fn is_ready<T>(future: impl Future<Output = T>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    matches!(pin!(future).poll(&mut cx), Poll::Ready(_))
}

fn with_runtime(test: impl FnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    test();
}

#[tokio::test(start_paused = true)]
async fn when_full_the_longest_idle_makes_room() {
    let connections = connections("connections = 2");
    let first = connections.register(-1).unwrap();
    let second = connections.register(-1).unwrap();
    second.idle();
    connections.sweep_at(1_000);
    first.idle();
    connections.sweep_at(2_000);
    let mut room = pin!(connections.wait_for_room());
    let shortly = Duration::from_millis(EVICTION_MS / 2);
    assert!(timeout(shortly, room.as_mut()).await.is_err());
    assert!(is_ready(second.closing()));
    assert!(!is_ready(first.closing()), "one is enough");
    drop(second);
    room.await;
    assert_eq!(connections.total(), 1);
}

#[test]
fn several_acceptors_do_not_share_a_place() {
    with_runtime(|| {
        let connections = connections("connections = 1");
        let mut first = pin!(connections.wait_for_room());
        let mut second = pin!(connections.wait_for_room());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut cx).is_ready());
        assert!(second.as_mut().poll(&mut cx).is_ready());
        let handle = connections.register(-1).unwrap();
        let mut late = pin!(connections.enter(-1));
        assert!(late.as_mut().poll(&mut cx).is_pending());
        assert_eq!(connections.total(), 1);
        drop(handle);
        assert!(late.as_mut().poll(&mut cx).is_ready());
    });
}

#[test]
fn who_has_had_the_last_answer_makes_room() {
    with_runtime(|| {
        let connections = connections("idle_seconds = 1\nhead_seconds = 1");
        let handle = connections.register(-1).unwrap();
        assert!(!connections.evict(), "it should be asking");
        handle.activity().linger();
        connections.sweep_at(100_000);
        assert!(!handle.is_closing(), "its end has a time of its own");
        assert!(connections.evict());
        assert!(handle.is_closing());
    });
}

#[test]
fn an_acceptor_that_gives_up_wants_no_room() {
    with_runtime(|| {
        let connections = connections("connections = 1");
        let handle = connections.register(-1).unwrap();
        assert!(!is_ready(connections.wait_for_room()));
        handle.idle();
        assert!(!is_ready(handle.closing()));
        assert!(connections.evict());
        assert!(is_ready(handle.closing()));
        assert!(!connections.evict(), "it was asked already");
    });
}

#[test]
fn one_client_has_no_more_than_its_share() {
    with_runtime(|| {
        let connections = connections("connections_per_address = 1");
        let address = "192.0.2.1".parse().unwrap();
        let (first, second) = (
            connections.register(-1).unwrap(),
            connections.register(-1).unwrap(),
        );
        assert_eq!(first.admit(address), Ok(()));
        assert_eq!(second.admit(address), Err(TooManyConnections { address }));
        assert_eq!(connections.refused(), 1);
        drop(second);
        drop(first);
        assert_eq!(connections.register(-1).unwrap().admit(address), Ok(()));
        assert_eq!(connections.total(), 0);
    });
}

#[test]
fn overdue_connections_are_told_why() {
    with_runtime(|| {
        let connections = connections("head_seconds = 1\nidle_seconds = 2");
        let (head, idle, busy) = (
            connections.register(-1).unwrap(),
            connections.register(-1).unwrap(),
            connections.register(-1).unwrap(),
        );
        idle.idle();
        busy.request_started();
        connections.sweep_at(2_000);
        assert_eq!(head.closing.reason(), None, "it may have come just before");
        connections.sweep_at(10_000);
        assert_eq!(head.closing.reason(), Some(CloseReason::SlowHead));
        assert_eq!(idle.closing.reason(), Some(CloseReason::Idle));
        assert_eq!(busy.closing.reason(), None);
    });
}
