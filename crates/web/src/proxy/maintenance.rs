//! What an upstream needs beside requests: health checks, an end for idle connections, a look at
//! its servers' limits now and then.

use super::connect::Connector;
use super::failure::Exhausted;
use super::fastcgi::of_probe;
use super::orders;
use super::server::Server;
use super::server_limit::{self, ServerLimit};
use super::upload::Upload;
use super::upstream::{HostRule, Settings, Upstream};
use hyper::header::{CONNECTION, HeaderValue, USER_AGENT};
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Method};
use sooner_http::forwarding::request::{Outgoing, Protocol};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};

/// Starts what an upstream needs by what is said of it now, and ends what ran for it before: each
/// worker looks after its own connections and requests, the first one after what all have in common.
/// All of it ends when the upstream is dropped.
pub fn start(upstream: &Rc<Upstream>) {
    upstream.overtimes.renew();
    upstream.forget_servers();
    if !upstream.starts_now() {
        return;
    }
    let (weak, settings) = (Rc::downgrade(upstream), upstream.settings());
    let mut tasks = vec![spawn_local(sweep(weak.clone(), settings.keep))];
    if upstream.is_first() && matches!(settings.limit, ServerLimit::Found(_)) {
        tasks.push(spawn_local(server_limit::run(weak.clone())));
    }
    // Without a limit none waits but for the cap of its class, of which nothing is played.
    if upstream.is_first() && settings.most() < usize::MAX {
        tasks.push(spawn_local(orders::run(weak.clone())));
    }
    if let (true, Some(check)) = (upstream.is_first(), &settings.check) {
        let probe = |server: &Arc<Server>| {
            let probing = probe_regularly(weak.clone(), server.clone(), check.interval);
            spawn_local(probing)
        };
        tasks.extend(settings.servers.iter().map(probe));
    }
    upstream.run(tasks.iter().map(JoinHandle::abort_handle).collect());
}

async fn sweep(upstream: Weak<Upstream>, keep: Duration) {
    loop {
        sleep(keep / 2).await;
        let Some(upstream) = upstream.upgrade() else {
            return;
        };
        upstream.sweep(keep);
    }
}

async fn probe_regularly(upstream: Weak<Upstream>, server: Arc<Server>, interval: Duration) {
    while let Some(upstream) = upstream.upgrade() {
        let result = match probe_request(&upstream.settings()) {
            Some(probe_request) => {
                let probing = probe(&server.connector, &probe_request);
                timeout(interval, probing).await.unwrap_or_else(|_| {
                    Err(ProbeError::Unhealthy(format!(
                        "no answer within {interval:?}"
                    )))
                })
            }
            None => return,
        };
        match result {
            Ok(()) => upstream.checked(&server, Ok(())),
            Err(ProbeError::Unhealthy(why)) => upstream.checked(&server, Err(why)),
            Err(ProbeError::NotProbed) => {}
        }
        drop(upstream);
        sleep(interval).await;
    }
}

fn probe_request(settings: &Settings) -> Option<Outgoing> {
    let path = settings.check.as_ref()?.path.as_str();
    let mut headers = HeaderMap::with_capacity(2);
    headers.insert(USER_AGENT, HeaderValue::from_static("sooner"));
    settings.headers.set_fixed(&mut headers);
    let host = match &settings.host {
        HostRule::Fixed(host) => Some(host.clone()),
        HostRule::Client | HostRule::Name | HostRule::Server => None,
    };
    Some(Outgoing {
        method: Method::GET,
        target: PathAndQuery::try_from(path).ok()?,
        headers,
        upgrade: None,
        expects_continue: false,
        takes_trailers: false,
        parameters: settings
            .fastcgi
            .as_ref()
            .map(|fastcgi| of_probe(path, &fastcgi.root, host.as_ref())),
        host,
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
    let mut connection = connector.connect(false, None).await?;
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
