//! Runs computed by hand, the names in the JSON, and what must hold for any samples.

use proptest::prelude::*;
use sooner_stats::{ErrorKind, Outcome, Report, Run, RunFacts, Sample, Verdict};
use std::collections::BTreeSet;

const MS: u64 = 1_000_000;

/// 8 Mbit/s: a byte takes 1 µs.
fn facts() -> RunFacts {
    RunFacts {
        policy: "srpt".into(),
        verdict: Verdict::Valid,
        verdict_reason: "the generator kept up".into(),
        seed: 7,
        offered_load: 0.9,
        rate_bits_per_sec: 8_000_000,
        measured_ns: 2_000 * MS,
        syn_drops: None,
        syn_retransmissions: None,
    }
}

/// A completed request: work is size + 1000, first byte at half the response time, ideals a half
/// and double of it.
fn answered(arrival_ms: u64, size_bytes: u64, response_ms: u64) -> Sample {
    Sample {
        arrival_ns: arrival_ms * MS,
        size_bytes,
        work_bytes: size_bytes + 1000,
        response_ns: Some(response_ms * MS),
        first_byte_ns: Some(response_ms * MS / 2),
        longest_silence_ns: Some(response_ms * MS / 2),
        send_lag_ns: 10_000,
        outcome: Outcome::Ok,
        client: 0,
        aborts: 0,
        ideal_srpt_ns: response_ms * MS / 2,
        ideal_las_ns: response_ms * MS * 3,
        ideal_ps_ns: response_ms * MS * 2,
    }
}

fn failed(arrival_ms: u64, size_bytes: u64, kind: ErrorKind) -> Sample {
    Sample {
        response_ns: None,
        outcome: Outcome::Error(kind),
        ..answered(arrival_ms, size_bytes, 0)
    }
}

#[test]
fn a_timeout_counts_as_waiting_and_a_reset_does_not() {
    let at_least_ms = |kind| {
        let mut samples = hand_made();
        samples.push(failed(900, 9_000, kind));
        Run::new(facts(), samples).all.mean_response_at_least_ms
    };
    // It had waited 1000 ms when the last response ended.
    assert_eq!(at_least_ms(ErrorKind::Timeout), Some(1616.0 / 6.0));
    assert_eq!(at_least_ms(ErrorKind::Reset), Some(616.0 / 5.0));
}

fn hand_made() -> Vec<Sample> {
    vec![
        answered(1500, 99_000, 400),
        answered(0, 1_000, 2),
        answered(100, 3_000, 8),
        answered(200, 1_000, 6),
        failed(1600, 9_000, ErrorKind::Reset),
        Sample {
            outcome: Outcome::Incomplete,
            response_ns: None,
            ..answered(1700, 19_000, 0)
        },
    ]
}

#[test]
fn a_run_computed_by_hand() {
    let run = Run::new(facts(), hand_made());
    assert_eq!(
        (run.policy.as_str(), run.seed, run.offered_load),
        ("srpt", 7, 0.9)
    );
    // Work: 100 + 2 + 4 + 2 + 10 + 20 ms of the link in 2000 ms.
    assert!((run.realised_load - 0.069).abs() < 1e-12);
    // 104 000 body bytes in 2 s.
    assert_eq!(run.goodput_bits_per_sec, 416_000.0);
    assert_eq!(run.send_lag_p99_us, 10.0);
    assert_eq!(run.incompletes, 1);
    assert_eq!(run.all.longest_silence_ms, Some(200.0));
    assert_eq!(run.smallest_half.longest_silence_ms, Some(4.0));
    assert_eq!(
        run.errors_by_kind.into_iter().collect::<Vec<_>>(),
        [(ErrorKind::Reset, 1)]
    );

    let all = run.all;
    assert_eq!((all.n, all.completed, all.errors), (6, 4, 1));
    assert_eq!(all.mean_response_ms, Some(104.0));
    // The incomplete one had waited 200 ms when the last response ended.
    assert_eq!(all.mean_response_at_least_ms, Some(616.0 / 5.0));
    assert_eq!(run.largest_1_percent.mean_response_at_least_ms, Some(400.0));
    assert_eq!(
        (
            all.p50_response_ms,
            all.p95_response_ms,
            all.max_response_ms
        ),
        (Some(6.0), Some(400.0), Some(400.0))
    );
    // Deviations -102, -96, -98, 296 from 104: mean square 29 210.
    let response_c2 = all.response_c2.expect("four completed");
    assert!(
        (response_c2 - 29_210.0 / 10_816.0).abs() < 1e-9,
        "{response_c2}"
    );
    assert_eq!(all.mean_first_byte_ms, Some(52.0));
    // Of 2/2, 8/4, 6/2 and 400/100.
    assert_eq!(all.mean_slowdown, Some(2.5));
    assert_eq!(
        (
            all.ideal_srpt_mean_response_ms,
            all.ideal_ps_mean_response_ms
        ),
        (Some(52.0), Some(208.0))
    );
}

