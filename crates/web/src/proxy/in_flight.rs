//! A request in flight at a server, and the response it waits for: the next request is admitted
//! when its last byte is here.

use super::failure::Failure;
use super::failure_log::RequestSummary;
use super::overtime::Overtime;
use super::pool::Pool;
use super::read_ahead::{Feeder, Truncation};
use super::report::SharedReport;
use super::response_stream::ResponseStream;
use super::server::{Entry, Server};
use super::upload::Progress;
use super::upstream::{SharedUpstream, Upstream};
use super::upstream_connection::UpstreamConnection;
use hyper::StatusCode;
use sooner_config::classes::Longest;
use sooner_limiter::Permit;
use std::cell::Cell;
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A slot of a server; dropping it frees it. It has to be dropped before the permit: admission must
/// know the capacity before it admits the next request.
pub struct ServerSlot {
    upstream: Arc<SharedUpstream>,
    /// The worker's connections to the server.
    pool: Rc<Pool>,
    entry: Entry,
    overtime: Option<Overtime>,
}

impl ServerSlot {
    /// The slot of `entry` at the server of `pool`, one of `upstream`'s.
    pub fn new(upstream: &Arc<SharedUpstream>, pool: Rc<Pool>, entry: Entry) -> Self {
        Self {
            upstream: upstream.clone(),
            pool,
            entry,
            overtime: None,
        }
    }

    /// The request of `permit` has it, which went in at `admitted_at`: it keeps the slot only for
    /// as long as its class may. It counts in `counted` that it ran for longer, or has counted.
    pub fn limit_to(
        &mut self,
        upstream: &Rc<Upstream>,
        (permit, admitted_at): (&Permit, Instant),
        counted: &Rc<Cell<bool>>,
    ) {
        let may_be_bounded = upstream.is_class(permit.class());
        self.overtime = may_be_bounded.then(|| {
            let job = (permit.job_class(), counted.clone());
            Overtime::watch(upstream, self.server(), job, admitted_at)
        });
    }

    /// Ready when the request is to be cancelled because it has run for longer than so.
    pub async fn cancelled(&self) -> Longest {
        match &self.overtime {
            Some(overtime) => overtime.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// A connection to the server was opened for it.
    pub fn connected(&self) {
        self.upstream.connected(self.server());
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        self.pool.server()
    }

    /// The worker's connections to it.
    pub fn pool(&self) -> &Rc<Pool> {
        &self.pool
    }
}

impl Drop for ServerSlot {
    fn drop(&mut self) {
        self.overtime.take();
        self.upstream.leave(self.server(), self.entry);
    }
}

/// A request in flight; dropping it makes room for the next one.
pub struct InFlight {
    /// Its slot of a server. Dropped before the permit: the next request must find it free.
    pub slot: ServerSlot,
    /// Its admission.
    pub permit: Permit,
    /// Where it is.
    pub upstream: Rc<Upstream>,
    /// When it was sent.
    pub sent_at: Instant,
    /// The request, for lines to the operator.
    pub summary: RequestSummary,
    /// How many attempts were made.
    pub tries: u32,
    /// The status of the response.
    pub status: StatusCode,
    /// How it goes, for the log.
    pub log_report: SharedReport,
}

impl InFlight {
    /// The upstream has given its last byte. An error tells nothing of requests like this one, nor
    /// of what the server can do: it may come at once, or late. Its class is charged for the place
    /// all the same.
    pub fn complete(mut self) {
        let service_ns = self.sent_at.elapsed().as_nanos() as u64;
        let is_error =
            self.status.is_server_error() || self.status == StatusCode::TOO_MANY_REQUESTS;
        self.slot.server().served(service_ns, is_error);
        drop(self.slot);
        if is_error {
            self.permit.fail();
        } else {
            self.permit.done();
        }
    }

    /// Tells the operator why it ends early, which is not the server's fault.
    pub fn report(&self, why: &dyn Display) {
        let (upstream, server) = (&self.upstream, self.slot.server());
        upstream.report_failure(server, why, &self.summary, self.tries);
    }

    /// The response broke off, and `why`, for the log.
    fn note_cut(&self, why: &dyn Display) {
        let text = format!("{}: {why}", self.slot.server().name);
        self.log_report.lock().note_cut(&text);
    }

    /// The server did not keep what it began, and `why`.
    pub fn fail(mut self, why: &dyn Display) {
        self.permit.fail();
        let server = self.slot.server();
        let (upstream, summary) = (&self.upstream, &self.summary);
        upstream.note_failed_attempt(server, why, summary, self.tries);
        upstream.note_possible_fault(server, summary);
    }
}

/// A response with its body still to come from the upstream.
pub struct UpstreamBody {
    /// What is to come.
    pub body: ResponseStream,
    /// The request that ends with it.
    pub in_flight: InFlight,
    /// The connection it comes on.
    pub connection: UpstreamConnection,
    /// How far the request's body is.
    pub progress: Rc<Progress>,
    /// How long the server keeps the connection afterwards, s, if it said so.
    pub keep_alive_seconds: Option<u64>,
}

impl UpstreamBody {
    /// Reads the body to its end.
    pub async fn pump(mut self, feeder: Feeder, idle: Duration) {
        let has_length = feeder.has_length();
        let fed = tokio::select! {
            biased;
            fed = feeder.feed(&mut self.body, idle) => fed,
            longest = self.in_flight.slot.cancelled() => Err(Truncation::RanTooLong(longest.time)),
        };
        let Err(cut) = fed else {
            return self.finish(true);
        };
        // What a client can bring about is no failure, or it could put the server out for all.
        let is_server_fault = match cut {
            Truncation::Abandoned | Truncation::RanTooLong(_) => false,
            // A stream of events pauses, and so does a server that waits for the rest of the
            // request.
            Truncation::Idle => has_length && self.progress.is_over(),
            Truncation::Broken(_) => self.progress.client_fault().is_none(),
        };
        match (&cut, self.progress.client_fault()) {
            // Its line says so, or that the server stopped.
            (Truncation::Abandoned, _) => {}
            (Truncation::Broken(_), Some(fault)) => {
                let why = Failure::ClientBody(fault);
                self.in_flight.log_report.lock().note_cut(&why);
            }
            _ => self.in_flight.note_cut(&cut),
        }
        // A server that waits for the rest of the request has nothing to say.
        let waits_for_client = matches!(cut, Truncation::Idle) && !self.progress.is_over();
        self.progress.abandon();
        if is_server_fault {
            self.in_flight.fail(&cut);
        } else if let Truncation::RanTooLong(_) | Truncation::Idle = cut {
            self.in_flight.permit.fail();
            if !waits_for_client {
                self.in_flight.report(&cut);
            }
        }
    }

    /// The response is complete: the next request may come. The connection is free if nothing more
    /// comes on it (`is_whole`) and nothing of the request is left to send.
    pub fn finish(self, is_whole: bool) {
        let is_clean = is_whole && self.progress.is_over();
        if is_clean {
            // First: another worker that is let in then may have to end it for its own.
            let pool = self.in_flight.slot.pool();
            pool.put_back(self.connection, self.keep_alive_seconds);
        } else {
            self.progress.abandon();
        }
        self.in_flight.complete();
    }
}
