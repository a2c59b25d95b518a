//! From a request to its response, and what the uplink, the log and the metrics get to know of it.
//!
//! One service stands behind all connections of a server; the protocols bring requests and take
//! responses, and share nothing else. The calls, for every request: [`Service::begin_request`]
//! while the request is at hand, [`Service::respond`], which takes it, and, when there is a
//! response, [`Service::announce`], with a result for the uplink.

mod completion;
mod entering;
mod passing;
mod site_reply;

use crate::access_log::{AccessLog, OpenRecord, ResponseFacts, UpstreamFacts, WallClock};
use crate::active_config::ActiveConfig;
use crate::auth::Checker;
use crate::body::Source;
use crate::clock::Moment;
use crate::grace_end::GraceEnd;
use crate::metrics::{Metrics, Protocol, RequestFacts};
use crate::peer::Peer;
use crate::proxy::SharedReport;
use crate::request_body::RequestBody;
use crate::response::{Response, plain, plain_with};
use crate::static_site::Scheme;
use crate::tls::Framing;
use completion::Completion;
use entering::{Place, Visit};
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, StatusCode, Version};
use sooner_config::ClientNetwork;
use sooner_http::host::{self, HostError};
use sooner_http::priority::{Hints, Signal};
use sooner_http::target;
use sooner_link::{JobReport, ResponseStart};
use sooner_policy::Payer;
use std::cell::{Cell, OnceCell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The status, in logs and metrics alone, of a request without a response because its client left,
/// as nginx has it.
const CLIENT_LEFT: u16 = 499;

/// The report of a response outside the uplink.
const NEVER_QUEUED: JobReport = JobReport {
    wait_ns: 0,
    service_ns: 0,
    sent_bytes: 0,
    policy: "none",
    rank_at_start: 0,
    bytes_of_others_meanwhile: 0,
    completed: true,
};

/// A response, now or when an upstream or a thread has made it.
pub enum Reply {
    /// It is here.
    Now(Response),
    /// An upstream or a thread makes it; dropping the future cancels it.
    Later(Pin<Box<dyn Future<Output = Response>>>),
}

impl Reply {
    async fn response(self) -> Response {
        match self {
            Self::Now(response) => response,
            Self::Later(response) => response.await,
        }
    }
}

/// What is kept of a request until its response is there.
pub struct RequestContext {
    is_ordered: bool,
    /// The client that a proxy in between names.
    named: Option<Payer>,
    hints: Hints,
    record: Option<OpenRecord>,
    facts: RequestFacts,
    /// The records of TLS; in clear text none.
    framing: Framing,
    active_config: Rc<ActiveConfig>,
    outcome: Option<Rc<OnceCell<ProxyOutcome>>>,
    /// The name that the client gives where one is needed.
    user: Option<Box<[u8]>>,
    grace_end: GraceEnd,
}

impl RequestContext {
    /// Whether an upstream makes the response, or is to.
    pub fn is_forwarded(&self) -> bool {
        self.outcome.is_some()
    }
}

/// What is known of a request that was forwarded: all of it when its response is over.
#[derive(Clone)]
struct ProxyOutcome {
    came_at: Instant,
    report: SharedReport,
}

impl ProxyOutcome {
    fn upstream_facts(&self) -> UpstreamFacts {
        let report = self.report.lock();
        let answered_at = report.answered_at.unwrap_or_else(Instant::now);
        let answer_ns = answered_at.duration_since(self.came_at).as_nanos();
        let answer_ns = u64::try_from(answer_ns).unwrap_or(u64::MAX);
        UpstreamFacts {
            error: report.error().map(Into::into),
            upstream: report.upstream.clone(),
            server: report.server.clone(),
            answer_ns,
            // What came to no server did nothing but wait.
            wait_ns: match report.tries {
                0 => answer_ns,
                _ => report.wait_ns.min(answer_ns),
            },
            tries: report.tries,
        }
    }
}

/// What is known of a response before its first byte.
pub struct Announcement<F> {
    /// What the uplink needs to know; its class is the signal's.
    pub start: ResponseStart,
    /// The class, and the urgency and order among the streams of one connection.
    pub signal: Signal,
    /// To be called when the response is over.
    pub on_end: F,
    /// To be told of a body that is framed in chunks.
    pub given: Option<GivenBytes>,
}

/// Bytes of a body of unknown length that were given to the connection so far: what the uplink
/// counts has the frames around its chunks too.
#[derive(Debug, Clone, Default)]
pub struct GivenBytes(Arc<AtomicU64>);

impl GivenBytes {
    /// So many more, bytes.
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What all connections of a server share.
pub struct Service {
    active_config: RefCell<Rc<ActiveConfig>>,
    log: AccessLog,
    metrics: Arc<Metrics>,
    wall_clock: RefCell<WallClock>,
    checker: Checker,
    grace_end: GraceEnd,
    /// Whether responses are ordered at all.
    is_ordered: Cell<bool>,
}

impl Service {
    /// A service that answers as `active_config` says until another one replaces it.
    pub fn new(
        active_config: ActiveConfig,
        log: AccessLog,
        metrics: Arc<Metrics>,
        now: Instant,
    ) -> Self {
        Self {
            active_config: RefCell::new(Rc::new(active_config)),
            log,
            metrics,
            wall_clock: RefCell::new(WallClock::new(now)),
            checker: Checker::default(),
            grace_end: GraceEnd::default(),
            is_ordered: Cell::new(true),
        }
    }

    /// Responses leave as they come: no request needs to know its urgency.
    pub fn set_unordered(&self) {
        self.is_ordered.set(false);
    }

    /// From now on requests are answered as `active_config` says; those that have begun end as they
    /// began.
    pub fn replace(&self, active_config: ActiveConfig) {
        *self.active_config.borrow_mut() = Rc::new(active_config);
    }

    /// The configuration in force.
    pub fn active_config(&self) -> Rc<ActiveConfig> {
        self.active_config.borrow().clone()
    }

    /// What is counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// When requests that wait are told that the server stops.
    pub fn grace_end(&self) -> &GraceEnd {
        &self.grace_end
    }

    /// The log.
    pub fn log(&self) -> &AccessLog {
        &self.log
    }

    /// Keeps of a request what is needed when its response is there.
    pub fn begin_request<B>(
        &self,
        request: &Request<B>,
        peer: &Peer,
        now: Instant,
    ) -> RequestContext {
        let mut clock = self.wall_clock.borrow_mut();
        // The streams of one connection wait for each other in any case.
        let is_ordered = self.is_ordered.get() || request.version() == Version::HTTP_2;
        let active_config = self.active_config();
        let address = peer.remote.ip();
        let client = active_config
            .proxy
            .client_address(request.headers(), address);
        RequestContext {
            is_ordered,
            named: (client != address).then(|| ClientNetwork::from(client).payer()),
            hints: if is_ordered {
                Hints::of(request.headers())
            } else {
                Hints::default()
            },
            record: self.log.begin(&mut clock, now, &peer.named, request),
            facts: RequestFacts::new(request),
            framing: (peer.tls.as_ref()).map_or_else(Framing::default, |tls| tls.framing),
            active_config,
            outcome: None,
            user: None,
            grace_end: self.grace_end.clone(),
        }
    }

    /// Responds to a request, now or later.
    pub fn respond(
        &self,
        context: &mut RequestContext,
        request: Request<RequestBody>,
        peer: &Peer,
        now: Moment,
    ) -> Reply {
        if request.method() == Method::CONNECT {
            return Reply::Now(no_tunnel());
        }
        let request = target::without_single_dots(request);
        let active_config = context.active_config.clone();
        let scheme = match peer.tls {
            Some(_) => Scheme::Https,
            None => Scheme::Http,
        };
        let chosen = match host::of(&request) {
            Ok(host) => active_config
                .sites
                .choose(scheme, host, request.uri().path()),
            Err(error) => return Reply::Now(host_refusal(&request, &error)),
        };
        context.facts.site = active_config
            .site_ids
            .get(chosen.site)
            .copied()
            .unwrap_or_default();
        let visit = Visit {
            checker: &self.checker,
            peer,
            now,
        };
        visit.enter(context, Place::asked(chosen), request)
    }

    /// Describes `response` to the uplink; its head takes `head_bytes` on the wire.
    pub fn announce(
        &self,
        context: RequestContext,
        response: &Response,
        head_bytes: u32,
    ) -> Announcement<impl FnOnce(JobReport) + Send + 'static> {
        let rules = context.active_config.rules;
        let signal = if context.is_ordered {
            context.hints.signal(&response.headers, rules)
        } else {
            Signal::indifferent(rules)
        };
        let body_bytes = match response.status {
            StatusCode::SWITCHING_PROTOCOLS => None,
            _ => response.source.len(),
        };
        let estimated_bytes = response.source.estimated_bytes();
        let written_bytes = u64::from(head_bytes).saturating_add(body_bytes.unwrap_or(0));
        let start = ResponseStart {
            body_bytes: body_bytes.or(estimated_bytes),
            is_estimate: body_bytes.is_none() && estimated_bytes.is_some(),
            head_bytes,
            class: signal.class,
            payer: context.named,
            is_tunnel: response.status == StatusCode::SWITCHING_PROTOCOLS,
            overhead_bytes: context.framing.overhead_bytes(written_bytes),
        };
        let mut facts = context.facts;
        // Of what a stream has sent the uplink counts the body alone.
        let head_bytes = match facts.protocol {
            Protocol::Http2 => 0,
            Protocol::Http10 | Protocol::Http11 => head_bytes,
        };
        facts.answered(response.status.as_u16(), head_bytes, body_bytes);
        let outcome = context.outcome.as_ref().and_then(|outcome| outcome.get());
        let record = context.record.map(|record| {
            record.with_response(ResponseFacts {
                status: response.status.as_u16(),
                head_bytes,
                body_bytes,
                urgency: context.hints.urgency(),
                upstream_facts: None,
                user: context.user,
            })
        });
        let tunnel = outcome.and_then(|outcome| outcome.report.lock().tunnel.clone());
        let is_chunked = body_bytes.is_none() && facts.protocol == Protocol::Http11;
        let given = (is_chunked && tunnel.is_none()).then(GivenBytes::default);
        let completion = Completion {
            given: given.clone(),
            facts,
            record,
            outcome: outcome.cloned(),
            grace_end: self.grace_end.clone(),
            log: self.log.clone(),
            metrics: self.metrics.clone(),
        };
        Announcement {
            start,
            signal,
            given,
            on_end: move |report: JobReport| match tunnel {
                None => completion.close(&report),
                Some(tunnel) => tunnel.on_end(move |end| completion.close_tunnel(report, end)),
            },
        }
    }
}

impl Service {
    /// Writes down a request that has no response because its client has left, or the server stops.
    pub fn abandoned(&self, context: RequestContext) {
        let status = match self.grace_end.is_over() {
            true => StatusCode::SERVICE_UNAVAILABLE.as_u16(),
            false => CLIENT_LEFT,
        };
        self.unanswered(context, status);
    }

    /// Writes down a request in place of which its stream was reset.
    pub fn reset(&self, context: RequestContext) {
        self.unanswered(context, StatusCode::BAD_REQUEST.as_u16());
    }

    fn unanswered(&self, context: RequestContext, status: u16) {
        let mut facts = context.facts;
        facts.answered(status, 0, None);
        let record = context.record.map(|record| {
            record.with_response(ResponseFacts {
                status,
                urgency: context.hints.urgency(),
                user: context.user,
                ..ResponseFacts::default()
            })
        });
        let completion = Completion {
            given: None,
            facts,
            record,
            outcome: context.outcome.and_then(|outcome| outcome.get().cloned()),
            grace_end: self.grace_end.clone(),
            log: self.log.clone(),
            metrics: self.metrics.clone(),
        };
        completion.close(&JobReport {
            completed: false,
            ..NEVER_QUEUED
        });
    }
}

impl Service {
    /// Writes down a request that hyper could not read, and answered itself; a connection that breaks
    /// otherwise concerns its client alone.
    pub fn broken_request(&self, peer: &Peer, error: &hyper::Error) {
        if error.is_parse() {
            let status = if error.is_parse_too_large() {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            } else {
                StatusCode::BAD_REQUEST
            };
            self.unreadable_request(peer, Protocol::Http11, status);
        }
    }

    /// Writes down a request that was refused with `status` before it could be read.
    pub fn unreadable_request(&self, peer: &Peer, protocol: Protocol, status: StatusCode) {
        self.metrics.unreadable_request(protocol, status.as_u16());
        let mut clock = self.wall_clock.borrow_mut();
        if let Some(record) = self
            .log
            .begin_unreadable(&mut clock, Instant::now(), &peer.named)
        {
            let facts = ResponseFacts {
                status: status.as_u16(),
                ..ResponseFacts::default()
            };
            self.log
                .write(&record.with_response(facts), &NEVER_QUEUED, None);
        }
    }
}

/// The response to a request for a tunnel, with the methods that all sites have (RFC 9110, 15.5.6).
fn no_tunnel() -> Response {
    let words = "no tunnels: CONNECT is not implemented";
    let methods = HeaderValue::from_static("GET, HEAD, OPTIONS");
    plain_with(StatusCode::METHOD_NOT_ALLOWED, words, ALLOW, methods)
}

/// The response to a request without a host, or with two.
fn host_refusal<B>(request: &Request<B>, error: &HostError) -> Response {
    let mut response = plain(StatusCode::BAD_REQUEST, &error.to_string());
    if request.method() == Method::HEAD {
        response.source = Source::Empty;
    }
    response
}
