//! Looks at the beginning of a request's body for what it says in a few fields, before the request
//! waits, or reads all of it where its length has to be known. What was read stays with the
//! request, and goes out with it.

use super::buffer_budget::{BufferBudget, Held};
use super::fastcgi::HELD_BYTES_MAX;
use super::upload::ClientFault;
use crate::request_body::{BodyError, RequestBody};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::CONTENT_ENCODING;
use sooner_http::json_fields::{self, FieldPath};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use thiserror::Error;

/// A body of unknown length is longer than what is held of one.
#[derive(Debug, Error)]
#[error("the request body has no length, and is longer than {HELD_BYTES_MAX} bytes")]
pub struct NeedsLength;

/// What a body says, as text; nothing where it was not looked at.
#[derive(Clone, Debug, Default)]
pub struct BodyFields {
    /// By the field's name, as a configuration writes it.
    values: Vec<(String, String)>,
}

impl BodyFields {
    /// The value of a field that is there once.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut values = self.values.iter();
        let (_, value) = values.find(|(own, _)| own == name)?;
        Some(value)
    }

    #[cfg(test)]
    pub(super) fn of(values: &[(&str, &str)]) -> Self {
        let value = |&(name, value): &(&str, &str)| (name.into(), value.into());
        Self {
            values: values.iter().map(value).collect(),
        }
    }
}

/// How far bodies are looked at.
#[derive(Clone, Debug)]
pub struct Look {
    /// The first bytes of each.
    pub bytes_max: usize,
    /// Of all together; where nothing is left, no body is looked at.
    pub budget: Arc<BufferBudget>,
}

/// A body of which the beginning was read.
pub struct LookedBody {
    read: Bytes,
    /// What came behind that: trailers, or why it broke off.
    then: Option<Result<Frame<Bytes>, BodyError>>,
    held: Held,
    rest: RequestBody,
}

impl Look {
    /// What `body` says in `paths`, and the body as it was.
    pub async fn at(
        &self,
        headers: &HeaderMap,
        body: RequestBody,
        paths: &[FieldPath],
    ) -> (BodyFields, RequestBody) {
        let encoding = headers.get(CONTENT_ENCODING);
        let is_plain =
            encoding.is_none_or(|name| name.as_bytes().eq_ignore_ascii_case(b"identity"));
        let has_more = !paths.is_empty() && !body.is_end_stream() && !body.is_too_long();
        if !(is_plain && has_more && self.budget.has_room()) {
            return (BodyFields::default(), body);
        }
        let mut reading = Reading::new(body, &self.budget);
        reading.read(self.bytes_max).await;
        let text = &reading.text[..reading.text.len().min(self.bytes_max)];
        let is_whole = reading.rest.is_end_stream() && text.len() == reading.text.len();
        let values = match reading.is_object {
            Some(true) => json_fields::find(text, is_whole, paths),
            _ => Vec::new(),
        };
        let values = paths.iter().zip(values);
        let values = values.filter_map(|(path, value)| Some((path.to_string(), value?)));
        let fields = BodyFields {
            values: values.collect(),
        };
        (fields, RequestBody::Looked(Box::new(reading.into_body())))
    }

    /// `body` with its length, where that was not known and memory is left: all of it is read, and
    /// its trailers are left out. One that is too long for that is broken.
    pub async fn whole(&self, body: RequestBody) -> RequestBody {
        let has_length = body.is_end_stream() || body.size_hint().exact().is_some();
        if has_length || body.is_too_long() || !self.budget.has_room() {
            return body;
        }
        let mut reading = Reading::new(body, &self.budget);
        reading.read_all().await;
        RequestBody::Looked(Box::new(reading.into_body()))
    }
}

/// A body while its beginning is read.
struct Reading {
    /// In one piece: a client may send bytes one by one.
    text: Vec<u8>,
    /// So many of them are blanks, or the byte order mark.
    scanned: usize,
    /// Whether it begins as an object does; `None` until something came.
    is_object: Option<bool>,
    then: Option<Result<Frame<Bytes>, BodyError>>,
    held: Held,
    rest: RequestBody,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Reading {
    fn new(body: RequestBody, budget: &Arc<BufferBudget>) -> Self {
        Self {
            text: Vec::new(),
            scanned: 0,
            is_object: None,
            then: None,
            held: Held::none(budget),
            rest: body,
        }
    }

    /// Reads to the end, while memory is left.
    async fn read_all(&mut self) {
        while self.then.is_none() && self.held.has_room() {
            let frame = poll_fn(|cx| Pin::new(&mut self.rest).poll_frame(cx)).await;
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) if self.text.len() + data.len() > HELD_BYTES_MAX => {
                    self.then = Some(Err(NeedsLength.into()));
                }
                Some(Ok(Ok(data))) => {
                    self.text.extend_from_slice(&data);
                    self.held.add(data.len());
                }
                Some(Err(error)) => self.then = Some(Err(error)),
                Some(Ok(Err(_))) | None => {
                    self.rest = RequestBody::Empty;
                    return;
                }
            }
        }
    }

    /// Reads up to `bytes_max` and the rest of a piece, less where it is no object.
    async fn read(&mut self, bytes_max: usize) {
        while self.text.len() < bytes_max && self.is_object != Some(false) && self.held.has_room() {
            let frame = poll_fn(|cx| Pin::new(&mut self.rest).poll_frame(cx)).await;
            let frame = frame.map(|frame| frame.map(Frame::into_data));
            match frame {
                None => self.rest = RequestBody::Empty,
                Some(Ok(Ok(data))) => {
                    self.text.extend_from_slice(&data);
                    self.held.add(data.len());
                    self.scan();
                    continue;
                }
                Some(Ok(Err(trailers))) => {
                    self.rest = RequestBody::Empty;
                    self.then = Some(Ok(trailers));
                }
                Some(Err(error)) => self.then = Some(Err(error)),
            }
            return;
        }
    }

    /// Looks at what came for the first byte that says something.
    fn scan(&mut self) {
        while self.is_object.is_none()
            && let Some(&byte) = self.text.get(self.scanned)
        {
            let is_mark = BYTE_ORDER_MARK.get(self.scanned) == Some(&byte);
            if is_mark || byte.is_ascii_whitespace() {
                self.scanned += 1;
            } else {
                self.is_object = Some(byte == b'{');
            }
        }
    }

    fn into_body(self) -> LookedBody {
        LookedBody {
            read: self.text.into(),
            then: self.then,
            held: self.held,
            rest: self.rest,
        }
    }
}

impl LookedBody {
    /// Whether its client has sent all of it.
    pub fn is_all_here(&self) -> bool {
        self.rest.is_end_stream()
    }

    /// From now on the rest may come as slowly as its client likes.
    pub fn allow_pauses(&mut self) {
        self.rest.allow_pauses();
    }

    /// Why it does not come to its end, where that is known already.
    pub fn fault(&self) -> Option<ClientFault> {
        match &self.then {
            Some(Err(error)) => Some(ClientFault::of(error)),
            _ => self.rest.fault(),
        }
    }
}

impl Body for LookedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if !self.read.is_empty() {
            let read = std::mem::take(&mut self.read);
            self.held.release(read.len());
            return Poll::Ready(Some(Ok(Frame::data(read))));
        }
        match self.then.take() {
            Some(then) => Poll::Ready(Some(then)),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.then.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (read_bytes, rest) = (self.read.len() as u64, self.rest.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(read_bytes + rest.lower());
        // A body with trailers has no length, or they could not follow it.
        if let Some(upper) = rest.upper().filter(|_| self.then.is_none()) {
            hint.set_upper(read_bytes + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests;
