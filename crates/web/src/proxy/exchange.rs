//! One request to one server: sent over a connection that is there or a new one, until the response begins.

use super::connect::{Sender, Unsent};
use super::failure::Failure;
use super::request::{Outgoing, Wire};
use super::server::Server;
use super::upload::{Progress, Upload};
use super::upstream::Times;
use hyper::body::{Body, Incoming};
use hyper::header::EXPECT;
use hyper::{Method, Request, Response, StatusCode};
use std::error::Error;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

/// A response that has begun.
pub struct Answered {
    /// Its head, and its body as it comes.
    pub response: Response<Incoming>,
    /// The connection it comes on.
    pub sender: Sender,
    /// How far the request's body is.
    pub progress: Rc<Progress>,
}

/// A request that got no response.
pub struct Unanswered {
    /// Why.
    pub failure: Failure,
    /// The request's body, if the request may be sent again: nothing of it was sent, or nothing is lost by doing it twice.
    pub again: Option<Upload>,
}

/// Sends `outgoing` with `upload` to `server`.
pub async fn exchange(
    server: &Server,
    outgoing: &Outgoing,
    upload: Upload,
    times: &Times,
) -> Result<Answered, Unanswered> {
    let http1_alone = outgoing.upgrade.is_some() && server.pool.connector().can_switch();
    let mut upload = upload;
    if let Some(sender) = server.pool.take(http1_alone) {
        match send(server, sender, outgoing, upload, times).await {
            // Servers close connections nobody uses. It happened between our look and our request: no failure of the server.
            Err(Unanswered {
                failure: Failure::Closed(_),
                again: Some(again),
            }) => upload = again,
            done => return done,
        }
    }
    let connecting = timeout(times.connect, server.pool.connect(http1_alone));
    let failure = match connecting.await {
        Ok(Ok(sender)) => return send(server, sender, outgoing, upload, times).await,
        Ok(Err(error)) => Failure::Unreachable(error.to_string()),
        Err(_) => Failure::ConnectTimeout,
    };
    Err(Unanswered {
        failure,
        again: Some(upload),
    })
}

async fn send(
    server: &Server,
    mut sender: Sender,
    outgoing: &Outgoing,
    upload: Upload,
    times: &Times,
) -> Result<Answered, Unanswered> {
    let progress = upload.progress();
    let has_no_body = upload.is_end_stream();
    let request = request(server, &sender, outgoing, upload);
    match respond_within(&mut sender, request, &progress, times).await {
        Some(Ok(response)) => Ok(Answered {
            response,
            sender,
            progress,
        }),
        Some(Err((error, unsent))) => Err(Unanswered {
            again: match unsent {
                Some(request) => Some(request.into_body()),
                None if has_no_body && may_repeat(&outgoing.method, &error) => {
                    Some(Upload::empty())
                }
                None => None,
            },
            failure: failure(&error, &progress),
        }),
        None => Err(Unanswered {
            failure: Failure::ResponseTimeout,
            again: None,
        }),
    }
}

fn request(
    server: &Server,
    sender: &Sender,
    outgoing: &Outgoing,
    mut upload: Upload,
) -> Request<Upload> {
    let connector = server.pool.connector();
    let head = outgoing.head(
        sender.wire(),
        &connector.endpoint().authority,
        connector.is_tls(),
        upload.size_hint().exact(),
    );
    if sender.wire() != Wire::Http1 || !head.headers().contains_key(EXPECT) {
        return head.map(|()| upload);
    }
    let wanted = Arc::new(Notify::new());
    upload.hold_for(wanted.clone());
    let mut request = head.map(|()| upload);
    hyper::ext::on_informational(&mut request, move |response| {
        if response.status() == StatusCode::CONTINUE {
            wanted.notify_one();
        }
    });
    request
}

/// The response, or why there is none; `None` when the server took too long. Time in which the client sends its body does not count.
async fn respond_within(
    sender: &mut Sender,
    request: Request<Upload>,
    progress: &Progress,
    times: &Times,
) -> Option<Result<Response<Incoming>, Unsent>> {
    progress.touch();
    let mut sending = pin!(sender.send(request));
    loop {
        let deadline = progress.deadline(times.response);
        tokio::select! {
            biased;
            sent = sending.as_mut() => return Some(sent),
            () = sleep_until(deadline) => {
                if progress.deadline(times.response) <= Instant::now() {
                    return None;
                }
            }
        }
    }
}

/// RFC 9110, 9.2.2: idempotent methods; and any that the server says it has not begun (RFC 9113, 8.7).
fn may_repeat(method: &Method, error: &hyper::Error) -> bool {
    let is_refused = error
        .source()
        .and_then(|source| source.downcast_ref::<h2::Error>())
        .and_then(h2::Error::reason)
        == Some(h2::Reason::REFUSED_STREAM);
    is_refused
        || matches!(
            *method,
            Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
        )
}

fn failure(error: &hyper::Error, progress: &Progress) -> Failure {
    match progress.client_fault() {
        Some(fault) => Failure::ClientBody(fault),
        None if error.is_parse() => Failure::Unreadable(in_words(error)),
        None => Failure::Closed(in_words(error)),
    }
}

/// An error with its causes, in one line.
fn in_words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words.push_str(": ");
            words.push_str(&more);
        }
        cause = error.source();
    }
    words
}
