//! Logs of known arrivals: the forecast is that of the very same arrivals, whatever the format
//! leaves of their times.

use sooner_advise::{
    AtServer, Entry, Forecast, LineReader, LinkFigures, NoForecast, Surveyor, TimeTaken, forecast,
};
use sooner_simulator::{Policy, given};
use sooner_workload::Rng;
use sooner_workload::wire::WireModel;

const RATE_BITS_PER_SEC: u64 = 10_000_000;
const HEAD_BYTES: u64 = 300;
const BEGIN_S: u64 = 1_790_000_000;

/// Poisson arrivals of many small and few large responses: at, ns; body, bytes; time on the link,
/// ns.
fn arrivals(requests: u64, load: f64) -> Vec<(u64, u64, u64)> {
    let mut rng = Rng::new(7, 1);
    let wire = WireModel::default();
    let mut sized = Vec::new();
    for _ in 0..requests {
        let mean = if rng.uniform() < 0.1 {
            20_000.0
        } else {
            1000.0
        };
        let bytes = (-mean * (1.0 - rng.uniform()).ln()) as u64;
        let size_ns = wire.work_bytes(bytes, HEAD_BYTES, false) * 8_000_000_000 / RATE_BITS_PER_SEC;
        sized.push((bytes, size_ns));
    }
    let mean_ns = sized.iter().map(|size| size.1 as f64).sum::<f64>() / requests as f64;
    let mut at_ns = BEGIN_S as f64 * 1e9;
    let arrival = |(bytes, size_ns)| {
        at_ns += -mean_ns / load * (1.0 - rng.uniform()).ln();
        (at_ns as u64, bytes, size_ns)
    };
    sized.into_iter().map(arrival).collect()
}

fn surveyed(entries: impl IntoIterator<Item = Entry>) -> Forecast {
    let mut surveyor = Surveyor::new(RATE_BITS_PER_SEC);
    for entry in entries {
        surveyor.add(entry);
    }
    forecast(surveyor).expect("requests")
}

fn read(lines: &[String]) -> Forecast {
    let mut reader = LineReader::new(TimeTaken::Guess);
    let entries = lines
        .iter()
        .filter_map(|line| reader.read(line.as_bytes()).expect(line));
    let entries: Vec<Entry> = entries.collect();
    surveyed(entries)
}

fn link(forecast: &Forecast) -> &LinkFigures {
    forecast.survey.link.as_ref().expect("an uplink")
}

fn mean(forecast: &Forecast, policy: usize) -> f64 {
    forecast.scenarios[0].outcomes[policy].mean_response_ms
}

fn clock(at_ns: u64) -> String {
    let second = at_ns / 1_000_000_000;
    let day = second / 86_400 - BEGIN_S / 86_400 + 1;
    format!(
        "{day:02}/Sep/2026:{:02}:{:02}:{:02} +0000",
        second / 3600 % 24,
        second / 60 % 60,
        second % 60
    )
}

