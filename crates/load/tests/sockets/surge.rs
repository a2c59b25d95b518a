//! SURGE's users against a real server on loopback.

use crate::replay::block_on;
use crate::server::{Reply, TestServer};
use sooner_load::replay::Replay;
use sooner_load::socket::SocketOptions;
use sooner_load::surge::{self, SurgeOptions, SurgeRunError};
use sooner_load::target::Target;
use sooner_load::tls::TlsOptions;
use sooner_stats::Outcome;
use sooner_workload::surge::{FileSet, SurgeModel};
use std::num::NonZeroU32;
use std::time::Duration;

/// Files small enough for a short test, pauses short enough for some hundred requests.
fn model() -> SurgeModel {
    SurgeModel {
        files: 100,
        largest_bytes: 50_000,
        active_off_s: "exp:mean=0.02".parse().unwrap(),
        inactive_off_s: "exp:mean=0.1".parse().unwrap(),
        ..SurgeModel::default()
    }
}

fn options(server: &TestServer) -> SurgeOptions {
    SurgeOptions {
        target: Target::resolve(&server.url(), &TlsOptions::default()).unwrap(),
        model: model(),
        users: 10,
        rate: "100mbit".parse().unwrap(),
        duration: Duration::from_secs(2),
        warm_up: Duration::from_millis(500),
        drain: Duration::from_secs(10),
        requests_per_connection: NonZeroU32::MIN,
        seed: 3,
        label: "test".into(),
        socket: SocketOptions::default(),
    }
}

fn run(options: &SurgeOptions) -> Replay {
    block_on(surge::run(options, &mut |_| ())).unwrap()
}

fn surge_server(after: Duration) -> TestServer {
    let files = FileSet::new(&model(), 3).unwrap();
    TestServer::start(move |path, _| {
        let id = path
            .strip_prefix("/objects/")
            .and_then(|rest| rest.strip_suffix(".html"));
        let rank: usize = id.unwrap().parse().unwrap();
        Reply::Body {
            bytes: files.sizes_bytes[rank] as usize,
            after,
        }
    })
}

#[test]
fn users_ask_for_the_files_of_their_seed_and_pause() {
    let server = surge_server(Duration::ZERO);
    let options = options(&server);
    let replay = run(&options);
    let (run, samples) = (&replay.run, &replay.samples);
    assert!(
        samples.iter().all(|sample| sample.outcome == Outcome::Ok),
        "{:?}",
        run.first_errors
    );
    assert_eq!(
        server.requests(),
        samples.len() as u64 + 1,
        "the first request is the probe"
    );
    assert_eq!(server.connections(), server.requests());
    assert!(samples.is_sorted_by_key(|sample| sample.arrival_ns));
    assert!(replay.warm_up_samples > 0);
    // Ten users for two seconds, 2.7 requests in at least 0.13 s: far below what users without pauses would ask.
    assert!((100..600).contains(&samples.len()), "{}", samples.len());
    assert!(
        run.offered_load > 0.0
            && run.offered_load
                == run
                    .realised_load
                    .clamp(run.offered_load * 0.999, run.offered_load * 1.001)
    );
    assert!(run.all.ideal_srpt_mean_response_ms.is_some());
}

#[test]
fn a_user_never_asks_before_its_answer() {
    let server = surge_server(Duration::from_millis(400));
    let mut options = options(&server);
    options.users = 3;
    let replay = run(&options);
    // Each user at most five requests of 0.4 s in two seconds.
    assert!(
        (3..=15).contains(&replay.samples.len()),
        "{}",
        replay.samples.len()
    );
    assert!(replay.run.all.mean_response_ms.unwrap() >= 400.0);
}

#[test]
fn kept_connections_are_each_users_own() {
    let server = surge_server(Duration::ZERO);
    let mut options = options(&server);
    options.requests_per_connection = NonZeroU32::new(1000).unwrap();
    let replay = run(&options);
    assert!(
        replay
            .samples
            .iter()
            .all(|sample| sample.outcome == Outcome::Ok)
    );
    assert!(
        server.connections() <= 11,
        "ten users and the probe: {}",
        server.connections()
    );
}

#[test]
fn impossible_runs_are_refused_before_anything_is_sent() {
    let server = surge_server(Duration::ZERO);
    let refused = |change: fn(&mut SurgeOptions)| {
        let mut options = options(&server);
        change(&mut options);
        block_on(surge::run(&options, &mut |_| ())).expect_err("refused")
    };
    assert_eq!(
        refused(|options| options.users = 0).to_string(),
        "0 users; give 1 to 50000"
    );
    assert!(
        refused(|options| options.warm_up = options.duration)
            .to_string()
            .contains("--warm-up")
    );
    assert!(matches!(
        refused(|options| options.model.files = 1),
        SurgeRunError::Surge(_)
    ));
    assert_eq!(server.requests(), 0);
}
