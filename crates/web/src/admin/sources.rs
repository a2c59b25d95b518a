//! Where the figures come from that others keep: the uplink, its shadow, the log, the upstreams.

use super::prediction::PredictionReading;
use crate::access_log::AccessLog;
use crate::metrics::{Metrics, SIZE_CLASSES};
use crate::proxy::{ClassState, PredictionState, RehearsalState, Standing, UpstreamState};
use serde::{Deserialize, Serialize};
use sooner_admission::{Order, ResponseTarget, Within};
use sooner_config::classes::name_of;
use sooner_link::Load;
use sooner_uplink::{Found, Uplink};
use std::sync::Arc;

/// Everything that is asked when a client reads the figures.
pub struct Sources {
    /// Those of each worker, of which there is one at least; the process's own figures are in the
    /// first.
    pub metrics: Vec<Arc<Metrics>>,
    /// The log.
    pub log: AccessLog,
    /// Asks the uplink; see [`UplinkReading::of_all`].
    pub uplink: Box<dyn Fn() -> UplinkReading>,
    /// Asks the upstreams, one row a server.
    pub upstreams: Box<dyn Fn() -> Vec<UpstreamState>>,
    /// Asks the upstreams, one row a class.
    pub upstream_classes: Box<dyn Fn() -> Vec<ClassState>>,
    /// Asks the upstreams, one row for each, how good their expectations were.
    pub upstream_predictions: Box<dyn Fn() -> Vec<PredictionState>>,
    /// Asks the upstreams that hold nothing, one row a class.
    pub rehearsals: Box<dyn Fn() -> Vec<RehearsalState>>,
}

/// Responses by size.
type Loads = [ClassLoad; SIZE_CLASSES.len()];

/// An uplink at one moment.
#[derive(Clone, Debug, Default)]
pub struct UplinkReading {
    /// The policy in force, `none` without order.
    pub policy: String,
    /// How the order is made, in words.
    pub mechanism: String,
    /// The rate of the link; `None` without a limit, or before one was found.
    pub rate_bits_per_sec: Option<u64>,
    /// What is believed of the link, where its rate is found.
    pub found: Option<Found>,
    /// Bytes charged to the link since the start, packet headers included; without a limit those
    /// given to sockets.
    pub sent_wire_bytes: u64,
    /// Responses that wait for their turn, by size.
    pub waiting: Loads,
    /// Responses that are being sent, or wait for their own client, by size.
    pub sending: Loads,
}

impl UplinkReading {
    /// Asks `uplink`.
    pub fn of(uplink: &Uplink) -> Self {
        let (now, found) = (uplink.snapshot(), uplink.found());
        Self {
            policy: now.policy.into(),
            mechanism: uplink.describe(),
            // Where none was found yet, the rate in force limits nothing.
            rate_bits_per_sec: match found {
                Some(_) => now.rate_bits_per_sec.and_then(sooner_uplink::limit),
                None => now.rate_bits_per_sec,
            },
            found,
            sent_wire_bytes: now.wire_bytes.unwrap_or(now.socket_bytes),
            waiting: now.waiting.map(ClassLoad::of),
            sending: now.sending.map(ClassLoad::of),
        }
    }

    /// Asks the uplinks of all workers. Several have no limit: what they send and what is there
    /// adds up, and the rest is the first one's.
    pub fn of_all(uplinks: &[Uplink]) -> Self {
        let all = uplinks.iter().map(Self::of);
        all.reduce(Self::plus).unwrap_or_default()
    }

    fn plus(self, other: Self) -> Self {
        let sum = |ours: Loads, theirs: Loads| -> Loads {
            std::array::from_fn(|class| ours[class].plus(theirs[class]))
        };
        Self {
            sent_wire_bytes: self.sent_wire_bytes + other.sent_wire_bytes,
            waiting: sum(self.waiting, other.waiting),
            sending: sum(self.sending, other.sending),
            ..self
        }
    }
}

/// Responses of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassLoad {
    /// How many.
    pub jobs: u64,
    /// Bytes they still have to send.
    pub bytes: u64,
}

impl Sources {
    /// What all workers have counted until now.
    pub fn sum_metrics(&self) -> Arc<Metrics> {
        match self.metrics.as_slice() {
            // Nothing to add up: no copy.
            [one] => one.clone(),
            all => Arc::new(Metrics::sum(all)),
        }
    }

    /// The metrics that have the process's own figures.
    pub fn process_metrics(&self) -> &Metrics {
        &self.metrics[0]
    }

