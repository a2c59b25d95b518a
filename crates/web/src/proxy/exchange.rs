//! One request to one server: sent over a connection that is there or a new one, until the response begins.

use super::failure::Failure;
use super::lack::Lack;
use super::sender::{Sender, Unsent};
use super::server::Server;
use super::trouble::in_words;
use super::upload::{Progress, Upload};
use super::upstream::Times;
use hyper::body::{Body, Incoming};
use hyper::header::EXPECT;
use hyper::{Method, Request, Response, StatusCode};
use sooner_http::forwarding::request::{Outgoing, Protocol};
use std::error::Error;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
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
        server.asked();
        match send(server, sender, Use::Again, outgoing, upload, times).await {
            // Servers close connections nobody uses. It happened between our look and our request: no failure of the server.
            Err(Unanswered {
                failure: Failure::ClosedWhileKept(_),
                again: Some(again),
            }) => {
                server.asked_again();
                upload = again;
            }
            done => return done,
        }
    }
    let sender = match connect(server, http1_alone, times.connect).await {
        Ok(sender) => sender,
        Err(failure) => {
            if !failure.is_own_lack() {
                server.asked();
            }
            return Err(Unanswered {
                failure,
                again: Some(upload),
            });
        }
    };
    server.asked();
    send(server, sender, Use::First, outgoing, upload, times).await
}

async fn connect(server: &Server, http1_alone: bool, limit: Duration) -> Result<Sender, Failure> {
    match timeout(limit, server.pool.connect(http1_alone)).await {
        Ok(Ok(sender)) => Ok(sender),
        Ok(Err(error)) => Err(match Lack::of(&error) {
            Some(lack) => Failure::OwnLack(lack),
            None => Failure::Unreachable(in_words(&error)),
        }),
        Err(_) => Err(Failure::ConnectTimeout(limit)),
    }
}

/// Whether a connection has had a request before. One that has may have been closed for want of a further one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    First,
    Again,
}

async fn send(
    server: &Server,
    mut sender: Sender,
    used: Use,
    outgoing: &Outgoing,
    upload: Upload,
    times: &Times,
) -> Result<Answered, Unanswered> {
    let progress = upload.progress();
    let has_no_body = upload.is_end_stream();
    let heard_bytes = sender.heard_bytes();
    let request = request(server, &sender, outgoing, upload);
    match respond_within(&mut sender, request, &progress, times).await {
        Some(Ok(response)) => Ok(Answered {
            response,
            sender,
            progress,
        }),
        Some(Err((error, unsent))) => {
            let is_unseen =
                unsent.is_some() || is_left_alone(&error) || sender.heard_bytes() == heard_bytes;
            Err(Unanswered {
                failure: match failure(&error, &progress) {
                    Failure::Closed(why) if used == Use::Again && is_unseen => {
                        Failure::ClosedWhileKept(why)
                    }
                    failure => failure,
                },
                again: match unsent {
                    Some(request) => Some(request.into_body()),
                    None if !may_repeat(&outgoing.method, &error) => None,
                    None if has_no_body => Some(Upload::empty()),
                    None => progress.untouched(),
                },
            })
        }
        None => Err(Unanswered {
            failure: Failure::ResponseTimeout(times.response),
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
        sender.protocol(),
        &connector.endpoint().authority,
        connector.is_tls(),
        upload.size_hint().exact(),
    );
    if sender.protocol() != Protocol::Http1 || !head.headers().contains_key(EXPECT) {
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

/// RFC 9110, 9.2.2: idempotent methods; and any that the server says it has not begun (RFC 9113, 8.7 and 6.8).
fn may_repeat(method: &Method, error: &hyper::Error) -> bool {
    let is_refused =
        h2_error(error).is_some_and(|error| error.reason() == Some(h2::Reason::REFUSED_STREAM));
    is_refused
        || is_left_alone(error)
        || matches!(
            *method,
            Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
        )
}

/// Whether the server ends the connection in peace, without this request: it came after those that the server still answers.
fn is_left_alone(error: &hyper::Error) -> bool {
    h2_error(error).is_some_and(|error| {
        error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR)
    })
}

fn h2_error(error: &hyper::Error) -> Option<&h2::Error> {
    error.source()?.downcast_ref()
}

fn failure(error: &hyper::Error, progress: &Progress) -> Failure {
    match progress.client_fault() {
        Some(fault) => Failure::ClientBody(fault),
        None if error.is_parse() => Failure::Unreadable(in_words(error)),
        None => Failure::Closed(in_words(error)),
    }
}
