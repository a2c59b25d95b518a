//! A request's body on its way to the upstream, and how far it is.
//!
//! Bytes are taken from the client only when the upstream's connection takes them, so a body of any
//! size needs the memory of a few pieces. The task that waits for the response can see whether the
//! upstream is slow or the client, and can end the body.

use super::look::NeedsLength;
use super::request_headers::RequestHeaders;
use super::tell_wait::clean_request_trailers;
use crate::limits::ReceiveError;
use crate::request_body::{BodyError, RequestBody};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use sooner_http::forwarding::headers::clean_trailers;
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// How long a body waits for `100 Continue` before it is sent all the same (RFC 9110, 10.1.1); what
/// curl does.
const CONTINUE_WAIT: Duration = Duration::from_secs(1);

/// Why a body does not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClientFault {
    /// The client left, or wrote what is no body.
    #[error("it broke off")]
    BrokeOff,
    /// Longer than bodies may be.
    #[error("it is longer than it may be")]
    TooLong,
    /// Slower than bodies may be.
    #[error("it came too slowly")]
    TooSlow,
    /// Its length has to be known before its end, and it is too long to find that out.
    #[error("it is longer than 1 MiB, and has no length")]
    NeedsLength,
}

impl ClientFault {
    /// What is behind the error of a body.
    pub fn of(error: &BodyError) -> Self {
        if error.is::<NeedsLength>() {
            return Self::NeedsLength;
        }
        match error.downcast_ref() {
            Some(ReceiveError::TooLong { .. }) => Self::TooLong,
            Some(ReceiveError::TooSlow { .. }) => Self::TooSlow,
            None => Self::BrokeOff,
        }
    }
}

/// A request's body on its way.
pub struct Upload {
    body: RequestBody,
    /// What its trailers may not say, because the head does.
    own_headers: Arc<RequestHeaders>,
    progress: Rc<Progress>,
    /// Ends when the upstream wants the body.
    hold: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

/// How far a body is.
pub struct Progress {
    moved_at: Cell<Instant>,
    waits_for_client: Cell<bool>,
    is_over: Cell<bool>,
    client_fault: Cell<Option<ClientFault>>,
    is_abandoned: Cell<bool>,
    /// Whether the response has begun, and the body does not know that yet.
    is_answered: Cell<bool>,
    /// Whether something of it was taken.
    is_touched: Cell<bool>,
    /// The body after it was dropped, if nothing of it was taken.
    left: RefCell<Option<(RequestBody, Arc<RequestHeaders>)>>,
    waker: RefCell<Option<Waker>>,
}

impl Upload {
    /// The body of a request.
    pub fn new(body: RequestBody) -> Self {
        let is_over = body.is_end_stream();
        Self {
            body,
            own_headers: Arc::default(),
            progress: Rc::new(Progress {
                moved_at: Cell::new(Instant::now()),
                waits_for_client: Cell::new(false),
                is_over: Cell::new(is_over),
                client_fault: Cell::new(None),
                is_abandoned: Cell::new(false),
                is_answered: Cell::new(false),
                is_touched: Cell::new(false),
                left: RefCell::new(None),
                waker: RefCell::new(None),
            }),
            hold: None,
        }
    }

    /// The same without trailers that have names of these headers.
    pub fn without(mut self, own_headers: Arc<RequestHeaders>) -> Self {
        self.own_headers = own_headers;
        self
    }

    /// No body.
    pub fn empty() -> Self {
        Self::new(RequestBody::Empty)
    }

    /// How far it is, from now on.
    pub fn progress(&self) -> Rc<Progress> {
        self.progress.clone()
    }

    /// Sends nothing before `wanted` is notified or a second has passed.
    pub fn wait_for_continue(&mut self, wanted: Arc<Notify>) {
        self.hold = Some(Box::pin(async move {
            // A second without a response: the upstream may not know the expectation.
            let _ = timeout(CONTINUE_WAIT, wanted.notified()).await;
        }));
    }
}

impl Progress {
    /// The upstream has the request from now on, or a part of it.
    pub fn touch(&self) {
        self.moved_at.set(Instant::now());
    }

    /// When the upstream has had `limit` to do something; the client's time does not count.
    pub fn deadline(&self, limit: Duration) -> Instant {
        if self.waits_for_client.get() && !self.is_over.get() {
            Instant::now() + limit
        } else {
            self.moved_at.get() + limit
        }
    }

    /// Whether all of it is with the upstream's connection.
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// What the client did wrong, if its side ended the body.
    pub fn client_fault(&self) -> Option<ClientFault> {
        self.client_fault.get()
    }

    /// The body, to be sent anew, if the connection has let it go and had taken nothing of it.
    pub fn unsent_body(&self) -> Option<Upload> {
        let (body, own_headers) = self.left.borrow_mut().take()?;
        Some(Upload::new(body).without(own_headers))
    }

    /// The response has begun: the client may pause from now on, as one does that answers what the
    /// upstream says. How long the upstream may pause bounds that.
    pub fn answered(&self) {
        self.is_answered.set(true);
    }

    /// The rest is not needed: what is left makes the connection to the upstream end.
    pub fn abandon(&self) {
        self.is_abandoned.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.progress.is_over.set(true);
        if !self.progress.is_touched.get() {
            let body = std::mem::replace(&mut self.body, RequestBody::Empty);
            let own_headers = self.own_headers.clone();
            self.progress.left.replace(Some((body, own_headers)));
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let progress = &this.progress;
        if progress.is_abandoned.get() {
            return Poll::Ready(Some(Err("the rest is not needed".into())));
        }
        *progress.waker.borrow_mut() = Some(cx.waker().clone());
        if let Some(hold) = &mut this.hold {
            ready!(hold.as_mut().poll(cx));
            this.hold = None;
            progress.touch();
        }
        // A timer that runs until then ends here, and is not set again.
        if progress.is_answered.take() {
            this.body.allow_pauses();
        }
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        progress.waits_for_client.set(frame.is_pending());
        let frame = ready!(frame);
        progress.touch();
        progress.is_touched.set(true);
        match &frame {
            None => progress.is_over.set(true),
            Some(Err(error)) => progress.client_fault.set(Some(ClientFault::of(error))),
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame.map(|frame| frame.map(|frame| without_framing(frame, &this.own_headers))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn without_framing(frame: Frame<Bytes>, own_headers: &RequestHeaders) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(mut trailers) => {
            clean_trailers(&mut trailers);
            clean_request_trailers(&mut trailers);
            own_headers.clean_trailers(&mut trailers);
            Frame::trailers(trailers)
        }
        Err(data) => data,
    }
}