#[test]
fn nginx_and_httpd_leave_the_forecast_as_it_is() {
    let known = arrivals(25_000, 0.6);
    let jobs: Vec<given::Job> = known.iter().map(|one| (one.0, one.2)).collect();
    let of = |policy| given::responses(policy, &jobs);
    let exact = |policy| {
        let responses: Vec<u64> = of(policy);
        responses.iter().sum::<u64>() as f64 / 1e6 / responses.len() as f64
    };
    let (fair_ms, srpt_ms) = (exact(Policy::FAIR), exact(Policy::SRPT));
    let line = |at_ns, bytes, more: &str| {
        format!(
            r#"10.0.0.1 - - [{}] "GET / HTTP/1.1" 200 {bytes} "-" "agent"{more}"#,
            clock(at_ns)
        )
    };
    // httpd: seconds of the arrivals.
    let httpd: Vec<String> = known.iter().map(|one| line(one.0, one.1, " 900")).collect();
    // nginx: seconds of the ends, in their order, and the time taken.
    let mut ends: Vec<(u64, u64, u64)> = known
        .iter()
        .zip(of(Policy::FAIR))
        .map(|(one, took_ns)| (one.0 + took_ns, one.1, took_ns))
        .collect();
    ends.sort_unstable();
    let nginx: Vec<String> = ends
        .iter()
        .map(|(end_ns, bytes, took_ns)| {
            line(*end_ns, *bytes, &format!(" {:.3}", *took_ns as f64 / 1e9))
        })
        .collect();
    let all = |lines: &[String]| -> Vec<Entry> {
        let mut reader = LineReader::new(TimeTaken::Guess);
        let read = lines
            .iter()
            .filter_map(|line| reader.read(line.as_bytes()).expect(line));
        read.collect()
    };
    let with_length = |line: &String| line.replace("\"agent\" ", "\"agent\" 512 ");
    let with_length: Vec<String> = nginx.iter().map(with_length).collect();
    assert_eq!(all(&with_length), all(&nginx));
    for (name, lines) in [("httpd", httpd), ("nginx", nginx)] {
        let found = read(&lines);
        assert_eq!(found.survey.requests, 25_000);
        for (policy, exact_ms) in [(0, fair_ms), (1, srpt_ms)] {
            let off = mean(&found, policy) / exact_ms - 1.0;
            assert!(
                off.abs() < 0.05,
                "{name}: {} ms, exactly {exact_ms}",
                mean(&found, policy)
            );
        }
        let load = link(&found).busiest_hour_load;
        assert!((load / 0.6 - 1.0).abs() < 0.05, "{name}: load {load}");
    }
}

fn entry(at_ns: u64, bytes: u64) -> Entry {
    Entry {
        stamp_ns: at_ns,
        resolution_ns: 1,
        is_of_the_end: false,
        took_ns: None,
        took_from: None,
        client: Some(1),
        bytes: Some(bytes),
        has_head: false,
        status: 200,
        at_server: AtServer::default(),
        kind: None,
        request: None,
        tokens: None,
        first_token_ns: None,
        format: 0,
    }
}

#[test]
fn a_short_log_is_not_an_hour() {
    let known = arrivals(10_000, 0.5);
    let found = surveyed(known.iter().map(|one| entry(one.0, one.1)));
    assert!(found.survey.span_s < 60.0, "{}", found.survey.span_s);
    let survey = link(&found);
    for load in [
        survey.mean_load,
        survey.busiest_hour_load,
        survey.busiest_minute_load,
    ] {
        assert!((load / 0.5 - 1.0).abs() < 0.05, "{load}");
    }
    assert!(survey.minutes_above_half <= 1.0);
    let growth = found.scenarios.last().expect("one").growth;
    assert!((growth / (0.95 / 0.5) - 1.0).abs() < 0.05, "{growth}");
}

#[test]
fn the_busiest_hours_are_simulated_where_there_are_too_many_requests() {
    let mut surveyor = Surveyor::keeping(RATE_BITS_PER_SEC, 5000);
    // Ten hours of a thousand requests each, the eighth with larger ones.
    for request in 0..10_000_u64 {
        let bytes = if request / 1000 == 7 { 20_000 } else { 100 };
        let second = BEGIN_S / 3600 * 3600 + request * 36 / 10;
        surveyor.add(entry(second * 1_000_000_000, bytes));
    }
    let found = forecast(surveyor).expect("requests");
    let survey = link(&found);
    assert_eq!(
        (survey.simulated_requests, survey.left_out_requests),
        (5000, 5000)
    );
    let largest = *found.scenarios[0].outcomes[0]
        .by_size_mean_ms
        .last()
        .expect("a group");
    assert!(
        largest > 10.0,
        "{largest} ms for the largest: the eighth hour is not there"
    );
    assert_eq!(
        survey.busiest_hour_begins_s,
        BEGIN_S / 3600 * 3600 + 7 * 3600
    );
}

