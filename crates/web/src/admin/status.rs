//! `/status.json`: everything the live page shows, as data. Times are in seconds; means of nothing
//! are `null`.

use super::history::{ClassTimes, History, Sum, Totals};
use super::prediction::PredictionReading;
use super::sources::{ClassLoad, ClassReading, RehearsalReading, Sources, UpstreamReading};
use crate::metrics::{Metrics, Refusal, SIZE_CLASSES, Slow, unix_seconds};
use serde::Serialize;
use sooner_uplink::Found;
use std::time::SystemTime;

/// With fewer responses in the last minute a comparison is an anecdote, and there is none.
const COMPARED_MIN: u64 = 20;

/// The server at one moment.
#[derive(Debug, Serialize)]
pub struct Status {
    /// The form of this object; a field once published keeps its name and meaning.
    pub schema: u32,
    /// When it was made, seconds since 1970.
    pub time_unix_seconds: f64,
    /// Since the server began.
    pub uptime_seconds: f64,
    /// The version of the program.
    pub version: &'static str,
    /// Whether the server takes no new connections and is about to end.
    pub is_stopping: bool,
    /// Threads that serve.
    pub workers: usize,
    /// The link and who goes first on it.
    pub uplink: UplinkStatus,
    /// What the order was worth, last minute.
    pub comparison: Comparison,
    /// By size, last minute and now.
    pub sizes: Vec<SizeStatus>,
    /// The last five minutes.
    pub per_second: PerSecond,
    /// Responses in all.
    pub requests_total: u64,
    /// Responses that were not sent whole.
    pub aborted_total: u64,
    /// Connections.
    pub connections: ConnectionStatus,
    /// TLS handshakes.
    pub handshakes: HandshakeStatus,
    /// Servers behind this one.
    pub upstreams: Vec<UpstreamReading>,
    /// The classes before them, one row for each upstream and class.
    pub upstream_classes: Vec<ClassReading>,
    /// How good expectations of their requests were of late, one row for each upstream.
    pub upstream_predictions: Vec<PredictionReading>,
    /// How long requests would have waited for upstreams that hold nothing, likewise.
    pub upstream_rehearsals: Vec<RehearsalReading>,
    /// The slowest responses of the last five minutes, slowest first.
    pub slowest: Vec<SlowStatus>,
    /// Lines that the access log has lost.
    pub log_lines_lost_total: u64,
    /// The configuration.
    pub config: ConfigStatus,
}

/// The link and who goes first on it.
#[derive(Debug, Serialize)]
pub struct UplinkStatus {
    /// The policy, `none` without order.
    pub policy: String,
    /// How the order is made, in words.
    pub mechanism: String,
    /// The rate; `null` without a limit, or before one was found.
    pub rate_bits_per_sec: Option<u64>,
    /// What is believed of the link, where its rate is found; `null` where it was given.
    pub found: Option<FoundStatus>,
    /// The share of it that was used in the last ten seconds.
    pub busy_share: Option<f64>,
    /// Responses that wait for their turn.
    pub waiting: ClassLoad,
    /// Responses that are being sent, or wait for their own client.
    pub sending: ClassLoad,
}

/// An uplink with a rate that is found while traffic flows.
#[derive(Debug, Serialize)]
pub struct FoundStatus {
    /// `open` (no limit), `trial`, `drain`, `hold` or `probe`.
    pub state: String,
    /// What the link is believed to carry; `null`: not known.
    pub carries_bits_per_sec: Option<u64>,
    /// What all clients wait for beyond this host.
    pub waits_ms: f64,
    /// How often the rate was changed.
    pub decided: u64,
    /// Why it was changed last; `null`: never.
    pub why: Option<String>,
}

impl FoundStatus {
    fn of(found: &Found) -> Self {
        Self {
            state: found.state.to_string(),
            carries_bits_per_sec: found.carries_bits_per_sec,
            waits_ms: found.waits.common_ms,
            decided: found.decided,
            why: found.last.map(|last| last.why.to_string()),
        }
    }
}

