//! Looks at the beginning of a request's body for what it says in a few fields, before the request
//! waits. What was read stays with the request, and goes out with it.

use super::buffer_budget::{BufferBudget, Held};
use crate::request_body::{BodyError, RequestBody};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::CONTENT_ENCODING;
use sooner_http::json_fields::{self, FieldPath};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

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
    read: VecDeque<Result<Frame<Bytes>, BodyError>>,
    read_bytes: u64,
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
        let is_plain = headers.get(CONTENT_ENCODING).is_none();
        let has_more = !paths.is_empty() && !body.is_end_stream() && !body.is_too_long();
        if !(is_plain && has_more && self.budget.has_room()) {
            return (BodyFields::default(), body);
        }
        let mut looked = LookedBody {
            read: VecDeque::new(),
            read_bytes: 0,
            held: Held::none(&self.budget),
            rest: body,
        };
        let mut text = Vec::new();
        let is_whole = looked.read(self.bytes_max, &mut text).await;
        let values = match may_be_object(&text) {
            true => json_fields::find(&text, is_whole, paths),
            false => Vec::new(),
        };
        let values = paths.iter().zip(values);
        let values = values.filter_map(|(path, value)| Some((path.to_string(), value?)));
        let fields = BodyFields {
            values: values.collect(),
        };
        (fields, RequestBody::Looked(Box::new(looked)))
    }
}

/// Whether it begins as an object does; blanks and a byte order mark may come before.
fn may_be_object(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_none_or(|byte| *byte == b'{')
}

impl LookedBody {
    /// Reads up to `bytes_max` into `text`, less where it is no object; whether that is all.
    async fn read(&mut self, bytes_max: usize, text: &mut Vec<u8>) -> bool {
        while text.len() < bytes_max && may_be_object(text) && self.held.has_room() {
            let frame = poll_fn(|cx| Pin::new(&mut self.rest).poll_frame(cx)).await;
            let Some(frame) = frame else {
                self.rest = RequestBody::Empty;
                break;
            };
            let (data, is_last) = match &frame {
                Ok(frame) => (frame.data_ref().cloned(), frame.is_trailers()),
                Err(_) => (None, false),
            };
            let is_error = frame.is_err();
            self.read.push_back(frame);
            if is_last {
                self.rest = RequestBody::Empty;
            }
            if is_last || is_error {
                break;
            }
            let data = data.unwrap_or_default();
            text.extend_from_slice(&data[..data.len().min(bytes_max - text.len())]);
            self.read_bytes += data.len() as u64;
            self.held.add(data.len());
        }
        self.rest.is_end_stream() && text.len() as u64 == self.read_bytes
    }
}

impl Body for LookedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(frame) = self.read.pop_front() else {
            return Pin::new(&mut self.rest).poll_frame(cx);
        };
        if let Some(data) = frame.as_ref().ok().and_then(Frame::data_ref) {
            let bytes = data.len();
            self.read_bytes -= bytes as u64;
            self.held.release(bytes);
        }
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(self.read_bytes + upper);
        }
        hint.set_lower(self.read_bytes + rest.lower());
        hint
    }
}

#[cfg(test)]
mod tests;
