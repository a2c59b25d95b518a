//! One request and its response.

use super::body_source::BodySource;
use super::bounds::Bounds;
use super::priorities::Subscription;
use super::request::{self, Refusal};
use super::request_stream::{RequestStream, discard};
use super::response::{complete_head, head_of, may_have_body};
use super::sender::{BodySender, SendError, set_urgency};
use super::tap::TapEvents;
use super::uploads::{Upload, Uploads};
use super::windows::Windows;
use crate::body::Source;
use crate::clock::{Clock, Moment};
use crate::peer::ConnectionContext;
use crate::request_body::RequestBody;
use crate::response::{Response, plain};
use crate::service::{Reply, RequestContext};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, StatusCode};
use sooner_http::frames::ResetBudget;
use sooner_uplink::StreamFlow;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::sync::oneshot;
use tokio::task::spawn_local;

/// What the streams of a connection share.
pub struct ConnectionState {
    /// The client and what serves it.
    pub context: ConnectionContext,
    /// What bounds the connection.
    pub bounds: Bounds,
    /// What the tap has found: priorities, and which responses are written.
    pub tap_events: TapEvents,
    clock: Clock,
    resets: RefCell<ResetBudget>,
    has_too_many_resets: Cell<bool>,
    open_streams: Cell<usize>,
    /// What its window is to be.
    pub uploads: Uploads,
}

/// A stream that is being answered; the connection is not idle before all are dropped.
pub struct ActiveStream {
    shared: Rc<ConnectionState>,
    respond: SendResponse<Bytes>,
    /// What the answer needs; taken by it.
    scheduled: Option<ScheduledFlow>,
    /// Where its request has a body; taken by that.
    upload: Option<Upload>,
}

/// Where a response stands in the order; streams of unknown size stand in the order of their
/// requests, so it is taken at once.
struct ScheduledFlow {
    flow: StreamFlow,
    subscription: Subscription,
}

/// Resolves when the body of a request is first polled.
type BodyWanted = Option<oneshot::Receiver<()>>;

impl ConnectionState {
    /// The streams of a connection that begins now.
    pub fn new(context: ConnectionContext, bounds: Bounds, tap_events: TapEvents) -> Self {
        let clock = Clock::start();
        Self {
            context,
            bounds,
            tap_events,
            clock,
            resets: RefCell::new(ResetBudget::new(bounds.streams_max, clock.now())),
            has_too_many_resets: Cell::new(false),
            open_streams: Cell::new(0),
            uploads: Uploads::default(),
        }
    }

    /// Whether any request is being answered.
    pub fn has_open_streams(&self) -> bool {
        self.open_streams.get() > 0
    }

    /// Whether any response is not written to its end.
    pub fn has_unwritten_responses(&self) -> bool {
        self.has_open_streams() || !self.tap_events.unwritten.borrow().is_empty()
    }

    /// Whether the client took back so many requests that the connection must end.
    pub fn has_too_many_resets(&self) -> bool {
        self.has_too_many_resets.get()
    }

    fn count_reset(&self) {
        if !self.resets.borrow_mut().spend(self.clock.now()) {
            self.has_too_many_resets.set(true);
        }
    }
}

impl ActiveStream {
    /// Takes up a request; streams must be taken up in the order of their numbers.
    pub fn begin(
        shared: &Rc<ConnectionState>,
        respond: SendResponse<Bytes>,
        upload: Option<Upload>,
    ) -> Self {
        if !shared.has_open_streams() {
            shared.context.handle.request_started();
        }
        shared.open_streams.set(shared.open_streams.get() + 1);
        let number = respond.stream_id().as_u32();
        Self {
            shared: shared.clone(),
            respond,
            scheduled: Some(ScheduledFlow {
                flow: shared.context.flow.open_stream(),
                subscription: Subscription::new(&shared.tap_events.priorities, number),
            }),
            upload,
        }
    }

    /// Answers the request.
    pub async fn respond(mut self, request: Request<RecvStream>) {
        if let Err(SendError::Unwanted) = self.try_to_respond(request).await {
            self.shared.count_reset();
        }
    }

    async fn try_to_respond(&mut self, request: Request<RecvStream>) -> Result<(), SendError> {
        let (mut head, stream) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        let head_bytes_max = self.shared.bounds.head_bytes_max;
        let refusal = request::prepare(&mut head, head_bytes_max).err();
        let (service, peer) = (&self.shared.context.service, &self.shared.context.peer);
        if let Some(Refusal::Malformed(_)) = refusal {
            let request = Request::from_parts(head, ());
            service.reset(service.begin_request(&request, peer, Instant::now()));
            self.respond.send_reset(Reason::PROTOCOL_ERROR);
            self.shared.count_reset();
            return Ok(());
        }
        let (rest_to, rest) = oneshot::channel();
        let (body, wanted) = request_body(&mut head, stream, self.upload.take(), rest_to);
        let request = Request::from_parts(head, body);
        let now = Moment::now();
        let mut request_context = service.begin_request(&request, peer, now.instant);
        let reply = match refusal {
            None => service.respond(&mut request_context, request, peer, now),
            Some(refusal) => {
                drop(request);
                Reply::Now(refused(refusal))
            }
        };
        let response = match reply {
            Reply::Now(response) => response,
            Reply::Later(future) => match self.wait(future, wanted).await {
                Ok(response) => response,
                Err(error) => {
                    let service = &self.shared.context.service;
                    service.abandoned(request_context);
                    return Err(error);
                }
            },
        };
        self.send(request_context, response, is_head).await?;
        spawn_local(discard(rest));
        Ok(())
    }

