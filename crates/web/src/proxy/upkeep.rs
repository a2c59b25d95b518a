//! What is done for an upstream without a request: asking its servers how they are, closing connections nobody uses.

use super::connect::Connector;
use super::lack::Lack;
use super::upload::Upload;
use super::upstream::{HostRule, Upstream};
use hyper::header::{CONNECTION, HeaderValue, USER_AGENT};
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Method};
use sooner_http::forwarding::request::{Outgoing, Protocol};
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

/// Starts what an upstream needs; all of it ends when nobody uses the upstream any more.
pub fn start(upstream: &Rc<Upstream>) {
    if !upstream.starts_now() {
        return;
    }
    spawn_local(sweep(Rc::downgrade(upstream), upstream.keep));
    if let Some(check) = &upstream.check {
        for index in 0..upstream.servers.len() {
            spawn_local(ask_regularly(
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

async fn ask_regularly(upstream: Weak<Upstream>, index: usize, interval: Duration) {
    while let Some(upstream) = upstream.upgrade() {
        let server = &upstream.servers[index];
        let answer = match question(&upstream) {
            Some(question) => {
                let asking = ask(server.pool.connector(), &question);
                timeout(interval, asking).await.unwrap_or_else(|_| {
                    Err(NotWell::Failed(format!("no answer within {interval:?}")))
                })
            }
            None => return,
        };
        match answer {
            Ok(()) => upstream.checked(server, Ok(())),
            Err(NotWell::Failed(why)) => upstream.checked(server, Err(why)),
            Err(NotWell::NotAsked) => {}
        }
        drop(upstream);
        sleep(interval).await;
    }
}

fn question(upstream: &Upstream) -> Option<Outgoing> {
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
    })
}

/// Why a server is not known to be well.
enum NotWell {
    /// It did not answer well.
    Failed(String),
    /// It could not be asked for want of something here, which tells nothing of it.
    NotAsked,
}

impl From<io::Error> for NotWell {
    fn from(error: io::Error) -> Self {
        match Lack::of(&error) {
            Some(_) => Self::NotAsked,
            None => Self::Failed(format!("cannot connect: {error}")),
        }
    }
}

/// Whether a server answers `question` with a status from 200 to 399. It is asked over a connection of its own and past the queue: a
/// server that is busy is well.
async fn ask(connector: &Connector, question: &Outgoing) -> Result<(), NotWell> {
    let mut sender = connector.connect(false).await?;
    let authority = &connector.endpoint().authority;
    let mut head = question.head(sender.protocol(), authority, connector.is_tls(), Some(0));
    if sender.protocol() == Protocol::Http1 {
        head.headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let path = question.target.as_str();
    match sender.send(head.map(|()| Upload::empty())).await {
        Ok(response) if (200..400).contains(&response.status().as_u16()) => Ok(()),
        Ok(response) => Err(NotWell::Failed(format!(
            "{path} has status {}",
            response.status().as_u16()
        ))),
        Err((error, _)) => Err(NotWell::Failed(format!("{path}: {error}"))),
    }
}
