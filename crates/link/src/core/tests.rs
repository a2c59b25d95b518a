//! The core without sockets.

use super::*;
use crate::gate::GateLimits;
use sooner_policy::GuardLimits;

fn core(order: Order, marks: Option<Marks>) -> Core {
    Core::new(order, None, marks, Time::ZERO)
}

fn start(core: &mut Core, flow: FlowId, bytes: u64) {
    let response = ResponseStart {
        body_bytes: Some(bytes),
        ..ResponseStart::default()
    };
    let started = core.start(flow, response, Box::new(|_| {}), Time::ZERO);
    assert!(started.is_ok());
}

/// A connection and its stream, which has handed over all of its response of `bytes`.
fn finished_stream(core: &mut Core, bytes: u64) -> (FlowId, FlowId) {
    let flow = core.open(Time::ZERO);
    let stream = core.open_stream(flow, Time::ZERO).stream;
    start(core, stream, bytes);
    core.settle_stream(stream, bytes, Time::ZERO);
    core.finish_stream(stream, Time::ZERO);
    (flow, stream)
}

/// Marks a flow as its stream would; the band if it is another one.
fn remark(core: &mut Core, flow: FlowId) -> Option<u8> {
    let (band, _) = core.new_band(flow)?;
    core.set_band(flow, band);
    Some(band)
}

#[test]
fn bands_count_the_job_and_not_what_the_connection_had_before() {
    for policy in [PolicyName::Srpt, PolicyName::Psjf, PolicyName::Las] {
        let mut core = core(Order::default(), Some(Marks::for_policy(policy)));
        let flow = core.open(Time::ZERO);
        start(&mut core, flow, 10_000_000);
        core.settle(flow, 10_000_000, 0, Time::ZERO);
        remark(&mut core, flow);
        core.body_done(flow);
        assert_eq!(core.flushed(flow, Time::ZERO).ended.len(), 1);
        start(&mut core, flow, 100);
        let band = remark(&mut core, flow);
        assert!(matches!(band, Some(0) | None), "{policy}: {band:?}");
        core.settle(flow, 100, 0, Time::ZERO);
        assert_eq!(remark(&mut core, flow), None, "{policy}: it stays on top");
    }
}

#[test]
fn a_connection_is_in_the_band_of_its_best_stream() {
    let marks = Marks::for_policy(PolicyName::Srpt);
    let mut core = core(Order::default(), Some(marks));
    let flow = core.open(Time::ZERO);
    let [large, small] = [10_000_000, 100].map(|bytes| {
        let stream = core.open_stream(flow, Time::ZERO).stream;
        start(&mut core, stream, bytes);
        (stream, bytes)
    });
    assert_eq!(remark(&mut core, flow), Some(0));
    core.settle_stream(small.0, small.1, Time::ZERO);
    core.finish_stream(small.0, Time::ZERO);
    core.stream_written(small.0);
    assert_eq!(
        remark(&mut core, flow),
        None,
        "its bytes are not written yet"
    );
    core.settle(flow, 109, 109, Time::ZERO);
    assert_eq!(core.flushed(flow, Time::ZERO).ended.len(), 1);
    assert_eq!(remark(&mut core, flow), Some(7));
    core.close_stream(large.0, Time::ZERO);
    assert_eq!(remark(&mut core, flow), Some(0), "frames go first");
}

#[test]
fn a_response_on_a_connection_that_is_gone_ends_at_once() {
    let mut core = core(Order::default(), None);
    let flow = core.open(Time::ZERO);
    let stream = core.open_stream(flow, Time::ZERO).stream;
    core.close(flow, Time::ZERO);
    let late = core.open_stream(flow, Time::ZERO).stream;
    for flow in [flow, stream, late] {
        let start = ResponseStart::default();
        let gone = core.start(flow, start, Box::new(|_| {}), Time::ZERO);
        assert!(gone.is_err_and(|(_, report)| !report.completed));
    }
}

#[test]
fn a_finished_stream_ends_when_the_connection_has_written_it() {
    let mut core = core(Order::default(), None);
    let (flow, stream) = finished_stream(&mut core, 3_000);
    core.settle(flow, 1_000, 1_000, Time::ZERO);
    assert!(core.flushed(flow, Time::ZERO).ended.is_empty());
    core.settle(flow, 2_009, 2_009, Time::ZERO);
    core.stream_written(stream);
    let ended = core.flushed(flow, Time::ZERO).ended;
    assert!(ended[0].report.completed && ended[0].report.sent_bytes == 3_000);
    assert_eq!(core.snapshot(Time::ZERO).streams, 0);
}

