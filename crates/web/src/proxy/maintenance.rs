//! What an upstream needs beside requests: health checks, an end for idle connections, a look at
//! its servers' limits now and then.

use super::connect::Connector;
use super::failure::Exhausted;
use super::fastcgi::of_probe;
use super::orders;
use super::server_limit;
use super::upload::Upload;
use super::upstream::{HostRule, Upstream};
use hyper::header::{CONNECTION, HeaderValue, USER_AGENT};
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Method};
use sooner_http::forwarding::request::{Outgoing, Protocol};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

/// Starts what an upstream needs; all of it ends when the upstream is dropped.
pub fn start(upstream: &Rc<Upstream>) {
    if !upstream.starts_now() {
        return;
    }
    spawn_local(sweep(Rc::downgrade(upstream), upstream.keep));
    if upstream.servers.iter().any(|server| server.finds_limit()) {
        spawn_local(server_limit::run(Rc::downgrade(upstream)));
    }
    // Without a limit none waits but for the cap of its class, of which nothing is played.
    if upstream.most() < usize::MAX {
        spawn_local(orders::run(Rc::downgrade(upstream)));
    }
    if let Some(check) = &upstream.check {
        for index in 0..upstream.servers.len() {
            spawn_local(probe_regularly(
                Rc::downgrade(upstream),
                index,
                check.interval,
            ));
        }
    }
}

async fn sweep(upstream: Weak<Upstream>, keep: Duration) {
    loop {
        sleep(keep / 2).await;
        let Some(upstream) = upstream.upgrade() else {
            return;
        };
        for server in &upstream.servers {
            server.pool.sweep(keep);
        }
    }
}

async fn probe_regularly(upstream: Weak<Upstream>, index: usize, interval: Duration) {
    while let Some(upstream) = upstream.upgrade() {
        let server = &upstream.servers[index];
        let result = match probe_request(&upstream) {
            Some(probe_request) => {
                let probing = probe(server.pool.connector(), &probe_request);
                timeout(interval, probing).await.unwrap_or_else(|_| {
                    Err(ProbeError::Unhealthy(format!(
                        "no answer within {interval:?}"
                    )))
                })
            }
            None => return,
        };
        match result {
            Ok(()) => upstream.checked(server, Ok(())),
            Err(ProbeError::Unhealthy(why)) => upstream.checked(server, Err(why)),
            Err(ProbeError::NotProbed) => {}
        }
        drop(upstream);
        sleep(interval).await;
    }
}

fn probe_request(upstream: &Upstream) -> Option<Outgoing> {
    let path = upstream.check.as_ref()?.path.as_str();
    let mut headers = HeaderMap::with_capacity(2);
    headers.insert(USER_AGENT, HeaderValue::from_static("sooner"));
    Some(Outgoing {
        method: Method::GET,
        target: PathAndQuery::try_from(path).ok()?,
        headers,
        host: match &upstream.host {
            HostRule::Fixed(host) => Some(host.clone()),
            HostRule::Client | HostRule::Server => None,
        },
        upgrade: None,
        expects_continue: false,
        takes_trailers: false,
        parameters: upstream
            .fastcgi()
            .map(|fastcgi| Arc::new(of_probe(path, &fastcgi.root))),
    })
}

/// Why a health check did not pass.
enum ProbeError {
    /// It did not respond well.
    Unhealthy(String),
    /// This host could not connect, which tells nothing of the server.
    NotProbed,
}

impl From<io::Error> for ProbeError {
    fn from(error: io::Error) -> Self {
        match Exhausted::of(&error) {
            Some(_) => Self::NotProbed,
            None => Self::Unhealthy(format!("cannot connect: {error}")),
        }
    }
}

/// Whether a server answers `probe_request` with a status from 200 to 399. The probe has a
/// connection of its own and passes the queue: a busy server is healthy.
async fn probe(connector: &Connector, probe_request: &Outgoing) -> Result<(), ProbeError> {
    let mut connection = connector.connect(false).await?;
    let authority = &connector.endpoint().authority;
    let mut head = probe_request.head(
        connection.protocol(),
        authority,
        connector.is_tls(),
        Some(0),
    );
    if connection.protocol() == Protocol::Http1 {
        head.headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let path = probe_request.target.as_str();
    match connection.send(head.map(|()| Upload::empty())).await {
        Ok(response) if (200..400).contains(&response.status().as_u16()) => Ok(()),
        Ok(response) => Err(ProbeError::Unhealthy(format!(
            "{path} has status {}",
            response.status().as_u16()
        ))),
        Err((error, _)) => Err(ProbeError::Unhealthy(format!("{path}: {error}"))),
    }
}
