//! A request on its way: waits at the gate, goes to a server, to another one if that does not answer, and back comes an answer.
//!
//! The job is inside from the moment it is let in until the upstream has given the last byte of its response, or the protocol was
//! switched. Dropping the future at any time, or later the answer's body, takes the request back.

use super::connect::Sender;
use super::download::{Budget, Cut, Feeder, download};
use super::exchange::{Answered, Unanswered, exchange};
use super::failure::Failure;
use super::headers::{add_via, has_token, kept_seconds, remove_of_connection};
use super::request::{self, Asker, Outgoing, Rules};
use super::response::{self, BadResponse, Framing};
use super::tunnel;
use super::upload::{ClientFault, Progress, Upload};
use super::upstream::{Choice, HostRule, Place, Upstream};
use super::{Report, Route};
use crate::body::Source;
use crate::message::{Answer, RequestBody, Stay};
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, UPGRADE};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use sooner_gate::Permit;
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::spawn_local;
use tokio::time::Instant;

/// A request and where it is to go.
pub struct Forwarding {
    /// Where.
    pub route: Rc<Route>,
    /// On whose behalf.
    pub asker: Asker,
    /// What responses may use.
    pub budget: Arc<Budget>,
}

/// A job inside; dropping it makes room for the next one.
struct Job {
    // Dropped first: who is let in next must find the place empty.
    place: Place,
    permit: Permit,
    upstream: Rc<Upstream>,
    asked_at: Instant,
}

impl Job {
    /// The upstream has given its last byte.
    fn complete(self) {
        let service_ns = self.asked_at.elapsed().as_nanos() as u64;
        self.place.server().served(service_ns);
        drop(self.place);
        self.permit.complete();
    }

    /// The server did not keep what it began.
    fn fail(self) {
        self.upstream.failed(self.place.server());
    }
}

