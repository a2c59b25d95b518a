//! The status as JSON, and sources with something in every place for other tests.

use super::*;
use crate::access_log::AccessLog;
use crate::admin::UplinkReading;
use crate::metrics::RequestFacts;
use crate::metrics::tests::report;
use crate::proxy::{ClassState, PredictionState, RehearsalState, Standing, UpstreamState};
use hyper::Request;
use sooner_admission::{
    ClassStatus, Done, Lateness, Order, OrderFigures, PlayedOrders, Quality, ResponseTarget,
    Shadows, Within, WouldWait,
};
use sooner_link::shadow::Compared;
use sooner_policy::PolicyName;
use sooner_uplink::{Mechanism, NO_LIMIT_BITS_PER_SEC, Uplink, UplinkConfig};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Sources with something in every place.
pub fn sources() -> Sources {
    let metrics = Arc::new(Metrics::new(UNIX_EPOCH));
    metrics.reloaded(0xabc, UNIX_EPOCH + Duration::from_secs(9));
    metrics.connection_opened();
    metrics.connection_refused(Refusal::Memory);
    metrics.handshake(true);
    metrics.handshake(false);
    Sources {
        metrics: vec![metrics],
        log: AccessLog::off(),
        uplink: Box::new(|| UplinkReading {
            policy: "srpt".into(),
            mechanism: "in user space".into(),
            found: None,
            rate_bits_per_sec: Some(10_000_000),
            sent_wire_bytes: 0,
            waiting: [ClassLoad { jobs: 2, bytes: 30 }; 6],
            sending: [ClassLoad { jobs: 1, bytes: 20 }; 6],
        }),
        upstreams: Box::new(|| {
            vec![UpstreamState {
                name: "app".into(),
                server: "http://127.0.0.1:3000".into(),
                standing: Standing::Up,
                order: Order::Targets(Lateness::ByPriority),
                inside: 3,
                limit: 8,
                server_limit: 8,
                waiting: 4,
                requests: 100,
                failures: 1,
                retries: 2,
                mean_service_ms: Some(2.0),
            }]
        }),
        rehearsals: Box::new(|| vec![rehearsal()]),
        upstream_classes: Box::new(|| {
            vec![ClassState {
                upstream: "app".into(),
                status: ClassStatus {
                    name: "checkout".into(),
                    present: 2,
                    inside: 1,
                    inside_max: Some(1),
                    overlong: 4,
                    cancelled: 3,
                    done: Done {
                        jobs: 10,
                        response_sum_ns: 200_000_000,
                        inside_sum_ns: 30_000_000,
                    },
                    inside_ns: Some(3_000_000),
                    response_ns: Some(20_000_000),
                    p95_response_ns: Some(40_000_000),
                    p99_response_ns: Some(60_000_000),
                    achieved: vec![(ResponseTarget::Share(0.95, 50_000_000), Some(40_000_000))],
                },
            }]
        }),
        upstream_predictions: Box::new(|| vec![prediction()]),
    }
}

/// The same with a second worker, which has accepted two connections.
pub fn two_workers() -> Sources {
    let second = Arc::new(Metrics::new(UNIX_EPOCH + Duration::from_secs(5)));
    second.connection_opened();
    second.connection_opened();
    second.connection_refused(Refusal::System);
    let mut sources = sources();
    sources.metrics.push(second);
    sources
}

fn rehearsal() -> RehearsalState {
    RehearsalState {
        upstream: "app".into(),
        class: "checkout".into(),
        would: WouldWait {
            jobs: 10,
            waited: 4,
            wait_sum_ns: 500_000_000,
            wait_max_ns: 300_000_000,
            waiting: 2,
            ..WouldWait::default()
        },
    }
}

fn prediction() -> PredictionState {
    PredictionState {
        upstream: "app".into(),
        quality: Quality {
            jobs: 512,
            ranked_rightly: Some(0.875),
            ranked_rightly_by_kind: Some(0.625),
            calibration: vec![(2_000_000, 3_000_000), (80_000_000, 40_000_000)],
            shadows: Some(Shadows {
                fcfs_ns: 4_000_000,
                predicted_ns: 2_000_000,
                perfect_ns: 1_000_000,
            }),
            order: Some(Within::Boost),
            played: Some(PlayedOrders {
                jobs: 4096,
                span_ns: 1,
                figures: vec![
                    OrderFigures {
                        order: Some(Within::Boost),
                        mean_ns: 20_000_000,
                        p99_ns: 250_000_000,
                    },
                    OrderFigures {
                        order: None,
                        mean_ns: 10_000_000,
                        p99_ns: 125_000_000,
                    },
                ],
            }),
        },
    }
}

/// The same after a second in which 20 responses for `target` were sent, four times sooner than
/// under FAIR; workers took turns.
pub fn history(sources: &Sources, target: &str) -> History {
    let mut history = History::new(Totals::read(&sources.metrics, 0));
    let request = Request::builder().uri(target).body(()).unwrap();
    let mut facts = RequestFacts::new(&request);
    facts.answered(200, 0, Some(5_000));
    for metrics in sources.metrics.iter().cycle().take(COMPARED_MIN as usize) {
        metrics.request_done(&facts, &report(5_000, 1_000_000, 1_000_000));
        metrics.compared(&Compared {
            wire_bytes: 5_500,
            response_ns: 2_000_000,
            fair_response_ns: 8_000_000,
        });
    }
    history.second_passed(Totals::read(&sources.metrics, 625_000));
    history
}

