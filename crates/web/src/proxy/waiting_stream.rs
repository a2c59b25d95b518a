//! `tell_wait = ["stream"]`: a sign of life for clients that wait long for an event stream.
//!
//! What gives up on a connection in silence, a proxy in between or the client itself, is kept by
//! comments: lines of the stream that every reader skips (HTML standard, 9.2.6). The response
//! begins with them, so its head is ours: what the server's says, its status above all, cannot
//! reach the client any more. An event stream of the server follows the comments as it is; anything
//! else becomes an event `error`, so that no client takes the end for a whole answer.
//!
//! A request that goes in before the first comment is due is not touched. One that gets comments is
//! forwarded by a task of its own from then on, which ends when the client leaves, and the request
//! with it. One comment at most waits for its client to take it.

mod ending;

use super::facts::RequestFacts;
use super::report::SharedReport;
use super::upstream::Upstream;
use crate::body::Source;
use crate::request_body::BodyError;
use crate::response::Response;
use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, UPGRADE,
};
use hyper::{HeaderMap, StatusCode};
use sooner_http::forwarding::headers::remove_disguised;
use sooner_http::json_fields::{FieldPath, NoFieldPath};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_local;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// From the beginning of the wait to the first comment, and from each to the next. What is between
/// here and a client gives up after 30 s (Heroku) to 60 s of silence (nginx, load balancers of AWS);
/// the HTML standard (9.2.7) says to comment every 15 s or so. Less, as only whole periods are
/// looked at; not much less, because what has begun can have no other status.
pub const PERIOD: Duration = Duration::from_secs(5);
const EVENT_STREAM: &str = "text/event-stream";
/// nginx would hold comments back until they fill a buffer.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What makes the response, from admission on.
pub type Answering = Pin<Box<dyn Future<Output = Response>>>;

/// Which requests get comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comments {
    /// `true` where a request's body asks for a stream.
    field: FieldPath,
}

impl Comments {
    /// For what OpenAI's and its like call a stream.
    pub fn new() -> Result<Self, NoFieldPath> {
        Ok(Self {
            field: "stream".parse()?,
        })
    }

    /// The field of bodies that they go by.
    pub fn field(&self) -> &FieldPath {
        &self.field
    }

    /// Whether a request waits for an event stream and nothing else.
    pub fn are_wanted(&self, of: &RequestFacts<'_>) -> bool {
        let said = of.body.and_then(|body| body.get(&self.field.to_string()));
        let is_for_stream = match said {
            Some(said) => said == "true",
            None => takes_events_alone(of.headers),
        };
        is_for_stream && of.method != "HEAD" && !of.headers.contains_key(UPGRADE)
    }
}

/// Whether `Accept` names event streams, and no other type: who takes JSON as well may get JSON,
/// which could not follow comments.
fn takes_events_alone(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut named = values
        .flat_map(|value| value.split(','))
        .map(media_type)
        .filter(|name| !name.is_empty() && *name != "*/*")
        .peekable();
    named.peek().is_some() && named.all(|name| name.eq_ignore_ascii_case(EVENT_STREAM))
}

/// A media type without its parameters.
fn media_type(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

/// Comments stand before what follows as plain text, so it has to come as plain text.
pub fn want_plain(headers: &mut HeaderMap) {
    remove_disguised(headers, &[ACCEPT_ENCODING]);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// What `answering` gives, if it does not wait for admission by `upstream` when a `period` is over;
/// otherwise a response that begins with comments, one each `period`.
pub async fn answer(
    upstream: Rc<Upstream>,
    mut answering: Answering,
    report: &SharedReport,
    period: Duration,
) -> Response {
    let came_at = Instant::now();
    let mut due = interval_at(came_at + period, period);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            response = &mut answering => return response,
            _ = due.tick() => if report.lock().is_waiting { break },
        }
    }
    report.lock().is_commented = true;
    let (sender, receiver) = channel(1);
    let waiting = Waiting {
        upstream,
        report: report.clone(),
        came_at,
        sender,
    };
    waiting.comment();
    spawn_local(waiting.run(answering, due));
    let headers = [
        (CONTENT_TYPE, EVENT_STREAM),
        (CACHE_CONTROL, "no-cache"),
        (X_ACCEL_BUFFERING, "no"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    let body = CommentedBody {
        receiver,
        last: None,
    };
    Response {
        status: StatusCode::OK,
        reason: None,
        headers: HeaderMap::from_iter(headers),
        source: Source::stream(Box::pin(body)),
    }
}

/// A piece of a commented body.
enum Piece {
    Comment(Bytes),
    /// All the rest.
    Last(Source),
}

/// A request of which the response has begun before it went in.
struct Waiting {
    upstream: Rc<Upstream>,
    report: SharedReport,
    came_at: Instant,
    sender: Sender<Piece>,
}

impl Waiting {
    async fn run(self, mut answering: Answering, mut due: Interval) {
        let response = loop {
            tokio::select! {
                biased;
                () = self.sender.closed() => return,
                response = &mut answering => break response,
                _ = due.tick() => self.comment(),
            }
        };
        let last = tokio::select! {
            biased;
            () = self.sender.closed() => return,
            last = ending::of(response, &self.report, due.period()) => last,
        };
        // A client that has left takes nothing.
        let _ = self.sender.send(Piece::Last(last)).await;
    }

    /// Says that the request is there, unless that is still to be taken.
    fn comment(&self) {
        let seconds = self.came_at.elapsed().as_secs();
        let text = if self.report.lock().is_waiting {
            let others = self.upstream.status().waiting.saturating_sub(1);
            format!(": waiting for {seconds} s; others waiting: {others}\n\n")
        } else {
            format!(": sent to the server, waiting for {seconds} s\n\n")
        };
        let _ = self.sender.try_send(Piece::Comment(text.into()));
    }
}

/// The body of a response that begins with comments.
struct CommentedBody {
    receiver: Receiver<Piece>,
    last: Option<Source>,
}

impl Body for CommentedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if let Some(last) = &mut self.last {
                return last.poll_frame(cx);
            }
            match ready!(self.receiver.poll_recv(cx)) {
                Some(Piece::Comment(text)) => return Poll::Ready(Some(Ok(Frame::data(text)))),
                Some(Piece::Last(source)) => self.last = Some(source),
                None => {
                    return Poll::Ready(Some(Err("given up before there was an answer".into())));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.last.as_ref().is_some_and(Source::is_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn a_wait_that_is_given_up_is_no_end() {
        let (sender, receiver) = channel(1);
        let mut body = CommentedBody {
            receiver,
            last: None,
        };
        drop(sender);
        let mut cx = Context::from_waker(Waker::noop());
        let polled = Pin::new(&mut body).poll_frame(&mut cx);
        assert!(matches!(polled, Poll::Ready(Some(Err(_)))));
        assert!(!body.is_end_stream());
    }
}
