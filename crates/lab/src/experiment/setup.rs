//! One set-up: everything that has to be said so that a run can be repeated. All keys have
//! defaults, which are the paper's baseline (Schroeder and Harchol-Balter 2006, Table II, row A) on
//! today's systems.

use serde::{Deserialize, Serialize};
use sooner_workload::Rate;

/// The keys of a set-up as they stand in an experiment; a case's go before the experiment's, and
/// these before the defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetupTable {
    trace: Option<String>,
    rate: Option<String>,
    gaps: Option<Gaps>,
    schedule: Option<String>,
    seconds: Option<u64>,
    warm_up_seconds: Option<u64>,
    drain_seconds: Option<u64>,
    peers: Option<Vec<String>>,
    seeds: Option<Vec<u64>>,
    clients: Option<Vec<Client>>,
    congestion_control: Option<String>,
    super_packets: Option<bool>,
    queue_packets: Option<u32>,
    mss: Option<u32>,
    initial_window: Option<u32>,
    initial_rto_ms: Option<u64>,
    send_buffer_bytes: Option<u32>,
    syn_cookies: Option<bool>,
    backlog: Option<u32>,
    workers: Option<u32>,
    requests_per_connection: Option<u32>,
    patience_seconds: Option<f64>,
    reloads: Option<u32>,
    model: Option<Model>,
    stay: Option<f64>,
    requests_per_visit: Option<u32>,
    think_seconds: Option<f64>,
    users: Option<u32>,
    crowd: Option<String>,
    downloads: Option<u32>,
    busy_processes: Option<u32>,
    bottleneck: Option<RouterLink>,
    netem: Option<String>,
    tls: Option<bool>,
    streams: Option<u32>,
    expect_refusals: Option<bool>,
}

/// How the gaps between requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gaps {
    /// The trace's own, scaled.
    Trace,
    /// Exponential.
    Poisson,
}

/// Who triggers the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// No response does: requests come when they come.
    Open,
    /// A fixed number of users.
    Closed,
    /// Visits come when they come; within one, the response triggers the next request.
    PartlyOpen,
    /// SURGE's users, who ask for pages and pause as was published.
    Surge,
    /// A fixed number of users who ask for the trace's largest object again and again: for
    /// throughput, not for response times.
    Saturated,
}

impl Model {
    /// Whether an experiment can request a load; a fixed number of users brings what the server
    /// lets it.
    pub fn has_load(self) -> bool {
        matches!(self, Model::Open | Model::PartlyOpen)
    }
}

/// A client host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Round-trip time of its path without any queue, ms.
    #[serde(default)]
    pub rtt_ms: f64,
    /// Share of packets lost in each direction.
    #[serde(default)]
    pub loss: f64,
    /// By how much longer a packet to the client may be on its way, ms.
    #[serde(default, skip_serializing_if = "is_none")]
    pub jitter_ms: f64,
}

/// A link beyond the server's host, which cannot see its queue: the router limits it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterLink {
    /// What is not sent is saved up, to so many bytes, and may be sent at any speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_bytes: Option<u64>,
    /// The rate of every client's own link behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_rate: Option<String>,
    /// From so many seconds on it has another rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(f64, String)>,
    /// Downloads from another host through it, from when and until when, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<(u32, f64, f64)>,
}

