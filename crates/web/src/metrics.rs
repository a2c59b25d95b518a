//! What the server counts of itself.
//!
//! For who makes responses, in the order of a request's life:
//!
//! ```text
//! let metrics = Arc::new(Metrics::new(SystemTime::now()));   // one a worker; it outlives reloads
//! metrics.compare_with(shadow);                               // where responses are ordered; also given to `uplink.observe`
//! let site = metrics.site("example.org");                     // once a site of a configuration
//! metrics.connection_opened();                                // ... connection_closed(), connection_refused(Refusal::Connections)
//! metrics.handshake(true);
//! let mut facts = RequestFacts::new(&request);                // while the request is at hand
//! facts.site = site;
//! facts.answered(status, head_bytes, body_bytes);             // when there is an answer
//! metrics.request_done(&facts, &report);                      // in the function given to `flow.start`
//! metrics.reloaded(config_hash, SystemTime::now());           // at the start too; reload_failed() when a new one is refused
//! metrics.stops();                                            // when the grace begins: `/healthz` says so
//! let sum = Metrics::sum(&all);                               // of all workers, for a reader
//! ```
//!
//! Every worker counts in metrics of its own. What belongs to the process (its start, its
//! configurations, its end, the comparison with FAIR) is in those of the first.
//!
//! `metrics.fair_response_ns(&report)` in that same function is what the access log wants to know.
//!
//! Counting costs what plain integers cost, some 25 ns a response: one thread counts, and all that
//! is made of it for a reader (sums, labels, means, text) is made when it reads, in
//! [`crate::admin`].

mod count;
mod sites;
mod size_class;
mod slowest;
mod sum;

pub use count::{BOUNDS_NS, Count, Histogram};
pub use sites::{PROTOCOLS, Protocol, STATUS_CLASSES, SiteId, SiteReading};
pub use size_class::{SIZE_CLASSES, SizeClass};
pub use slowest::Slow;

use crate::access_log::body_bytes_sent;
use crate::compress::CompressionCounts;
use hyper::{Request, Uri};
use sites::Sites;
use slowest::Slowest;
use sooner_link::JobReport;
use sooner_link::shadow::Compared;
use sooner_uplink::FairShadow;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Everything that a worker counts; shared by an `Arc`, counted by one thread, read by any.
#[derive(Debug)]
pub struct Metrics {
    /// When the process began to serve, seconds since 1970.
    pub started_at_unix_seconds: f64,
    /// Responses that were sent whole, by the size of their bodies: from start to last byte.
    pub responses: [Histogram; SIZE_CLASSES.len()],
    /// How long each of the same waited while others went first.
    pub waits: [Histogram; SIZE_CLASSES.len()],
    /// Responses that FAIR has done too, by their size on the wire: what they really took.
    pub compared: [Histogram; SIZE_CLASSES.len()],
    /// What FAIR gave the very same.
    pub fair: [Histogram; SIZE_CLASSES.len()],
    /// Responses that ended early because the client left or the source failed.
    pub aborted: Count,
    /// Connections accepted.
    pub connections_opened: Count,
    /// Connections accepted that are over.
    pub connections_closed: Count,
    /// TLS handshakes that succeeded.
    pub handshakes: Count,
    /// TLS handshakes that failed.
    pub handshakes_failed: Count,
    /// Configurations that were taken, the first one included.
    pub reloads: Count,
    /// Configurations that were refused while the server ran.
    pub reloads_failed: Count,
    /// When the present configuration was taken, seconds since 1970.
    pub configured_at_unix_seconds: Count,
    /// The hash of the present configuration.
    pub config_hash: Count,
    /// What was compressed.
    pub compression: Arc<CompressionCounts>,
    refused: [Count; Refusal::ALL.len()],
    stops: Count,
    sites: Sites,
    slowest: Slowest,
    shadow: OnceLock<Arc<FairShadow>>,
}

/// Why a connection was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// As many as are allowed were open.
    Connections,
    /// As many as are allowed from one address were open.
    ConnectionsPerAddress,
    /// Too much memory was in use.
    Memory,
    /// Its PROXY header was missing, broken, or came from an address that may not send one.
    ProxyProtocol,
    /// The system could not hand it over: no descriptors, no memory.
    System,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Connections,
        Self::ConnectionsPerAddress,
        Self::Memory,
        Self::ProxyProtocol,
        Self::System,
    ];

    /// Its name as a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::ConnectionsPerAddress => "connections_per_address",
            Self::Memory => "memory",
            Self::ProxyProtocol => "proxy_protocol",
            Self::System => "system",
        }
    }
}

