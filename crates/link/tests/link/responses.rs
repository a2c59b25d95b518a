//! The accounts of responses: their ends, their bands, what is told of them.

use sooner_link::BandChooser;
use sooner_link::{
    Answer, FlowId, LinkConfig, LinkLimits, LinkScheduler, Load, PathSample, ResponseStart,
    Snapshot,
};
use sooner_policy::{GuardLimits, PolicyName, Time};
use std::task::Waker;

/// A link without pacing.
fn unpaced(policy: Option<PolicyName>, bands: Option<BandChooser>) -> LinkScheduler {
    let config = LinkConfig {
        policy,
        rate_bits_per_sec: policy.map(|_| 8_000_000),
        bands,
        ..LinkConfig::default()
    };
    LinkScheduler::new(config, Time::ZERO)
}

fn start(link: &mut LinkScheduler, flow: FlowId, bytes: u64) {
    let response = ResponseStart {
        body_bytes: Some(bytes),
        ..ResponseStart::default()
    };
    let started = link.start(flow, response, Box::new(|_| {}), Time::ZERO);
    assert!(started.is_ok());
}

/// A connection and its stream, which has handed over all of its response of `bytes`.
fn finished_stream(link: &mut LinkScheduler, bytes: u64) -> (FlowId, FlowId) {
    let flow = link.open(Time::ZERO);
    let stream = link.open_stream(flow, Time::ZERO);
    start(link, stream, bytes);
    link.settle_stream(stream, bytes, Time::ZERO);
    link.finish_stream(stream, Time::ZERO);
    (flow, stream)
}

/// Marks a flow as its stream would; the band if it is another one.
fn remark(link: &mut LinkScheduler, flow: FlowId) -> Option<u8> {
    let (band, _) = link.new_band(flow)?;
    link.set_band(flow, band);
    Some(band)
}

#[test]
fn bands_count_the_job_and_not_what_the_connection_had_before() {
    for policy in [PolicyName::Srpt, PolicyName::Psjf, PolicyName::Las] {
        let mut link = unpaced(None, Some(BandChooser::for_policy(policy)));
        let flow = link.open(Time::ZERO);
        start(&mut link, flow, 10_000_000);
        link.settle(flow, 10_000_000, 0, Time::ZERO);
        remark(&mut link, flow);
        link.body_done(flow);
        assert_eq!(link.flushed(flow, Time::ZERO).ended.len(), 1);
        start(&mut link, flow, 100);
        let band = remark(&mut link, flow);
        assert!(matches!(band, Some(0) | None), "{policy}: {band:?}");
        link.settle(flow, 100, 0, Time::ZERO);
        assert_eq!(remark(&mut link, flow), None, "{policy}: it stays on top");
    }
}

#[test]
fn a_connection_is_in_the_band_of_its_best_stream() {
    let bands = BandChooser::for_policy(PolicyName::Srpt);
    let mut link = unpaced(None, Some(bands));
    let flow = link.open(Time::ZERO);
    let [large, small] = [10_000_000, 100].map(|bytes| {
        let stream = link.open_stream(flow, Time::ZERO);
        start(&mut link, stream, bytes);
        (stream, bytes)
    });
    assert_eq!(remark(&mut link, flow), Some(0));
    link.settle_stream(small.0, small.1, Time::ZERO);
    link.finish_stream(small.0, Time::ZERO);
    link.stream_written(small.0);
    assert_eq!(
        remark(&mut link, flow),
        None,
        "its bytes are not written yet"
    );
    link.settle(flow, 109, 109, Time::ZERO);
    assert_eq!(link.flushed(flow, Time::ZERO).ended.len(), 1);
    assert_eq!(remark(&mut link, flow), Some(7));
    link.close(large.0, Time::ZERO);
    assert_eq!(remark(&mut link, flow), Some(0), "frames go first");
}

#[test]
fn a_response_on_a_connection_that_is_gone_ends_at_once() {
    let mut link = unpaced(None, None);
    let flow = link.open(Time::ZERO);
    let stream = link.open_stream(flow, Time::ZERO);
    link.close(flow, Time::ZERO);
    let late = link.open_stream(flow, Time::ZERO);
    for flow in [flow, stream, late] {
        let start = ResponseStart::default();
        let gone = link.start(flow, start, Box::new(|_| {}), Time::ZERO);
        assert!(gone.is_err_and(|(_, report)| !report.completed));
    }
}

