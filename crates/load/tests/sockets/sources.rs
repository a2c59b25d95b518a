//! Several source addresses driven as one, and the maximum segment size.

use super::replay::{assert_valid_or_late, block_on, kept, options, run, whole_body};
use super::server::TestServer;
use sooner_load::replay::{self, ReplayError, ReplayOptions};
use sooner_load::socket::SocketOptions;
use std::net::IpAddr;

/// All of 127/8 is this host.
fn addresses(count: u8) -> Vec<IpAddr> {
    (1..=count).map(|last| [127, 0, 0, last].into()).collect()
}

#[test]
fn every_address_has_its_share_and_its_own_connections() {
    let server = TestServer::start(|path, _| whole_body(path));
    let sources = addresses(3);
    let replay = run(&ReplayOptions {
        sources: sources.clone(),
        ..kept(&server, 5)
    });
    assert_valid_or_late(&replay);
    let peers = server.peers();
    assert!(sources.iter().all(|source| peers.contains(source)));
    assert!(peers.iter().all(|peer| sources.contains(peer)));
    let groups = &replay.run.by_client;
    assert_eq!(groups.len(), 3);
    let n: u64 = groups.iter().map(|group| group.all.n).sum();
    assert_eq!(n, replay.run.all.n);
    for (index, group) in (0..).zip(groups) {
        assert_eq!(group.address, sources[index as usize].to_string());
        let own = replay.samples.iter().zip(&replay.measured);
        let own = own.filter(|(sample, measured)| **measured && sample.client == index);
        assert_eq!(own.count() as u64, group.all.n);
        assert!(group.all.n * 6 > n, "{} of {n}", group.all.n);
    }
}

#[test]
fn one_address_alone_is_used_too() {
    let server = TestServer::start(|path, _| whole_body(path));
    let replay = run(&ReplayOptions {
        sources: vec![[127, 0, 0, 9].into()],
        ..options(&server)
    });
    assert!(
        server
            .peers()
            .iter()
            .all(|peer| *peer == IpAddr::from([127, 0, 0, 9]))
    );
    let (own, all) = (&replay.run.by_client[0].all, &replay.run.all);
    assert_eq!((own.n, own.p99_response_ms), (all.n, all.p99_response_ms));
}

#[test]
fn an_address_of_another_host_or_family_is_refused_before_the_run() {
    let server = TestServer::start(|path, _| whole_body(path));
    for address in ["192.0.2.1", "::1"] {
        let options = ReplayOptions {
            sources: vec![address.parse().unwrap()],
            ..options(&server)
        };
        let error = block_on(replay::run(&options, &mut |_| ())).unwrap_err();
        assert!(matches!(error, ReplayError::Source { .. }));
        assert!(error.to_string().contains(address), "{error}");
    }
}

#[test]
fn small_segments_are_asked_for_and_counted() {
    let server = TestServer::start(|path, _| whole_body(path));
    let socket = SocketOptions {
        mss_bytes: Some(536),
        ..SocketOptions::default()
    };
    let replay = run(&ReplayOptions {
        socket,
        ..options(&server)
    });
    assert_valid_or_late(&replay);
    assert_eq!(replay.run.segment_bytes, Some(524));
    // 536 where the system does without timestamps.
    let segments = server.segments();
    assert!(
        segments.iter().all(|bytes| [524, 536].contains(bytes)),
        "{segments:?}"
    );
    let head_bytes = replay.costs.head_bytes;
    for sample in &replay.samples {
        // Heads differ by a few bytes, as the length in them has two to five digits.
        let packets = sample.work_bytes.saturating_sub(sample.size_bytes) / 66;
        let expected = (sample.size_bytes + head_bytes).div_ceil(524) + 4;
        assert!(
            packets.abs_diff(expected) <= 1,
            "{packets} packets for {sample:?}"
        );
    }
}
