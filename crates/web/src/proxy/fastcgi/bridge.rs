//! The near end of a connection to a FastCGI server: speaks HTTP/1 to the proxy, in this process.

use super::exchange::exchange;
use crate::proxy::failure_log::FailureLog;
use crate::proxy::upstream_connection::Transport;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sooner_admission::Time;
use sooner_config::printable;
use sooner_http::fastcgi::Parameters;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{DuplexStream, duplex};
use tokio::task::spawn_local;

/// What may be on its way to the server or from it, bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// The most that is shown of what a script says on its error stream, characters.
const WORDS_MAX: usize = 500;

/// What a connection's request needs beside HTTP.
#[derive(Clone, Default)]
pub struct Slot(Rc<SlotState>);

#[derive(Default)]
struct SlotState {
    parameters: RefCell<Option<Arc<Parameters>>>,
    is_answered: Cell<bool>,
}

impl Slot {
    /// The parameters of the next request.
    pub fn replace(&self, parameters: Option<Arc<Parameters>>) {
        self.0.parameters.replace(parameters);
    }

    /// Whether something came of a script's output: it must not run again.
    pub fn is_answered(&self) -> bool {
        self.0.is_answered.get()
    }

    /// Something came.
    pub fn note_answer(&self) {
        self.0.is_answered.set(true);
    }

    fn take(&self) -> Option<Arc<Parameters>> {
        self.0.parameters.borrow_mut().take()
    }
}

/// What all connections to one server share.
#[derive(Clone)]
pub struct Bridge(Arc<Log>);

struct Log {
    server: String,
    begin: Instant,
    words: FailureLog,
    failures: FailureLog,
}

impl Bridge {
    /// For a server of this name.
    pub fn new(server: String) -> Self {
        Self(Arc::new(Log {
            server,
            begin: Instant::now(),
            words: FailureLog::default(),
            failures: FailureLog::default(),
        }))
    }

    /// A connection over HTTP/1 for one request, which goes over `stream`, with the parameters that
    /// are in the slot by then.
    pub fn begin(&self, stream: Box<dyn Transport>) -> (DuplexStream, Slot) {
        let (near, far) = duplex(BUFFER_BYTES);
        let slot = Slot::default();
        spawn_local(serve(far, stream, slot.clone(), self.clone()));
        (near, slot)
    }

    /// A script has said something on its error stream.
    pub fn note_words(&self, words: &[u8]) {
        let words: String = String::from_utf8_lossy(words)
            .chars()
            .take(WORDS_MAX)
            .collect();
        let what = format!("{}: {}", self.0.server, printable(words.trim()));
        self.0.words.report(self.now(), what);
    }

    /// Nothing came of a request, or not all of it.
    pub fn note_failure(&self, why: &dyn std::fmt::Display) {
        let what = format!("{}: {why}", self.0.server);
        self.0.failures.report(self.now(), what);
    }

    fn now(&self) -> Time {
        Time::from_ns(self.0.begin.elapsed().as_nanos() as u64)
    }
}

async fn serve(far: DuplexStream, stream: Box<dyn Transport>, slot: Slot, bridge: Bridge) {
    let stream = RefCell::new(Some(stream));
    let service = service_fn(|request| {
        let parts = stream.borrow_mut().take().zip(slot.take());
        let (bridge, slot) = (bridge.clone(), slot.clone());
        async move { exchange(parts, request, bridge, &slot).await }
    });
    // How it ends, the proxy hears at its own end.
    let serving = Builder::new()
        .auto_date_header(false)
        .keep_alive(false)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(far), service);
    _ = serving.await;
}
