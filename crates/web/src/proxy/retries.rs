//! Retries: a request waits for admission, goes to a server, and to another one if that does not
//! answer.

use super::attempt::{FailedAttempt, UpstreamResponse, attempt};
use super::facts::Facts;
use super::failure::Failure;
use super::failure_log::RequestSummary;
use super::in_flight::{InFlight, ServerSlot};
use super::server::Server;
use super::tell_wait::Wait;
use super::upload::Upload;
use super::upstream::{Choice, Times};
use super::waiting_stream::want_plain;
use super::{Route, SharedReport};
use sooner_http::forwarding::request::Outgoing;
use sooner_limiter::{Acquire, Permit};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep, timeout};

/// The time from one attempt to connect to the next where nothing is left here to connect with:
/// others end, and leave some.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// A request that wants an answer.
pub struct RoutedRequest<'a> {
    /// Where it goes.
    pub route: &'a Rc<Route>,
    /// What is known of it.
    pub facts: Facts,
    /// As it goes out.
    pub outgoing: &'a mut Outgoing,
    /// Whether it comes through a proxy that is trusted.
    pub is_trusted: bool,
    /// For lines to the operator.
    pub summary: RequestSummary,
}

/// Where a request has been so far.
#[derive(Default)]
struct Attempts {
    /// Servers that did not respond, or could not be reached.
    tried: Vec<Arc<str>>,
    /// Why the last one did not.
    last: Option<Failure>,
    /// The last one, until the request is sent again.
    failed: Option<Arc<Server>>,
    /// Servers that took the request and did not answer it: their fault if another one does, the
    /// request's if none does.
    suspects: Vec<Arc<Server>>,
    /// Servers that this host had nothing left to connect with.
    exhausted_for: Vec<Arc<str>>,
    /// Until when resources are waited for.
    resources_until: Option<Instant>,
    /// Whether the next attempt may find something only after a while.
    must_pause: bool,
    /// Whether the request has counted as one that ran for longer than it may.
    is_overlong: Rc<Cell<bool>>,
}

/// How long a request may wait for a place, in all: in the queue, there again, and for another
/// server.
struct Patience {
    /// `None`: as long as the client does.
    whole: Option<Duration>,
    waited: Duration,
}

impl Patience {
    fn new(whole: Option<Duration>) -> Self {
        Self {
            whole,
            waited: Duration::ZERO,
        }
    }

    /// What comes of `waiting`, unless that takes longer than is left.
    async fn wait<T>(&mut self, waiting: impl Future<Output = T>) -> Result<T, Failure> {
        let Some(whole) = self.whole else {
            return Ok(waiting.await);
        };
        let began = Instant::now();
        // What is there already is there where nothing is left, too.
        let ended = timeout(whole.saturating_sub(self.waited), waiting).await;
        self.waited += began.elapsed();
        ended.map_err(|_| Failure::QueuedTooLong(whole))
    }
}

/// An attempt that ends where the request has run for longer than it may.
async fn attempt_within(
    slot: &ServerSlot,
    outgoing: &Outgoing,
    upload: Upload,
    times: &Times,
) -> Result<UpstreamResponse, FailedAttempt> {
    tokio::select! {
        biased;
        attempted = attempt(slot, outgoing, upload, times) => attempted,
        longest = slot.cancelled() => Err(FailedAttempt {
            failure: Failure::RanTooLong(longest.time),
            retry: None,
        }),
    }
}

/// A request ends without a response. One that its client has not given up says as little of others
/// as an error does.
fn note_failed(permit: &mut Permit, failure: &Failure) {
    if !matches!(failure, Failure::ClientBody(_)) {
        permit.fail();
    }
}

