//! The reverse proxy: which requests go to which upstream, and everything on the way there and
//! back.
//!
//! A request that a route fits waits for admission by its upstream, goes to the server with the
//! fewest requests in flight, and comes back as a `Response`. The body is read ahead of the client,
//! so that the server is free for the next request although the client may wait for its turn on the
//! uplink. What may pass in either direction, and the routes, are decisions of the crate `http`;
//! `admission` decides the order; `health` decides which servers get requests.
//! The rest connects them to sockets.

mod answered_stream;
mod attempt;
mod buffer_budget;
mod build;
mod classes;
mod config;
mod connect;
mod counted_stream;
mod effects;
mod endpoint;
mod facts;
mod failure;
mod failure_log;
mod fastcgi;
mod forward;
mod health;
mod in_flight;
mod look;
mod maintenance;
mod open_connections;
mod orders;
mod overtime;
mod pool;
mod read_ahead;
mod report;
mod request_headers;
mod response_stream;
mod retries;
mod server;
mod server_limit;
mod share;
mod share_by;
mod subject;
mod tell_wait;
mod tunnel;
mod upload;
mod upstream;
mod upstream_connection;
mod values;
mod waiting_stream;

pub use build::ProxyTables;
pub use classes::ClassTable;
pub use config::{HealthTable, ProxyTable, RouteTable, UpstreamTable};
pub use endpoint::{Endpoint, EndpointError};
pub use failure::{Exhausted, Failure};
pub use fastcgi::{FastCgiTable, Found, Script, ScriptRoutes, User, is_script, path_in_request};
pub use health::Standing;
pub use look::LookedBody;
pub use report::{Report, SharedReport};
pub use request_headers::{NoVariable, RequestHeaderError, RequestHeaders};
pub use share::{ProxyShare, WorkerPart};
pub use tunnel::{Tunnel, TunnelEnd};
pub use upload::ClientFault;

use crate::grace_end::GraceEnd;
use crate::peer::Peer;
use crate::request_body::RequestBody;
use crate::response::Response;
use buffer_budget::BufferBudget;
use classes::Classes;
use facts::FactFinder;
use fastcgi::Origin;
use forward::Forwarding;
use hyper::{HeaderMap, Method, Request};
use look::Look;
use sooner_admission::{ClassStatus, Order, Quality, WouldWait};
use sooner_config::Network;
use sooner_http::forwarding::forwarded::client_address;
use sooner_http::forwarding::request::Client;
use sooner_http::forwarding::routes::Routes;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use upstream::{Settings, Times, Upstream};

/// All routes and upstreams of a configuration.
pub struct Proxy {
    routes: Routes<Rc<Route>>,
    upstreams: Vec<Rc<Upstream>>,
    /// What is said of each from [`Proxy::take_over`] on.
    next: RefCell<Vec<Option<Arc<Settings>>>>,
    runs_scripts: bool,
    classes: Classes,
    trusted: Vec<Network>,
    budget: Arc<BufferBudget>,
    look: Look,
}

/// The target of requests that begin with a path.
pub struct Route {
    path: String,
    upstream: Rc<Upstream>,
    class: Option<u8>,
    times: Times,
    strips_prefix: bool,
    files_first: bool,
    compress: Option<bool>,
    /// In lower case.
    upgrades: Vec<String>,
    tunnel_silence: Duration,
}

/// How one server of an upstream is doing.
#[derive(Clone, Debug)]
pub struct UpstreamState {
    /// The upstream.
    pub name: Arc<str>,
    /// The server.
    pub server: Arc<str>,
    /// How it stands.
    pub standing: Standing,
    /// In which order requests that wait for the upstream go in.
    pub order: Order,
    /// Requests in flight.
    pub inside: usize,
    /// Requests that wait for the upstream, for all its servers in one queue.
    pub waiting: usize,
    /// Requests the upstream takes at once now; `usize::MAX` without a limit.
    pub limit: usize,
    /// Requests the server takes at once while it is up; `usize::MAX` without a limit.
    pub server_limit: usize,
    /// Requests sent to the server.
    pub requests: u64,
    /// Requests it did not answer, or not to the end.
    pub failures: u64,
    /// Requests it did not answer that were sent again, to it or to another one.
    pub retries: u64,
    /// Its recent mean time in flight, ms; `None` before the first.
    pub mean_service_ms: Option<f64>,
}