#[test]
fn groups_are_cut_by_rank_of_size() {
    let run = Run::new(facts(), hand_made());
    assert_eq!(
        (run.smallest_half.n, run.smallest_half.mean_response_ms),
        (3, Some(16.0 / 3.0))
    );
    assert_eq!(
        (
            run.largest_1_percent.n,
            run.largest_1_percent.mean_response_ms
        ),
        (1, Some(400.0))
    );
    assert_eq!(
        (run.largest.n, run.largest.max_response_ms),
        (1, Some(400.0))
    );
}

#[test]
fn who_gave_up_and_how_often_is_counted_in_every_group() {
    let mut samples = hand_made();
    samples[0].outcome = Outcome::GivenUp;
    samples[0].aborts = 4;
    samples[1].aborts = 1;
    let run = Run::new(facts(), samples);
    let counts = |group: &sooner_stats::Group| (group.given_up, group.aborts);
    assert_eq!(counts(&run.all), (1, 5));
    assert_eq!(counts(&run.smallest_half), (0, 1));
    assert_eq!(counts(&run.largest_1_percent), (1, 4));
    assert_eq!(counts(&run.largest), (1, 4));
    assert_eq!(
        (run.all.completed, run.incompletes, run.unanswered()),
        (3, 1, 2)
    );
    assert_eq!(run.largest.mean_response_ms, None);
}

#[test]
fn every_source_address_has_a_group_of_its_own() {
    let mut samples = hand_made();
    samples[0].client = 1;
    samples[2].client = 1;
    let addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(str::to_owned);
    let groups = sooner_stats::by_client(&samples, &addresses, 8_000_000);
    let figures: Vec<(&str, u64, Option<f64>)> = groups
        .iter()
        .map(|group| {
            (
                group.address.as_str(),
                group.all.n,
                group.all.max_response_ms,
            )
        })
        .collect();
    assert_eq!(
        figures,
        [
            ("10.0.0.1", 4, Some(6.0)),
            ("10.0.0.2", 2, Some(400.0)),
            ("10.0.0.3", 0, None)
        ]
    );
}

#[test]
fn equal_sizes_rank_by_arrival() {
    let samples = vec![
        answered(3, 500, 30),
        answered(1, 500, 10),
        answered(2, 500, 20),
        answered(4, 500, 40),
    ];
    let run = Run::new(facts(), samples);
    assert_eq!(run.smallest_half.mean_response_ms, Some(15.0));
    assert_eq!(run.largest.mean_response_ms, Some(40.0));
}

#[test]
fn the_largest_percent_of_many_is_rounded_up() {
    let samples: Vec<Sample> = (0..201).map(|at| answered(at, at, 1)).collect();
    let run = Run::new(facts(), samples);
    assert_eq!(
        (
            run.largest_1_percent.n,
            run.smallest_half.n,
            run.by_size.len()
        ),
        (3, 101, 200)
    );
}

