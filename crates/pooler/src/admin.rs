//! The admin address: metrics, status and a live page, for the operator of the gate.
//!
//! | path | what |
//! |---|---|
//! | `/` | a live page; without JavaScript a plain one that comes anew every five seconds |
//! | `/status.json` | the same as data |
//! | `/metrics` | OpenMetrics text, for Prometheus |
//! | `/healthz` | `ok`, or 503 and `stopping` |

mod exposition;
mod history;
mod page;
mod status;

use crate::pooler::Pooler;
use exposition::exposition;
use history::History;
use hyper::Request;
use hyper::body::Incoming;
use sooner_operate::admin::answer::{self, Answer, is_meant};
use sooner_operate::admin::{self, Pages};
use status::Status;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Instant, SystemTime};
use tokio::net::TcpListener;

/// Answers each client that connects to `listener`.
pub async fn serve(pooler: Rc<Pooler>, listener: TcpListener) {
    admin::serve(listener, Rc::new(Desk::new(pooler))).await;
}

/// What all connections to the admin address share.
struct Desk {
    pooler: Rc<Pooler>,
    started: Instant,
    history: RefCell<History>,
    /// What was read since the second began, so that many who look cost as much as one.
    current: RefCell<Option<Rc<Current>>>,
}

struct Current {
    status: Status,
    json: Answer,
}

impl Pages for Desk {
    fn answer(&self, request: &Request<Incoming>, reached: SocketAddr) -> Answer {
        match request.uri().path() {
            path @ ("/" | "/status.json") => self.show(path, request, reached),
            // By any name: collectors and balancers use their own.
            "/metrics" => answer::metrics(exposition(&self.pooler)),
            "/healthz" => answer::health(self.pooler.is_stopping()),
            _ => answer::not_found("/, /status.json, /metrics and /healthz"),
        }
    }

    fn second_passed(&self) {
        self.history.borrow_mut().second_passed(&self.pooler);
        self.current.replace(None);
    }
}

impl Desk {
    fn new(pooler: Rc<Pooler>) -> Self {
        let mut history = History::default();
        history.second_passed(&pooler);
        Self {
            pooler,
            started: Instant::now(),
            history: RefCell::new(history),
            current: RefCell::default(),
        }
    }

    /// What only a browser of the operator's may see.
    fn show<B>(&self, path: &str, request: &Request<B>, reached: SocketAddr) -> Answer {
        if !is_meant(request, reached, &[]) {
            return answer::not_meant(&format!("use http://{reached}/ or localhost"));
        }
        if let Some(refusal) = answer::refused_method(request) {
            return refusal;
        }
        let current = self.current();
        match path {
            "/" => answer::page(&page::page(&current.status)),
            _ => current.json.clone(),
        }
    }

    fn current(&self) -> Rc<Current> {
        let mut current = self.current.borrow_mut();
        let read = || {
            let uptime = self.started.elapsed();
            let history = self.history.borrow();
            let status = Status::read(&self.pooler, &history, uptime, SystemTime::now());
            let json = answer::json(&status);
            Rc::new(Current { status, json })
        };
        current.get_or_insert_with(read).clone()
    }
}