    /// The servers behind this one now.
    pub fn upstream_readings(&self) -> Vec<UpstreamReading> {
        let states = (self.upstreams)();
        states.into_iter().map(UpstreamReading::from).collect()
    }

    /// The classes before them now.
    pub fn class_readings(&self) -> Vec<ClassReading> {
        let states = (self.upstream_classes)();
        states.into_iter().map(ClassReading::from).collect()
    }

    /// How good expectations of upstreams were of late.
    pub fn prediction_readings(&self) -> Vec<PredictionReading> {
        let states = (self.upstream_predictions)();
        states.into_iter().map(PredictionReading::from).collect()
    }

    /// What holding would do now, where nothing is held.
    pub fn rehearsal_readings(&self) -> Vec<RehearsalReading> {
        let states = (self.rehearsals)();
        states.into_iter().map(RehearsalReading::from).collect()
    }
}

impl ClassLoad {
    fn of(load: Load) -> Self {
        Self {
            jobs: load.jobs,
            bytes: load.remaining_bytes,
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            jobs: self.jobs + other.jobs,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// A server behind this one at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UpstreamReading {
    /// The upstream's name.
    pub upstream: String,
    /// The server's address.
    pub server: String,
    /// How it stands, in a word.
    pub state: &'static str,
    /// In which order requests that wait for the upstream go in, in a word.
    pub order: &'static str,
    /// Whether requests are sent to it.
    pub is_up: bool,
    /// Requests it has now.
    pub requests_inside: u64,
    /// How many the upstream's servers may have together; `null`: no limit.
    pub requests_inside_max: Option<u64>,
    /// How many the server may have while it is up; `null`: no limit.
    pub server_requests_max: Option<u64>,
    /// Requests that wait for a place at the upstream, for all its servers in one queue.
    pub requests_waiting: u64,
    /// Requests it got in all.
    pub requests_total: u64,
    /// Requests it did not answer, or not to the end.
    pub failures_total: u64,
    /// Requests it did not answer that were sent again, to it or to another server.
    pub retries_total: u64,
    /// The mean time of a request inside it, of late; `null` before the first.
    pub mean_inside_seconds: Option<f64>,
}

impl From<UpstreamState> for UpstreamReading {
    fn from(state: UpstreamState) -> Self {
        Self {
            upstream: state.name.as_ref().into(),
            server: state.server.as_ref().into(),
            state: match state.standing {
                Standing::Up => "up",
                Standing::OnProbation => "on probation",
                Standing::Down => "down",
            },
            order: order_name(state.order),
            is_up: state.standing == Standing::Up,
            requests_inside: state.inside as u64,
            requests_inside_max: bounded(state.limit),
            server_requests_max: bounded(state.server_limit),
            requests_waiting: state.waiting as u64,
            requests_total: state.requests,
            failures_total: state.failures,
            retries_total: state.retries,
            mean_inside_seconds: state.mean_service_ms.map(|ms| ms / 1e3),
        }
    }
}

/// A class before an upstream at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassReading {
    /// The upstream's name.
    pub upstream: String,
    /// The class's; empty for what is in none.
    pub class: String,
    /// Its requests that wait or are inside.
    pub requests: u64,
    /// Those that are inside.
    pub inside_requests: u64,
    /// The most that may be; `null`: as many as the limit lets in.
    pub limit_requests: Option<u64>,
    /// Those that ran for longer than they may, since the start.
    pub overlong_total: u64,
    /// Those of them that were cancelled.
    pub cancelled_total: u64,
    /// Those that were answered, since the start.
    pub done_total: u64,
    /// Their response times together, waiting included.
    pub response_seconds_total: f64,
    /// Their times inside together.
    pub inside_seconds_total: f64,
    /// The mean time inside, of late; `null` before the first.
    pub mean_inside_seconds: Option<f64>,
    /// The mean response time of the upstream, waiting included, of late; `null` before the first.
    pub mean_response_seconds: Option<f64>,
    /// What 95 in a hundred of the last 512 took at most; `null` before the first.
    pub p95_response_seconds: Option<f64>,
    /// What 99 in a hundred took.
    pub p99_response_seconds: Option<f64>,
    /// What it is to get, and what it got.
    pub targets: Vec<TargetReading>,
}

/// How long requests of a class would have waited for an upstream that holds none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RehearsalReading {
    /// The upstream's name.
    pub upstream: String,
    /// The class's; empty for what is in none.
    pub class: String,
    /// Its requests that would have gone in.
    pub requests_total: u64,
    /// Those of them that would have waited.
    pub would_wait_total: u64,
    /// How long these would have in all.
    pub would_wait_seconds_total: f64,
    /// The mean of all; `null` before the first.
    pub mean_would_wait_seconds: Option<f64>,
    /// The longest.
    pub would_wait_seconds_max: f64,
    /// Those that would wait now.
    pub would_wait_now: u64,
    /// Those that would have been refused.
    pub would_refuse_total: u64,
    /// Those that were not followed.
    pub missed_total: u64,
}

