//! Connections without sockets: flows that always have bytes, clients that stall, a clock that
//! jumps to the next event.

use crate::{ask, finish, paced, start};
use proptest::prelude::*;
use sooner_link::{Answer, FlowId, LinkLimits, LinkScheduler, wire};
use sooner_policy::{GuardLimits, Path, PolicyName, Time};

/// 8 Mbit/s: a byte takes a microsecond.
const RATE: u64 = 8_000_000;
const SEGMENT: u64 = wire::SEGMENT_BYTES;
const PACKET_NS: u64 = wire::PACKET_BYTES * 1_000;

/// A link and its flows in a world without a network.
pub struct World {
    pub link: LinkScheduler,
    pub now: Time,
    /// Flow, bytes it still has to write.
    flows: Vec<(FlowId, u64)>,
    /// Names of flows in the order of their grants.
    pub decisions: String,
    done_at: Vec<Option<Time>>,
}

impl World {
    fn new(policy: PolicyName) -> Self {
        let limits = LinkLimits {
            credit_ns: 0,
            ..LinkLimits::at_rate(RATE)
        };
        Self::on(paced(policy, limits, None))
    }

    pub fn on(link: LinkScheduler) -> Self {
        Self {
            link,
            now: Time::ZERO,
            flows: Vec::new(),
            decisions: String::new(),
            done_at: Vec::new(),
        }
    }

    /// A connection without a response.
    pub fn open(&mut self) -> FlowId {
        self.link.open(self.now)
    }

    /// A connection with one response; asks at once, as hyper does.
    fn add(&mut self, bytes: u64) -> usize {
        let flow = self.open();
        self.respond(flow, bytes)
    }

    pub fn respond(&mut self, flow: FlowId, bytes: u64) -> usize {
        start(&mut self.link, flow, Some(bytes), 0, self.now);
        self.flows.push((flow, bytes));
        self.done_at.push(None);
        let index = self.flows.len() - 1;
        self.write(index);
        index
    }

    /// Writes until told to wait.
    fn write(&mut self, index: usize) {
        loop {
            let (flow, left) = self.flows[index];
            if left == 0 {
                finish(&mut self.link, flow, self.now);
                self.done_at[index].get_or_insert(self.now);
                return;
            }
            let Answer::Go(bytes) = ask(&mut self.link, flow, left, self.now) else {
                return;
            };
            self.link.settle(flow, bytes, bytes, self.now);
            self.flows[index].1 -= bytes;
            self.decisions.push((b'A' + index as u8) as char);
        }
    }

    /// Jumps to the next wake-up before `until` and lets the flow write that is called.
    fn step(&mut self, until: Time) -> bool {
        let Some(at) = self.link.wake_at(self.now).filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(at);
        if let Some(flow) = self.link.wake_next(self.now) {
            let index = self
                .flows
                .iter()
                .position(|(id, _)| *id == flow)
                .expect("only known flows are called");
            self.write(index);
        }
        true
    }

    pub fn run_until(&mut self, ns: u64) {
        while self.step(Time::from_ns(ns)) {}
    }

    pub fn run_to_the_end(&mut self) {
        while self.link.waiting() > 0 {
            self.step(Time::from_ns(u64::MAX));
        }
    }
}

/// The grants that flows with much to write get at once on a link on which `packets` may lie ahead.
fn grants_at_once(packets: u64, flows: usize) -> String {
    let limits = LinkLimits::at_rate(RATE);
    let limits = LinkLimits {
        credit_ns: 0,
        ahead_ns: packets * wire::PACKET_BYTES * 1_000,
        ..limits
    };
    let mut world = World::on(paced(PolicyName::Fair, limits, None));
    world.now = Time::from_ns(1_000_000_000);
    for _ in 0..flows {
        world.add(100 * SEGMENT);
    }
    world.run_until(1_000_000_000);
    world.decisions
}

#[test]
fn as_much_lies_ahead_of_the_link_as_was_asked() {
    // The handshakes of the connections take some of the room: four packets of 66 bytes each.
    assert_eq!(grants_at_once(0, 1), "");
    assert_eq!(grants_at_once(1, 1), "A");
    assert_eq!(grants_at_once(5, 1), "AAAAA");
    assert_eq!(grants_at_once(30, 1).len(), 30);
    assert_eq!(
        grants_at_once(5, 3).len(),
        5,
        "the room is shared, not each one's own"
    );
}

