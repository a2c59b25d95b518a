//! One attempt of a request on one server: sent over a connection that is there or a new one, until
//! the response begins.

use super::failure::{Exhausted, Failure};
use super::failure_log::with_causes;
use super::in_flight::ServerSlot;
use super::pool::Pool;
use super::response_stream::ResponseStream;
use super::server::Server;
use super::upload::{Progress, Upload};
use super::upstream::Times;
use super::upstream_connection::{SendError, UpstreamConnection};
use hyper::body::Body;
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
pub struct UpstreamResponse {
    /// Its head, and its body as it comes.
    pub response: Response<ResponseStream>,
    /// The connection it comes on.
    pub connection: UpstreamConnection,
    /// How far the request's body is.
    pub progress: Rc<Progress>,
}

/// A request that got no response.
pub struct FailedAttempt {
    /// Why.
    pub failure: Failure,
    /// The request's body, if the request may be sent again: nothing of it was sent, or nothing is
    /// lost by doing it twice.
    pub retry: Option<Upload>,
}

/// Sends `outgoing` with `upload` to the server of `slot`.
pub async fn attempt(
    slot: &ServerSlot,
    outgoing: &Outgoing,
    upload: Upload,
    times: &Times,
) -> Result<UpstreamResponse, FailedAttempt> {
    let server = slot.server();
    let http1_only = outgoing.upgrade.is_some() && server.connector.can_switch();
    let mut upload = upload;
    if let Some(connection) = slot.pool().checkout(http1_only) {
        server.count_request();
        match send(
            slot.pool(),
            connection,
            ConnectionUse::Reused,
            outgoing,
            upload,
            times,
        )
        .await
        {
            // Servers close idle connections. It happened between our look and our request: no
            // failure of the server.
            Err(FailedAttempt {
                failure: Failure::ClosedWhileKept(_),
                retry: Some(retry),
            }) => {
                server.count_retry();
                upload = retry;
            }
            done => return done,
        }
    }
    // In a place of its own: few requests need a new connection, and TLS takes much room for one.
    let connected = Box::pin(connect(slot.pool(), http1_only, times.connect)).await;
    let connection = match connected {
        Ok(connection) => connection,
        Err(failure) => {
            if !failure.is_exhausted() {
                server.count_request();
            }
            return Err(FailedAttempt {
                failure,
                retry: Some(upload),
            });
        }
    };
    slot.connected();
    server.count_request();
    send(
        slot.pool(),
        connection,
        ConnectionUse::New,
        outgoing,
        upload,
        times,
    )
    .await
}

async fn connect(
    pool: &Pool,
    http1_only: bool,
    limit: Duration,
) -> Result<UpstreamConnection, Failure> {
    match timeout(limit, pool.connect(http1_only)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(match Exhausted::of(&error) {
            Some(exhausted) => Failure::Exhausted(exhausted),
            None => Failure::Unreachable(with_causes(&error)),
        }),
        Err(_) => Err(Failure::ConnectTimeout(limit)),
    }
}

/// Whether a connection has had a request before. One that has may have been closed for want of a
/// further one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionUse {
    New,
    Reused,
}

async fn send(
    pool: &Pool,
    mut connection: UpstreamConnection,
    connection_use: ConnectionUse,
    outgoing: &Outgoing,
    upload: Upload,
    times: &Times,
) -> Result<UpstreamResponse, FailedAttempt> {
    let progress = upload.progress();
    let has_no_body = upload.is_end_stream();
    let received_bytes = connection.received_bytes();
    let request = request(pool.server(), &connection, outgoing, upload);
    match respond_within(&mut connection, request, &progress, times).await {
        Some(Ok(response)) => {
            progress.answered();
            Ok(UpstreamResponse {
                response,
                connection,
                progress,
            })
        }
        // Of what a script said nothing can be made: it must not run again.
        Some(Err((error, _))) if connection.is_answered() => Err(FailedAttempt {
            failure: match failure(&error, &progress) {
                Failure::Closed(why) => Failure::Unreadable(why),
                failure => failure,
            },
            retry: None,
        }),
        Some(Err((error, unsent))) => {
            let is_unseen = unsent.is_some()
                || is_unprocessed(&error)
                || connection.received_bytes() == received_bytes;
            Err(FailedAttempt {
                failure: match failure(&error, &progress) {
                    Failure::Closed(why)
                        if connection_use == ConnectionUse::Reused && is_unseen =>
                    {
                        pool.forget(&connection);
                        Failure::ClosedWhileKept(why)
                    }
                    failure => failure,
                },
                retry: match unsent {
                    Some(request) => Some(request.into_body()),
                    None if !may_repeat(&outgoing.method, &error) => None,
                    None if has_no_body => Some(Upload::empty()),
                    None => progress.unsent_body(),
                },
            })
        }
        None => {
            // Nor was anything else heard on it since: it may lead nowhere.
            if connection.received_bytes() == received_bytes {
                pool.forget(&connection);
            }
            Err(FailedAttempt {
                failure: Failure::ResponseTimeout(times.response),
                retry: None,
            })
        }
    }
}

fn request(
    server: &Server,
    connection: &UpstreamConnection,
    outgoing: &Outgoing,
    mut upload: Upload,
) -> Request<Upload> {
    let connector = &server.connector;
    let head = outgoing.head(
        connection.protocol(),
        &connector.endpoint().authority,
        connector.is_tls(),
        upload.size_hint().exact(),
    );
    if connection.protocol() != Protocol::Http1 || !head.headers().contains_key(EXPECT) {
        return head.map(|()| upload);
    }
    let wanted = Arc::new(Notify::new());
    upload.wait_for_continue(wanted.clone());
    let mut request = head.map(|()| upload);
    hyper::ext::on_informational(&mut request, move |response| {
        if response.status() == StatusCode::CONTINUE {
            wanted.notify_one();
        }
    });
    request
}

/// The response, or why there is none; `None` when the server took too long. Time in which the
/// client sends its body does not count.
async fn respond_within(
    connection: &mut UpstreamConnection,
    request: Request<Upload>,
    progress: &Progress,
    times: &Times,
) -> Option<Result<Response<ResponseStream>, SendError>> {
    progress.touch();
    let mut sending = pin!(connection.send(request));
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

/// RFC 9110, 9.2.2: idempotent methods; and any that the server says it has not begun (RFC 9113,
/// 8.7 and 6.8).
fn may_repeat(method: &Method, error: &hyper::Error) -> bool {
    let is_refused =
        h2_error(error).is_some_and(|error| error.reason() == Some(h2::Reason::REFUSED_STREAM));
    is_refused
        || is_unprocessed(error)
        || matches!(
            *method,
            Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
        )
}

/// Whether the server ends the connection in peace, without this request: it came after those that
/// the server still answers.
fn is_unprocessed(error: &hyper::Error) -> bool {
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
        None if error.is_parse() => Failure::Unreadable(with_causes(error)),
        None => Failure::Closed(with_causes(error)),
    }
}