/// A complete set-up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setup {
    /// `epa`, `nasa`, `surge:SEED`, `sizes:LAW` or a path.
    pub trace: String,
    /// Rate of the server's uplink.
    pub rate_bits_per_sec: u64,
    /// How gaps are made.
    pub gaps: Gaps,
    /// Load over time: a share of the link, the name of a schedule (W1 to W10), or low, high,
    /// seconds low, seconds high.
    pub schedule: String,
    /// Length of the run, warm-up included, s.
    pub seconds: u64,
    /// What is not counted at its start, s.
    pub warm_up_seconds: u64,
    /// How long the last responses are waited for, s.
    pub drain_seconds: u64,
    /// Who serves, each on hosts of its own.
    #[serde(skip)]
    pub peers: Vec<String>,
    /// Seeds of the arrivals, one run each.
    #[serde(skip)]
    pub seeds: Vec<u64>,
    /// The client hosts; requests are spread evenly over them.
    pub clients: Vec<Client>,
    /// TCP congestion control of both sides; none: the kernel's default.
    pub congestion_control: Option<String>,
    /// Whether TCP may hand super-packets to the device.
    pub super_packets: bool,
    /// Packets that the queue before the link holds.
    pub queue_packets: u32,
    /// Maximum segment size, bytes; none: the device's.
    pub mss: Option<u32>,
    /// Initial congestion window, segments; none: the kernel's default of 10.
    pub initial_window: Option<u32>,
    /// Retransmission timeout of a SYN, ms; none: the kernel's default of 1000.
    pub initial_rto_ms: Option<u64>,
    /// The most that the server's kernel takes from a socket before the client has it, bytes; none:
    /// what the kernel finds right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u32>,
    /// Whether SYN cookies are sent; none: the kernel's default.
    pub syn_cookies: Option<bool>,
    /// Length of the queues of half-open and of not yet accepted connections; none: each server's
    /// default.
    pub backlog: Option<u32>,
    /// Requests that a process-based server (Apache) handles at a time; none: well sized.
    pub workers: Option<u32>,
    /// Requests after which a connection is closed.
    pub requests_per_connection: u32,
    /// After which time a user aborts, s; none: never.
    pub patience_seconds: Option<f64>,
    /// How often a user then asks again.
    pub reloads: u32,
    /// Who triggers the next request.
    pub model: Model,
    /// Partly-open: probability that a visit goes on after a response.
    pub stay: Option<f64>,
    /// Partly-open: requests of every visit, instead.
    pub requests_per_visit: Option<u32>,
    /// Closed and partly-open: mean think time, s.
    pub think_seconds: f64,
    /// Closed, SURGE and saturated: number of users.
    pub users: Option<u32>,
    /// A crowd at one object where the load is highest: its size in bytes, and the share of the
    /// requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crowd: Option<String>,
    /// Endless downloads of one large file beside everything else; none are measured.
    #[serde(skip_serializing_if = "is_zero")]
    pub downloads: u32,
    /// Processes on this machine that compute without end, beside all servers and at their priority.
    #[serde(skip_serializing_if = "is_zero")]
    pub busy_processes: u32,
    /// The link is limited by a router and not before the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<RouterLink>,
    /// What netem does to the packets to all clients, in the words of `tc`; without it the emulator
    /// makes delay and loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem: Option<String>,
    /// Whether requests go over TLS.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
    /// Streams at a time on a connection, by HTTP/2; none: HTTP/1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Whether status 503 is the answer of a server that admits only so many.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expect_refusals: bool,
}

/// A value that cannot be used: which key, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SetupError {
    /// The key of the set-up.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub problem: String,
}

pub(super) fn wrong(key: &'static str, problem: impl Into<String>) -> SetupError {
    SetupError {
        key,
        problem: problem.into(),
    }
}

impl SetupTable {
    /// These keys, and where they say nothing those of `other`.
    pub fn over(self, other: &SetupTable) -> SetupTable {
        let other = other.clone();
        SetupTable {
            trace: self.trace.or(other.trace),
            rate: self.rate.or(other.rate),
            gaps: self.gaps.or(other.gaps),
            schedule: self.schedule.or(other.schedule),
            seconds: self.seconds.or(other.seconds),
            warm_up_seconds: self.warm_up_seconds.or(other.warm_up_seconds),
            drain_seconds: self.drain_seconds.or(other.drain_seconds),
            peers: self.peers.or(other.peers),
            seeds: self.seeds.or(other.seeds),
            clients: self.clients.or(other.clients),
            congestion_control: self.congestion_control.or(other.congestion_control),
            super_packets: self.super_packets.or(other.super_packets),
            queue_packets: self.queue_packets.or(other.queue_packets),
            mss: self.mss.or(other.mss),
            initial_window: self.initial_window.or(other.initial_window),
            initial_rto_ms: self.initial_rto_ms.or(other.initial_rto_ms),
            send_buffer_bytes: self.send_buffer_bytes.or(other.send_buffer_bytes),
            syn_cookies: self.syn_cookies.or(other.syn_cookies),
            backlog: self.backlog.or(other.backlog),
            workers: self.workers.or(other.workers),
            requests_per_connection: self
                .requests_per_connection
                .or(other.requests_per_connection),
            patience_seconds: self.patience_seconds.or(other.patience_seconds),
            reloads: self.reloads.or(other.reloads),
            model: self.model.or(other.model),
            stay: self.stay.or(other.stay),
            requests_per_visit: self.requests_per_visit.or(other.requests_per_visit),
            think_seconds: self.think_seconds.or(other.think_seconds),
            users: self.users.or(other.users),
            crowd: self.crowd.or(other.crowd),
            downloads: self.downloads.or(other.downloads),
            busy_processes: self.busy_processes.or(other.busy_processes),
            bottleneck: self.bottleneck.or(other.bottleneck),
            netem: self.netem.or(other.netem),
            tls: self.tls.or(other.tls),
            streams: self.streams.or(other.streams),
            expect_refusals: self.expect_refusals.or(other.expect_refusals),
        }
    }

