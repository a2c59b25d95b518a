//! Forwards one request: prepares what goes out, sends it with retries, and makes the response.
//!
//! The request is in flight from its admission until the upstream has given the last byte of its
//! response, or the protocol was switched. Dropping the future at any time, or later the response's
//! body, cancels the request.

use super::attempt::UpstreamResponse;
use super::buffer_budget::BufferBudget;
use super::facts::Facts;
use super::failure::Failure;
use super::failure_log::RequestSummary;
use super::fastcgi::{Origin, of_request};
use super::in_flight::{InFlight, UpstreamBody};
use super::read_ahead::read_ahead;
use super::request_headers::Asked;
use super::retries::RoutedRequest;
use super::tell_wait::add_server_timing;
use super::tunnel::{self, Tunnel};
use super::upload::Upload;
use super::upstream::HostRule;
use super::{Route, SharedReport};
use crate::body::Source;
use crate::grace_end::GraceEnd;
use crate::http1::UpgradeGuard;
use crate::request_body::RequestBody;
use crate::response::Response;
use hyper::body::Body;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, StatusCode};
use sooner_http::forwarding::headers::keep_alive_seconds;
use sooner_http::forwarding::request::{self, Client, Outgoing, Rules};
use sooner_http::forwarding::response::{self, Framing};
use sooner_http::forwarding::routes::host_name;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::{spawn_local, yield_now};

/// Longer bodies do not come at once, bytes.
const SHORT_BYTES_MAX: u64 = 16 << 10;

/// A request and where it is to go.
pub struct Forwarding {
    /// Where.
    pub route: Rc<Route>,
    /// The client.
    pub client: Client,
    /// The same, for scripts.
    pub origin: Origin,
    /// What responses may use.
    pub budget: Arc<BufferBudget>,
    /// When it waits no longer.
    pub grace_end: GraceEnd,
}

impl Forwarding {
    /// The response to `request`, of which `facts` are known: the upstream's or ours in its place.
    /// Notes in `report` how it went.
    pub async fn answer(
        self,
        request: Request<RequestBody>,
        facts: Facts,
        report: SharedReport,
    ) -> Response {
        let is_head = request.method() == Method::HEAD;
        let forwarded = tokio::select! {
            // First, so that none begins in the place of one that is told now.
            biased;
            () = self.grace_end.wait() => Err(Failure::Stopped),
            forwarded = self.run(request, facts, &report) => forwarded,
        };
        match forwarded {
            Ok(response) => {
                report.lock().answered_at = Some(Instant::now());
                response
            }
            Err(failure) => failed(failure, is_head, &report),
        }
    }

