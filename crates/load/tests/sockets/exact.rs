//! The load that is measured is the one that was requested, or the verdict says that it is not.

use super::replay::{assert_valid_or_late, options, run};
use super::server::{Reply, TestServer};
use sooner_load::model::{Model, Offered};
use sooner_load::replay::{Replay, ReplayOptions};
use sooner_stats::Verdict;
use sooner_workload::{Object, Process, Schedule, Trace, TraceRequest};
use std::time::Duration;

/// Requests of objects of these sizes, in this order, ten a second.
fn trace(sizes_bytes: &[u64], order: &[u32]) -> Trace {
    let objects = (0..).zip(sizes_bytes).map(|(id, &size_bytes)| Object {
        id,
        size_bytes,
        ext: "html".into(),
    });
    let requests = (0..).zip(order).map(|(n, &object)| TraceRequest {
        time_s: f64::from(n) / 10.0,
        object,
        client: 0,
    });
    Trace {
        name: "small".into(),
        objects: objects.collect(),
        requests: requests.collect(),
        dropped_zero_rows: 0,
    }
}

/// Two seconds at this schedule, of which the first 0.2 s are warm-up.
fn replayed(trace: &Trace, schedule: &str) -> Replay {
    let sizes: Vec<u64> = trace.objects.iter().map(|own| own.size_bytes).collect();
    let server = TestServer::start(move |path, _| {
        let id = path.strip_prefix("/objects/");
        let id = id.and_then(|rest| rest.strip_suffix(".html")).unwrap();
        Reply::Body {
            bytes: sizes[id.parse::<usize>().unwrap()] as usize,
            after: Duration::ZERO,
        }
    });
    run(&ReplayOptions {
        trace: trace.clone(),
        model: Model::Open(Offered {
            schedule: schedule.parse::<Schedule>().unwrap(),
            process: Process::Trace,
            crowd: None,
        }),
        warm_up: Duration::from_millis(200),
        ..options(&server)
    })
}

/// Pages of 4 to 32 kB in turn, and after each 48 of them three files of 160 kB.
fn pages_and_files() -> Trace {
    let sizes: Vec<u64> = (1..=8).map(|n| 4096 * n).chain([160_000]).collect();
    let order = (0..10).flat_map(|_| (0..48).map(|n| n % 8).chain([8, 8, 8]));
    trace(&sizes, &order.collect::<Vec<_>>())
}

#[test]
fn a_warm_up_that_no_requests_fit_leaves_the_measured_load_exact() {
    let trace = pages_and_files();
    for load in ["0.8", "0.4"] {
        let replay = replayed(&trace, load);
        let asked: f64 = load.parse().unwrap();
        for (name, of_run) in [
            ("offered", replay.run.offered_load),
            ("realised", replay.run.realised_load),
        ] {
            let miss = of_run / asked - 1.0;
            assert!(miss.abs() < 0.01, "{name} {of_run}, not {load}");
        }
        assert_valid_or_late(&replay);
        let warm_up = replay.measured.iter().filter(|own| !**own).count();
        assert!(warm_up > 0 && replay.measured.is_sorted(), "{warm_up}");
    }
}

#[test]
fn a_measured_part_that_no_requests_fit_is_invalid() {
    // Four files fill the run, and no number of them its measured part.
    let replay = replayed(&trace(&[500_000], &[0; 50]), "0.834");
    assert_eq!(replay.run.verdict, Verdict::Invalid);
    let reason = &replay.run.verdict_reason;
    assert!(reason.contains("not the 0.834 requested"), "{reason}");
}
