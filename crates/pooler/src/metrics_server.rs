//! What Prometheus collects, over HTTP: `/metrics`, and `/healthz` for whoever only asks whether it lives.

use crate::client::handle::{Activity, ClassCount};
use crate::config::name_of;
use crate::openmetrics::{Snapshot, encode};
use crate::pool::idle_holders::idle_holders;
use crate::pool::upstream::Upstream;
use crate::pooler::Pooler;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// More collectors than anybody has; for the next one, the first ends.
const CONNECTIONS_MAX: usize = 64;
/// A request, and the time until the next one, take no longer.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// Then a connection has to be made anew: so none that is not read stays for ever.
const CONNECTION_WITHIN: Duration = Duration::from_secs(600);
/// As small as hyper allows.
const BUFFER_BYTES: usize = 8 << 10;
/// After a failure to accept it would fail again at once.
const TIRED: Duration = Duration::from_secs(1);

/// Answers whoever connects, for ever.
pub async fn serve(pooler: Rc<Pooler>, listener: TcpListener) {
    let mut collectors: VecDeque<JoinHandle<_>> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                collectors.retain(|collector| !collector.is_finished());
                if collectors.len() >= CONNECTIONS_MAX
                    && let Some(first) = collectors.pop_front()
                {
                    first.abort();
                }
                let converse = timeout(CONNECTION_WITHIN, converse(stream, pooler.clone()));
                collectors.push_back(tokio::task::spawn_local(converse));
            }
            Err(_) => tokio::time::sleep(TIRED).await,
        }
    }
}

async fn converse(stream: TcpStream, pooler: Rc<Pooler>) {
    let service = service_fn(|request: Request<Incoming>| {
        ready(Ok::<_, Infallible>(answer(&pooler, request.uri().path())))
    });
    let connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // How it ends concerns nobody else.
    let _ = connection.await;
}

fn answer(pooler: &Pooler, path: &str) -> Response<Full<Bytes>> {
    let (status, text) = match path {
        "/metrics" => match exposition(pooler) {
            Ok(text) => (StatusCode::OK, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        },
        "/healthz" if pooler.is_stopping() => {
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
    let kind = match path {
        "/metrics" => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn targets(upstreams: &[Rc<Upstream>]) -> Vec<([String; 3], [f64; 2])> {
    let mut targets = Vec::new();
    for upstream in upstreams {
        for class in upstream.limiter.standings() {
            for (aim, achieved_ns) in class.achieved {
                // Nothing is told of a class before it has done something.
                let Some(achieved_ns) = achieved_ns else {
                    continue;
                };
                let of = [
                    upstream.address.to_string(),
                    class.name.clone(),
                    name_of(aim),
                ];
                let seconds = [aim.target_ns(), achieved_ns].map(|ns| ns as f64 / 1e9);
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
        waiting: waiting(pooler),
        measured: &measured,
    })
}
