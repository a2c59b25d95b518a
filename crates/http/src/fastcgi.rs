//! FastCGI as a web server speaks it to a responder: records out, records in, and the head of what a
//! script answers (FastCGI 1.0, Open Market 1996; CGI in RFC 3875).
//!
//! One request a connection at a time, with the number 1: no server in use takes more. Pure: bytes
//! in, bytes out, every length bounded.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, StatusCode};
use thiserror::Error;

/// The most that a record holds, bytes.
pub const RECORD_BYTES_MAX: usize = 65_535;
/// The longest head of a response, bytes.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// The most fields of one.
const FIELDS_MAX: usize = 400;
const HEADER_BYTES: usize = 8;
const VERSION: u8 = 1;
/// The number of the request.
const REQUEST: u16 = 1;

/// What a script is told of its request: names and values.
pub type Parameters = Vec<(Vec<u8>, Vec<u8>)>;

/// What a record is, as far as a web server sends or gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Begin = 1,
    End = 3,
    Parameters = 4,
    Input = 5,
    Output = 6,
    Error = 7,
}

/// Appends the record that begins a request; `keeps` asks for the connection to stay open after it.
pub fn push_begin(keeps: bool, out: &mut Vec<u8>) {
    const RESPONDER: u8 = 1;
    push_header(Kind::Begin, 8, out);
    out.extend_from_slice(&[0, RESPONDER, keeps.into(), 0, 0, 0, 0, 0]);
}

/// Appends parameters, and their end.
pub fn push_parameters(parameters: &[(Vec<u8>, Vec<u8>)], out: &mut Vec<u8>) {
    let mut stream = Vec::new();
    for (name, value) in parameters {
        push_length(name.len(), &mut stream);
        push_length(value.len(), &mut stream);
        stream.extend_from_slice(name);
        stream.extend_from_slice(value);
    }
    for part in stream.chunks(RECORD_BYTES_MAX) {
        push_header(Kind::Parameters, part.len(), out);
        out.extend_from_slice(part);
    }
    push_header(Kind::Parameters, 0, out);
}

/// Appends a part of the body, at most [`RECORD_BYTES_MAX`] long; an empty one is its end.
pub fn push_input(part: &[u8], out: &mut Vec<u8>) {
    push_header(Kind::Input, part.len(), out);
    out.extend_from_slice(part);
}

fn push_header(kind: Kind, bytes: usize, out: &mut Vec<u8>) {
    let [request, length] = [REQUEST, bytes.min(RECORD_BYTES_MAX) as u16].map(u16::to_be_bytes);
    out.extend_from_slice(&[VERSION, kind as u8]);
    out.extend_from_slice(&request);
    out.extend_from_slice(&length);
    out.extend_from_slice(&[0, 0]);
}

/// One byte for up to 127, else four with the highest bit set.
fn push_length(length: usize, out: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes()),
    }
}

/// What comes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes of the response, head and body.
    Output(Bytes),
    /// Words for the operator.
    Error(Bytes),
    /// The request is over.
    End {
        /// The exit code of the script, where that is known.
        status: u32,
    },
}

/// Why nothing more is read of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// Not FastCGI.
    #[error("a record of version {0}, and only version 1 exists: this is not FastCGI")]
    Version(u8),
    /// A record that has no place in a response.
    #[error("a record of type {0} within a response")]
    Kind(u8),
    /// A request that was not made.
    #[error("a record of request {0}, which was not made")]
    Request(u16),
    /// The end has another length.
    #[error("an end record of {0} bytes instead of 8")]
    EndLength(usize),
    /// The server refuses.
    #[error("the server refuses the request: {0}")]
    Refused(&'static str),
}

/// Reads records.
#[derive(Debug, Default)]
pub struct Decoder {
    /// What is left of a record's contents and padding, and what it is.
    inside: Option<Inside>,
}

#[derive(Clone, Copy, Debug)]
struct Inside {
    kind: Kind,
    content: usize,
    padding: usize,
}

impl Decoder {
    /// Takes the next event off `bytes`; `None` when more have to come.
    pub fn next(&mut self, bytes: &mut BytesMut) -> Result<Option<Event>, RecordError> {
        loop {
            let inside = match self.inside {
                Some(inside) => inside,
                None if bytes.len() < HEADER_BYTES => return Ok(None),
                None => header(&bytes.split_to(HEADER_BYTES))?,
            };
            self.inside = Some(inside);
            if inside.content > 0 {
                // The end is read whole, everything else as it comes.
                if bytes.is_empty() || (inside.kind == Kind::End && bytes.len() < inside.content) {
                    return Ok(None);
                }
                let taken = bytes.split_to(inside.content.min(bytes.len())).freeze();
                let content = inside.content - taken.len();
                self.inside = Some(Inside { content, ..inside });
                return event(inside.kind, taken).map(Some);
            }
            let skipped = inside.padding.min(bytes.len());
            bytes.advance(skipped);
            let padding = inside.padding - skipped;
            if padding > 0 {
                self.inside = Some(Inside { padding, ..inside });
                return Ok(None);
            }
            self.inside = None;
        }
    }
}