    async fn run(
        &self,
        mut request: Request<RequestBody>,
        facts: Facts,
        report: &SharedReport,
    ) -> Result<Response, Failure> {
        let client_side = hyper::upgrade::on(&mut request);
        let (mut parts, body) = request.into_parts();
        // Known before it waits: it takes no place, and no server begins with it.
        if let Some(fault) = body.fault() {
            return Err(Failure::ClientBody(fault));
        }
        let upgrade_guard = parts.extensions.remove::<UpgradeGuard>();
        let summary = RequestSummary::new(&parts.method, &parts.uri, self.client.address);
        let own_headers = self.route.upstream.settings().headers.clone();
        let upload = Upload::new(body).without(own_headers);
        let mut outgoing = self.outgoing(&parts, &upload)?;
        let routed = RoutedRequest {
            route: &self.route,
            facts,
            outgoing: &mut outgoing,
            is_trusted: self.client.is_trusted,
            summary,
        };
        let (upstream_response, in_flight) = routed.send(upload, report).await?;
        let response_ns = in_flight.sent_at.elapsed().as_nanos() as u64;
        report.lock().response_ns = Some(response_ns);
        let server = in_flight.slot.server().name.clone();
        let response = if upstream_response.response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.switch(
                upstream_response,
                in_flight,
                &outgoing,
                client_side,
                upgrade_guard,
            )
            .map(|(response, tunnel)| {
                report.lock().tunnel = Some(tunnel);
                response
            })
        } else {
            let delivered = self.deliver(upstream_response, in_flight, &outgoing.method);
            let delivered = delivered.await;
            delivered.map(|mut response| {
                if self.route.upstream.settings().tell_wait.client {
                    let wait_ns = report.lock().wait_ns;
                    add_server_timing(&mut response.headers, wait_ns, response_ns);
                }
                response
            })
        };
        response.inspect_err(|failure| report.lock().note_failed(&server, failure))
    }

    fn outgoing(&self, parts: &Parts, upload: &Upload) -> Result<Outgoing, Failure> {
        let upstream = self.route.upstream.settings();
        let rules = Rules {
            strip_prefix: self.route.strips_prefix.then_some(self.route.path.as_str()),
            upgrades: &self.route.upgrades,
            keeps_host: matches!(upstream.host, HostRule::Client | HostRule::Name),
        };
        let body_bytes = upload.size_hint().exact();
        let mut outgoing =
            request::outgoing(parts, body_bytes, &self.client, rules).map_err(Failure::Refused)?;
        match &upstream.host {
            HostRule::Fixed(host) => outgoing.host = Some(host.clone()),
            HostRule::Name => outgoing.host = outgoing.host.as_ref().and_then(name_alone),
            HostRule::Client | HostRule::Server => {}
        }
        let asked = Asked {
            parts,
            origin: &self.origin,
        };
        upstream.headers.set(&mut outgoing.headers, &asked);
        if let (Some(fastcgi), Some(script)) = (&upstream.fastcgi, parts.extensions.get()) {
            let root = &fastcgi.root;
            let parameters = of_request(parts, &outgoing, script, root, &self.origin);
            outgoing.parameters = Some(parameters);
        }
        Ok(outgoing)
    }

    async fn deliver(
        &self,
        upstream_response: UpstreamResponse,
        in_flight: InFlight,
        method: &Method,
    ) -> Result<Response, Failure> {
        let UpstreamResponse {
            response,
            connection,
            progress,
        } = upstream_response;
        let (mut parts, body) = response.into_parts();
        let keep_alive_seconds = keep_alive_seconds(&parts.headers);
        let framing = response::incoming(
            method,
            parts.status,
            parts.version,
            &mut parts.headers,
            body.size_hint().exact(),
        );
        let upstream_body = UpstreamBody {
            body,
            in_flight,
            connection,
            progress,
            keep_alive_seconds,
        };
        let source = match framing {
            Ok(Framing::NoBody | Framing::Exact(0)) => {
                let is_whole = upstream_body.body.is_end_stream();
                upstream_body.finish(is_whole);
                Source::Empty
            }
            Ok(Framing::Exact(bytes)) => self.start(upstream_body, Some(bytes)).await,
            Ok(Framing::UntilEnd) => self.start(upstream_body, None).await,
            Err(bad) => {
                let failure = Failure::BadResponse(bad);
                upstream_body.in_flight.fail(&failure);
                upstream_body.progress.abandon();
                return Err(failure);
            }
        };
        Ok(Response {
            status: parts.status,
            reason: parts.extensions.remove(),
            headers: parts.headers,
            source,
        })
    }

    async fn start(&self, upstream_body: UpstreamBody, body_bytes: Option<u64>) -> Source {
        let (feeder, read_ahead) = read_ahead(&self.budget, body_bytes);
        let mut pump = Box::pin(upstream_body.pump(feeder, self.route.times.idle));
        // A short body has come with its head mostly, and leaves with it then, in one write. Once
        // around is what the server's connection needs to give it.
        let has_ended = body_bytes.is_some_and(|bytes| bytes <= SHORT_BYTES_MAX)
            && tokio::select! {
                biased;
                () = &mut pump => true,
                () = yield_now() => false,
            };
        if !has_ended {
            spawn_local(pump);
        }
        Source::stream(Box::pin(read_ahead))
    }

    /// Both sides have agreed on another protocol: from here on it is a connection and no request,
    /// and holds the client's `upgrade_guard` to its end.
    fn switch(
        &self,
        upstream_response: UpstreamResponse,
        in_flight: InFlight,
        outgoing: &Outgoing,
        client_side: OnUpgrade,
        upgrade_guard: Option<UpgradeGuard>,
    ) -> Result<(Response, Tunnel), Failure> {
        let mut response = upstream_response.response;
        let upstream_side = hyper::upgrade::on(&mut response);
        let (mut parts, _) = response.into_parts();
        let mut headers = parts.headers;
        let agreed = response::switching(outgoing.upgrade.as_ref(), parts.version, &mut headers);
        if let Err(bad) = agreed {
            let failure = Failure::BadResponse(bad);
            in_flight.fail(&failure);
            return Err(failure);
        }
        in_flight.complete();
        let (tunnel, guard) = Tunnel::begin();
        let joined = tunnel::join(client_side, upstream_side, self.route.tunnel_silence, guard);
        spawn_local(async move {
            joined.await;
            drop(upgrade_guard);
        });
        let client_response = Response {
            status: StatusCode::SWITCHING_PROTOCOLS,
            reason: parts.extensions.remove(),
            headers,
            source: Source::Empty,
        };
        Ok((client_response, tunnel))
    }
}

/// The response in place of the upstream's, as `failure` has it; noted in `report`.
pub fn failed(failure: Failure, is_head: bool, report: &SharedReport) -> Response {
    let mut response = failure.response();
    if is_head {
        response.source = Source::Empty;
    }
    let mut report = report.lock();
    report.answered_at = Some(Instant::now());
    report.failure = Some(failure);
    response
}

/// The name in a `Host`, as nginx's `$host` has it.
fn name_alone(host: &HeaderValue) -> Option<HeaderValue> {
    let name = host_name(host.to_str().ok()?);
    HeaderValue::from_str(&name.to_ascii_lowercase()).ok()
}