/// What the order was worth in the last minute, for the responses that FAIR has done as well.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// How many there were.
    pub responses: u64,
    /// Their mean response time.
    pub mean_response_seconds: Option<f64>,
    /// What FAIR gave the very same.
    pub mean_fair_response_seconds: Option<f64>,
    /// FAIR's mean over the real one; `null` below 20 responses.
    pub times_sooner: Option<f64>,
    /// Jobs that FAIR would still be serving.
    pub fair_jobs: u64,
    /// Jobs that were not followed, because too many were.
    pub missed_jobs_total: u64,
}

/// One class of sizes.
#[derive(Debug, Serialize)]
pub struct SizeStatus {
    /// Its name.
    pub size_class: &'static str,
    /// The largest size in it; `null`: no end.
    pub up_to_bytes: Option<u64>,
    /// Responses sent in the last minute, by the size of their bodies.
    pub responses: u64,
    /// Their mean response time.
    pub mean_response_seconds: Option<f64>,
    /// How much of it they waited while others went first.
    pub mean_wait_seconds: Option<f64>,
    /// Responses of the last minute that FAIR has done as well, by their size on the wire.
    pub compared: u64,
    /// Their mean response time.
    pub mean_compared_response_seconds: Option<f64>,
    /// What FAIR gave the very same.
    pub mean_fair_response_seconds: Option<f64>,
    /// Responses of this size that wait now.
    pub waiting: ClassLoad,
    /// Responses of this size that are being sent now.
    pub sending: ClassLoad,
}

/// The last five minutes, oldest first, a value a second.
#[derive(Debug, Serialize)]
pub struct PerSecond {
    /// Bytes charged to the link, packet headers included; without a limit those given to sockets.
    pub wire_bytes: Vec<u64>,
    /// Bytes of the bodies of responses that ended.
    pub response_bytes: Vec<u64>,
    /// Responses that ended.
    pub requests: Vec<u64>,
}

/// Connections.
#[derive(Debug, Serialize)]
pub struct ConnectionStatus {
    /// Open now.
    pub open: u64,
    /// Accepted in all.
    pub accepted_total: u64,
    /// Refused in all.
    pub refused_total: u64,
}

/// TLS handshakes.
#[derive(Debug, Serialize)]
pub struct HandshakeStatus {
    /// That succeeded.
    pub ok_total: u64,
    /// That failed.
    pub failed_total: u64,
}

/// A slow response, and why it was.
#[derive(Debug, Serialize)]
pub struct SlowStatus {
    /// The target of the request.
    pub target: String,
    /// Its status.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub size_bytes: u64,
    /// Time in which others went first.
    pub wait_seconds: f64,
    /// The rest: being written, or waiting for its own client.
    pub service_seconds: f64,
    /// Whether all of it was sent.
    pub completed: bool,
}

/// The configuration.
#[derive(Debug, Serialize)]
pub struct ConfigStatus {
    /// A hash of its text, in hexadecimal.
    pub hash: String,
    /// When it was taken, seconds since 1970.
    pub since_unix_seconds: u64,
    /// Configurations that were taken, the first one included.
    pub reloads_ok_total: u64,
    /// Configurations that were refused while the server ran.
    pub reloads_failed_total: u64,
}

