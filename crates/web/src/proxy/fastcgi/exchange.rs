//! One request over FastCGI: sends parameters and body, and makes a response of what comes.

use super::bridge::{Bridge, Slot};
use crate::proxy::upstream_connection::Transport;
use crate::response::own_reason;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::CONTENT_LENGTH;
use hyper::{Method, Request, Response, StatusCode};
use sooner_http::fastcgi::{
    self, Decoder, Event, HeadError, Parameters, RECORD_BYTES_MAX, RecordError,
};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf, split};

/// The longest body of unknown length: FastCGI has to know it, so it is held until it is whole.
pub const HELD_BYTES_MAX: usize = 1 << 20;
/// What the client of a longer one gets.
pub const NEEDS_LENGTH: &str = "a body of more than 1 MiB needs a Content-Length";
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// Why nothing came of a request, or not all of it.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// There is no connection for it.
    #[error("a second request on one connection")]
    Spent,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// The client's body did not come to its end, so the request cannot.
    #[error("the request's body broke off")]
    Body,
    /// Not all was said.
    #[error("the script and its server ended before the response did")]
    Ended,
    /// There is nothing to pass on.
    #[error("the script ended without a response")]
    Nothing,
    /// Not FastCGI.
    #[error("not FastCGI: {0}")]
    Record(#[from] RecordError),
    /// Not the head of a response.
    #[error("a script responds with {0}")]
    Head(#[from] HeadError),
}

/// Sends a body.
type Sending = Pin<Box<dyn Future<Output = Result<(), ExchangeError>>>>;

/// The body of a response.
pub struct Answer {
    /// What came with the head.
    first: Bytes,
    exchange: Option<Exchange>,
    /// Bytes that it still lacks, where its head says how many there are.
    left_bytes: Option<u64>,
    /// Why it breaks off: said when what came before has been passed on.
    cut: Option<ExchangeError>,
    bridge: Bridge,
}

/// What is under way on a connection.
struct Exchange {
    reader: ReadHalf<Box<dyn Transport>>,
    sending: Option<Sending>,
    decoder: Decoder,
    buffer: BytesMut,
}

/// Carries out a request over a connection that it has for itself.
pub async fn exchange(
    parts: Option<(Box<dyn Transport>, Arc<Parameters>)>,
    request: Request<Incoming>,
    bridge: Bridge,
    slot: &Slot,
) -> Result<Response<Answer>, ExchangeError> {
    let (stream, parameters) = parts.ok_or(ExchangeError::Spent)?;
    let is_head = request.method() == Method::HEAD;
    let mut body = request.into_body();
    let (reader, writer) = split(stream);
    let sending: Sending = match body.size_hint().exact() {
        Some(length) => Box::pin(send(writer, parameters, length, body)),
        None => match hold(&mut body).await {
            Some(held) => {
                let length = held.len() as u64;
                Box::pin(send(writer, parameters, length, Full::new(held)))
            }
            None => return Ok(too_long(bridge)),
        },
    };
    let mut exchange = Exchange {
        reader,
        sending: Some(sending),
        decoder: Decoder::default(),
        buffer: BytesMut::new(),
    };
    match head(&mut exchange, &bridge, slot).await {
        Ok((head, first)) => {
            let has_body = !is_head && head.status != StatusCode::NOT_MODIFIED;
            let length = head.headers.get(CONTENT_LENGTH).filter(|_| has_body);
            let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
            let mut response = Response::new(Answer {
                left_bytes: length.map(|length: u64| length.saturating_sub(first.len() as u64)),
                first,
                exchange: Some(exchange),
                cut: None,
                bridge,
            });
            *response.status_mut() = head.status;
            *response.headers_mut() = head.headers;
            let words = head.reason.and_then(|words| words.try_into().ok());
            if let Some(reason) = own_reason(head.status, words) {
                response.extensions_mut().insert(reason);
            }
            Ok(response)
        }
        Err(error) => {
            note(&bridge, &error);
            Err(error)
        }
    }
}

/// Tells the operator, unless it is the client's doing.
fn note(bridge: &Bridge, error: &ExchangeError) {
    if !matches!(error, ExchangeError::Body) {
        bridge.note_failure(error);
    }
}

/// A body of which the length is not known before; `None` where it is too long or breaks off.
async fn hold(body: &mut Incoming) -> Option<Bytes> {
    let mut held = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.ok()?;
        let data = frame.data_ref().map_or(&[][..], |data| &data[..]);
        if held.len() + data.len() > HELD_BYTES_MAX {
            return None;
        }
        held.extend_from_slice(data);
    }
    Some(held.freeze())
}

