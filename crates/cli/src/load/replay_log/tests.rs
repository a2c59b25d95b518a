//! What is sent of a log, and when.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn words(words: &str) -> Words {
    let fixed = ["replay", "--url", "http://127.0.0.1:9"];
    let words = fixed.into_iter().chain(words.split_whitespace());
    Words::try_parse_from(words).unwrap()
}

fn log(flags: &str) -> LogArgs {
    words(flags).log
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
    let asked = sent.stages.map(|stages| stages.requests());
    assert_eq!(asked, Some(100_000_000_000));
    let first: Vec<u32> = sent.arrivals.take(7).map(|own| own.request).collect();
    assert_eq!(first, [0, 1, 2, 3, 4, 0, 1]);
}

#[test]
fn what_failed_in_the_log_is_marked_in_every_turn() {
    let requests = requests(5);
    for count in 1..12 {
        let log = log(&format!("--rate {count}"));
        let sent = sent(&requests, Some(SECOND), &log, 1).unwrap();
        let all: Vec<Arrival> = sent.arrivals.collect();
        assert_eq!(all.len(), count);
        for own in all {
            assert_eq!(own.failed_before, [1, 4].contains(&own.request), "{own:?}");
        }
    }
}

#[test]
fn the_rate_of_the_command_line_is_handed_on() {
    let requests = requests(5);
    let ramp = sent(&requests, Some(10 * SECOND), &log("--rate 0..10"), 1).unwrap();
    let asked = ramp.stages.map(|stages| stages.rate_between(5.0, 10.0));
    assert_eq!(asked, Some(7.5));
    let own = sent(&requests, Some(10 * SECOND), &log(""), 1).unwrap();
    assert_eq!(own.stages, None);
}

#[test]
fn the_last_request_of_a_connection_is_made_where_there_may_be_some_before() {
    let what = Requested {
        method: "GET".into(),
        target: "/a".into(),
    };
    for (flags, has_closing) in [
        ("", false),
        ("--requests-per-connection 1", false),
        ("--requests-per-connection 3", true),
    ] {
        let Words { measure, log } = words(flags);
        let questions = questions(std::slice::from_ref(&what), &measure, &log).unwrap();
        let closing = questions.requests()[0].closing.is_some();
        assert_eq!(closing, has_closing, "{flags}");
    }
}

#[test]
fn a_log_is_sent_at_its_times() {
    let requests = requests(4);
    let all = sent(&requests, None, &log("--speed 2x"), 1).unwrap();
    assert_eq!(all.duration, Duration::from_nanos(1_501_000_000));
    let arrivals: Vec<Arrival> = all.arrivals.collect();
    let times: Vec<u64> = arrivals.iter().map(|own| own.at_ns).collect();
    assert_eq!(times, [0, 500_000_000, 1_000_000_000, 1_500_000_000]);
    let failed: Vec<bool> = arrivals.iter().map(|own| own.failed_before).collect();
    assert_eq!(failed, [false, true, false, true]);
    let some = sent(&requests, Some(SECOND), &log("--speed 2x"), 1).unwrap();
    assert_eq!(some.arrivals.count(), 2);
}

#[test]
fn a_time_beyond_all_is_the_last_one() {
    let mut requests = requests(2);
    requests[1].at_ns = u64::MAX / 1000;
    let sent = sent(&requests, None, &log("--speed 0.000001x"), 1).unwrap();
    assert_eq!(sent.duration, Duration::from_nanos(u64::MAX));
    assert_eq!(sent.arrivals.count(), 1);
}
