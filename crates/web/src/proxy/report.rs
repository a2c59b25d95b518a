//! How requests were forwarded, for the log.

use super::failure::Failure;
use super::failure_log::one_line;
use super::tunnel::Tunnel;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The most failed tries of a request that are remembered.
const FAILED_TRIES_MAX: usize = 8;

/// How a request was forwarded, up to the beginning of its response.
#[derive(Clone, Debug)]
pub struct Report {
    /// The upstream.
    pub upstream: Arc<str>,
    /// The server of the last attempt.
    pub server: Option<Arc<str>>,
    /// Whether it waits for admission.
    pub is_waiting: bool,
    /// Whether its client has got comments in place of an answer.
    pub is_commented: bool,
    /// Time until the last server's turn, ns: in the queue, with tries before, and until another
    /// server had a place.
    pub wait_ns: u64,
    /// Time from the last server's turn to the beginning of its response, ns; `None` if none began.
    pub response_ns: Option<u64>,
    /// When there was an answer, the upstream's or ours in its place.
    pub answered_at: Option<Instant>,
    /// How many attempts were begun.
    pub tries: u32,
    /// Why there is no response of a server.
    pub failure: Option<Failure>,
    /// Tries that led to no response, each with its server; the first ones and the last.
    pub failed_tries: Vec<(Arc<str>, Failure)>,
    /// Why the response, or the request that has none, ended before its end.
    pub cut: Option<String>,
    /// The connection after the protocol was switched.
    pub tunnel: Option<Tunnel>,
}

/// A report that is written while its request is forwarded, and read when its response is over: a
/// response that begins with comments begins before there is anything to report.
#[derive(Clone, Debug)]
pub struct SharedReport(Arc<Mutex<Report>>);

impl SharedReport {
    /// Of a request to `upstream`.
    pub fn new(upstream: Arc<str>) -> Self {
        Self(Arc::new(Mutex::new(Report {
            upstream,
            server: None,
            is_waiting: false,
            is_commented: false,
            wait_ns: 0,
            response_ns: None,
            answered_at: None,
            tries: 0,
            failure: None,
            failed_tries: Vec::new(),
            cut: None,
            tunnel: None,
        })))
    }

    /// What is known by now.
    pub fn lock(&self) -> MutexGuard<'_, Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request goes to `server` now; tells whether its client has got comments already.
    pub fn start_try(&self, server: &Arc<str>) -> bool {
        let mut report = self.lock();
        report.server = Some(server.clone());
        report.tries += 1;
        report.is_commented
    }

    /// The last attempt does not count.
    pub fn forget_try(&self) {
        let mut report = self.lock();
        assert!(report.tries > 0, "one was begun");
        report.tries -= 1;
    }

    /// How many attempts were begun.
    pub fn tries(&self) -> u32 {
        self.lock().tries
    }
}

impl Report {
    /// A try at `server` led to no response.
    pub fn note_failed(&mut self, server: &Arc<str>, failure: &Failure) {
        let is_known = |(name, known): &(Arc<str>, Failure)| name == server && known == failure;
        if self.failed_tries.last().is_some_and(is_known) {
            return;
        }
        if self.failed_tries.len() == FAILED_TRIES_MAX {
            self.failed_tries.pop();
        }
        self.failed_tries.push((server.clone(), failure.clone()));
    }

    /// The response, or the request that has none, ended before its end. What is known of that
    /// already goes before `why`.
    pub fn note_cut(&mut self, why: &dyn Display) {
        self.cut.get_or_insert_with(|| one_line(why));
    }

    /// Everything that went wrong, in one line, which servers and how; `None` if nothing did.
    pub fn error(&self) -> Option<String> {
        let mut errors: Vec<String> = self
            .failed_tries
            .iter()
            .map(|(server, failure)| format!("{server}: {}", one_line(failure)))
            .collect();
        let last = self.failed_tries.last().map(|(_, failure)| failure);
        errors.extend(
            self.failure
                .as_ref()
                .filter(|failure| last != Some(*failure))
                .map(|failure| one_line(failure)),
        );
        match &self.cut {
            Some(cut) => errors.push(cut.clone()),
            None if self.answered_at.is_none() => {
                errors.push("the client left before there was an answer".into());
            }
            None => {}
        }
        (!errors.is_empty()).then(|| errors.join("; "))
    }
}
