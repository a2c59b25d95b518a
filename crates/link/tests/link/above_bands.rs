//! Grants above kernel bands, which send what lies ahead of the link in their order.

use crate::{ask, finish, start};
use sooner_link::{
    Answer, BandChooser, FlowId, LinkConfig, LinkLimits, LinkScheduler, Pacing, wire,
};
use sooner_policy::{GuardLimits, PolicyName, Time};

/// 8 Mbit/s: a byte takes a microsecond.
const RATE: u64 = 8_000_000;
const SEGMENT: u64 = wire::SEGMENT_BYTES;
const PACKET_NS: u64 = wire::PACKET_BYTES * 1_000;
/// 5 ms of the link in whole segments.
const LONG: u64 = 3 * SEGMENT;

fn link(policy: PolicyName) -> LinkScheduler {
    guarded(policy, None)
}

fn link_with_guard(policy: PolicyName) -> LinkScheduler {
    let turn_bytes = LinkLimits::at_rate(RATE)
        .above_bands()
        .long_grant_wire_bytes();
    guarded(policy, Some(GuardLimits::with_turn(turn_bytes)))
}

fn guarded(policy: PolicyName, guard: Option<GuardLimits>) -> LinkScheduler {
    let limits = LinkLimits {
        ahead_ns: PACKET_NS,
        ..LinkLimits::at_rate(RATE).above_bands()
    };
    let config = LinkConfig {
        policy: Some(policy),
        rate_bits_per_sec: Some(RATE),
        pacing: Some(Pacing { limits, guard }),
        bands: Some(BandChooser::for_policy(policy)),
        ..LinkConfig::default()
    };
    LinkScheduler::new(config, Time::ZERO)
}

/// Writes once as a socket does that follows its band; what it may write.
fn write(link: &mut LinkScheduler, flow: FlowId, now: Time) -> Option<u64> {
    write_in(link, flow, None, now)
}

/// The same in a band that it keeps.
fn write_in(
    link: &mut LinkScheduler,
    flow: FlowId,
    kept_band: Option<u8>,
    now: Time,
) -> Option<u64> {
    let Answer::Go(bytes) = ask(link, flow, 10_000_000, now) else {
        return None;
    };
    let band = kept_band.or_else(|| Some(link.new_band(flow)?.0));
    if let Some(band) = band {
        link.set_band(flow, band);
    }
    link.settle(flow, bytes, bytes, now);
    Some(bytes)
}

fn begin(link: &mut LinkScheduler, body_bytes: u64, now: Time) -> FlowId {
    let flow = link.open(now);
    start(link, flow, Some(body_bytes), 0, now);
    flow
}

#[test]
fn a_long_response_gets_an_eighth_of_what_remains_and_5_ms_at_most() {
    for (body_bytes, granted_bytes) in [
        (5_000, 2 * SEGMENT),
        (8 * 3 * SEGMENT - 1_000, 2 * SEGMENT),
        (8 * 3 * SEGMENT, 3 * SEGMENT),
        (1_000_000, LONG),
    ] {
        let mut link = link(PolicyName::Srpt);
        let flow = begin(&mut link, body_bytes, Time::ZERO);
        assert_eq!(write(&mut link, flow, Time::ZERO), Some(granted_bytes));
    }
    let mut link = link(PolicyName::Fair);
    let flow = begin(&mut link, 1_000_000, Time::ZERO);
    assert_eq!(write(&mut link, flow, Time::ZERO), Some(SEGMENT));
}

#[test]
fn a_response_waits_for_nothing_in_the_bands_behind_its_own() {
    let mut link = link(PolicyName::Srpt);
    let now = Time::ZERO;
    let long = begin(&mut link, 1_000_000, now);
    while write(&mut link, long, now).is_some() {}
    let short = begin(&mut link, 1_000, now);
    assert!(write(&mut link, short, now).is_some());
    finish(&mut link, short, now);
    // One of the long one's band does wait for it.
    let other = begin(&mut link, 900_000, now);
    assert_eq!(write(&mut link, other, now), None);
    let opens_at = link.wake_at(now).expect("two wait");
    let charged_ns = link.charged_bytes() * 1_000;
    let grant_ns = LONG / SEGMENT * PACKET_NS;
    assert_eq!(opens_at, Time::from_ns(charged_ns - grant_ns));
    assert_eq!(link.wake_next(opens_at), Some(other));
}

#[test]
fn what_others_hold_in_a_band_holds_that_and_those_behind() {
    let mut link = link(PolicyName::Srpt);
    let now = Time::ZERO;
    let long = begin(&mut link, 1_000_000, now);
    while write(&mut link, long, now).is_some() {}
    let next = link.next_grant(now).expect("it waits");
    link.hold_until(next, Time::from_ns(90_000_000));
    assert_eq!(link.wake_at(now), Some(Time::from_ns(90_000_000)));
    let short = begin(&mut link, 1_000, now);
    assert!(write(&mut link, short, now).is_some());
}

