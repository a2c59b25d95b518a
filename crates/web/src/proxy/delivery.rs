//! A job inside a server, and the response it waits for: the next one comes in when its last byte is here.

use super::download::{Cut, Feeder};
use super::sender::Sender;
use super::trouble::Inquiry;
use super::upload::Progress;
use super::upstream::{Place, Upstream};
use hyper::body::Incoming;
use sooner_limiter::Permit;
use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// A job inside; dropping it makes room for the next one.
pub struct Job {
    /// Its place in a server. Dropped before the permit: who is let in next must find it empty.
    pub place: Place,
    /// Leave to be inside.
    pub permit: Permit,
    /// Where it is.
    pub upstream: Rc<Upstream>,
    /// When its server was asked.
    pub asked_at: Instant,
    /// What was asked for.
    pub inquiry: Inquiry,
    /// How many servers were asked for it.
    pub tries: u32,
}

impl Job {
    /// The upstream has given its last byte.
    pub fn complete(self) {
        let service_ns = self.asked_at.elapsed().as_nanos() as u64;
        self.place.server().served(service_ns);
        drop(self.place);
        self.permit.complete();
    }

    /// The server did not keep what it began, and `why`.
    pub fn fail(self, why: &dyn Display) {
        let server = self.place.server();
        let (upstream, inquiry) = (&self.upstream, &self.inquiry);
        upstream.note_unanswered(server, why, inquiry, self.tries);
        upstream.suspect(server, inquiry);
    }
}

/// A response whose body is still with the upstream.
pub struct Stream {
    /// What is to come.
    pub body: Incoming,
    /// The job that ends with it.
    pub job: Job,
    /// The connection it comes on.
    pub sender: Sender,
    /// How far the request's body is.
    pub progress: Rc<Progress>,
    /// How long the server keeps the connection afterwards, s, if it said so.
    pub kept_seconds: Option<u64>,
}

impl Stream {
    /// Reads the body to its end.
    pub async fn pump(mut self, feeder: Feeder, idle: Duration) {
        let has_length = feeder.has_length();
        let Err(cut) = feeder.feed(&mut self.body, idle).await else {
            return self.finish(true);
        };
        // What a client can bring about is no failure, or it could put the server out for all.
        let is_of_server = match cut {
            Cut::Abandoned => false,
            // A stream of events pauses, and so does who waits for the rest of the request.
            Cut::Idle => has_length && self.progress.is_over(),
            Cut::Broken(_) => self.progress.client_fault().is_none(),
        };
        self.progress.give_up();
        if is_of_server {
            self.job.fail(&cut);
        }
    }

    /// The response is complete: the next job may come. The connection is free if nothing more comes on it (`is_whole`) and nothing of
    /// the request is left to send.
    pub fn finish(self, is_whole: bool) {
        let is_clean = is_whole && self.progress.is_over();
        let pool = self.job.place.server().pool.clone();
        self.job.complete();
        if is_clean {
            pool.give_back(self.sender, self.kept_seconds);
        } else {
            self.progress.give_up();
        }
    }
}