    /// Waits for a backend's answer as long as the client does.
    async fn wait(
        &mut self,
        mut future: Pin<Box<dyn Future<Output = Response>>>,
        mut wanted: BodyWanted,
    ) -> Result<Response, SendError> {
        poll_fn(|cx| {
            if self.respond.poll_reset(cx).is_ready() {
                return Poll::Ready(Err(SendError::Unwanted));
            }
            let response = future.as_mut().poll(cx);
            if response.is_pending() {
                self.ask_for_body(&mut wanted, cx);
            }
            response.map(Ok)
        })
        .await
    }

    /// Sends status 100 when the body is first polled (RFC 9110, 10.1.1).
    fn ask_for_body(&mut self, wanted: &mut BodyWanted, cx: &mut Context<'_>) {
        let Some(is_wanted) = wanted else { return };
        if let Poll::Ready(is_wanted) = Pin::new(is_wanted).poll(cx) {
            *wanted = None;
            if is_wanted.is_ok() {
                let go_on = head_of(StatusCode::CONTINUE, HeaderMap::new());
                // Fails only on a stream that has been reset, which is noticed at the next look.
                let _ = self.respond.send_informational(go_on);
            }
        }
    }

    /// Announces `response` to the uplink and sends it.
    async fn send(
        &mut self,
        request_context: RequestContext,
        mut response: Response,
        is_to_head: bool,
    ) -> Result<(), SendError> {
        complete_head(&mut response, is_to_head);
        if is_to_head || !may_have_body(response.status) {
            response.source = Source::Empty;
        }
        let announced = self
            .shared
            .context
            .service
            // Heads pass without a turn and are no part of what the uplink reports of a stream.
            .announce(request_context, &response, 0);
        let Some(mut scheduled) = self.scheduled.take() else {
            // There is one answer to a request.
            return Ok(());
        };
        let mut signal = announced.signal;
        if let Some(priority) = scheduled
            .subscription
            .take(&mut Context::from_waker(Waker::noop()))
        {
            signal = signal.updated(priority);
        }
        scheduled.flow.start(announced.start, announced.on_end);
        set_urgency(&mut scheduled.flow, signal);
        let is_over = response.source.is_end();
        let stream = self
            .respond
            .send_response(head_of(response.status, response.headers), is_over)
            .map_err(|_| SendError::Unwanted)?;
        let number = stream.stream_id().as_u32();
        if is_over {
            self.handed_over(number, scheduled.flow);
            return Ok(());
        }
        let sender = BodySender {
            stream,
            flow: scheduled.flow,
            subscription: scheduled.subscription,
            signal,
            windows: Windows::new(self.shared.bounds.stall_time),
        };
        let flow = sender.send(BodySource::new(response.source)).await?;
        self.handed_over(number, flow);
        Ok(())
    }

    /// The library has everything of the response on `stream`. Must follow at once, before the
    /// connection writes.
    fn handed_over(&self, stream: u32, flow: StreamFlow) {
        let mut unwritten = self.shared.tap_events.unwritten.borrow_mut();
        unwritten.add(stream, flow.finished());
    }
}

impl Drop for ActiveStream {
    fn drop(&mut self) {
        let open_streams = &self.shared.open_streams;
        open_streams.set(open_streams.get() - 1);
        if open_streams.get() == 0 {
            self.shared.context.handle.idle();
        }
    }
}

/// The body of a request, and its rest goes to `rest`; if the client expects status 100, also what
/// resolves when the body is first polled.
fn request_body(
    head: &mut Parts,
    stream: RecvStream,
    upload: Option<Upload>,
    rest: oneshot::Sender<RecvStream>,
) -> (RequestBody, BodyWanted) {
    if stream.is_end_stream() {
        return (RequestBody::Empty, None);
    }
    // The library has seen to it that it is a number, and only one.
    let content_length = head
        .headers
        .get(hyper::header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    let is_to_be_asked_for = head
        .headers
        .remove(EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    let (tell, told) = if is_to_be_asked_for {
        let (tell, told) = oneshot::channel();
        (Some(tell), Some(told))
    } else {
        (None, None)
    };
    let body = RequestStream::new(stream, content_length, tell, rest).of(upload);
    (RequestBody::Http2(body), told)
}

/// The answer to a request that is not given to the service.
fn refused(refusal: Refusal) -> Response {
    let status = match refusal {
        Refusal::Connect => {
            return Response {
                status: StatusCode::NOT_IMPLEMENTED,
                reason: None,
                headers: HeaderMap::new(),
                source: Source::Empty,
            };
        }
        Refusal::TooLong(_) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        Refusal::HostsDisagree | Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
    };
    plain(status, &refusal.to_string())
}