/// Its end does not wait for that of the body: a client may wait for it before it sends more.
fn too_long(bridge: Bridge) -> Response<Answer> {
    let text = format!("413 Content Too Large: {NEEDS_LENGTH}\n");
    let length = text.len();
    let mut response = Response::new(Answer {
        first: text.into(),
        exchange: None,
        left_bytes: None,
        cut: None,
        bridge,
    });
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, length.into());
    response
}

/// Sends a request. That the server reads no more is no error: what it says is read all the same.
async fn send<B: Body<Data = Bytes> + Unpin>(
    writer: WriteHalf<Box<dyn Transport>>,
    parameters: Arc<Parameters>,
    length: u64,
    body: B,
) -> Result<(), ExchangeError> {
    match send_all(writer, &parameters, length, body).await {
        Err(ExchangeError::Io(_)) => Ok(()),
        sent => sent,
    }
}

async fn send_all<B: Body<Data = Bytes> + Unpin>(
    mut writer: WriteHalf<Box<dyn Transport>>,
    parameters: &Parameters,
    length: u64,
    mut body: B,
) -> Result<(), ExchangeError> {
    let mut out = Vec::new();
    fastcgi::push_begin(false, &mut out);
    let mut all = parameters.clone();
    let length = match length {
        0 => String::new(),
        length => length.to_string(),
    };
    all.push((b"CONTENT_LENGTH".to_vec(), length.into()));
    fastcgi::push_parameters(&all, &mut out);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ExchangeError::Body)?;
        for part in frame
            .data_ref()
            .map_or(&[][..], |data| &data[..])
            .chunks(RECORD_BYTES_MAX)
        {
            fastcgi::push_input(part, &mut out);
            writer.write_all(&out).await?;
            out.clear();
        }
    }
    fastcgi::push_input(b"", &mut out);
    writer.write_all(&out).await?;
    Ok(writer.flush().await?)
}

/// The head of the response, and what came of its body with it.
async fn head(
    exchange: &mut Exchange,
    bridge: &Bridge,
    slot: &Slot,
) -> Result<(fastcgi::Head, Bytes), ExchangeError> {
    let mut read = BytesMut::new();
    loop {
        match poll_fn(|cx| exchange.poll_event(cx)).await? {
            Event::Output(bytes) => {
                slot.note_answer();
                read.extend_from_slice(&bytes);
                if let Some((head, length)) = fastcgi::head(&read)? {
                    return Ok((head, read.split_off(length).freeze()));
                }
            }
            Event::Error(words) => bridge.note_words(&words),
            Event::End { .. } => return Err(ExchangeError::Nothing),
        }
    }
}

impl Exchange {
    /// The next event; sends meanwhile.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, ExchangeError>> {
        if let Some(sending) = &mut self.sending
            && let Poll::Ready(sent) = sending.as_mut().poll(cx)
        {
            self.sending = None;
            sent?;
        }
        loop {
            if let Some(event) = self.decoder.next(&mut self.buffer)? {
                return Poll::Ready(Ok(event));
            }
            let mut space = [0; READ_BYTES];
            let mut space = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut self.reader).poll_read(cx, &mut space))?;
            if space.filled().is_empty() {
                return Poll::Ready(Err(ExchangeError::Ended));
            }
            self.buffer.extend_from_slice(space.filled());
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = ExchangeError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        let this = &mut *self;
        if !this.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.first)))));
        }
        if let Some(cut) = this.cut.take() {
            return Poll::Ready(Some(Err(cut)));
        }
        loop {
            let Some(exchange) = &mut this.exchange else {
                return Poll::Ready(None);
            };
            let cut = match ready!(exchange.poll_event(cx)) {
                Ok(Event::Output(bytes)) => {
                    if let Some(left_bytes) = &mut this.left_bytes {
                        *left_bytes = left_bytes.saturating_sub(bytes.len() as u64);
                    }
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Ok(Event::Error(words)) => {
                    this.bridge.note_words(&words);
                    continue;
                }
                Ok(Event::End { .. }) => {
                    (this.left_bytes > Some(0)).then_some(ExchangeError::Ended)
                }
                Err(error) => Some(error),
            };
            this.exchange = None;
            if let Some(error) = &cut {
                note(&this.bridge, error);
                this.cut = cut;
                // Once around, what came before goes on its way.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}
