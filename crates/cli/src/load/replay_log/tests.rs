//! What is sent of a log, and when.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    log: LogArgs,
}

fn log(words: &str) -> LogArgs {
    let words = ["replay"].into_iter().chain(words.split_whitespace());
    Words::try_parse_from(words).unwrap().log
}

/// Requests a second apart, of which the second and the last had an error.
fn requests(count: u64) -> Vec<LoggedRequest> {
    let of = |place: u64| LoggedRequest {
        at_ns: place * 1_000_000_000,
        what: u32::try_from(place).unwrap(),
        client: 0,
        bytes: 0,
        status: if place == 1 || place + 1 == count {
            404
        } else {
            200
        },
    };
    (0..count).map(of).collect()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_rate_is_not_built_before_it_is_sent() {
    let requests = requests(5);
    // A hundred thousand million requests.
    let log = log("--rate 10000000 --constant");
    let sent = sent(&requests, Some(10_000 * SECOND), &log, 1).unwrap();
    assert_eq!(sent.errors_known, 40_000_000_000);
    let first: Vec<u32> = sent.arrivals.take(7).map(|own| own.request).collect();
    assert_eq!(first, [0, 1, 2, 3, 4, 0, 1]);
}

#[test]
fn the_errors_of_the_last_turn_count_as_far_as_it_goes() {
    let requests = requests(5);
    for count in 1..12 {
        let log = log(&format!("--rate {count}"));
        let sent = sent(&requests, Some(SECOND), &log, 1).unwrap();
        let places: Vec<u32> = sent.arrivals.map(|own| own.request).collect();
        let failed = places.iter().filter(|place| [1, 4].contains(*place));
        assert_eq!(sent.errors_known, failed.count() as u64, "{count}");
        assert_eq!(places.len(), count);
    }
}

#[test]
fn a_log_is_sent_at_its_times() {
    let requests = requests(4);
    let all = sent(&requests, None, &log("--speed 2x"), 1).unwrap();
    assert_eq!(all.duration, Duration::from_nanos(1_501_000_000));
    assert_eq!(all.errors_known, 2);
    let times: Vec<u64> = all.arrivals.map(|own| own.at_ns).collect();
    assert_eq!(times, [0, 500_000_000, 1_000_000_000, 1_500_000_000]);
    let some = sent(&requests, Some(SECOND), &log("--speed 2x"), 1).unwrap();
    assert_eq!((some.errors_known, some.arrivals.count()), (1, 2));
}

#[test]
fn a_time_beyond_all_is_the_last_one() {
    let mut requests = requests(2);
    requests[1].at_ns = u64::MAX / 1000;
    let sent = sent(&requests, None, &log("--speed 0.000001x"), 1).unwrap();
    assert_eq!(sent.duration, Duration::from_nanos(u64::MAX));
    assert_eq!(sent.arrivals.count(), 1);
}
