//! Users who abort and reload, against a real server.

use super::replay::{assert_valid_or_late, block_on, kept, options, run, size_of, whole_body};
use super::server::{Reply, TestServer};
use sooner_load::patience::Patience;
use sooner_load::pool::Reuse;
use sooner_load::replay::{self, ReplayError, ReplayOptions};
use sooner_stats::Outcome;
use std::num::NonZeroU32;
use std::time::Duration;

/// Less than half of the objects are as large.
const LARGE_BYTES: usize = 12_000;
const LIMIT: Duration = Duration::from_millis(150);

fn impatient(reloads: u32, options: ReplayOptions) -> ReplayOptions {
    let patience = Some(Patience {
        limit: LIMIT,
        reloads,
    });
    ReplayOptions {
        patience,
        warm_up: Duration::ZERO,
        ..options
    }
}

/// Small objects at once; larger ones only for who asks `tries` times, never before.
fn slow_for_large(tries: usize) -> TestServer {
    let asked = std::sync::Mutex::new(std::collections::HashMap::<String, usize>::new());
    TestServer::start(move |path, _| {
        let mut asked = asked.lock().unwrap();
        let count = asked.entry(path.to_owned()).or_default();
        *count += 1;
        if size_of(path) < LARGE_BYTES || *count >= tries {
            return whole_body(path);
        }
        Reply::Silence
    })
}

#[test]
fn what_takes_too_long_is_aborted_and_asked_for_again() {
    let server = slow_for_large(3);
    let replay = run(&impatient(5, kept(&server, 5)));
    assert_valid_or_late(&replay);
    let all = &replay.run.all;
    assert_eq!((all.errors, all.given_up, all.completed), (0, 0, all.n));
    assert!(all.aborts > 0);
    for sample in &replay.samples {
        let waited_ns = u64::from(sample.aborts) * LIMIT.as_nanos() as u64;
        assert!(sample.response_ns.unwrap() >= waited_ns, "{sample:?}");
        assert!(sample.aborts == 0 || sample.size_bytes >= LARGE_BYTES as u64);
    }
    assert_eq!(
        server.requests(),
        replay.samples.len() as u64 + 1 + all.aborts,
        "every reload is a request of its own"
    );
    assert_eq!(replay.run.smallest_half.aborts, 0);
}

#[test]
fn after_so_many_reloads_a_user_gives_up() {
    let server = slow_for_large(usize::MAX);
    let replay = run(&impatient(1, options(&server)));
    assert_valid_or_late(&replay);
    let (all, large) = (&replay.run.all, &replay.run.largest_1_percent);
    assert_eq!((all.errors, replay.run.incompletes), (0, 0));
    assert_eq!(all.n, all.completed + all.given_up);
    assert_eq!(all.aborts, 2 * all.given_up);
    assert_eq!((large.given_up, large.completed), (large.n, 0));
    for sample in &replay.samples {
        let is_large = sample.size_bytes >= LARGE_BYTES as u64;
        assert_eq!(sample.outcome == Outcome::GivenUp, is_large, "{sample:?}");
        // It counts whole, though nothing of it came.
        assert!(sample.work_bytes > sample.size_bytes);
    }
}

#[test]
fn a_half_received_body_is_thrown_away_with_its_connection() {
    let server = TestServer::start(|path, n| match n {
        1 => Reply::Endless,
        _ => whole_body(path),
    });
    let replay = run(&impatient(0, kept(&server, 1_000_000)));
    assert_eq!((replay.run.all.given_up, replay.run.all.aborts), (1, 1));
    assert_eq!(replay.run.all.errors, 0);
    assert_eq!(replay.run.all.completed, replay.run.all.n - 1);
}

#[test]
fn patience_and_http_2_do_not_go_together() {
    let server = TestServer::start(|path, _| whole_body(path));
    let options = ReplayOptions {
        reuse: Reuse {
            requests_per_connection: NonZeroU32::MIN,
            http2_streams: Some(NonZeroU32::MIN),
        },
        ..impatient(1, options(&server))
    };
    let error = block_on(replay::run(&options, &mut |_| ())).unwrap_err();
    assert!(matches!(error, ReplayError::PatienceWithHttp2), "{error}");
}
