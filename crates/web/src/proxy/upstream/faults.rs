//! What servers answered and what not: their health, and what the operator is told.

use super::SharedUpstream;
use crate::proxy::failure::Failure;
use crate::proxy::failure_log::{RequestSummary, one_line};
use crate::proxy::health::Standing;
use crate::proxy::server::Server;
use sooner_admission::Time;
use std::fmt::Display;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// `Retry-After` of a status 503 where it is unknown when a server comes back, s.
const RETRY_SECONDS: u64 = 5;

impl SharedUpstream {
    /// Why no request is admitted, and when one may be.
    pub fn all_down_failure(&self) -> Failure {
        let (now, (_, settings, _)) = (self.now(), self.said());
        let again = |server: &Arc<Server>| match &settings.check {
            Some(check) if server.is_ejected_by_checks() => Some(check.interval),
            _ => Some(Duration::from_nanos(server.changes_at(now)?.since(now))),
        };
        let first = settings.servers.iter().filter_map(again).min();
        let first = first.unwrap_or(Duration::from_secs(RETRY_SECONDS));
        let last = self.last_failure.lock();
        Failure::AllDown {
            retry_seconds: first.as_nanos().div_ceil(1_000_000_000) as u64,
            last: last.unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Something was found out of `server`, which may change how it stands.
    fn judge(&self, server: &Arc<Server>, change: impl FnOnce(&Server, Time) -> bool) {
        let mut state = self.lock();
        if change(server, self.now()) {
            self.standing_changed(&mut state, server);
        }
    }

    /// `server` answered.
    pub fn succeeded(&self, server: &Arc<Server>) {
        self.judge(server, Server::succeeded);
    }

    /// A connection to `server` was opened.
    pub fn connected(&self, server: &Arc<Server>) {
        self.judge(server, Server::connected);
    }

    /// `server` could not be reached, and `why`; try number `tries` of `summary`. No request brings
    /// that about.
    pub fn note_unreachable(
        &self,
        server: &Arc<Server>,
        why: &dyn Display,
        summary: &RequestSummary,
        tries: u32,
    ) {
        self.note_failed_attempt(server, why, summary, tries);
        self.judge(server, Server::unreachable);
    }

    /// `server` took `summary` and did not answer it, or not to the end, and `why`; try number
    /// `tries`. That says nothing of the server yet: see [`SharedUpstream::note_server_fault`] and
    /// [`SharedUpstream::note_possible_fault`].
    pub fn note_failed_attempt(
        &self,
        server: &Server,
        why: &dyn Display,
        summary: &RequestSummary,
        tries: u32,
    ) {
        self.report_failure(server, why, summary, tries);
        self.note_failure(server, why);
        server.count_failure();
    }

    /// What `server` did not answer is not the request's fault: another server did.
    pub fn note_server_fault(&self, server: &Arc<Server>) {
        self.judge(server, Server::failed);
    }

    /// What `server` did not answer may be the fault of `summary`: its path counts once, and never
    /// against the last server that is up.
    pub fn note_possible_fault(&self, server: &Arc<Server>, summary: &RequestSummary) {
        let mut state = self.lock();
        let now = self.now();
        let is_up = |other: &Arc<Server>| other.standing(now) == Standing::Up;
        let has_another = (state.settings.servers.iter())
            .any(|other| !Arc::ptr_eq(other, server) && is_up(other));
        if has_another && server.failed_at(summary.path_hash(), now) {
            self.standing_changed(&mut state, server);
        }
    }

    /// `server` passed a health check, or why it did not.
    pub fn checked(&self, server: &Arc<Server>, result: Result<(), String>) {
        if let Err(why) = &result {
            let why = format!("its health check failed: {why}");
            let line = format!(
                "upstream `{}`, {}: {}",
                self.name,
                server.name,
                one_line(&why)
            );
            server.failure_log.report(self.now(), line);
            self.note_failure(server, &why);
        }
        self.judge(server, |server, now| server.checked(result.is_ok(), now));
    }

    /// Tells the operator why `server` gave no answer to try number `tries` of `summary`.
    pub fn report_failure(
        &self,
        server: &Server,
        why: &dyn Display,
        summary: &RequestSummary,
        tries: u32,
    ) {
        let (name, server_name, why) = (&self.name, &server.name, one_line(why));
        server.failure_log.report(
            self.now(),
            format_args!("upstream `{name}`, {server_name}: {why}; try {tries} of {summary}"),
        );
    }

    /// Tells the operator why `summary` was sent to no server.
    pub fn report_rejected(&self, summary: &RequestSummary, why: &Failure) {
        let (name, status, why) = (&self.name, why.status().as_u16(), one_line(why));
        self.rejected_log.report(
            self.now(),
            format_args!("upstream `{name}`: {why}; status {status} for {summary}"),
        );
    }

    /// Tells the operator why this host cannot connect to `server` now, which is not the server's
    /// fault.
    pub fn report_exhausted(&self, server: &Server, why: &Failure, summary: &RequestSummary) {
        let (name, server_name, why) = (&self.name, &server.name, one_line(why));
        self.exhausted_log.report(
            self.now(),
            format_args!("upstream `{name}`, {server_name}: {why}; {summary} waits"),
        );
    }

    fn note_failure(&self, server: &Server, why: &dyn Display) {
        let text = format!("{}: {}", server.name, one_line(why));
        let mut last = self
            .last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = Some(text.into());
    }
}