fn header(header: &[u8]) -> Result<Inside, RecordError> {
    let [version, kind, r1, r0, c1, c0, padding, _] = *header else {
        return Err(RecordError::Version(0));
    };
    if version != VERSION {
        return Err(RecordError::Version(version));
    }
    let kind = match kind {
        3 => Kind::End,
        6 => Kind::Output,
        7 => Kind::Error,
        other => return Err(RecordError::Kind(other)),
    };
    let request = u16::from_be_bytes([r1, r0]);
    if request != REQUEST {
        return Err(RecordError::Request(request));
    }
    let content = usize::from(u16::from_be_bytes([c1, c0]));
    if kind == Kind::End && content != 8 {
        return Err(RecordError::EndLength(content));
    }
    Ok(Inside {
        kind,
        content,
        padding: padding.into(),
    })
}

fn event(kind: Kind, content: Bytes) -> Result<Event, RecordError> {
    match (kind, content.as_ref()) {
        (Kind::Output, _) => Ok(Event::Output(content)),
        (Kind::Error, _) => Ok(Event::Error(content)),
        (_, &[a, b, c, d, protocol, ..]) => match protocol {
            0 => Ok(Event::End {
                status: u32::from_be_bytes([a, b, c, d]),
            }),
            1 => Err(RecordError::Refused("one request a connection")),
            2 => Err(RecordError::Refused("it is overloaded")),
            3 => Err(RecordError::Refused("it is not a responder")),
            _ => Err(RecordError::Refused("for no known reason")),
        },
        (_, short) => Err(RecordError::EndLength(short.len())),
    }
}

/// The head of a script's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What `Status` says, else 302 with a `Location` and 200 without.
    pub status: StatusCode,
    /// What stands behind the status, if anything does.
    pub reason: Option<Vec<u8>>,
    /// All other fields.
    pub headers: HeaderMap,
}

/// Why a response is not passed on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeadError {
    /// No end in sight.
    #[error("a head longer than {HEAD_BYTES_MAX} bytes")]
    TooLong,
    /// A line that is no field.
    #[error("a head with a line that is not a field: {0}")]
    Malformed(&'static str),
    /// Two lengths of one body.
    #[error("a head with two Content-Length lines")]
    Lengths,
    /// `Status` is no status of a final response.
    #[error("a Status that is not one of 200 to 599")]
    Status,
}

/// Reads the head at the beginning of `bytes`, and how long it is; `None` when more has to come.
///
/// Of lines that are there twice the first `Status` and the last `Content-Type` count, as in nginx
/// 1.22, and the first `Location`: that sends both, of which clients would choose (RFC 9110, 5.3).
pub fn head(bytes: &[u8]) -> Result<Option<(Head, usize)>, HeadError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let (length, fields) = match httparse::parse_headers(bytes, &mut fields) {
        Ok(httparse::Status::Complete(read)) if read.0 <= HEAD_BYTES_MAX => read,
        Ok(httparse::Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooLong),
        Err(httparse::Error::HeaderName) => return Err(HeadError::Malformed("its name")),
        Err(_) => return Err(HeadError::Malformed("its value")),
    };
    let (mut status, mut headers) = (None, HeaderMap::with_capacity(fields.len()));
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes())
            .map_err(|_| HeadError::Malformed("its name"))?;
        if name == "status" {
            if status.is_none() {
                status = Some(status_of(field.value)?);
            }
            continue;
        }
        let value =
            HeaderValue::from_bytes(field.value).map_err(|_| HeadError::Malformed("its value"))?;
        let is_again = headers.contains_key(&name);
        if name == CONTENT_LENGTH && is_again {
            return Err(HeadError::Lengths);
        }
        if name == CONTENT_TYPE {
            headers.insert(name, value);
        } else if name != LOCATION || !is_again {
            headers.append(name, value);
        }
    }
    let implied = || match headers.contains_key(LOCATION) {
        true => StatusCode::FOUND,
        false => StatusCode::OK,
    };
    let (status, reason) = status.unwrap_or_else(|| (implied(), None));
    let head = Head {
        status,
        reason,
        headers,
    };
    Ok(Some((head, length)))
}

/// `404`, `404 Not Found`: the status, and what stands behind it.
fn status_of(value: &[u8]) -> Result<(StatusCode, Option<Vec<u8>>), HeadError> {
    let (digits, rest) = value.split_at_checked(3).ok_or(HeadError::Status)?;
    let status = StatusCode::from_bytes(digits).map_err(|_| HeadError::Status)?;
    let is_final = (200..600).contains(&status.as_u16());
    let ends = rest.is_empty() || rest.starts_with(b" ");
    let reason = rest.trim_ascii();
    let reason = (!reason.is_empty()).then(|| reason.to_vec());
    (is_final && ends)
        .then_some((status, reason))
        .ok_or(HeadError::Status)
}

/// Appends the fields of a request's head; the values of all fields of a name are one.
pub fn push_fields(headers: &HeaderMap, parameters: &mut Parameters) {
    for name in headers.keys() {
        let Some(parameter) = parameter_name(name) else {
            continue;
        };
        let values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let values: Vec<&[u8]> = values.collect();
        let between: &[u8] = if name == COOKIE { b"; " } else { b", " };
        parameters.push((parameter, values.join(between)));
    }
}

/// The name of the parameter that holds a field of a request; `None` for one that is not passed on:
/// `Proxy`, which programs take for their own setting, names with an underscore, which look like
/// others, and what has a parameter of its own.
fn parameter_name(name: &HeaderName) -> Option<Vec<u8>> {
    let name = name.as_str();
    let has_own = matches!(name, "content-length" | "content-type" | "host");
    if has_own || name == "proxy" || name.contains('_') {
        return None;
    }
    let upper = name.to_ascii_uppercase().replace('-', "_");
    Some(format!("HTTP_{upper}").into_bytes())
}

#[cfg(test)]
mod tests;