#[test]
fn a_finished_stream_ends_when_the_connection_has_written_it() {
    let mut link = unpaced(None, None);
    let (flow, stream) = finished_stream(&mut link, 3_000);
    link.settle(flow, 1_000, 1_000, Time::ZERO);
    assert!(link.flushed(flow, Time::ZERO).ended.is_empty());
    link.settle(flow, 2_009, 2_009, Time::ZERO);
    link.stream_written(stream);
    let ended = link.flushed(flow, Time::ZERO).ended;
    assert!(ended[0].report.completed && ended[0].report.sent_bytes == 3_000);
    assert_eq!(link.snapshot(Time::ZERO).streams, 0);
}

#[test]
fn what_the_engine_dropped_of_a_finished_stream_was_not_sent() {
    let mut link = unpaced(None, None);
    let (flow, stream) = finished_stream(&mut link, 3_000);
    link.settle(flow, 1_000, 1_000, Time::ZERO);
    for _ in 0..3 {
        // Nothing is left to write, and yet the last frame never was.
        assert!(link.flushed(flow, Time::ZERO).ended.is_empty());
    }
    let ended = link.close(stream, Time::ZERO).ended;
    assert!(matches!(&ended[..], [ended] if !ended.report.completed));
    assert_eq!(link.snapshot(Time::ZERO).streams, 0);
}

#[test]
fn what_a_closed_connection_had_handed_over_was_not_sent() {
    let mut link = unpaced(None, None);
    let (flow, _) = finished_stream(&mut link, 10);
    let ended = link.close(flow, Time::ZERO).ended;
    assert!(matches!(&ended[..], [ended] if !ended.report.completed));
}

#[test]
fn a_stream_on_a_backed_up_connection_does_not_wait_for_others() {
    let mut link = unpaced(None, None);
    let flow = link.open(Time::ZERO);
    let stream = link.open_stream(flow, Time::ZERO);
    start(&mut link, stream, 1_000_000);
    link.settle_stream(stream, 40_000, Time::ZERO);
    let at = Time::from_ns;
    let waker = Waker::noop();
    assert_eq!(link.ask(stream, 1, waker, at(5)), Answer::Wait);
    link.settle(flow, 40_009, 40_009, at(90));
    let ended = link.close(flow, at(100)).ended;
    assert_eq!(ended[0].report.wait_ns, 10);
    assert_eq!(ended[0].report.service_ns, 90);
}

/// The kernel's answer for a connection over `rtt_ms`.
fn over(rtt_ms: u64) -> PathSample {
    PathSample {
        rtt_ns: Some(rtt_ms * 1_000_000),
        segment_bytes: 1_448,
        ..PathSample::default()
    }
}

#[test]
fn only_policies_that_ask_for_paths_have_them_looked_at() {
    for policy in PolicyName::ALL {
        let bands = BandChooser::for_policy(policy);
        let link = unpaced(Some(policy), Some(bands));
        assert_eq!(link.asks_for_paths(), policy.asks_for_path(), "{policy}");
    }
    let unordered = unpaced(Some(PolicyName::Swift), None);
    assert!(!unordered.asks_for_paths(), "nothing would follow from it");
}

#[test]
fn what_is_seen_of_a_connection_moves_its_band() {
    let bands = BandChooser::into_bands(PolicyName::Swift, 8);
    let mut link = unpaced(Some(PolicyName::Swift), Some(bands));
    let [near, far] = [2, 300].map(|rtt_ms| {
        let flow = link.open(Time::ZERO);
        link.sample_path(flow, over(rtt_ms));
        start(&mut link, flow, 100_000);
        remark(&mut link, flow)
    });
    assert!(far < near, "{far:?} {near:?}");
}