    /// The same with these peers.
    pub fn with_peers(self, peers: Vec<String>) -> SetupTable {
        SetupTable {
            peers: Some(peers),
            ..self
        }
    }

    /// The set-up, with defaults for what is not said.
    pub fn complete(self) -> Result<Setup, SetupError> {
        let seconds = self.seconds.unwrap_or(120);
        let rate: Rate = self
            .rate
            .as_deref()
            .unwrap_or("10mbit")
            .parse()
            .map_err(|error| wrong("rate", format!("{error}")))?;
        let congestion_control = self.congestion_control.unwrap_or_else(|| "cubic".into());
        let setup = Setup {
            trace: self.trace.unwrap_or_else(|| "epa".into()),
            rate_bits_per_sec: rate.bits_per_sec(),
            gaps: self.gaps.unwrap_or(Gaps::Trace),
            schedule: self.schedule.unwrap_or_default(),
            seconds,
            warm_up_seconds: self.warm_up_seconds.unwrap_or(seconds / 10),
            drain_seconds: self.drain_seconds.unwrap_or(60),
            peers: self.peers.unwrap_or_default(),
            seeds: self.seeds.unwrap_or_else(|| vec![1]),
            clients: self.clients.unwrap_or_else(|| vec![Client::default()]),
            // "default" is how an experiment asks for what the kernel does by itself.
            congestion_control: Some(congestion_control).filter(|name| name != "default"),
            super_packets: self.super_packets.unwrap_or(false),
            queue_packets: self.queue_packets.unwrap_or(100),
            mss: self.mss,
            initial_window: self.initial_window,
            initial_rto_ms: self.initial_rto_ms,
            send_buffer_bytes: self.send_buffer_bytes,
            syn_cookies: self.syn_cookies,
            backlog: self.backlog,
            workers: self.workers,
            requests_per_connection: self.requests_per_connection.unwrap_or(1),
            patience_seconds: self.patience_seconds,
            reloads: self.reloads.unwrap_or(0),
            model: self.model.unwrap_or(Model::Open),
            stay: self.stay,
            requests_per_visit: self.requests_per_visit,
            think_seconds: self.think_seconds.unwrap_or(0.0),
            users: self.users,
            crowd: self.crowd,
            downloads: self.downloads.unwrap_or(0),
            busy_processes: self.busy_processes.unwrap_or(0),
            bottleneck: self.bottleneck,
            netem: self.netem,
            tls: self.tls.unwrap_or(false),
            streams: self.streams,
            expect_refusals: self.expect_refusals.unwrap_or(false),
        };
        setup.check()?;
        Ok(setup)
    }
}

/// Left out of what is kept, so that runs from before the key was there are still of the same
/// set-up.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The same for what is measured in milliseconds.
fn is_none(ms: &f64) -> bool {
    *ms == 0.0
}

impl Setup {
    /// The seed of SURGE's files, if the trace is SURGE's.
    pub fn surge_files(&self) -> Option<u64> {
        self.trace.strip_prefix("surge:")?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> SetupTable {
        toml::from_str(text).unwrap()
    }

    const LEAST: &str = "peers = [\"nginx\"]\nschedule = \"0.9\"\n";

    #[test]
    fn a_case_goes_before_its_experiment_and_both_before_the_defaults() {
        let experiment = table(&format!("{LEAST}seconds = 50\nqueue_packets = 7"));
        let setup = table("seconds = 90").over(&experiment).complete().unwrap();
        assert_eq!(
            (setup.seconds, setup.queue_packets, setup.warm_up_seconds),
            (90, 7, 9)
        );
        assert_eq!(setup.congestion_control.as_deref(), Some("cubic"));
        let defaults = table("congestion_control = \"default\"").over(&experiment);
        assert_eq!(defaults.complete().unwrap().congestion_control, None);
    }
}
