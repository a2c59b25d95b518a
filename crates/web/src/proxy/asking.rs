//! Asking servers until one answers: a request waits at the gate, goes to a server, and to another one if that does not answer.

use super::delivery::Job;
use super::exchange::{Answered, Unanswered, exchange};
use super::failure::Failure;
use super::request::Outgoing;
use super::server::Server;
use super::trouble::Inquiry;
use super::upload::Upload;
use super::upstream::Choice;
use super::{Report, Route};
use hyper::http::request::Parts;
use sooner_limiter::Permit;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time from one attempt to connect to the next where nothing is left here to connect with: others end, and leave some.
const LACK_PAUSE: Duration = Duration::from_millis(100);

/// A request that wants an answer.
pub struct Asking<'a> {
    /// Where it goes.
    pub route: &'a Rc<Route>,
    /// As it came.
    pub parts: &'a Parts,
    /// As it goes out.
    pub outgoing: &'a Outgoing,
    /// As the operator is told of it.
    pub inquiry: Inquiry,
}

/// Where a request has been so far.
#[derive(Default)]
struct Attempts {
    /// Servers that did not answer, or could not be asked.
    tried: Vec<Arc<str>>,
    /// Why the last one did not.
    last: Option<Failure>,
    /// The last one, until another one is asked in its place.
    unanswered: Option<Rc<Server>>,
    /// Servers that took the request and did not answer it: their fault if another one does, the request's if none does.
    suspects: Vec<Rc<Server>>,
    /// Servers that could not be asked for want of something here.
    out_of_reach: Vec<Arc<str>>,
    /// Until when such a want is waited for.
    patient_until: Option<Instant>,
    /// Whether the next attempt may find something only after a while.
    must_pause: bool,
}

impl Asking<'_> {
    /// Asks servers until one answers, and tells `report` how it went.
    pub async fn ask(
        self,
        mut upload: Upload,
        report: &mut Report,
    ) -> Result<(Answered, Job), Failure> {
        let (upstream, times) = (&self.route.upstream, &self.route.times);
        let mut attempts = Attempts::default();
        let mut permit = self.enter(report).await?;
        loop {
            let place = match upstream.choose(&attempts.tried) {
                Choice::Server(place) => place,
                Choice::NoPlace => {
                    drop(permit);
                    permit = self.enter(report).await?;
                    continue;
                }
                Choice::AllDown => {
                    return Err(match attempts.last {
                        Some(failure) => failure,
                        None => self.turned_away(upstream.down()),
                    });
                }
            };
            let server = place.server().clone();
            report.server = Some(server.name.clone());
            if let Some(unanswered) = attempts.unanswered.take() {
                unanswered.asked_again();
            }
            let asked_at = Instant::now();
            match exchange(&server, self.outgoing, upload, times).await {
                Ok(answered) => {
                    upstream.succeeded(&server);
                    let others = attempts.suspects.iter();
                    others
                        .filter(|suspect| !Rc::ptr_eq(suspect, &server))
                        .for_each(|suspect| upstream.blame(suspect));
                    report.tries += 1;
                    let job = Job {
                        place,
                        permit,
                        upstream: upstream.clone(),
                        asked_at,
                        inquiry: self.inquiry,
                        tries: report.tries,
                    };
                    return Ok((answered, job));
                }
                Err(unanswered) => {
                    drop(place);
                    report.note_failed(&server.name, &unanswered.failure);
                    upload = if unanswered.failure.is_own_lack() {
                        self.wait_for_means(&server, unanswered, &mut attempts, Instant::now())?
                    } else {
                        report.tries += 1;
                        self.try_again(&server, unanswered, &mut attempts, report.tries)?
                    };
                }
            }
            if attempts.must_pause {
                sleep(LACK_PAUSE).await;
            }
        }
    }

    async fn enter(&self, report: &mut Report) -> Result<Permit, Failure> {
        let (route, parts) = (self.route, self.parts);
        let key = sooner_admission::key(parts.method.as_str(), &route.path, parts.uri.path());
        let permit = route
            .upstream
            .enter(route.gate_class(), key, route.times.queue)
            .await
            .map_err(|failure| self.turned_away(failure))?;
        report.wait_ns += permit.wait_ns();
        Ok(permit)
    }

    /// The request's body, if `server`, which gave no answer on try number `tries`, or another one is to get the request again.
    fn try_again(
        &self,
        server: &Rc<Server>,
        unanswered: Unanswered,
        attempts: &mut Attempts,
        tries: u32,
    ) -> Result<Upload, Failure> {
        let Unanswered { failure, again } = unanswered;
        let upstream = &self.route.upstream;
        if failure.is_of_connecting() {
            upstream.unreachable(server, &failure, &self.inquiry, tries);
        } else if failure.is_of_server() {
            upstream.note_unanswered(server, &failure, &self.inquiry, tries);
            attempts.suspects.push(server.clone());
        } else if failure.status().is_server_error() {
            upstream.tell_of(server, &failure, &self.inquiry, tries);
        }
        match again {
            Some(again) if failure.may_pass() && tries <= upstream.retries => {
                attempts.tried.push(server.name.clone());
                attempts.unanswered = Some(server.clone());
                attempts.must_pause = false;
                attempts.last = Some(failure);
                Ok(again)
            }
            _ => {
                // Where two did not answer it is the request.
                if let [suspect] = attempts.suspects.as_slice() {
                    upstream.suspect(suspect, &self.inquiry);
                }
                Err(failure)
            }
        }
    }

    /// The same where nothing was left here to reach `server` with. That counts neither against the server nor as a try; others may be
    /// reached over connections that are there already, and after that it is a matter of time.
    fn wait_for_means(
        &self,
        server: &Server,
        unanswered: Unanswered,
        attempts: &mut Attempts,
        now: Instant,
    ) -> Result<Upload, Failure> {
        let Unanswered { failure, again } = unanswered;
        let until = attempts
            .patient_until
            .get_or_insert(now + self.route.times.connect);
        let Some(again) = again.filter(|_| now < *until) else {
            return Err(self.turned_away(failure));
        };
        self.route.upstream.lacks(server, &failure, &self.inquiry);
        attempts.must_pause = attempts.out_of_reach.contains(&server.name);
        if !attempts.must_pause {
            attempts.out_of_reach.push(server.name.clone());
            attempts.tried.push(server.name.clone());
        }
        attempts.last = Some(failure);
        Ok(again)
    }

    /// Nobody is asked, and the operator is told why.
    fn turned_away(&self, failure: Failure) -> Failure {
        self.route.upstream.turned_away(&self.inquiry, &failure);
        failure
    }
}
