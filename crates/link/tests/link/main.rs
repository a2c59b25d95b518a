//! The scheduler without sockets.

mod above_bands;
mod by_client;
mod connections;
mod multiplexed;
mod responses;
mod streams;

use sooner_link::{Answer, FlowId, LinkConfig, LinkLimits, LinkScheduler, Pacing, ResponseStart};
use sooner_policy::{ClientId, GuardLimits, Payer, PolicyName, Time};
use std::task::Waker;

/// A link where all writes wait.
fn paced(policy: PolicyName, limits: LinkLimits, guard: Option<GuardLimits>) -> LinkScheduler {
    let config = LinkConfig {
        policy: Some(policy),
        pacing: Some(Pacing { limits, guard }),
        ..LinkConfig::default()
    };
    LinkScheduler::new(config, Time::ZERO)
}

/// The same, where of the clients the one goes first that received the least of late.
fn paced_by_client(limits: LinkLimits, guard: Option<GuardLimits>) -> LinkScheduler {
    let config = LinkConfig {
        policy: Some(PolicyName::Srpt),
        by_client: true,
        pacing: Some(Pacing { limits, guard }),
        ..LinkConfig::default()
    };
    LinkScheduler::new(config, Time::ZERO)
}

/// A client that is a network of its own.
fn client(number: u64) -> Payer {
    Payer {
        client: ClientId(number),
        network: None,
    }
}

/// A response; the body of the one before it is done. Returns the rank of the flow's job.
fn start(
    link: &mut LinkScheduler,
    flow: FlowId,
    body_bytes: Option<u64>,
    class: u8,
    now: Time,
) -> u64 {
    let response = ResponseStart {
        body_bytes,
        class,
        ..ResponseStart::default()
    };
    link.body_done(flow);
    _ = link.start(flow, response, Box::new(|_| {}), now);
    link.rank(flow).unwrap_or(0)
}

fn ask(link: &mut LinkScheduler, flow: FlowId, want_bytes: u64, now: Time) -> Answer {
    link.ask(flow, want_bytes, Waker::noop(), now)
}

/// Everything that the connection had to write is written.
fn finish(link: &mut LinkScheduler, connection: FlowId, now: Time) {
    link.body_done(connection);
    link.flushed(connection, now);
}