#[test]
fn says_what_the_order_was_worth_and_all_the_rest() {
    let sources = sources();
    let history = history(&sources, "/a?b");
    let status = Status::read(&sources, &history, UNIX_EPOCH + Duration::from_secs(60));
    assert_eq!(status.comparison.times_sooner, Some(4.0));
    assert_eq!(status.sizes[1].mean_fair_response_seconds, Some(0.008));
    assert_eq!(status.sizes[1].mean_wait_seconds, Some(0.001));
    assert_eq!(status.sizes[0].mean_response_seconds, None);
    assert_eq!(status.uplink.busy_share, Some(0.5));
    assert_eq!(
        status.uplink.waiting,
        ClassLoad {
            jobs: 12,
            bytes: 180
        }
    );
    assert_eq!(status.per_second.response_bytes, [100_000]);
    assert_eq!(status.per_second.wire_bytes, [625_000]);
    assert_eq!((status.uptime_seconds, status.requests_total), (60.0, 20));
    assert_eq!(
        (status.connections.open, status.connections.refused_total),
        (1, 1)
    );
    assert_eq!(status.slowest[0].target, "/a?b");
    let upstream = &status.upstreams[0];
    assert_eq!(
        (
            upstream.state,
            upstream
                .requests_inside_max
                .zip(upstream.server_requests_max),
            upstream.mean_inside_seconds
        ),
        ("up", Some((8, 8)), Some(0.002))
    );
    assert_eq!(upstream.order, "targets");
    let would = &status.upstream_rehearsals[0];
    assert_eq!((would.requests_total, would.would_wait_total), (10, 4));
    assert_eq!(would.mean_would_wait_seconds, Some(0.05));
    let class = &status.upstream_classes[0];
    assert_eq!((class.class.as_str(), class.requests), ("checkout", 2));
    assert_eq!(class.mean_response_seconds, Some(0.02));
    assert_eq!((class.done_total, class.response_seconds_total), (10, 0.2));
    assert_eq!(
        (class.inside_seconds_total, class.p99_response_seconds),
        (0.03, Some(0.06))
    );
    let target = &class.targets[0];
    assert_eq!(
        (target.target.as_str(), target.achieved_seconds),
        ("p95", Some(0.04))
    );
    let prediction = &status.upstream_predictions[0];
    assert_eq!(prediction.ranked_rightly, Some(0.875));
    assert_eq!(prediction.calibration[1].mean_inside_seconds, 0.04);
    let waits = prediction.mean_waits.as_ref();
    assert_eq!(waits.map(|waits| waits.perfect_seconds), Some(0.001));
    assert_eq!(prediction.order.as_deref(), Some("boost"));
    let perfect = &prediction.orders[1];
    assert_eq!(
        (perfect.order.as_str(), perfect.p99_seconds),
        ("perfect", 0.125)
    );
    assert_eq!(
        (
            status.config.hash.as_str(),
            status.config.since_unix_seconds
        ),
        ("0000000000000abc", 9)
    );
}

#[test]
fn workers_are_told_of_as_one_server() {
    let sources = two_workers();
    let history = history(&sources, "/");
    let status = Status::read(&sources, &history, UNIX_EPOCH + Duration::from_secs(60));
    assert_eq!(status.workers, 2);
    assert_eq!((status.uptime_seconds, status.requests_total), (60.0, 20));
    assert_eq!(status.per_second.requests, [20]);
    assert_eq!(status.sizes[1].responses, 20);
    assert_eq!(status.comparison.times_sooner, Some(4.0));
    assert_eq!(
        (status.connections.open, status.connections.refused_total),
        (3, 2)
    );
    assert_eq!(status.slowest.len(), 12);
    assert_eq!(status.config.reloads_ok_total, 1);
    assert!(!status.is_stopping);
    sources.metrics[1].stops();
    let status = Status::read(&sources, &history, UNIX_EPOCH);
    assert!(!status.is_stopping, "the first one's say so");
}

#[tokio::test]
async fn a_rate_that_was_not_found_is_none() {
    for (most, rate) in [
        (NO_LIMIT_BITS_PER_SEC, None),
        (50_000_000, Some(50_000_000)),
    ] {
        let mut config = UplinkConfig::new(most, PolicyName::Srpt);
        (config.is_auto, config.mechanism) = (true, Mechanism::UserSpace);
        let uplink = Uplink::start(&config).unwrap();
        let sources = Sources {
            uplink: Box::new(move || UplinkReading::of(&uplink)),
            ..sources()
        };
        let history = history(&sources, "/");
        let status = Status::read(&sources, &history, UNIX_EPOCH);
        assert_eq!(status.uplink.rate_bits_per_sec, rate);
        assert_eq!(status.uplink.busy_share.is_some(), rate.is_some());
        assert_eq!(status.uplink.found.unwrap().carries_bits_per_sec, None);
    }
}

#[test]
fn a_few_responses_are_no_comparison() {
    let few = Sum {
        count: COMPARED_MIN - 1,
        ns: 5,
    };
    assert_eq!(times_sooner(few, few), None);
}