#[test]
fn what_the_engine_dropped_of_a_finished_stream_was_not_sent() {
    let mut core = core(Order::default(), None);
    let (flow, stream) = finished_stream(&mut core, 3_000);
    core.settle(flow, 1_000, 1_000, Time::ZERO);
    for _ in 0..3 {
        // Nothing is left to write, and yet the last frame never was.
        assert!(core.flushed(flow, Time::ZERO).ended.is_empty());
    }
    let ended = core.close_stream(stream, Time::ZERO);
    assert!(matches!(&ended[..], [ended] if !ended.report.completed));
    assert_eq!(core.snapshot(Time::ZERO).streams, 0);
}

#[test]
fn what_a_closed_connection_had_handed_over_was_not_sent() {
    let mut core = core(Order::default(), None);
    let (flow, _) = finished_stream(&mut core, 10);
    let ended = core.close(flow, Time::ZERO).ended;
    assert!(matches!(&ended[..], [ended] if !ended.report.completed));
}

#[test]
fn a_stream_whose_connection_is_backed_up_does_not_wait_for_others() {
    let mut core = core(Order::default(), None);
    let flow = core.open(Time::ZERO);
    let stream = core.open_stream(flow, Time::ZERO).stream;
    start(&mut core, stream, 1_000_000);
    core.settle_stream(stream, 40_000, Time::ZERO);
    let at = Time::from_ns;
    let waker = Waker::noop();
    assert_eq!(core.ask(stream, 1, waker, at(5)), Answer::Wait);
    core.settle(flow, 40_009, 40_009, at(90));
    let ended = core.close(flow, at(100)).ended;
    assert_eq!(ended[0].report.wait_ns, 10);
    assert_eq!(ended[0].report.service_ns, 90);
}

/// The kernel's answer for a connection over `rtt_ms`.
fn over(rtt_ms: u64) -> Look {
    Look {
        rtt_ns: Some(rtt_ms * 1_000_000),
        segment_bytes: 1_448,
        ..Look::default()
    }
}

fn order_of(policy: PolicyName) -> Order {
    Order {
        policy: Some(policy),
        rate_bits_per_sec: Some(8_000_000),
        ..Order::default()
    }
}

#[test]
fn only_policies_that_ask_for_paths_have_them_looked_at() {
    for policy in PolicyName::ALL {
        let marks = Marks::for_policy(policy);
        let core = core(order_of(policy), Some(marks));
        assert_eq!(core.asks_for_paths(), policy.asks_for_path(), "{policy}");
    }
    let unordered = core(order_of(PolicyName::Swift), None);
    assert!(!unordered.asks_for_paths(), "nothing would follow from it");
}

#[test]
fn what_is_seen_of_a_connection_moves_its_band() {
    let marks = Marks::into_bands(PolicyName::Swift, 8);
    let mut core = core(order_of(PolicyName::Swift), Some(marks));
    let [near, far] = [2, 300].map(|rtt_ms| {
        let flow = core.open(Time::ZERO);
        core.look(flow, over(rtt_ms));
        start(&mut core, flow, 100_000);
        remark(&mut core, flow)
    });
    assert!(far < near, "{far:?} {near:?}");
}

#[test]
fn streams_have_the_path_of_their_connection() {
    for first in [true, false] {
        let mut core = paced(PolicyName::Swift);
        let ranks = [2, 300].map(|rtt_ms| {
            let flow = core.open(Time::ZERO);
            if first {
                core.look(flow, over(rtt_ms));
            }
            let stream = core.open_stream(flow, Time::ZERO).stream;
            start(&mut core, stream, 100_000);
            if !first {
                core.look(flow, over(rtt_ms));
            }
            rank(&core, stream)
        });
        assert!(ranks[1] < ranks[0], "looked at first: {first}: {ranks:?}");
    }
}