impl Forwarding {
    /// Passes `request` on, and tells `report` how it went.
    pub async fn run(
        &self,
        mut request: Request<RequestBody>,
        report: &mut Report,
    ) -> Result<Answer, Failure> {
        let client_side = hyper::upgrade::on(&mut request);
        let (mut parts, body) = request.into_parts();
        if body.is_too_long() {
            return Err(Failure::ClientBody(ClientFault::TooLong));
        }
        let stay = parts.extensions.remove::<Stay>();
        let upload = Upload::new(body);
        let outgoing = self.outgoing(&parts, &upload)?;
        let (answered, job) = self.ask(&outgoing, &parts, upload, report).await?;
        report.response_ns = Some(job.asked_at.elapsed().as_nanos() as u64);
        if answered.response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return self.switch(answered, job, &outgoing, client_side, stay);
        }
        self.deliver(answered, job, &outgoing.method)
    }

    fn outgoing(&self, parts: &Parts, upload: &Upload) -> Result<Outgoing, Failure> {
        let upstream = &self.route.upstream;
        let rules = Rules {
            strip_prefix: self.route.strips_prefix.then_some(self.route.path.as_str()),
            upgrades: &self.route.upgrades,
            keeps_host: upstream.host == HostRule::Client,
        };
        let body_bytes = upload.size_hint().exact();
        let mut outgoing =
            request::outgoing(parts, body_bytes, &self.asker, rules).map_err(Failure::Refused)?;
        if let HostRule::Fixed(host) = &upstream.host {
            outgoing.host = Some(host.clone());
        }
        Ok(outgoing)
    }

    async fn enter(&self, parts: &Parts, report: &mut Report) -> Result<Permit, Failure> {
        let route = &self.route;
        let key = sooner_gate::key(parts.method.as_str(), &route.path, parts.uri.path());
        let permit = route
            .upstream
            .enter(route.gate_class(), key, route.times.queue)
            .await?;
        report.wait_ns += permit.wait_ns();
        Ok(permit)
    }

    /// Asks servers until one answers.
    async fn ask(
        &self,
        outgoing: &Outgoing,
        parts: &Parts,
        mut upload: Upload,
        report: &mut Report,
    ) -> Result<(Answered, Job), Failure> {
        let upstream = &self.route.upstream;
        let mut permit = self.enter(parts, report).await?;
        let mut tried = Vec::new();
        let mut last = None;
        loop {
            let place = match upstream.choose(&tried) {
                Choice::Server(place) => place,
                Choice::NoPlace => {
                    drop(permit);
                    permit = self.enter(parts, report).await?;
                    continue;
                }
                Choice::AllDown => return Err(last.unwrap_or_else(|| upstream.down())),
            };
            let server = place.server().clone();
            report.tries += 1;
            report.server = Some(server.name.clone());
            let asked_at = Instant::now();
            match exchange(&server, outgoing, upload, &self.route.times).await {
                Ok(answered) => {
                    upstream.succeeded(&server);
                    let job = Job {
                        place,
                        permit,
                        upstream: upstream.clone(),
                        asked_at,
                    };
                    return Ok((answered, job));
                }
                Err(Unanswered { failure, again }) => {
                    drop(place);
                    if failure.is_of_server() {
                        upstream.failed(&server);
                    }
                    match again {
                        Some(again) if failure.may_pass() && report.tries <= upstream.retries => {
                            upload = again;
                            tried.push(server.name.clone());
                            last = Some(failure);
                        }
                        _ => return Err(failure),
                    }
                }
            }
        }
    }

    fn deliver(&self, answered: Answered, job: Job, method: &Method) -> Result<Answer, Failure> {
        let Answered {
            response,
            sender,
            progress,
        } = answered;
        let (mut parts, body) = response.into_parts();
        let kept_seconds = kept_seconds(&parts.headers);
        let framing = response::incoming(
            method,
            parts.status,
            parts.version,
            &mut parts.headers,
            body.size_hint().exact(),
        );
        let stream = Stream {
            body,
            job,
            sender,
            progress,
            kept_seconds,
        };
        let source = match framing {
            Ok(Framing::NoBody | Framing::Exact(0)) => {
                let is_whole = stream.body.is_end_stream();
                stream.finish(is_whole);
                Source::Empty
            }
            Ok(Framing::Exact(bytes)) => self.start(stream, Some(bytes)),
            Ok(Framing::Open) => self.start(stream, None),
            Err(bad) => {
                stream.job.fail();
                stream.progress.give_up();
                return Err(Failure::BadResponse(bad));
            }
        };
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            source,
        })
    }

    fn start(&self, stream: Stream, body_bytes: Option<u64>) -> Source {
        let (feeder, download) = download(&self.budget, body_bytes);
        spawn_local(stream.pump(feeder, self.route.times.idle));
        Source::stream(Box::pin(download))
    }

    /// Both sides have agreed on another protocol: from here on the job is no job any more, but a connection, which has the client's
    /// `stay` to its end.
    fn switch(
        &self,
        answered: Answered,
        job: Job,
        outgoing: &Outgoing,
        client_side: OnUpgrade,
        stay: Option<Stay>,
    ) -> Result<Answer, Failure> {
        let mut response: Response<Incoming> = answered.response;
        let asked = outgoing.upgrade.as_ref().filter(|protocol| {
            protocol
                .to_str()
                .is_ok_and(|protocol| has_token(response.headers(), &UPGRADE, protocol))
        });
        let Some(protocol) = asked else {
            job.fail();
            return Err(Failure::BadResponse(BadResponse::Status));
        };
        let upstream_side = hyper::upgrade::on(&mut response);
        let (parts, _) = response.into_parts();
        let mut headers = parts.headers;
        remove_of_connection(&mut headers);
        headers.remove(CONTENT_LENGTH);
        add_via(&mut headers, parts.version);
        headers.insert(
            CONNECTION,
            hyper::header::HeaderValue::from_static("upgrade"),
        );
        headers.insert(UPGRADE, protocol.clone());
        job.complete();
        let tunnel = tunnel::join(client_side, upstream_side, self.route.tunnel_silence);
        spawn_local(async move {
            tunnel.await;
            drop(stay);
        });
        Ok(Answer {
            status: StatusCode::SWITCHING_PROTOCOLS,
            headers,
            source: Source::Empty,
        })
    }
}

/// A response whose body is still with the upstream.
struct Stream {
    body: Incoming,
    job: Job,
    sender: Sender,
    progress: Rc<Progress>,
    kept_seconds: Option<u64>,
}

impl Stream {
    /// Reads the body to its end.
    async fn pump(mut self, feeder: Feeder, idle: std::time::Duration) {
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
            self.job.fail();
        }
    }

    /// The response is complete: the next job may come. The connection is free if nothing more comes on it (`is_whole`) and nothing of
    /// the request is left to send.
    fn finish(self, is_whole: bool) {
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