impl From<RehearsalState> for RehearsalReading {
    fn from(state: RehearsalState) -> Self {
        let would = state.would;
        Self {
            upstream: state.upstream.as_ref().into(),
            class: state.class,
            requests_total: would.jobs,
            would_wait_total: would.waited,
            would_wait_seconds_total: would.wait_sum_ns as f64 / 1e9,
            mean_would_wait_seconds: would.mean_ns().map(seconds),
            would_wait_seconds_max: seconds(would.wait_max_ns),
            would_wait_now: would.waiting,
            would_refuse_total: would.refused,
            missed_total: would.missed,
        }
    }
}

/// A response-time target of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetReading {
    /// Of what: `mean`, `p95`.
    pub target: String,
    /// How long it may be.
    pub target_seconds: f64,
    /// How long it was of late; `null` before the first.
    pub achieved_seconds: Option<f64>,
}

impl From<ClassState> for ClassReading {
    fn from(ClassState { upstream, status }: ClassState) -> Self {
        let targets = status.achieved.into_iter().map(TargetReading::from);
        Self {
            upstream: upstream.as_ref().into(),
            class: status.name,
            requests: status.present as u64,
            inside_requests: status.inside as u64,
            limit_requests: status.inside_max.map(|max| max as u64),
            overlong_total: status.overlong,
            cancelled_total: status.cancelled,
            done_total: status.done.jobs,
            response_seconds_total: status.done.response_sum_ns as f64 / 1e9,
            inside_seconds_total: status.done.inside_sum_ns as f64 / 1e9,
            mean_inside_seconds: status.inside_ns.map(seconds),
            mean_response_seconds: status.response_ns.map(seconds),
            p95_response_seconds: status.p95_response_ns.map(seconds),
            p99_response_seconds: status.p99_response_ns.map(seconds),
            targets: targets.collect(),
        }
    }
}

impl From<(ResponseTarget, Option<u64>)> for TargetReading {
    fn from((target, achieved_ns): (ResponseTarget, Option<u64>)) -> Self {
        Self {
            target: name_of(target),
            target_seconds: seconds(target.target_ns()),
            achieved_seconds: achieved_ns.map(seconds),
        }
    }
}

/// An order in a word, as `upstream.order` has it where it can be said there.
fn order_name(order: Order) -> &'static str {
    match (order, order.within()) {
        (Order::Targets(_), _) => "targets",
        (Order::Shares, _) => "weights",
        (Order::LeastUsed(_), _) => "share_by",
        (_, within) => within.map_or("fifo", Within::name),
    }
}

pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn bounded(limit: usize) -> Option<u64> {
    (limit < usize::MAX).then_some(limit as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_link::ResponseStart;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn what_workers_send_adds_up() {
        let uplinks = [Uplink::unlimited(), Uplink::unlimited()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut ends = Vec::new();
        for (uplink, bytes) in uplinks.iter().zip([100, 20]) {
            let connecting = TcpStream::connect(listener.local_addr().unwrap());
            let (client, accepted) = tokio::join!(connecting, listener.accept());
            let (mut stream, flow) = uplink.wrap(accepted.unwrap().0);
            let response = ResponseStart {
                body_bytes: Some(1000),
                ..ResponseStart::default()
            };
            flow.start(response, drop);
            stream.write_all(&vec![0; bytes]).await.unwrap();
            stream.flush().await.unwrap();
            ends.push((client.unwrap(), stream, flow));
        }
        for (count, sent_bytes) in [(0, 0), (1, 100), (2, 120)] {
            let reading = UplinkReading::of_all(&uplinks[..count]);
            assert_eq!(reading.sent_wire_bytes, sent_bytes);
            let sending = reading.sending[0];
            assert_eq!(sending.jobs, count as u64);
            assert_eq!(sending.bytes, 1000 * sending.jobs - sent_bytes);
            assert_eq!(reading.waiting, Loads::default());
            assert_eq!(reading.rate_bits_per_sec, None);
        }
        assert_eq!(UplinkReading::of_all(&uplinks).policy, "none");
    }
}
