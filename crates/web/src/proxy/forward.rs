//! A request on its way: made ready to go out, answered by a server, and back comes an answer.
//!
//! The job is inside from the moment it is let in until the upstream has given the last byte of its response, or the protocol was
//! switched. Dropping the future at any time, or later the answer's body, takes the request back.

use super::asking::Asking;
use super::delivery::{Job, Stream};
use super::download::{Budget, download};
use super::exchange::Answered;
use super::failure::Failure;
use super::switched::Switched;
use super::trouble::Inquiry;
use super::tunnel;
use super::upload::{ClientFault, Upload};
use super::upstream::HostRule;
use super::{Report, Route};
use crate::body::Source;
use crate::message::{Answer, RequestBody, Stay};
use hyper::body::{Body, Incoming};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use sooner_http::forwarding::headers::keep_alive_seconds;
use sooner_http::forwarding::request::{self, Client, Outgoing, Rules};
use sooner_http::forwarding::response::{self, Framing};
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::spawn_local;

/// A request and where it is to go.
pub struct Forwarding {
    /// Where.
    pub route: Rc<Route>,
    /// On whose behalf.
    pub client: Client,
    /// What responses may use.
    pub budget: Arc<Budget>,
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
        let inquiry = Inquiry::new(&parts.method, &parts.uri, self.client.address);
        let upload = Upload::new(body);
        let outgoing = self.outgoing(&parts, &upload)?;
        let asking = Asking {
            route: &self.route,
            parts: &parts,
            outgoing: &outgoing,
            inquiry,
        };
        let (answered, job) = asking.ask(upload, report).await?;
        report.response_ns = Some(job.asked_at.elapsed().as_nanos() as u64);
        let server = job.place.server().name.clone();
        let answer = if answered.response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.switch(answered, job, &outgoing, client_side, stay)
                .map(|(answer, switched)| {
                    report.switched = Some(switched);
                    answer
                })
        } else {
            self.deliver(answered, job, &outgoing.method)
        };
        answer.inspect_err(|failure| report.note_failed(&server, failure))
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
            request::outgoing(parts, body_bytes, &self.client, rules).map_err(Failure::Refused)?;
        if let HostRule::Fixed(host) = &upstream.host {
            outgoing.host = Some(host.clone());
        }
        Ok(outgoing)
    }

    fn deliver(&self, answered: Answered, job: Job, method: &Method) -> Result<Answer, Failure> {
        let Answered {
            response,
            sender,
            progress,
        } = answered;
        let (mut parts, body) = response.into_parts();
        let keep_alive_seconds = keep_alive_seconds(&parts.headers);
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
            keep_alive_seconds,
        };
        let source = match framing {
            Ok(Framing::NoBody | Framing::Exact(0)) => {
                let is_whole = stream.body.is_end_stream();
                stream.finish(is_whole);
                Source::Empty
            }
            Ok(Framing::Exact(bytes)) => self.start(stream, Some(bytes)),
            Ok(Framing::UntilEnd) => self.start(stream, None),
            Err(bad) => {
                let failure = Failure::BadResponse(bad);
                stream.job.fail(&failure);
                stream.progress.give_up();
                return Err(failure);
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
    ) -> Result<(Answer, Switched), Failure> {
        let mut response: Response<Incoming> = answered.response;
        let upstream_side = hyper::upgrade::on(&mut response);
        let (parts, _) = response.into_parts();
        let mut headers = parts.headers;
        let agreed = response::switching(outgoing.upgrade.as_ref(), parts.version, &mut headers);
        if let Err(bad) = agreed {
            let failure = Failure::BadResponse(bad);
            job.fail(&failure);
            return Err(failure);
        }
        job.complete();
        let (switched, ending) = Switched::begin();
        let tunnel = tunnel::join(
            client_side,
            upstream_side,
            self.route.tunnel_silence,
            ending,
        );
        spawn_local(async move {
            tunnel.await;
            drop(stay);
        });
        let answer = Answer {
            status: StatusCode::SWITCHING_PROTOCOLS,
            headers,
            source: Source::Empty,
        };
        Ok((answer, switched))
    }
}