impl RoutedRequest<'_> {
    /// Sends the request to servers until one responds, and notes in `report` how it went.
    pub async fn send(
        mut self,
        mut upload: Upload,
        report: &SharedReport,
    ) -> Result<(UpstreamResponse, InFlight), Failure> {
        let (upstream, times) = (&self.route.upstream, &self.route.times);
        let mut attempts = Attempts::default();
        let mut patience = Patience::new(times.queue);
        let (came_at, ahead) = (self.facts.came_at, upstream.status().waiting);
        let acquire = self.facts.acquire(upstream);
        let mut permit = self.admit(acquire, &mut patience, report).await?;
        let mut admitted_at = Instant::now();
        loop {
            let mut slot = match upstream.choose_server(&attempts.tried) {
                Choice::Server(slot) => slot,
                Choice::Full => {
                    let again = permit.come_again();
                    permit = self.admit(again, &mut patience, report).await?;
                    admitted_at = Instant::now();
                    continue;
                }
                Choice::OthersFull => {
                    self.wait_for_another(&attempts.tried, &mut patience, report)
                        .await?;
                    admitted_at = Instant::now();
                    continue;
                }
                Choice::AllDown => {
                    if attempts.last.is_some() {
                        permit.fail();
                    }
                    let all_down = || self.reject(upstream.all_down_failure());
                    return Err(attempts.last.unwrap_or_else(all_down));
                }
            };
            let server = slot.server().clone();
            if let Some(failed) = attempts.failed.take() {
                failed.count_retry();
            }
            self.begin_try(&server, &mut permit, &attempts, (came_at, ahead), report);
            let sent_at = Instant::now();
            slot.limit_to(upstream, (&permit, admitted_at), &attempts.is_overlong);
            match attempt_within(&slot, self.outgoing, upload, times).await {
                Ok(response) => {
                    self.note_answer(&server, &attempts);
                    let in_flight = InFlight {
                        slot,
                        permit,
                        upstream: upstream.clone(),
                        sent_at,
                        summary: self.summary,
                        tries: report.tries(),
                        status: response.response.status(),
                        log_report: report.clone(),
                    };
                    return Ok((response, in_flight));
                }
                Err(failed) => {
                    drop(slot);
                    report.lock().note_failed(&server.name, &failed.failure);
                    let next = if failed.failure.is_exhausted() {
                        report.forget_try();
                        self.wait_for_resources(&server, failed, &mut attempts, Instant::now())
                    } else {
                        self.retry_after(&server, failed, &mut attempts, report.tries())
                    };
                    upload = next.inspect_err(|failure| note_failed(&mut permit, failure))?;
                }
            }
            if attempts.must_pause {
                sleep(EXHAUSTED_PAUSE).await;
            }
        }
    }

    /// It goes to `server` now. What came before, tries that failed as well as the queue, is no
    /// time of this one: it was waiting, and who is told of that is told of all of it.
    fn begin_try(
        &mut self,
        server: &Server,
        permit: &mut Permit,
        attempts: &Attempts,
        (came_at, ahead): (SystemTime, usize),
        report: &SharedReport,
    ) {
        // The first one began when it was let in.
        if attempts.last.is_some() {
            permit.begin();
        }
        let wait_ns = permit.waited_ns();
        report.lock().wait_ns = wait_ns;
        if self.route.upstream.settings().tell_wait.server {
            self.tell(permit.class(), (came_at, wait_ns, ahead));
        }
        if report.start_try(&server.name) {
            want_plain(&mut self.outgoing.headers);
        }
    }

    /// `server` answers what others did not.
    fn note_answer(&self, server: &Arc<Server>, attempts: &Attempts) {
        let upstream = &self.route.upstream;
        upstream.succeeded(server);
        let others = attempts.suspects.iter();
        others
            .filter(|suspect| !Arc::ptr_eq(suspect, server))
            .for_each(|suspect| upstream.note_server_fault(suspect));
    }

    /// Tells the server how long it waited here.
    fn tell(&mut self, class: u8, (came_at, wait_ns, ahead): (SystemTime, u64, usize)) {
        let current = self.route.upstream.current();
        let wait = Wait {
            came_at,
            wait_ns,
            ahead,
            class: current.classes.name(class),
            is_trusted: self.is_trusted,
        };
        wait.add_to(&mut self.outgoing.headers);
    }

    async fn admit(
        &self,
        acquire: Acquire,
        patience: &mut Patience,
        report: &SharedReport,
    ) -> Result<Permit, Failure> {
        report.lock().is_waiting = true;
        let admitted = patience.wait(self.route.upstream.admit(acquire)).await;
        report.lock().is_waiting = false;
        admitted.flatten().map_err(|failure| self.reject(failure))
    }

    /// Waits, with its admission and without a place, until another server may have one.
    async fn wait_for_another(
        &self,
        tried: &[Arc<str>],
        patience: &mut Patience,
        report: &SharedReport,
    ) -> Result<(), Failure> {
        report.lock().is_waiting = true;
        let freed = patience.wait(self.route.upstream.freed(tried)).await;
        report.lock().is_waiting = false;
        freed.map_err(|failure| self.reject(failure))
    }

    /// The request's body, if `server`, which gave no answer on try number `tries`, or another one
    /// is to get the request again.
    fn retry_after(
        &self,
        server: &Arc<Server>,
        failed: FailedAttempt,
        attempts: &mut Attempts,
        tries: u32,
    ) -> Result<Upload, Failure> {
        let FailedAttempt { failure, retry } = failed;
        let upstream = &self.route.upstream;
        if failure.is_connect_failure() {
            upstream.note_unreachable(server, &failure, &self.summary, tries);
        } else if failure.is_server_fault() {
            upstream.note_failed_attempt(server, &failure, &self.summary, tries);
            attempts.suspects.push(server.clone());
        } else if failure.status().is_server_error() {
            upstream.report_failure(server, &failure, &self.summary, tries);
        }
        match retry {
            Some(retry) if failure.is_retryable() && tries <= upstream.settings().retries => {
                attempts.tried.push(server.name.clone());
                attempts.failed = Some(server.clone());
                attempts.must_pause = false;
                attempts.last = Some(failure);
                Ok(retry)
            }
            _ => {
                // Where two did not answer it is the request.
                if let [suspect] = attempts.suspects.as_slice() {
                    upstream.note_possible_fault(suspect, &self.summary);
                }
                Err(failure)
            }
        }
    }

    /// The same where nothing was left here to reach `server` with. That counts neither against the
    /// server nor as a try; others may be reached over connections that are there already, and
    /// after that it is a matter of time.
    fn wait_for_resources(
        &self,
        server: &Server,
        failed: FailedAttempt,
        attempts: &mut Attempts,
        now: Instant,
    ) -> Result<Upload, Failure> {
        let FailedAttempt { failure, retry } = failed;
        let until = attempts
            .resources_until
            .get_or_insert(now + self.route.times.connect);
        let Some(retry) = retry.filter(|_| now < *until) else {
            return Err(self.reject(failure));
        };
        self.route
            .upstream
            .report_exhausted(server, &failure, &self.summary);
        attempts.must_pause = attempts.exhausted_for.contains(&server.name);
        if !attempts.must_pause {
            attempts.exhausted_for.push(server.name.clone());
            attempts.tried.push(server.name.clone());
        }
        attempts.last = Some(failure);
        Ok(retry)
    }

    /// Reports to the operator that the request is sent to no server, and why.
    fn reject(&self, failure: Failure) -> Failure {
        self.route.upstream.report_rejected(&self.summary, &failure);
        failure
    }
}