#[test]
fn a_late_writer_makes_up_for_what_the_link_has_lost() {
    let mut link = link(PolicyName::Srpt);
    let long = begin(&mut link, 1_000_000, Time::ZERO);
    while write(&mut link, long, Time::ZERO).is_some() {}
    let charged_bytes = link.charged_bytes();
    // The link would have been through with all 15 ms ago.
    let now = Time::from_ns(charged_bytes * 1_000 + 15_000_000);
    assert_eq!(link.wake_next(now), Some(long));
    while write(&mut link, long, now).is_some() {}
    let caught_up_ns = (link.charged_bytes() - charged_bytes) * 1_000;
    assert!(caught_up_ns >= 15_000_000, "{caught_up_ns}");
}

#[test]
fn a_band_that_was_idle_while_the_link_was_not_has_lost_nothing() {
    let mut link = link(PolicyName::Srpt);
    let mut now = Time::ZERO;
    let long = begin(&mut link, 10_000_000, now);
    while write(&mut link, long, now).is_some() {}
    let other = begin(&mut link, 11_000_000, now);
    assert_eq!(write(&mut link, other, now), None, "it waits all the time");
    while now.as_ns() < 1_000_000_000 {
        while write(&mut link, long, now).is_some() {}
        now = link.wake_at(now).expect("two wait");
        link.wake_next(now);
    }
    let shorts: Vec<_> = (0..30).map(|_| begin(&mut link, 2_000, now)).collect();
    let granted = shorts.iter().filter(|short| {
        let granted = write(&mut link, **short, now).is_some();
        finish(&mut link, **short, now);
        granted
    });
    // What may lie ahead, and one more.
    assert!(granted.count() <= 3, "20 ms were made up for");
}

#[test]
fn a_response_that_shrinks_waits_for_what_it_has_in_a_band_behind() {
    let mut link = link(PolicyName::Srpt);
    let now = Time::ZERO;
    let flow = begin(&mut link, 200_000, now);
    let mut written_bytes = 0;
    while let Some(bytes) = write_in(&mut link, flow, Some(7), now) {
        written_bytes += bytes;
    }
    assert!(written_bytes <= 2 * LONG, "{written_bytes}");
    // When those have left it changes its band.
    let now = Time::from_ns(link.charged_bytes() * 1_000);
    let other = begin(&mut link, 1_000_000, now);
    while write_in(&mut link, other, Some(7), now).is_some() {}
    assert!(write(&mut link, flow, now).is_some());
}

#[test]
fn a_small_stream_waits_for_what_its_connection_has_in_a_band_behind() {
    let mut link = link(PolicyName::Srpt);
    let now = Time::ZERO;
    let connection = link.open(now);
    let stream = |link: &mut LinkScheduler, body_bytes| {
        let stream = link.open_stream(connection, now);
        start(link, stream, Some(body_bytes), 0, now);
        stream
    };
    let long = stream(&mut link, 1_000_000);
    while let Answer::Go(bytes) = ask(&mut link, long, 1_000_000, now) {
        link.set_band(connection, 7);
        link.settle_stream(long, bytes, now);
    }
    let small = stream(&mut link, 2_000);
    assert_eq!(ask(&mut link, small, 2_000, now), Answer::Wait);
    // Another connection has nothing in that band.
    let other = begin(&mut link, 1_000, now);
    assert!(write(&mut link, other, now).is_some());
    finish(&mut link, other, now);
    let left_at = Time::from_ns(link.charged_bytes() * 1_000);
    assert_eq!(link.wake_next(left_at), Some(small));
}

#[test]
fn what_keeps_a_response_from_starving_comes_before_all_bands_and_is_paid_there() {
    let mut link = link_with_guard(PolicyName::Srpt);
    let mut now = Time::ZERO;
    let oldest = begin(&mut link, 10_000_000, now);
    let mut had_bytes = 0;
    let mut longest_wait_ns = 0;
    // Better bands would take all of the link.
    while now.as_ns() < 2_000_000_000 {
        let short = begin(&mut link, 4_000, now);
        let began = now;
        let mut left_bytes = 4_000_u64;
        while left_bytes > 0 {
            // Its packets never leave the host, so its socket stays in the last band.
            had_bytes += write_in(&mut link, oldest, Some(7), now).unwrap_or(0);
            match write(&mut link, short, now) {
                Some(bytes) => left_bytes = left_bytes.saturating_sub(bytes),
                None => now = now.after(100_000),
            }
        }
        finish(&mut link, short, now);
        longest_wait_ns = longest_wait_ns.max(now.since(began));
    }
    let share = had_bytes as f64 * 1_000.0 / now.as_ns() as f64;
    assert!((0.03..0.08).contains(&share), "{share}");
    let turn_ns = 2 * LONG / SEGMENT * PACKET_NS;
    assert!(
        longest_wait_ns < 4_000_000 + 2 * turn_ns,
        "{longest_wait_ns}"
    );
}