impl Status {
    /// Asks all sources, at `now`.
    pub fn read(sources: &Sources, history: &History, now: SystemTime) -> Self {
        let (metrics, uplink) = (sources.sum_metrics(), (sources.uplink)());
        let recent = history.recent();
        let all = recent
            .into_iter()
            .fold(ClassTimes::default(), ClassTimes::plus);
        let time_unix_seconds = unix_seconds(now);
        let sites = metrics.sites();
        let refused = Refusal::ALL
            .into_iter()
            .map(|reason| metrics.refused(reason));
        let opened = metrics.connections_opened.get();
        Self {
            schema: 1,
            time_unix_seconds,
            uptime_seconds: time_unix_seconds - metrics.started_at_unix_seconds,
            version: env!("CARGO_PKG_VERSION"),
            is_stopping: metrics.is_stopping(),
            workers: sources.metrics.len(),
            comparison: Comparison::new(all, &metrics),
            sizes: (0..SIZE_CLASSES.len())
                .map(|class| {
                    let now = (uplink.waiting[class], uplink.sending[class]);
                    SizeStatus::new(class, recent[class], now)
                })
                .collect(),
            uplink: UplinkStatus {
                busy_share: uplink
                    .rate_bits_per_sec
                    .and_then(|rate| history.busy_share(rate)),
                rate_bits_per_sec: uplink.rate_bits_per_sec,
                found: uplink.found.as_ref().map(FoundStatus::of),
                waiting: sum(&uplink.waiting),
                sending: sum(&uplink.sending),
                policy: uplink.policy,
                mechanism: uplink.mechanism,
            },
            per_second: PerSecond::new(history),
            requests_total: sites
                .iter()
                .flat_map(|site| site.requests.iter().flatten())
                .sum(),
            aborted_total: metrics.aborted.get(),
            connections: ConnectionStatus {
                open: opened.saturating_sub(metrics.connections_closed.get()),
                accepted_total: opened,
                refused_total: refused.sum(),
            },
            handshakes: HandshakeStatus {
                ok_total: metrics.handshakes.get(),
                failed_total: metrics.handshakes_failed.get(),
            },
            upstreams: sources.upstream_readings(),
            upstream_classes: sources.class_readings(),
            upstream_predictions: sources.prediction_readings(),
            upstream_rehearsals: sources.rehearsal_readings(),
            slowest: metrics.slowest().into_iter().map(SlowStatus::new).collect(),
            log_lines_lost_total: sources.log.lost_lines(),
            config: ConfigStatus {
                hash: format!("{:016x}", metrics.config_hash.get()),
                since_unix_seconds: metrics.configured_at_unix_seconds.get(),
                reloads_ok_total: metrics.reloads.get(),
                reloads_failed_total: metrics.reloads_failed.get(),
            },
        }
    }
}

impl Comparison {
    fn new(all: ClassTimes, metrics: &Metrics) -> Self {
        let shadow = metrics.shadow();
        Self {
            responses: all.compared.count,
            mean_response_seconds: all.compared.mean_seconds(),
            mean_fair_response_seconds: all.fair.mean_seconds(),
            times_sooner: times_sooner(all.compared, all.fair),
            fair_jobs: shadow.map_or(0, |shadow| shadow.present() as u64),
            missed_jobs_total: shadow.map_or(0, |shadow| shadow.missed()),
        }
    }
}

impl PerSecond {
    fn new(history: &History) -> Self {
        let of = |value: fn(&Totals) -> u64| history.seconds().map(value).collect();
        Self {
            wire_bytes: of(|second| second.wire_bytes),
            response_bytes: of(|second| second.response_bytes),
            requests: of(|second| second.requests),
        }
    }
}

impl SizeStatus {
    fn new(class: usize, times: ClassTimes, (waiting, sending): (ClassLoad, ClassLoad)) -> Self {
        Self {
            size_class: SIZE_CLASSES[class].name,
            up_to_bytes: SIZE_CLASSES[class].up_to_bytes,
            responses: times.responses.count,
            mean_response_seconds: times.responses.mean_seconds(),
            mean_wait_seconds: times.waits.mean_seconds(),
            compared: times.compared.count,
            mean_compared_response_seconds: times.compared.mean_seconds(),
            mean_fair_response_seconds: times.fair.mean_seconds(),
            waiting,
            sending,
        }
    }
}

impl SlowStatus {
    fn new(slow: Slow) -> Self {
        Self {
            target: slow.target,
            status: slow.status,
            size_bytes: slow.size_bytes,
            wait_seconds: slow.wait_ns as f64 / 1e9,
            service_seconds: slow.service_ns as f64 / 1e9,
            completed: slow.is_complete,
        }
    }
}

fn times_sooner(compared: Sum, fair: Sum) -> Option<f64> {
    (compared.count >= COMPARED_MIN && compared.ns > 0).then(|| fair.ns as f64 / compared.ns as f64)
}

fn sum(loads: &[ClassLoad]) -> ClassLoad {
    let loads = loads.iter().copied();
    loads.fold(ClassLoad::default(), ClassLoad::plus)
}

#[cfg(test)]
pub(crate) mod tests;