#[test]
fn streams_have_the_path_of_their_connection() {
    for first in [true, false] {
        let mut link = paced(PolicyName::Swift);
        let ranks = [2, 300].map(|rtt_ms| {
            let flow = link.open(Time::ZERO);
            if first {
                link.sample_path(flow, over(rtt_ms));
            }
            let stream = link.open_stream(flow, Time::ZERO);
            start(&mut link, stream, 100_000);
            if !first {
                link.sample_path(flow, over(rtt_ms));
            }
            link.rank(stream)
        });
        assert!(ranks[1] < ranks[0], "looked at first: {first}: {ranks:?}");
    }
}

#[test]
fn a_stream_without_a_metered_link_has_its_connections_path_too() {
    let bands = BandChooser::for_policy(PolicyName::Fcf);
    let mut link = unpaced(Some(PolicyName::Fcf), Some(bands));
    let [near, far] = [2, 300].map(|rtt_ms| {
        let flow = link.open(Time::ZERO);
        link.sample_path(flow, over(rtt_ms));
        let stream = link.open_stream(flow, Time::ZERO);
        start(&mut link, stream, 100_000);
        link.rank(stream)
    });
    // 100 kB at the link's megabyte a second, and at ten segments a round trip.
    assert!(near < far, "{near:?} {far:?}");
}

/// A link that paces everything to 8 Mbit/s.
fn paced(policy: PolicyName) -> LinkScheduler {
    let limits = LinkLimits::at_rate(8_000_000);
    let guard = GuardLimits::with_turn(limits.quantum_wire_bytes());
    crate::paced(policy, limits, Some(guard))
}

#[test]
fn every_burst_of_a_tunnel_is_a_new_job() {
    for policy in [PolicyName::Las, PolicyName::Srpt, PolicyName::Fcfs] {
        let mut link = paced(policy);
        let flow = link.open(Time::ZERO);
        let switch = ResponseStart {
            head_bytes: 100,
            is_tunnel: true,
            ..ResponseStart::default()
        };
        let started = link.start(flow, switch, Box::new(|_| {}), Time::ZERO);
        assert!(started.is_ok());
        link.ask(flow, 1_000_000, Waker::noop(), Time::ZERO);
        link.settle(flow, 1_000_000, 1_000_000, Time::ZERO);
        let after_much = link.rank(flow);
        let late = Time::from_ns(10_000_000_000);
        let ended = link.flushed(flow, late).ended;
        assert!(ended.is_empty(), "{policy}: the tunnel lasts");
        assert_eq!(link.rank(flow), None, "{policy}: it has nothing to send");
        let quiet = link.snapshot(late);
        assert_eq!(jobs(&quiet), 0, "{policy}");
        link.ask(flow, 10, Waker::noop(), late);
        let at_first = link.rank(flow);
        assert!(at_first.is_some() && jobs(&link.snapshot(late)) == 1);
        if policy == PolicyName::Las {
            assert!(at_first < after_much, "{at_first:?} {after_much:?}");
        }
        link.settle(flow, 10, 10, late);
        link.flushed(flow, late);
        let ended = link.close(flow, late).ended;
        assert_eq!(ended[0].report.sent_bytes, 1_000_010, "{policy}: all of it");
    }
}

#[test]
fn a_tunnel_is_not_older_than_those_who_came_before_its_burst() {
    let mut link = paced(PolicyName::Fcfs);
    let tunnel = link.open(Time::ZERO);
    let switch = ResponseStart {
        is_tunnel: true,
        ..ResponseStart::default()
    };
    let started = link.start(tunnel, switch, Box::new(|_| {}), Time::ZERO);
    assert!(started.is_ok());
    link.flushed(tunnel, Time::ZERO);
    let other = link.open(Time::ZERO);
    start(&mut link, other, 1_000);
    link.ask(tunnel, 10, Waker::noop(), Time::ZERO);
    assert!(link.rank(other) < link.rank(tunnel));
}