/// How one class is doing at an upstream.
#[derive(Clone, Debug)]
pub struct ClassState {
    /// The upstream.
    pub upstream: Arc<str>,
    /// How it is doing; without a name what is in no class.
    pub status: ClassStatus,
}

/// How good the expectations of an upstream's requests were of late.
#[derive(Clone, Debug)]
pub struct PredictionState {
    /// The upstream.
    pub upstream: Arc<str>,
    /// How good.
    pub quality: Quality,
}

/// How long requests of one class would have waited for an upstream that holds none.
#[derive(Clone, Debug)]
pub struct RehearsalState {
    /// The upstream.
    pub upstream: Arc<str>,
    /// The class, by name; that of routes by number.
    pub class: String,
    /// How long they would have.
    pub would: WouldWait,
}

/// A request on its way to an upstream. No future yet: one that another one holds before it awaits it
/// takes its room twice, for each request that waits.
pub struct Passage {
    finder: FactFinder,
    forwarding: Forwarding,
    request: Request<RequestBody>,
    report: SharedReport,
}

impl Passage {
    /// The response, the upstream's or ours in its place. Dropping the future, or later the
    /// response's body, cancels it: it leaves the queue or the server. Needs a `LocalSet` around it.
    pub async fn response(self) -> Response {
        let is_head = self.request.method() == Method::HEAD;
        let found = tokio::select! {
            // First, as of most requests all is known at once; `answer` looks at the grace as well.
            biased;
            found = self.finder.find(self.request) => Some(found),
            () = self.forwarding.grace_end.wait() => None,
        };
        let Some((facts, request)) = found else {
            return forward::failed(Failure::Stopped, is_head, &self.report);
        };
        let comments_every = facts.comments_every;
        let upstream = self.forwarding.route.upstream.clone();
        let answering = self.forwarding.answer(request, facts, self.report.clone());
        match comments_every {
            None => answering.await,
            Some(period) => {
                let answering = Box::pin(answering);
                waiting_stream::answer(upstream, answering, &self.report, period).await
            }
        }
    }
}

impl Proxy {
    /// Whether no request goes to any upstream.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// From now on requests are let in by this configuration, at all workers: what waits at
    /// upstreams that were taken over as well. For the proxy of the first worker.
    pub fn take_over(&self) {
        for (upstream, next) in self.upstreams.iter().zip(&mut *self.next.borrow_mut()) {
            upstream.take_over(next.take(), &self.classes);
        }
    }

    /// Whether some upstream runs scripts, so that these are never shown.
    pub fn runs_scripts(&self) -> bool {
        self.runs_scripts
    }

    /// Starts health checks, at the first worker, and the end of idle connections, on the current
    /// `LocalSet`; once for each upstream, however often it is called.
    pub fn start(&self) {
        for upstream in &self.upstreams {
            maintenance::start(upstream);
        }
    }

    /// The route of a request for `path` at `host`
    /// ([`sooner_http::forwarding::routes::host_name`]: without port): the longest path
    /// wins, then the most specific host.
    pub fn route(&self, host: Option<&str>, path: &str) -> Option<&Rc<Route>> {
        self.routes.find(host, path)
    }