/// What is known of a response besides how it went.
#[derive(Clone, Debug)]
pub struct RequestFacts {
    /// The protocol of the request.
    pub protocol: Protocol,
    /// The site of the response.
    pub site: SiteId,
    /// The URI of the request.
    pub uri: Uri,
    /// The status of the answer.
    pub status: u16,
    /// Bytes of the head; an estimate will do.
    pub head_bytes: u32,
    /// Bytes of the body, if known.
    pub body_bytes: Option<u64>,
}

impl RequestFacts {
    /// What a request tells; it belongs to no site and has no answer yet.
    pub fn new<B>(request: &Request<B>) -> Self {
        Self {
            protocol: Protocol::of(request.version()),
            site: SiteId::default(),
            // Shares the text: no allocation.
            uri: request.uri().clone(),
            status: 0,
            head_bytes: 0,
            body_bytes: None,
        }
    }

    /// What an answer tells before it is sent.
    pub fn answered(&mut self, status: u16, head_bytes: u32, body_bytes: Option<u64>) {
        (self.status, self.head_bytes, self.body_bytes) = (status, head_bytes, body_bytes);
    }
}

impl Metrics {
    /// Nothing counted, of a process that began at `now`.
    pub fn new(now: SystemTime) -> Self {
        Self {
            started_at_unix_seconds: unix_seconds(now),
            responses: Default::default(),
            waits: Default::default(),
            compared: Default::default(),
            fair: Default::default(),
            aborted: Count::default(),
            connections_opened: Count::default(),
            connections_closed: Count::default(),
            handshakes: Count::default(),
            handshakes_failed: Count::default(),
            reloads: Count::default(),
            reloads_failed: Count::default(),
            configured_at_unix_seconds: Count::default(),
            config_hash: Count::default(),
            compression: Arc::default(),
            refused: Default::default(),
            stops: Count::default(),
            sites: Sites::default(),
            slowest: Slowest::default(),
            shadow: OnceLock::new(),
        }
    }

    /// From now on responses are compared with what `shadow`, which observes the same uplink, would
    /// have given; the first one stays.
    pub fn compare_with(&self, shadow: Arc<FairShadow>) {
        let _ = self.shadow.set(shadow);
    }

    /// The shadow; `None` where responses are not ordered.
    pub fn shadow(&self) -> Option<&FairShadow> {
        self.shadow.get().map(Arc::as_ref)
    }

    /// What FAIR gave the response that ended last, which `report` is about, ns; `None` while FAIR
    /// would still be sending it.
    pub fn fair_response_ns(&self, report: &JobReport) -> Option<u64> {
        let shadow = self.shadow().filter(|_| report.completed)?;
        shadow.fair_response_ns_of_last()
    }

    /// The counters of the site called `name`, the same ones after a reload. At most 255 names have
    /// their own; more share `other`.
    pub fn site(&self, name: &str) -> SiteId {
        self.sites.find_or_add(name)
    }

    /// A response is over.
    pub fn request_done(&self, facts: &RequestFacts, report: &JobReport) {
        let size_bytes = body_bytes_sent(report, facts.head_bytes, facts.body_bytes);
        self.sites
            .count(facts.site, facts.protocol, facts.status, size_bytes);
        let response_ns = report.wait_ns + report.service_ns;
        if report.completed {
            let class = SizeClass::of(size_bytes).index();
            self.responses[class].record(response_ns);
            self.waits[class].record(report.wait_ns);
        } else {
            self.aborted.add(1);
        }
        if self.slowest.is_slow(response_ns) {
            self.slowest.add(facts, report, size_bytes);
        }
    }

    /// A request that could not be read was refused; it took no time of the link.
    pub fn unreadable_request(&self, protocol: Protocol, status: u16) {
        self.sites.count(SiteId::default(), protocol, status, 0);
    }

    /// A connection that had switched to another protocol is over. It counts as a request, and not
    /// among the response times, of which it says nothing: it took as long as its two sides liked.
    pub fn tunnel_done(&self, facts: &RequestFacts, report: &JobReport) {
        let size_bytes = body_bytes_sent(report, facts.head_bytes, facts.body_bytes);
        self.sites
            .count(facts.site, facts.protocol, facts.status, size_bytes);
        if !report.completed {
            self.aborted.add(1);
        }
    }