#[test]
fn a_response_that_proves_larger_than_estimated_ranks_behind() {
    for policy in [PolicyName::Srpt, PolicyName::Psjf, PolicyName::Fsp] {
        let mut link = paced(policy);
        let [small, other] = [2_000, 50_000].map(|bytes| {
            let flow = link.open(Time::ZERO);
            start(&mut link, flow, bytes);
            flow
        });
        assert!(link.rank(small) < link.rank(other), "{policy}");
        link.enlarge(small, 100_000, Time::ZERO);
        assert!(link.rank(small) > link.rank(other), "{policy}");
        let snapshot = link.snapshot(Time::ZERO);
        let loads = snapshot.waiting.iter().chain(&snapshot.sending);
        let remaining_bytes: u64 = loads.map(|load| load.remaining_bytes).sum();
        assert_eq!(remaining_bytes, 152_000, "{policy}");
    }
}

/// Writes `bytes` of a flow that nothing competes with; when it is done.
fn write(link: &mut LinkScheduler, flow: FlowId, bytes: u64, from: Time) -> Time {
    let (mut left, mut now) = (bytes, from);
    while left > 0 {
        match link.ask(flow, left, Waker::noop(), now) {
            Answer::Go(granted) => {
                link.settle(flow, granted, granted, now);
                left -= granted;
            }
            Answer::Wait => {
                now = link.wake_at(now).unwrap();
                link.wake_next(now);
            }
        }
    }
    now
}

#[test]
fn a_response_that_outgrows_what_was_announced_does_not_pass_all_others() {
    let mut link = paced(PolicyName::Srpt);
    let [large, other] = [1_000_000, 50_000].map(|bytes| {
        let flow = link.open(Time::ZERO);
        start(&mut link, flow, bytes);
        flow
    });
    let now = write(&mut link, large, 999_000, Time::ZERO);
    assert!(link.rank(large) < link.rank(other));
    // An announcement is an estimate: a little more is the end.
    let now = write(&mut link, large, 10_000, now);
    assert!(link.rank(large) < link.rank(other));
    let now = write(&mut link, large, 20_000, now);
    let rank = link.rank(large).unwrap();
    assert!(rank >= 1_000_000, "as one of unknown size: {rank}");
    write(&mut link, large, 1_000_000, now);
    assert!(link.rank(large) < link.rank(other));
}

#[test]
fn what_has_no_size_or_is_gone_gets_no_larger() {
    let mut link = paced(PolicyName::Srpt);
    let flow = link.open(Time::ZERO);
    let unknown = ResponseStart::default();
    let started = link.start(flow, unknown, Box::new(|_| {}), Time::ZERO);
    assert_eq!(started.ok().map(|started| started.wire_bytes), Some(None));
    let rank = link.rank(flow);
    link.enlarge(flow, 100_000, Time::ZERO);
    assert_eq!(link.rank(flow), rank);
    link.close(flow, Time::ZERO);
    link.enlarge(flow, 100_000, Time::ZERO);
}

#[test]
fn an_estimate_is_a_size_for_the_order_and_none_beside_fair() {
    let mut link = paced(PolicyName::Srpt);
    let sizes = [false, true].map(|is_estimate| {
        let flow = link.open(Time::ZERO);
        let response = ResponseStart {
            body_bytes: Some(5_000),
            is_estimate,
            ..ResponseStart::default()
        };
        let started = link.start(flow, response, Box::new(|_| {}), Time::ZERO);
        (link.rank(flow), started.ok().unwrap().wire_bytes.is_some())
    });
    assert_eq!(sizes[0].0, sizes[1].0);
    assert_eq!(sizes.map(|(_, is_compared)| is_compared), [true, false]);
}

fn jobs(snapshot: &Snapshot) -> u64 {
    let loads = snapshot.waiting.iter().chain(&snapshot.sending);
    loads.map(|load| load.jobs).sum()
}

#[test]
fn a_snapshot_counts_by_size_and_by_who_waits() {
    let mut link = unpaced(None, None);
    let flow = link.open(Time::ZERO);
    start(&mut link, flow, 5_000);
    link.settle(flow, 1_000, 1_000, Time::ZERO);
    let snapshot = link.snapshot(Time::ZERO);
    let load = Load {
        jobs: 1,
        remaining_bytes: 4_000,
    };
    assert_eq!(snapshot.sending[1], load);
    assert_eq!(snapshot.waiting[1], Load::default());
    assert_eq!((snapshot.connections, snapshot.socket_bytes), (1, 1_000));
}
