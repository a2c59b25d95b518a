//! SURGE's users against a real server on loopback.

use super::replay::{self, block_on, kept, run, trace};
use super::server::{Reply, TestServer};
use sooner_load::model::Model;
use sooner_load::patience::Patience;
use sooner_load::replay::{ReplayError, ReplayOptions};
use sooner_stats::Outcome;
use sooner_workload::Behaviour;
use sooner_workload::surge::{self, FileSet, SurgeModel};
use std::net::IpAddr;
use std::time::{Duration, Instant};

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

fn options(server: &TestServer) -> ReplayOptions {
    let model = model();
    ReplayOptions {
        trace: surge::trace(&model, 3, 1).unwrap(),
        model: Model::Closed {
            users: 10,
            behaviour: Behaviour::Surge(model.into()),
        },
        rate: "100mbit".parse().unwrap(),
        seed: 3,
        ..replay::options(server)
    }
}

/// The same for so many users.
fn options_of(server: &TestServer, users: u32) -> ReplayOptions {
    ReplayOptions {
        model: Model::Closed {
            users,
            behaviour: Behaviour::Surge(model().into()),
        },
        ..options(server)
    }
}

/// Answers after `after`; at once what the probe asks for, the smallest file.
fn surge_server(after: Duration) -> TestServer {
    let files = FileSet::new(&model(), 3).unwrap();
    TestServer::start(move |path, _| {
        let id = path
            .strip_prefix("/objects/")
            .and_then(|rest| rest.strip_suffix(".html"));
        let rank: usize = id.unwrap().parse().unwrap();
        let size_bytes = files.sizes_bytes[rank];
        let is_smallest = files.sizes_bytes.iter().min() == Some(&size_bytes);
        Reply::Body {
            bytes: size_bytes as usize,
            after: if is_smallest { Duration::ZERO } else { after },
        }
    })
}

#[test]
fn users_ask_for_the_files_of_their_seed_and_pause() {
    let server = surge_server(Duration::ZERO);
    let options = options(&server);
    let replay = replay::run(&options);
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
    assert!(replay.measured.contains(&false));
    assert_eq!(run.model.as_deref(), Some("surge"));
    // Ten users for two seconds, 2.7 requests in at least 0.13 s: far below what users without
    // pauses would ask.
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
    let options = options_of(&server, 3);
    let started = Instant::now();
    let replay = run(&options);
    assert!(
        started.elapsed() < options.drain,
        "nothing is left to be waited for"
    );
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
    let replay = run(&ReplayOptions {
        reuse: kept(&server, 1000).reuse,
        ..options(&server)
    });
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
fn users_may_have_addresses_and_give_up_like_any_others() {
    let server = surge_server(Duration::from_millis(500));
    let sources = ["127.0.0.2", "127.0.0.3"];
    let replay = run(&ReplayOptions {
        patience: Some(Patience {
            limit: Duration::from_millis(150),
            reloads: 1,
        }),
        sources: sources.map(|text| text.parse::<IpAddr>().unwrap()).into(),
        ..options(&server)
    });
    assert!(replay.run.all.given_up > 0 && replay.run.all.aborts > replay.run.all.given_up);
    let addresses: Vec<&str> = replay
        .run
        .by_client
        .iter()
        .map(|client| client.address.as_str())
        .collect();
    assert_eq!(addresses, sources);
}

#[test]
fn impossible_runs_are_refused_before_anything_is_sent() {
    let server = surge_server(Duration::ZERO);
    let refused = |options: ReplayOptions| {
        block_on(sooner_load::replay::run(&options, &mut |_| ())).expect_err("refused")
    };
    let of_another = ReplayOptions {
        trace: trace(),
        ..options(&server)
    };
    assert!(matches!(
        refused(of_another),
        ReplayError::Files {
            objects: 40,
            files: 100
        }
    ));
    let warm_up = ReplayOptions {
        warm_up: Duration::from_secs(2),
        ..options(&server)
    };
    assert!(refused(warm_up).to_string().contains("--warm-up"));
    assert_eq!(server.requests(), 0);
}