#[test]
fn what_no_link_can_do_is_not_believed() {
    let line = |more: &str| {
        format!(
            r#"10.0.0.1 - - [{}] "GET / HTTP/1.1" 200 30000000 "-" "agent" {more}"#,
            clock(BEGIN_S * 1_000_000_000)
        )
    };
    // The length of the request, taken for microseconds: 449 Gbit/s.
    let found = read(&vec![line("534"); 20]);
    assert_eq!(link(&found).download_bits_per_sec, None);
    assert!(
        found.survey.disbelieved[0].contains("449 Gbit/s"),
        "{:?}",
        found.survey.disbelieved
    );
    // The size once more.
    let found = read(&vec![line("30000300"); 20]);
    assert_eq!(link(&found).download_bits_per_sec, None);
    assert!(found.survey.disbelieved[0].contains("the size once more"));
    // A time in microseconds that can be.
    let found = read(&vec![line("60000000"); 20]);
    assert_eq!(link(&found).download_bits_per_sec, Some(4e6));
    assert!(found.survey.disbelieved.is_empty());
}

#[test]
fn a_rate_that_is_mistyped_ends_at_once() {
    let mut surveyor = Surveyor::new(1);
    for one in arrivals(1000, 0.5) {
        surveyor.add(entry(one.0, one.1));
    }
    let Err(NoForecast::Uplink { asked, .. }) = forecast(surveyor) else {
        panic!("a forecast for one bit a second");
    };
    assert!(asked.ends_with("Mbit/s"), "{asked}");
    assert_eq!(forecast(Surveyor::new(1)), Err(NoForecast::Empty));
}

/// `%T`, or `%{ms}T` of fast responses: no response takes a few microseconds.
#[test]
fn small_whole_numbers_are_no_microseconds() {
    for numbers in [[0, 0, 1, 0, 3, 0], [2, 5, 1, 9, 17, 400]] {
        let lines = |place: usize| {
            let number = numbers[place % numbers.len()];
            let second = place / 10 % 60;
            format!(
                r#"10.0.0.1 - - [28/Nov/2026:06:00:{second:02} +0000] "GET /a HTTP/1.1" 200 9000 "-" "c" {number}"#
            )
        };
        for with_link in [false, true] {
            let mut surveyor = match with_link {
                true => Surveyor::new(100_000_000),
                false => Surveyor::without_link(),
            };
            let mut reader = LineReader::new(TimeTaken::Guess);
            for line in (0..300).map(lines) {
                surveyor.add(reader.read(line.as_bytes()).unwrap().unwrap());
            }
            let found = forecast(surveyor).unwrap();
            assert!(found.queue.is_none(), "{:?}", found.queue);
            let said = found.survey.disbelieved.join("\n");
            assert!(said.contains("too small for microseconds"), "{said}");
            assert!(said.contains("--time-taken s"), "{said}");
        }
    }
}

#[test]
fn the_bytes_of_a_request_and_its_response_are_no_times() {
    let log = |more: &dyn Fn(u64, u64) -> String| -> Vec<String> {
        let line = |n: u64| {
            let bytes = [2000, 30_000, 0, 120_000][n as usize % 4];
            format!(
                r#"10.0.0.1 - - [{}] "GET /a HTTP/1.1" 200 {bytes} "-" "agent" {}"#,
                clock((BEGIN_S + n) * 1_000_000_000),
                more(n, bytes)
            )
        };
        (0..40).map(line).collect()
    };
    // %I %O of combinedio; every tenth was cut short.
    let cut = |n: u64| if n % 10 == 3 { 2 } else { 1 };
    let found = read(&log(&|n, bytes| {
        format!("{} {}", 400 + n, bytes / cut(n) + 282)
    }));
    assert!(found.queue.is_none());
    let disbelieved = &found.survey.disbelieved;
    assert!(
        disbelieved[0].contains("the size once more"),
        "{disbelieved:?}"
    );
    assert_eq!(found.survey.formats.len(), 1, "{:?}", found.survey.formats);
    // With %D behind them, and without %O.
    let with_time = |n: u64, bytes| format!("{} {} {}", 400 + n, bytes + 282, 400_000 + n);
    let without_size = |n: u64, _| format!("{} {}", 400 + n, 400_000 + n);
    for lines in [log(&with_time), log(&without_size)] {
        let found = read(&lines);
        let queue = found.queue.expect("times of 400 ms");
        assert!((queue.times.mean_ms - 400.0).abs() < 0.1);
        assert!(found.survey.disbelieved.is_empty());
    }
}