#[test]
fn seconds_hold_what_arrived_in_them() {
    let run = Run::new(facts(), hand_made());
    let seconds: Vec<(u64, u64, u64, Option<f64>)> = run
        .per_second
        .iter()
        .map(|second| {
            (
                second.second,
                second.n,
                second.errors,
                second.mean_response_ms,
            )
        })
        .collect();
    assert_eq!(
        seconds,
        [(0, 3, 0, Some(16.0 / 3.0)), (1, 3, 1, Some(400.0))]
    );
    assert!((run.per_second[0].load - 0.008).abs() < 1e-12);
    assert!((run.per_second[1].load - 0.130).abs() < 1e-12);
}

#[test]
fn a_run_without_samples_has_no_figures() {
    let run = Run::new(facts(), Vec::new());
    assert_eq!(
        (
            run.all.n,
            run.largest.n,
            run.realised_load,
            run.send_lag_p99_us
        ),
        (0, 0, 0.0, 0.0)
    );
    assert_eq!(
        (
            run.all.mean_response_ms,
            run.largest_1_percent.p99_response_ms
        ),
        (None, None)
    );
    assert!(run.by_size.is_empty() && run.ccdf.is_empty() && run.per_second.is_empty());
}

fn keys(value: &serde_json::Value) -> BTreeSet<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn the_json_has_the_documented_names() {
    let mut run = Run::new(facts(), hand_made());
    run.model = Some("open".into());
    run.segment_bytes = Some(1448);
    run.by_client = sooner_stats::by_client(&hand_made(), &["10.0.0.1".into()], 8_000_000);
    run.interarrivals = Some(sooner_stats::Interarrivals {
        law: sooner_stats::GapLaw::Trace,
        gaps: 5,
        distance: 0.01,
        limit: 0.05,
    });
    let report = Report::new(vec![run]);
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(
        (json["schema"].as_u64(), json["time_unit"].as_str()),
        (Some(1), Some("ms"))
    );
    let run = &json["runs"][0];
    assert_eq!(run["verdict"], "VALID");
    assert_eq!(run["errors_by_kind"]["reset"], 1);
    assert!(run.get("syn_drops").is_none());

    let manual = include_str!("../../../docs/json.md");
    let documented = |value: &serde_json::Value| {
        for key in keys(value) {
            assert!(
                manual.contains(&format!("| `{key}` |")),
                "docs/json.md has no row for `{key}`"
            );
        }
    };
    for value in [
        &json,
        run,
        &run["all"],
        &run["by_size"][0],
        &run["ccdf"][0],
        &run["per_second"][0],
        &run["by_client"][0],
        &run["interarrivals"],
    ] {
        documented(value);
    }
    assert_eq!(keys(&run["all"]), keys(&run["largest"]));
}

#[test]
fn the_names_the_schema_fixes_are_there() {
    let json = serde_json::to_value(Run::new(facts(), hand_made())).expect("JSON");
    let fixed = "policy verdict verdict_reason seed offered_load realised_load goodput_bits_per_sec send_lag_p99_us \
                 incompletes all smallest_half largest_1_percent largest";
    let fixed_in_group = "n errors mean_response_ms mean_response_at_least_ms p50_response_ms p95_response_ms p99_response_ms p99_9_response_ms \
                          max_response_ms response_c2 mean_first_byte_ms longest_silence_ms mean_slowdown \
                          ideal_srpt_mean_response_ms ideal_las_mean_response_ms ideal_ps_mean_response_ms";
    assert!(
        fixed
            .split_whitespace()
            .all(|name| keys(&json).contains(name))
    );
    assert!(
        fixed_in_group
            .split_whitespace()
            .all(|name| keys(&json["all"]).contains(name))
    );
}