    /// A response is over in the shadow too.
    pub fn compared(&self, compared: &Compared) {
        let class = SizeClass::of(compared.wire_bytes).index();
        self.compared[class].record(compared.response_ns);
        self.fair[class].record(compared.fair_response_ns);
    }

    /// A connection was accepted.
    pub fn connection_opened(&self) {
        self.connections_opened.add(1);
    }

    /// A connection that was accepted is over.
    pub fn connection_closed(&self) {
        self.connections_closed.add(1);
    }

    /// A connection was not served.
    pub fn connection_refused(&self, reason: Refusal) {
        self.refused[reason as usize].add(1);
    }

    /// Connections refused so far for `reason`.
    pub fn refused(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize].get()
    }

    /// A TLS handshake ended, `ok` or not.
    pub fn handshake(&self, ok: bool) {
        if ok {
            self.handshakes.add(1);
        } else {
            self.handshakes_failed.add(1);
        }
    }

    /// A configuration with a text of this hash is in force from `now`.
    pub fn reloaded(&self, config_hash: u64, now: SystemTime) {
        self.reloads.add(1);
        self.config_hash.set(config_hash);
        self.configured_at_unix_seconds
            .set(unix_seconds(now) as u64);
    }

    /// A configuration was refused; the one before stays.
    pub fn reload_failed(&self) {
        self.reloads_failed.add(1);
    }

    /// The server takes no new connections and ends those it has.
    pub fn stops(&self) {
        self.stops.set(1);
    }

    /// Whether the server is about to end.
    pub fn is_stopping(&self) -> bool {
        self.stops.get() > 0
    }

    /// What was counted by site.
    pub fn sites(&self) -> Vec<SiteReading> {
        self.sites.read()
    }

    /// The slowest responses of the last five minutes, slowest first.
    pub fn slowest(&self) -> Vec<Slow> {
        self.slowest.read()
    }

    /// A second has passed: what is too old to be shown goes. One thread says so, which need
    /// not be the one that counts.
    pub fn second_passed(&self) {
        self.slowest.second_passed();
    }
}

/// Seconds since 1970; 0 for times before.
pub fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A report of a response without a head.
    pub fn report(sent_bytes: u64, wait_ns: u64, service_ns: u64) -> JobReport {
        JobReport {
            wait_ns,
            service_ns,
            sent_bytes,
            policy: "srpt",
            rank_at_start: 0,
            bytes_of_others_meanwhile: 0,
            completed: true,
        }
    }

    #[test]
    fn a_response_is_counted_where_it_belongs() {
        let metrics = Metrics::new(UNIX_EPOCH);
        let mut facts = RequestFacts::new(&Request::new(()));
        facts.site = metrics.site("a");
        facts.answered(206, 100, Some(5000));
        metrics.request_done(&facts, &report(5100, 1_000_000, 2_000_000));
        let mut aborted = report(150, 0, 1);
        aborted.completed = false;
        metrics.request_done(&facts, &aborted);

        let class = SizeClass::of(5000).index();
        assert_eq!(
            (
                metrics.responses[class].count(),
                metrics.responses[class].sum_ns()
            ),
            (1, 3_000_000)
        );
        assert_eq!(metrics.waits[class].sum_ns(), 1_000_000);
        assert_eq!(metrics.aborted.get(), 1);
        let sites = metrics.sites();
        let site = sites.iter().find(|site| site.name == "a").unwrap();
        assert_eq!(site.response_bytes, 5050);
        assert_eq!(site.requests[Protocol::Http11 as usize], [0, 2, 0, 0, 0]);
        assert_eq!(metrics.slowest().len(), 2);
    }

    #[test]
    fn what_fair_gave_stands_beside_what_was_given() {
        let metrics = Metrics::new(UNIX_EPOCH);
        metrics.compared(&Compared {
            wire_bytes: 2_000_000,
            response_ns: 3,
            fair_response_ns: 4,
        });
        let class = SizeClass::of(2_000_000).index();
        assert_eq!(
            (
                metrics.compared[class].sum_ns(),
                metrics.fair[class].sum_ns()
            ),
            (3, 4)
        );
    }

    #[test]
    fn refusals_have_a_place_each() {
        let metrics = Metrics::new(UNIX_EPOCH);
        for (index, reason) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            metrics.connection_refused(reason);
            assert_eq!(metrics.refused(reason), 1);
        }
    }
}
