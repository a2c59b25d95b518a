//! One run: everything that is reported of it, computed from its samples and what the caller knows.

use crate::by_size::{by_size, rank_by_size};
use crate::ccdf::ccdf;
use crate::order::percentile;
use crate::per_second::per_second;
use crate::{
    CcdfPoint, ClientGroup, ErrorKind, Group, Interarrivals, Outcome, Sample, Second, SizeBucket,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether a measurement may be believed; the driver decides, from its own lag, CPU, descriptors
/// and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// The generator kept up: the figures are the server's.
    Valid,
    /// The generator, not the server, shaped the figures.
    Invalid,
}

/// What the caller knows of a run beyond its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// Name of the policy, as in `--policy`.
    pub policy: String,
    /// Whether the run may be believed.
    pub verdict: Verdict,
    /// Why, in one line.
    pub verdict_reason: String,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Load the plan offered, as a share of the link.
    pub offered_load: f64,
    /// Rate of the link in bits per second; above 0.
    pub rate_bits_per_sec: u64,
    /// Length of the measured interval, without warm-up, in ns; above 0.
    pub measured_ns: u64,
    /// SYNs the server's host dropped during the run, where that could be read.
    pub syn_drops: Option<u64>,
    /// SYNs the client's host sent again during the run, where that could be read.
    pub syn_retransmissions: Option<u64>,
}

/// How many errors of a run are told one by one.
pub const FIRST_ERRORS: usize = 10;

/// One request that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestError {
    /// When the request was sent, in s since the start of the run.
    pub sent_s: f64,
    /// From then to the error, in ms.
    pub after_ms: f64,
    /// Body of the requested response, in bytes.
    pub size_bytes: u64,
    /// What went wrong, in words.
    pub what: String,
}

/// One run (`RUN` in the JSON).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the policy, as in `--policy`.
    pub policy: String,
    /// VALID or INVALID.
    pub verdict: Verdict,
    /// Why, in one line.
    pub verdict_reason: String,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Rate of the link in bits per second.
    pub rate_bits_per_sec: u64,
    /// Length of the measured interval in seconds.
    pub measured_s: f64,
    /// Who triggers a request: `open`, `partly-open`, `closed` or `surge`; absent where nothing
    /// says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Load the plan offered, as a share of the link; in a closed system nothing is asked, and it
    /// is the realised one.
    pub offered_load: f64,
    /// Work of all requests in the measured interval / what the link carries in it.
    pub realised_load: f64,
    /// Body bits of the completed requests / length of the measured interval.
    pub goodput_bits_per_sec: f64,
    /// 99th percentile of how late requests were sent, in µs.
    pub send_lag_p99_us: f64,
    /// How far the gaps between arrivals were from the requested law; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interarrivals: Option<Interarrivals>,
    /// Requests still under way at the end.
    pub incompletes: u64,
    /// Errors by kind; kinds that did not occur are absent.
    pub errors_by_kind: BTreeMap<ErrorKind, u64>,
    /// The first errors one by one, at most [`FIRST_ERRORS`]; absent where there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_errors: Vec<RequestError>,
    /// SYNs the server's host dropped; absent where that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syn_drops: Option<u64>,
    /// SYNs the client's host sent again because no answer came; absent where that could not be
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syn_retransmissions: Option<u64>,
    /// What was spoken, like `HTTP/2 over TLS`; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// What the server sent for a new connection beside its responses (TLS handshake, settings), in
    /// bytes; counted as work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening_bytes: Option<u64>,
    /// Length of a response head, in bytes; counted as work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_bytes: Option<u64>,
    /// Payload of a full TCP segment, in bytes; its headers are counted as work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_bytes: Option<u64>,
    /// All requests.
    pub all: Group,
    /// The requests of each source address; absent where there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_client: Vec<ClientGroup>,
    /// The smaller half by rank of size, the middle one included.
    pub smallest_half: Group,
    /// The largest 1 % by rank of size, at least one request.
    pub largest_1_percent: Group,
    /// The largest request; of equals the last to arrive.
    pub largest: Group,
    /// Response time by percentile of size.
    pub by_size: Vec<SizeBucket>,
    /// Complementary distribution of the response time.
    pub ccdf: Vec<CcdfPoint>,
    /// The run over time.
    pub per_second: Vec<Second>,
}

impl Run {
    /// Computes everything that is reported of a run; `samples` in any order, warm-up already left
    /// out.
    pub fn new(facts: RunFacts, mut samples: Vec<Sample>) -> Self {
        rank_by_size(&mut samples);
        let rate = facts.rate_bits_per_sec;
        let measured_s = facts.measured_ns as f64 / 1e9;
        let n = samples.len();
        let last_end_ns = crate::group::last_end_ns(&samples);
        let group = |ranks: std::ops::Range<usize>| Group::new(&samples[ranks], rate, last_end_ns);
        Self {
            policy: facts.policy,
            verdict: facts.verdict,
            verdict_reason: facts.verdict_reason,
            seed: facts.seed,
            rate_bits_per_sec: rate,
            measured_s,
            model: None,
            offered_load: facts.offered_load,
            realised_load: samples
                .iter()
                .map(|sample| sample.alone_ns(rate))
                .sum::<f64>()
                / facts.measured_ns as f64,
            goodput_bits_per_sec: completed_bytes(&samples) as f64 * 8.0 / measured_s,
            send_lag_p99_us: send_lag_p99_us(&samples),
            interarrivals: None,
            incompletes: samples
                .iter()
                .filter(|sample| sample.outcome == Outcome::Incomplete)
                .count() as u64,
            errors_by_kind: errors_by_kind(&samples),
            first_errors: Vec::new(),
            syn_drops: facts.syn_drops,
            syn_retransmissions: facts.syn_retransmissions,
            protocol: None,
            opening_bytes: None,
            head_bytes: None,
            segment_bytes: None,
            by_client: Vec::new(),
            all: group(0..n),
            smallest_half: group(0..n.div_ceil(2)),
            largest_1_percent: group(n - n.div_ceil(100)..n),
            largest: group(n.saturating_sub(1)..n),
            by_size: by_size(&samples, rate),
            ccdf: ccdf(&samples),
            per_second: per_second(&samples, rate),
        }
    }
}

impl Run {
    /// Requests that were neither answered nor failed: still under way at the end, or given up by
    /// their users.
    pub fn unanswered(&self) -> u64 {
        self.incompletes + self.all.given_up
    }
}

fn completed_bytes(samples: &[Sample]) -> u64 {
    crate::group::completed(samples)
        .map(|(sample, _)| sample.size_bytes)
        .sum()
}

fn send_lag_p99_us(samples: &[Sample]) -> f64 {
    let mut lags: Vec<u64> = samples.iter().map(|sample| sample.send_lag_ns).collect();
    lags.sort_unstable();
    percentile(&lags, 990).unwrap_or(0) as f64 / 1e3
}

fn errors_by_kind(samples: &[Sample]) -> BTreeMap<ErrorKind, u64> {
    let mut counts = BTreeMap::new();
    for sample in samples {
        if let Outcome::Error(kind) = sample.outcome {
            *counts.entry(kind).or_insert(0) += 1;
        }
    }
    counts
}
