//! Who answers a request, and what the uplink, the log and the metrics are told of the answer.
//!
//! One service stands behind all connections of a server; the protocols bring requests and take answers, and share
//! nothing else. The calls, for every request: [`Service::asked`] while the request is at hand, [`Service::respond`],
//! which takes it, and, when there is an answer, [`Service::announce`], whose result is for the uplink.

use crate::access_log::{AccessLog, Begun, WallClock};
use crate::generation::Generation;
use crate::message::{Answer, Peer, RequestBody};
use crate::metrics::Metrics;
use crate::urgency::{Hints, Signal};
use hyper::Request;
use sooner_uplink::{JobReport, ResponseStart};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// What TLS adds to each of its records: header, content type, tag (RFC 8446, 5.2), bytes.
const TLS_RECORD_BYTES: u64 = 22;
/// The most a TLS record holds, bytes.
const TLS_RECORD_DATA_BYTES: u64 = 16 << 10;

/// An answer, now or when somebody else has made it.
pub enum Reply {
    /// It is here.
    Now(Answer),
    /// A backend makes it; dropping the future gives it up.
    Later(Pin<Box<dyn Future<Output = Answer>>>),
}

/// What is remembered of a request after it was given to whoever answers it.
pub struct Asked {
    hints: Hints,
    begun: Option<Begun>,
    is_tls: bool,
    facts: crate::metrics::RequestFacts,
}

/// What is told of an answer before its first byte.
pub struct Announcement<F> {
    /// What the uplink needs to know; its class is the signal's.
    pub start: ResponseStart,
    /// The class, and the order among the streams of one connection.
    pub signal: Signal,
    /// To be called when the response is over.
    pub on_end: F,
}

/// What all connections of a server share.
pub struct Service {
    generation: RefCell<Rc<Generation>>,
    log: AccessLog,
    metrics: Arc<Metrics>,
    wall_clock: RefCell<WallClock>,
}

impl Service {
    /// A service that answers as `generation` says until another one replaces it.
    pub fn new(generation: Generation, log: AccessLog, metrics: Arc<Metrics>, now: Instant) -> Self {
        Self {
            generation: RefCell::new(Rc::new(generation)),
            log,
            metrics,
            wall_clock: RefCell::new(WallClock::new(now)),
        }
    }

    /// From now on requests are answered as `generation` says; those that have begun end as they began.
    pub fn replace(&self, generation: Generation) {
        *self.generation.borrow_mut() = Rc::new(generation);
    }

    /// What requests are answered by now.
    pub fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }
}
