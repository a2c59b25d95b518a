//! The admin address of an attachment: what `attach top` shows, as a live page and as data, and
//! metrics.
//!
//! | path | what |
//! |---|---|
//! | `/` | a live page; without JavaScript a plain one that comes anew every five seconds |
//! | `/status.json` | the same as data |
//! | `/metrics` | OpenMetrics text, for Prometheus |
//! | `/healthz` | `ok` |

mod page;
mod status;

use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::rc::{Rc, Weak};
use std::time::SystemTime;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use sooner_kernel::clock::monotonic_ns;
use sooner_operate::admin::answer::{self, Answer, TEXT, is_meant};
use sooner_operate::admin::{Pages, Ring};

use super::attached::Attached;
use super::exposition;
use super::snapshot::Snapshot;
use status::{Second, Status};

/// Where an admin address is: an address with a port, or a port of this machine alone. The error is
/// what is wrong, in words.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().ok();
    let address = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    address.or_else(|| text.parse().ok()).ok_or_else(|| {
        format!("`{text}` is neither an address with a port, such as 127.0.0.1:9191, nor a port")
    })
}

/// Listens there. Needs a tokio runtime around it.
pub fn bind(address: SocketAddr) -> io::Result<tokio::net::TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

/// What is shown.
pub trait Source {
    /// All of it; asks for every connection, which takes milliseconds where there are many.
    fn snapshot(&self) -> io::Result<Snapshot>;

    /// What has been sent and what waits, bytes.
    fn load(&self) -> io::Result<(u64, u64)>;
}

/// An attachment, until it ends.
impl Source for Weak<RefCell<Attached>> {
    fn snapshot(&self) -> io::Result<Snapshot> {
        let attached = self.upgrade().ok_or_else(ended)?;
        let mut attached = attached.borrow_mut();
        attached.snapshot(monotonic_ns())
    }

    fn load(&self) -> io::Result<(u64, u64)> {
        let attached = self.upgrade().ok_or_else(ended)?;
        let mut attached = attached.borrow_mut();
        attached.load()
    }
}

fn ended() -> io::Error {
    io::Error::other("it is about to end")
}

/// What all connections to the admin address share.
pub struct Desk<S> {
    source: S,
    history: RefCell<History>,
    /// What was read since the second began, so that many who look cost as much as one.
    current: RefCell<Option<Rc<Snapshot>>>,
}

#[derive(Default)]
struct History {
    sent_bytes: Option<u64>,
    seconds: Ring<Second>,
}

impl<S: Source> Desk<S> {
    /// Nothing has been seen yet.
    pub fn new(source: S) -> Self {
        let desk = Self {
            source,
            history: RefCell::default(),
            current: RefCell::default(),
        };
        desk.note_load();
        desk
    }

    /// A second in which nothing can be read is left out.
    fn note_load(&self) {
        let Ok((sent_bytes, backlog_bytes)) = self.source.load() else {
            return;
        };
        let mut history = self.history.borrow_mut();
        if let Some(before) = history.sent_bytes.replace(sent_bytes) {
            history.seconds.push(Second {
                sent_bytes: sent_bytes.saturating_sub(before),
                backlog_bytes,
            });
        }
    }

    fn snapshot(&self) -> io::Result<Rc<Snapshot>> {
        let mut current = self.current.borrow_mut();
        match &*current {
            Some(snapshot) => Ok(snapshot.clone()),
            None => {
                let snapshot = Rc::new(self.source.snapshot()?);
                *current = Some(snapshot.clone());
                Ok(snapshot)
            }
        }
    }

    fn respond<B>(&self, request: &Request<B>, reached: SocketAddr) -> Answer {
        if !is_meant(request, reached, &[]) {
            return answer::not_meant(&format!("use http://{reached}/ or localhost"));
        }
        if let Some(refusal) = answer::refused_method(request) {
            return refusal;
        }
        let path = request.uri().path();
        match path {
            "/healthz" => return answer::health(false),
            "/" | "/status.json" | "/metrics" => {}
            _ => return answer::not_found("/, /status.json, /metrics and /healthz"),
        }
        let snapshot = match self.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => {
                let words = format!("{error}\n");
                return answer::answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, words);
            }
        };
        if path == "/metrics" {
            return answer::metrics(exposition::encode(std::slice::from_ref(&snapshot)));
        }
        let history = self.history.borrow();
        let status = Status::new(&snapshot, &history.seconds, SystemTime::now());
        match path {
            "/" => answer::page(&page::page(&status)),
            _ => answer::json(&status),
        }
    }
}

impl<S: Source> Pages for Desk<S> {
    fn answer(&self, request: &Request<Incoming>, reached: SocketAddr) -> Answer {
        self.respond(request, reached)
    }

    fn second_passed(&self) {
        self.note_load();
        self.current.replace(None);
    }
}

#[cfg(test)]
mod tests;
