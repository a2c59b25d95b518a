//! What Prometheus collects, over HTTP: `/metrics`, and `/healthz` for a check that it lives.

use crate::client::handle::{Activity, ClassCount};
use crate::lock_waits::LockWaitCounts;
use crate::openmetrics::{Snapshot, encode};
use crate::pool::idle_holders::idle_holders;
use crate::pool::overtime::{counts, would_wait};
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use sooner_admission::{OrderFigures, WouldWait};
use sooner_config::classes::name_of;
use sooner_operate::admin::{self, Pages};
use sooner_operate::metrics;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::TcpListener;

/// Answers each client that connects to `listener`.
pub async fn serve(pooler: Rc<Pooler>, listener: TcpListener) {
    admin::serve(listener, pooler).await;
}

impl Pages for Pooler {
    fn answer(&self, request: &Request<Incoming>, _: SocketAddr) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        let (status, text) = match path {
            "/metrics" => match exposition(self) {
                Ok(text) => (StatusCode::OK, text),
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            },
            "/healthz" if self.is_stopping() => {
                (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".into())
            }
            "/healthz" => (StatusCode::OK, "ok\n".into()),
            _ => (
                StatusCode::NOT_FOUND,
                "there are /metrics and /healthz\n".into(),
            ),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        let kind = if path == "/metrics" {
            metrics::CONTENT_TYPE
        } else {
            "text/plain; charset=utf-8"
        };
        let kind = HeaderValue::from_static(kind);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

fn targets(upstreams: &[Rc<Upstream>]) -> Vec<([String; 3], [f64; 2])> {
    let mut targets = Vec::new();
    for upstream in upstreams {
        for class in upstream.limiter.class_statuses() {
            for (response_target, achieved_ns) in class.achieved {
                // Nothing is told of a class before it has done something.
                let Some(achieved_ns) = achieved_ns else {
                    continue;
                };
                let of = [
                    upstream.address.to_string(),
                    class.name.clone(),
                    name_of(response_target),
                ];
                let seconds = [response_target.target_ns(), achieved_ns].map(|ns| ns as f64 / 1e9);
                targets.push((of, seconds));
            }
        }
    }
    targets
}

fn waiting(pooler: &Pooler) -> Vec<(String, u64)> {
    let configuration = pooler.configuration();
    let classes = configuration.config.class.iter();
    let names = classes.map(|class| class.name.get_ref().clone());
    let names = names.chain([String::new()]);
    let count = |present: ClassCount| present.waiting as u64;
    names
        .zip(pooler.class_counts().into_iter().map(count))
        .collect()
}

fn bounded(pooler: &Pooler) -> Vec<(String, [u64; 3])> {
    let configuration = pooler.configuration();
    let classes = configuration.config.class.iter();
    let names = classes.map(|class| class.name.get_ref().clone());
    let names = names.chain([String::new()]);
    let present = pooler.class_counts().into_iter();
    let mut overlong = counts(pooler).into_iter();
    let figures = present.map(|present| {
        let [overlong, cancelled] = overlong.next().unwrap_or_default();
        [present.active as u64, overlong, cancelled]
    });
    names.zip(figures).collect()
}

fn would_wait_by_name(pooler: &Pooler) -> Vec<(String, [f64; 3])> {
    let configuration = pooler.configuration();
    let name = |number: u8| {
        let class = configuration.config.class.get(usize::from(number));
        class.map_or_else(String::new, |class| class.name.get_ref().clone())
    };
    let figures = |would: WouldWait| {
        let seconds = would.wait_sum_ns as f64 / 1e9;
        [would.jobs as f64, would.waited as f64, seconds]
    };
    let all = would_wait(pooler).into_iter();
    all.map(|(number, would)| (name(number), figures(would)))
        .collect()
}

fn exposition(pooler: &Pooler) -> Result<String, fmt::Error> {
    let clients = pooler.clients.borrow();
    let doing = |what| {
        clients
            .values()
            .filter(|handle| handle.activity.get() == what)
            .count() as u64
    };
    let upstreams = pooler.upstreams();
    let configuration = pooler.configuration();
    let limits = &configuration.config.limits;
    let gates = upstreams.iter().map(|upstream| {
        let status = upstream.limiter.status();
        let pool = upstream.pool.borrow();
        let held = idle_holders(pooler, upstream);
        let figures = [
            status.limit,
            status.inside,
            upstream.waiting(),
            pool.open(),
            upstream.connections(limits),
            held.connections,
            held.transactions,
        ];
        (
            upstream.address.to_string(),
            figures.map(|figure| figure as u64),
        )
    });
    let gates = gates.collect();
    let clients = [
        ("idle", doing(Activity::Idle)),
        ("waiting", doing(Activity::Waiting)),
        ("active", doing(Activity::Active)),
    ];
    let measured = pooler.statistics.borrow();
    encode(&Snapshot {
        clients,
        gates,
        targets: targets(&upstreams),
        orders: orders(&upstreams),
        waiting: waiting(pooler),
        bounded: bounded(pooler),
        would_wait: would_wait_by_name(pooler),
        lock_waits: lock_waits(pooler),
        measured: &measured,
    })
}

/// What each order would give the transactions of each server.
fn orders(upstreams: &[Rc<Upstream>]) -> Vec<([String; 2], [f64; 2])> {
    let of_server = |upstream: &Rc<Upstream>| {
        let played = upstream.limiter.played().unwrap_or_default();
        let server = upstream.address.to_string();
        let row = move |one: OrderFigures| {
            let figures = [one.mean_ns, one.p99_ns].map(|ns| ns as f64 / 1e9);
            ([server.clone(), one.name().to_owned()], figures)
        };
        played.figures.into_iter().map(row)
    };
    upstreams.iter().flat_map(of_server).collect()
}

/// Classes with a `wait_target`.
fn lock_waits(pooler: &Pooler) -> Vec<(String, LockWaitCounts)> {
    let configuration = pooler.configuration();
    let classes = configuration.config.class.iter();
    let watched = classes.filter(|class| class.wait_target.is_some());
    let names = watched.map(|class| class.name.get_ref().clone());
    let with_counts = names.map(|name| {
        let counts = pooler.lock_waits.counts_of(&name);
        (name, counts)
    });
    with_counts.collect()
}