    /// Where a request comes from that came from `address`: what a proxy in between says, if that
    /// is trusted.
    pub fn client_address(&self, headers: &HeaderMap, address: IpAddr) -> IpAddr {
        client_address(headers, address, |address| self.is_trusted(address))
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|own| own.contains(address))
    }

    /// `request` on its way to the upstream of `route`, and how that goes, for the log. At `grace_end`
    /// it waits no longer.
    pub fn forward(
        &self,
        route: &Rc<Route>,
        request: Request<RequestBody>,
        peer: &Peer,
        grace_end: &GraceEnd,
    ) -> (SharedReport, Passage) {
        let address = peer.remote.ip();
        let finder = FactFinder {
            route: route.clone(),
            address: self.client_address(request.headers(), address),
            tls: peer.tls.clone(),
            look: self.look.clone(),
        };
        let forwarding = Forwarding {
            route: route.clone(),
            origin: Origin {
                client: finder.address,
                remote: peer.remote,
                local: peer.local,
                scheme: peer.scheme(),
            },
            client: Client {
                address,
                scheme: peer.scheme(),
                subject: peer.tls.as_ref().and_then(|tls| tls.client_subject.clone()),
                is_trusted: self.is_trusted(address),
            },
            budget: self.budget.clone(),
            grace_end: grace_end.clone(),
        };
        let report = SharedReport::new(forwarding.route.upstream.name.clone());
        let passage = Passage {
            finder,
            forwarding,
            request,
            report: report.clone(),
        };
        (report, passage)
    }

    /// How the classes are doing at each upstream, of those that may be there.
    pub fn class_states(&self) -> Vec<ClassState> {
        let upstreams = self.upstreams.iter();
        let states = upstreams.flat_map(|upstream| {
            let classes = &upstream.current().classes;
            let statuses = (0..=u8::MAX).zip(upstream.class_statuses());
            let here = statuses.filter(|(number, _)| classes.may_be_at(*number, &upstream.name));
            let states = here.map(|(_, status)| ClassState {
                upstream: upstream.name.clone(),
                status,
            });
            states.collect::<Vec<_>>()
        });
        states.collect()
    }

    /// How good expectations were at each upstream that has answered something.
    pub fn prediction_states(&self) -> Vec<PredictionState> {
        let states = self.upstreams.iter().map(|upstream| PredictionState {
            upstream: upstream.name.clone(),
            quality: upstream.quality(),
        });
        states.filter(|state| state.quality.jobs > 0).collect()
    }

    /// How long requests would have waited, one row for each upstream where nothing is held and
    /// each class of which something came.
    pub fn rehearsals(&self) -> Vec<RehearsalState> {
        let rows = self.upstreams.iter().flat_map(|upstream| {
            let all = upstream.would_wait().into_iter();
            all.map(|(number, would)| RehearsalState {
                upstream: upstream.name.clone(),
                class: self.classes.label(number),
                would,
            })
        });
        rows.collect()
    }

    /// How all servers are doing, one row for each.
    pub fn states(&self) -> Vec<UpstreamState> {
        let mut states = Vec::new();
        for upstream in &self.upstreams {
            let (now, status) = (upstream.now(), upstream.status());
            let settings = upstream.settings();
            states.extend(settings.servers.iter().map(|server| UpstreamState {
                name: upstream.name.clone(),
                server: server.name.clone(),
                standing: server.standing(now),
                order: upstream.order(),
                inside: server.in_flight(),
                waiting: status.waiting,
                limit: status.limit,
                server_limit: server.limit(),
                requests: server.requests(),
                failures: server.failures(),
                retries: server.retries(),
                mean_service_ms: server.mean_service_ns().map(|ns| ns as f64 / 1e6),
            }));
        }
        states
    }

    /// Bytes of bodies that are held: of responses for their clients, of requests for their turn.
    pub fn buffered_bytes(&self) -> usize {
        self.budget.used_bytes() + self.look.budget.used_bytes()
    }
}

impl Route {
    /// The path it begins with.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether a file of the site goes before the upstream.
    pub fn files_first(&self) -> bool {
        self.files_first
    }

    /// The class the operator gives its requests, 0 to 7.
    pub fn class(&self) -> Option<u8> {
        self.class
    }

    /// Whether its responses are compressed, if the operator says so for it alone.
    pub fn compress(&self) -> Option<bool> {
        self.compress
    }

    /// What a path leads to where its upstream runs scripts; `None` where it does not.
    pub fn script(&self, path: &str) -> Option<Found> {
        Some(self.upstream.settings().fastcgi.as_ref()?.find(path))
    }

    /// Whether its upstream runs scripts.
    pub fn runs_scripts(&self) -> bool {
        self.upstream.settings().fastcgi.is_some()
    }

    /// Whether `script` is the one that its upstream has for paths that lead to no file.
    pub fn is_fallback(&self, script: &Script) -> bool {
        let settings = self.upstream.settings();
        let fastcgi = settings.fastcgi.as_ref();
        fastcgi.is_some_and(|fastcgi| fastcgi.is_fallback(script))
    }

    /// The name of its upstream.
    pub fn upstream(&self) -> &str {
        &self.upstream.name
    }
}

#[cfg(test)]
mod tests;