#[test]
fn a_report_is_read_back_as_it_was() {
    let report = Report::new(vec![
        Run::new(facts(), hand_made()),
        Run::new(facts(), Vec::new()),
    ]);
    let json = serde_json::to_string(&report).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Report>(&json).expect("the same form"),
        report
    );
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let outcome = prop_oneof![
        8 => Just(Outcome::Ok),
        1 => Just(Outcome::Error(ErrorKind::Timeout)),
        1 => Just(Outcome::Incomplete),
        1 => Just(Outcome::GivenUp),
    ];
    let part = (0..60_000u64, 0..5_000_000u64, 0..90_000u64, outcome);
    part.prop_map(|(arrival_ms, size_bytes, response_ms, outcome)| Sample {
        outcome,
        ..answered(arrival_ms, size_bytes, response_ms)
    })
}

proptest! {
    // Failures are reproduced from the seed that is printed.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_part_counts_every_request_once(samples in prop::collection::vec(any_sample(), 0..700)) {
        let n = samples.len() as u64;
        let run = Run::new(facts(), samples);
        prop_assert_eq!(run.all.n, n);
        prop_assert_eq!(run.by_size.iter().map(|bucket| bucket.n).sum::<u64>(), n);
        prop_assert_eq!(run.per_second.iter().map(|second| second.n).sum::<u64>(), n);
        prop_assert_eq!(run.all.completed + run.all.errors + run.all.given_up + run.incompletes, n);
        prop_assert_eq!(run.errors_by_kind.values().sum::<u64>(), run.all.errors);
        prop_assert_eq!(run.smallest_half.n, n.div_ceil(2));
        prop_assert_eq!(run.largest_1_percent.n, n.div_ceil(100));
        prop_assert!(run.by_size.iter().all(|bucket| bucket.n > 0 && bucket.min_size_bytes <= bucket.max_size_bytes));
        prop_assert!(run.by_size.windows(2).all(|pair| pair[0].max_size_bytes <= pair[1].min_size_bytes));
        prop_assert!(run.by_size.last().is_none_or(|bucket| bucket.size_percentile == 100.0));
    }

    #[test]
    fn figures_are_in_order(samples in prop::collection::vec(any_sample(), 1..300)) {
        let run = Run::new(facts(), samples);
        for group in [&run.all, &run.smallest_half, &run.largest_1_percent, &run.largest] {
            let figures = [group.p50_response_ms, group.p95_response_ms, group.p99_response_ms, group.p99_9_response_ms, group.max_response_ms];
            prop_assert!(figures.is_sorted());
            prop_assert!(group.mean_response_ms <= group.max_response_ms);
            prop_assert_eq!(group.completed == 0, group.mean_response_ms.is_none());
        }
        let falls = |pair: &[sooner_stats::CcdfPoint]| pair[0].fraction_at_least > pair[1].fraction_at_least;
        prop_assert!(run.ccdf.windows(2).all(|pair| falls(pair) && pair[0].response_ms <= pair[1].response_ms));
    }

    #[test]
    fn where_all_are_answered_or_refused_the_mean_is_what_it_is_at_least(mut samples in prop::collection::vec(any_sample(), 1..300)) {
        let waits = |outcome| matches!(outcome, Outcome::Incomplete | Outcome::Error(ErrorKind::Timeout));
        samples.retain(|sample| !waits(sample.outcome));
        let run = Run::new(facts(), samples);
        for group in [&run.all, &run.smallest_half, &run.largest_1_percent, &run.largest] {
            prop_assert_eq!(group.mean_response_at_least_ms, group.mean_response_ms);
        }
    }

    #[test]
    fn the_order_of_the_samples_does_not_matter(mut samples in prop::collection::vec(any_sample(), 0..100)) {
        // Requests alike in size and arrival have no defined rank.
        samples.sort_by_key(|sample| (sample.size_bytes, sample.arrival_ns));
        samples.dedup_by_key(|sample| (sample.size_bytes, sample.arrival_ns));
        let forward = Run::new(facts(), samples.clone());
        samples.reverse();
        prop_assert_eq!(forward, Run::new(facts(), samples));
    }
}