#[test]
fn the_network_to_the_client_moves_a_waiting_response_and_those_to_come() {
    let mut world = World::new(PolicyName::Fcf);
    let path = |bytes_per_sec| Path {
        rtt_ns: None,
        rate_per_sec: Some(bytes_per_sec),
    };
    let busy = world.add(SEGMENT);
    let slow = world.add(10 * SEGMENT);
    let fast = world.add(20 * SEGMENT);
    let [slow_flow, fast_flow] = [slow, fast].map(|index| world.flows[index].0);
    world.link.observe(slow_flow, path(10_000), world.now);
    world.link.observe(fast_flow, path(1_000_000), world.now);
    assert!(world.link.rank(fast_flow) < world.link.rank(slow_flow));
    let known = world.open();
    world.link.observe(known, path(1), world.now);
    start(&mut world.link, known, Some(1), 0, world.now);
    assert!(world.link.rank(slow_flow) < world.link.rank(known));
    world.link.close(known, world.now);
    world.run_to_the_end();
    assert!(world.done_at[fast] < world.done_at[slow]);
    assert!(world.done_at[busy].is_some());
}

#[test]
fn the_shortest_goes_first_and_a_newcomer_overtakes_within_one_grant() {
    let mut world = World::new(PolicyName::Srpt);
    world.add(6 * SEGMENT);
    world.add(3 * SEGMENT);
    world.run_until(3_000_000);
    world.add(SEGMENT / 2);
    world.run_to_the_end();
    assert_eq!(world.decisions, "BBCBAAAAAA");
}

#[test]
fn fair_takes_turns() {
    let mut world = World::new(PolicyName::Fair);
    for _ in 0..3 {
        world.add(2 * SEGMENT);
    }
    world.run_to_the_end();
    assert_eq!(world.decisions, "ABCABC");
}

#[test]
fn every_packet_is_charged() {
    let mut world = World::new(PolicyName::Fcfs);
    for _ in 0..10 {
        world.add(3 * SEGMENT - 100);
    }
    world.run_to_the_end();
    // The last segment of all is on its way when it is granted; everything before it has gone out.
    let wire_bytes = 10 * (wire::CONNECTION_BYTES + wire::payload_cost_bytes(3 * SEGMENT - 100));
    let last_bytes = SEGMENT - 100 + wire::HEADER_BYTES;
    assert_eq!(world.now, Time::from_ns((wire_bytes - last_bytes) * 1_000));
}

#[test]
fn retransmissions_and_foreign_traffic_delay_the_next_grant() {
    let mut world = World::new(PolicyName::Srpt);
    world.add(2 * SEGMENT);
    let due = world.link.wake_at(world.now).expect("a segment waits");
    world.link.charge(5_000, world.now);
    assert_eq!(world.link.wake_at(world.now), Some(due.after(5_000_000)));
    let next = world.link.next_grant(world.now).expect("a segment waits");
    world.link.hold_until(next, due.after(9_000_000));
    assert_eq!(world.link.wake_at(world.now), Some(due.after(9_000_000)));
}

#[test]
fn a_late_writer_makes_up_for_what_was_lost_within_the_credit() {
    let limits = LinkLimits::at_rate(RATE);
    assert_eq!(limits.credit_ns, 2 * PACKET_NS);
    let mut world = World::on(paced(PolicyName::Srpt, limits, None));
    world.add(9 * SEGMENT);
    let due = world.link.wake_at(world.now).expect("segments wait");
    for (late_packets, grants) in [(1, 2), (2, 3), (9, 3)] {
        let mut world = World::on(paced(PolicyName::Srpt, limits, None));
        world.add(9 * SEGMENT);
        let before = world.decisions.len();
        world.now = due.after(late_packets * PACKET_NS);
        assert!(world.link.wake_next(world.now).is_some());
        world.write(0);
        assert_eq!(world.decisions.len() - before, grants, "{late_packets}");
    }
}

#[test]
fn after_a_hold_grants_are_as_far_apart_as_the_link_needs() {
    let limits = LinkLimits::at_rate(RATE);
    let grant_ns = limits.quantum_wire_bytes() * 1_000;
    let mut world = World::on(paced(PolicyName::Srpt, limits, None));
    world.add(9 * SEGMENT);
    let before = world.decisions.len();
    let next = world.link.next_grant(world.now).expect("a segment waits");
    world.link.hold_until(next, Time::from_ns(50_000_000));
    let mut grants_by = |ns: u64| {
        world.run_until(ns);
        world.decisions.len() - before
    };
    let grants = [50_000_000, 50_000_000 + grant_ns - 1, 50_000_000 + grant_ns].map(&mut grants_by);
    assert_eq!(grants, [1, 1, 2]);
}