#[test]
fn a_stream_without_a_metered_link_has_its_connections_path_too() {
    let marks = Marks::for_policy(PolicyName::Fcf);
    let mut core = core(order_of(PolicyName::Fcf), Some(marks));
    let [near, far] = [2, 300].map(|rtt_ms| {
        let flow = core.open(Time::ZERO);
        core.look(flow, over(rtt_ms));
        let stream = core.open_stream(flow, Time::ZERO).stream;
        start(&mut core, stream, 100_000);
        rank(&core, stream)
    });
    // 100 kB at the link's megabyte a second, and at ten segments a round trip.
    assert!(near < far, "{near:?} {far:?}");
}

/// A core that paces everything to 8 Mbit/s.
fn paced(policy: PolicyName) -> Core {
    let limits = GateLimits::at_rate(8_000_000);
    let quantum = limits.quantum_wire_bytes();
    let scheduler = policy.scheduler(quantum, Some(GuardLimits::with_turn(quantum)));
    let gate = Gate::new(limits, scheduler);
    Core::new(Order::default(), Some(gate), None, Time::ZERO)
}

fn rank(core: &Core, flow: FlowId) -> Option<u64> {
    core.gate.as_ref().and_then(|gate| gate.rank(flow))
}

#[test]
fn every_burst_of_a_tunnel_is_a_new_job() {
    for policy in [PolicyName::Las, PolicyName::Srpt, PolicyName::Fcfs] {
        let mut core = paced(policy);
        let flow = core.open(Time::ZERO);
        let switch = ResponseStart {
            head_bytes: 100,
            is_tunnel: true,
            ..ResponseStart::default()
        };
        let started = core.start(flow, switch, Box::new(|_| {}), Time::ZERO);
        assert!(started.is_ok());
        core.ask(flow, 1_000_000, Waker::noop(), Time::ZERO);
        core.settle(flow, 1_000_000, 1_000_000, Time::ZERO);
        let after_much = rank(&core, flow);
        let late = Time::from_ns(10_000_000_000);
        let ended = core.flushed(flow, late).ended;
        assert!(ended.is_empty(), "{policy}: the tunnel lasts");
        assert_eq!(rank(&core, flow), None, "{policy}: it has nothing to send");
        let quiet = core.snapshot(late);
        assert_eq!(jobs(&quiet), 0, "{policy}");
        core.ask(flow, 10, Waker::noop(), late);
        let at_first = rank(&core, flow);
        assert!(at_first.is_some() && jobs(&core.snapshot(late)) == 1);
        if policy == PolicyName::Las {
            assert!(at_first < after_much, "{at_first:?} {after_much:?}");
        }
        core.settle(flow, 10, 10, late);
        core.flushed(flow, late);
        let ended = core.close(flow, late).ended;
        assert_eq!(ended[0].report.sent_bytes, 1_000_010, "{policy}: all of it");
    }
}

#[test]
fn a_tunnel_is_not_older_than_those_who_came_before_its_burst() {
    let mut core = paced(PolicyName::Fcfs);
    let tunnel = core.open(Time::ZERO);
    let switch = ResponseStart {
        is_tunnel: true,
        ..ResponseStart::default()
    };
    let started = core.start(tunnel, switch, Box::new(|_| {}), Time::ZERO);
    assert!(started.is_ok());
    core.flushed(tunnel, Time::ZERO);
    let other = core.open(Time::ZERO);
    start(&mut core, other, 1_000);
    core.ask(tunnel, 10, Waker::noop(), Time::ZERO);
    assert!(rank(&core, other) < rank(&core, tunnel));
}

fn jobs(snapshot: &Snapshot) -> u64 {
    let loads = snapshot.waiting.iter().chain(&snapshot.sending);
    loads.map(|load| load.jobs).sum()
}

#[test]
fn a_snapshot_counts_by_size_and_by_who_waits() {
    let mut core = core(Order::default(), None);
    let flow = core.open(Time::ZERO);
    start(&mut core, flow, 5_000);
    core.settle(flow, 1_000, 1_000, Time::ZERO);
    let snapshot = core.snapshot(Time::ZERO);
    let load = Load {
        jobs: 1,
        remaining_bytes: 4_000,
    };
    assert_eq!(snapshot.sending[1], load);
    assert_eq!(snapshot.waiting[1], Load::default());
    assert_eq!((snapshot.connections, snapshot.socket_bytes), (1, 1_000));
}
