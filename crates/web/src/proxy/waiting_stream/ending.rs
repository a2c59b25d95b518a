//! What follows comments: the server's event stream as it is, or an event that says why there is
//! none.

use super::{EVENT_STREAM, media_type};
use crate::body::Source;
use crate::proxy::failure::Failure;
use crate::proxy::report::SharedReport;
use crate::response::Response;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use serde::Serialize;
use std::future::poll_fn;
use std::time::Duration;
use tokio::time::timeout;

/// The most that is told of an answer that cannot follow, bytes.
const TOLD_BYTES_MAX: usize = 16 << 10;

/// What of `response` follows comments. One that cannot is noted in `report`, and is read for
/// `patience` at most.
pub async fn of(response: Response, report: &SharedReport, patience: Duration) -> Source {
    let failure = report.lock().failure.clone();
    let (failure, body) = match failure {
        Some(failure) => (failure, None),
        None => {
            let is_plain = is(&response, CONTENT_ENCODING, "identity", true);
            let failure = match is_event_stream(&response) {
                true if is_plain => return response.source,
                true => Failure::Compressed,
                false => Failure::Unfit(response.status),
            };
            report.lock().failure = Some(failure.clone());
            let read = timeout(patience, text(response.source)).await;
            (failure, read.ok().flatten().filter(|_| is_plain))
        }
    };
    Source::Memory(error_event(&failure, body.as_deref()))
}

/// Whether a response can follow comments, if it is not compressed.
fn is_event_stream(response: &Response) -> bool {
    response.status == StatusCode::OK && is(response, CONTENT_TYPE, EVENT_STREAM, false)
}

/// Whether a field of a response is what is wanted; `otherwise` where it is not there.
fn is(response: &Response, name: HeaderName, wanted: &str, otherwise: bool) -> bool {
    response.headers.get(name).map_or(otherwise, |value| {
        let text = value.to_str().map(media_type);
        text.is_ok_and(|text| text.eq_ignore_ascii_case(wanted))
    })
}

/// What the server says in its answer, if it is short.
async fn text(mut source: Source) -> Option<String> {
    let mut text = Vec::new();
    while let Some(frame) = poll_fn(|cx| source.poll_frame(cx)).await {
        if let Ok(data) = frame.ok()?.into_data() {
            text.extend_from_slice(&data);
        }
        if text.len() > TOLD_BYTES_MAX {
            return None;
        }
    }
    String::from_utf8(text).ok().filter(|text| !text.is_empty())
}

/// When a browser's `EventSource` comes again, which takes every end for a broken connection: a status
/// it would have kept away for.
const RETRY_MS: u32 = 60_000;

/// The data of an event `error`.
#[derive(Serialize)]
struct Told<'a> {
    status: u16,
    message: &'a str,
    /// OpenAI's libraries know an error by this field; without it they would take the event for
    /// one of the answer, and the end for its end.
    error: ToldError<'a>,
}

#[derive(Serialize)]
struct ToldError<'a> {
    message: &'a str,
    code: u16,
    /// What the server said.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

fn error_event(failure: &Failure, body: Option<&str>) -> Bytes {
    let (status, message) = (failure.status().as_u16(), failure.client_message());
    let told = Told {
        status,
        message,
        error: ToldError {
            message,
            code: status,
            body,
        },
    };
    // Numbers and text always are JSON, and JSON of that kind has no end of line.
    let data = serde_json::to_string(&told).unwrap_or_default();
    format!("event: error\nretry: {RETRY_MS}\ndata: {data}\n\n").into()
}