#[test]
fn a_flow_that_does_not_come_when_called_lets_others_go() {
    let mut world = World::new(PolicyName::Srpt);
    world.add(SEGMENT * 9);
    let stalled = world.open();
    start(&mut world.link, stalled, Some(SEGMENT), 0, world.now);
    assert_eq!(
        ask(&mut world.link, stalled, SEGMENT, world.now),
        Answer::Wait
    );
    world.now = world.link.wake_at(world.now).expect("two flows wait");
    assert_eq!(world.link.wake_next(world.now), Some(stalled));
    assert_eq!(
        world.link.wake_next(world.now),
        None,
        "one at a time is called"
    );
    world.run_to_the_end_ignoring(stalled);
    assert_eq!(world.decisions, "AAAAAAAAA");
}

impl World {
    fn run_to_the_end_ignoring(&mut self, stalled: FlowId) {
        while self.flows.iter().any(|(_, left)| *left > 0) {
            self.now = self.link.wake_at(self.now).expect("bytes are left");
            match self.link.wake_next(self.now) {
                Some(flow) if flow != stalled => {
                    let index = self
                        .flows
                        .iter()
                        .position(|(id, _)| *id == flow)
                        .expect("known");
                    self.write(index);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_flow_with_a_full_socket_leaves_the_order_until_it_asks_again() {
    let mut world = World::new(PolicyName::Srpt);
    let slow = world.open();
    start(&mut world.link, slow, Some(10), 0, world.now);
    world.now = world.now.after(1_000_000);
    assert_eq!(ask(&mut world.link, slow, 10, world.now), Answer::Go(10));
    world.link.settle(slow, 0, 0, world.now);
    world.add(3 * SEGMENT);
    world.run_to_the_end();
    assert_eq!(world.decisions, "AAA");
}

#[test]
fn a_silence_over_tls_ends_with_a_whole_record() {
    let limits = LinkLimits {
        credit_ns: 0,
        ..LinkLimits::at_rate(RATE)
    };
    let guard = GuardLimits {
        oldest_share: 10,
        turn: u64::MAX / 1000,
        turns_max: None,
        silence_ns_max: 20_000_000,
        trickle: 1,
    };
    // 20 ms are 13 packets; a tenth pays for a record after 17, the connection's own packets taken
    // off.
    for (record_bytes, others, heard) in [(None, 13, "AB"), (Some(2 * SEGMENT), 17, "AAB")] {
        let mut world = World::on(paced(PolicyName::Psjf, limits, Some(guard)));
        let silent = world.open();
        if let Some(record_bytes) = record_bytes {
            world.link.in_records(silent, record_bytes);
        }
        world.respond(silent, 50 * SEGMENT);
        world.add(40 * SEGMENT);
        world.run_to_the_end();
        let decisions = "B".repeat(others) + heard;
        assert!(
            world.decisions.starts_with(&decisions),
            "{}",
            world.decisions
        );
    }
}

#[test]
fn what_belongs_to_no_response_passes_at_once_and_is_charged() {
    let mut world = World::new(PolicyName::Srpt);
    world.add(2 * SEGMENT);
    let due = world.link.wake_at(world.now).expect("a segment waits");
    let other = world.open();
    assert_eq!(ask(&mut world.link, other, 200, world.now), Answer::Go(200));
    world.link.settle(other, 200, 200, world.now);
    let charged_ns = (200 + wire::HEADER_BYTES + wire::CONNECTION_BYTES) * 1_000;
    assert_eq!(world.link.wake_at(world.now), Some(due.after(charged_ns)));
}

#[test]
fn closing_forgets_everything() {
    let mut world = World::new(PolicyName::Srpt);
    let flows: Vec<FlowId> = (0..5)
        .map(|_| {
            world.add(100 * SEGMENT);
            world.flows.last().expect("just added").0
        })
        .collect();
    flows
        .into_iter()
        .for_each(|flow| _ = world.link.close(flow, world.now));
    assert_eq!((world.link.flow_count(), world.link.waiting()), (0, 0));
    assert_eq!(
        (
            world.link.wake_at(world.now),
            world.link.wake_next(Time::from_ns(u64::MAX))
        ),
        (None, None)
    );
}

#[test]
fn responses_pipelined_on_a_connection_are_one_job() {
    let mut world = World::new(PolicyName::Srpt);
    let flow = world.open();
    let cost = wire::payload_cost_bytes;
    let mut start_of = |bytes| start(&mut world.link, flow, Some(bytes), 0, world.now);
    assert_eq!(start_of(100), cost(100));
    assert_eq!(start_of(50), cost(100) + cost(50));
    finish(&mut world.link, flow, world.now);
    assert_eq!(
        start(&mut world.link, flow, Some(70), 0, world.now),
        cost(70)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the order, the link is never idle while a flow waits and never faster than its
    /// rate.
    #[test]
    fn the_link_is_kept_busy_and_never_exceeded(
        sizes in proptest::collection::vec(1..40_000_u64, 1..20),
        policy in 0..PolicyName::ALL.len(),
    ) {
        let mut world = World::new(PolicyName::ALL[policy]);
        let cost = |size: &u64| wire::CONNECTION_BYTES + wire::payload_cost_bytes(*size);
        let wire_bytes: u64 = sizes.iter().map(cost).sum();
        for size in &sizes {
            world.add(*size);
        }
        world.run_to_the_end();
        let end_bytes = world.now.as_ns() / 1_000;
        // Grants may cut a response into one more segment than it needs each time another gets in.
        let cuts = world.decisions.len() as u64 * wire::HEADER_BYTES;
        prop_assert!(end_bytes <= wire_bytes + cuts, "{end_bytes} > {wire_bytes} + {cuts}");
        prop_assert!(
            end_bytes + wire::PACKET_BYTES >= wire_bytes,
            "{end_bytes} + a packet < {wire_bytes}"
        );
        prop_assert!(world.done_at.iter().all(Option::is_some));
    }

    /// Any calls in any order: nothing panics, counts agree, and what waits is called in the end.
    #[test]
    fn any_order_of_calls_is_safe(
        calls in proptest::collection::vec((0..7_u8, 0..6_usize, 0..5_000_u64), 0..200),
    ) {
        let limits = LinkLimits::at_rate(RATE);
        let guard = GuardLimits::with_turn(limits.quantum_wire_bytes());
        let mut link = paced(PolicyName::Srpt, limits, Some(guard));
        let mut flows = [None; 6];
        let mut now = Time::ZERO;
        for (call, index, amount) in calls {
            now = now.after(amount * 100);
            // Not all of them are open, or were.
            let flow = flows[index].unwrap_or(1_000);
            match call {
                0 => _ = flows[index].get_or_insert_with(|| link.open(now)),
                1 => {
                    let size_bytes = (amount % 3 > 0).then_some(amount);
                    _ = start(&mut link, flow, size_bytes, (amount % 2) as u8, now);
                }
                2 => _ = ask(&mut link, flow, amount + 1, now),
                3 => link.settle(flow, amount, amount, now),
                4 => finish(&mut link, flow, now),
                5 => {
                    link.close(flow, now);
                    flows[index] = None;
                }
                _ => _ = link.wake_next(now),
            }
            prop_assert!(link.waiting() <= link.flow_count());
            prop_assert_eq!(link.wake_at(now).is_some(), link.waiting() > 0);
        }
        while let Some(at) = link.wake_at(now) {
            now = now.after(at.since(now) + 1);
            if let Some(flow) = link.wake_next(now) {
                link.close(flow, now);
            }
        }
        prop_assert_eq!(link.waiting(), 0);
    }
}

#[test]
fn bytes_behind_a_shut_window_are_charged_when_they_go() {
    let mut world = World::new(PolicyName::Srpt);
    let flow = world.open();
    start(&mut world.link, flow, Some(2 * SEGMENT), 0, world.now);
    world.now = world.now.after(1_000_000);
    assert_eq!(
        ask(&mut world.link, flow, SEGMENT, world.now),
        Answer::Go(SEGMENT)
    );
    world.link.settle(flow, SEGMENT, 0, world.now);
    world.add(SEGMENT);
    let opened = world.now.after(wire::CONNECTION_BYTES * 1_000);
    assert_eq!(
        world.link.wake_at(world.now),
        Some(opened),
        "the link is free"
    );
    world.link.sent(flow, SEGMENT, world.now);
    let sent = opened.after(wire::PACKET_BYTES * 1_000);
    assert_eq!(world.link.wake_at(world.now), Some(sent));
}

/// As a driver does that has lost its timer.
#[test]
fn all_that_were_told_to_wait_can_be_called_at_once() {
    let mut link = paced(PolicyName::Fcfs, LinkLimits::at_rate(RATE), None);
    let flows = [(); 3].map(|()| link.open(Time::ZERO));
    for flow in flows {
        start(&mut link, flow, Some(10_000), 0, Time::ZERO);
        let answer = ask(&mut link, flow, 10_000, Time::ZERO);
        assert_eq!(
            answer,
            Answer::Wait,
            "the packets that opened them are on the link"
        );
    }
    assert_eq!(link.take_wakers().len(), 3);
    assert_eq!(link.take_wakers().len(), 0);
    ask(&mut link, flows[1], 10_000, Time::ZERO);
    assert_eq!(link.take_wakers().len(), 1);
}
