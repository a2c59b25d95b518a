//! Messages from a server: those that a pooler has to read, and those that it writes itself.

use super::fields::{Fields, Malformed};
use super::frame::Look;
use super::startup::Version;
use bytes::{BufMut, BytesMut};

/// The longest text of a server's that is looked at.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// A number and a key.
const KEY_DATA_BYTES_MAX: usize = 4 + 256;
/// Of an error, to know its code and to name statements in it as its client does.
const ERROR_HEAD_BYTES: usize = 1 << 16;
/// Of a description: 1664 columns with names of 63 bytes, or 65535 parameters, are less.
const DESCRIPTION_HEAD_BYTES: usize = 1 << 18;

/// What of a server's messages has to be there before they are looked at.
pub fn look_at_backend(tag: u8) -> Look {
    match tag {
        b'Z' => Look::Whole(1),
        b'1' | b'2' | b'3' | b'I' | b'n' | b's' | b'c' => Look::Whole(0),
        b'T' | b't' => Look::Head(DESCRIPTION_HEAD_BYTES),
        b'S' | b'C' | b'R' | b'v' => Look::Whole(TEXT_BYTES_MAX),
        b'K' => Look::Whole(KEY_DATA_BYTES_MAX),
        b'E' | b'N' => Look::Head(ERROR_HEAD_BYTES),
        b'D' | b'd' | b'A' | b'V' | b'G' | b'H' | b'W' => Look::Head(0),
        _ => Look::Unknown,
    }
}

/// Whether a session is in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// In none.
    Idle,
    /// In one.
    Open,
    /// In one that has failed, and waits for its end.
    Failed,
}

impl TransactionStatus {
    fn byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Open => b'T',
            Self::Failed => b'E',
        }
    }
}

/// A setting as the server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterStatus<'a> {
    /// Like `TimeZone`.
    pub name: &'a [u8],
    /// In the client's encoding.
    pub value: &'a [u8],
}

/// A message from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendMessage<'a> {
    /// A cycle is over.
    Ready(TransactionStatus),
    /// A setting is, or has become.
    ParameterStatus(ParameterStatus<'a>),
    /// What a cancel request has to say.
    KeyData {
        /// The session's number.
        process_id: i32,
        /// Its key.
        secret: &'a [u8],
    },
    /// The authentication that the server asks for, by its number, with its data.
    Authentication(i32, &'a [u8]),
    /// The client requested a newer protocol than the server's.
    NegotiateVersion {
        /// The newest minor version that it speaks.
        minor: i32,
    },
    /// A statement is prepared.
    ParseComplete,
    /// A portal is made.
    BindComplete,
    /// An empty command is done, or a portal suspended.
    Executed,
    /// A statement or portal is closed.
    CloseComplete,
    /// A command is done; its tag, like `SELECT 1`.
    CommandComplete(&'a [u8]),
    /// A statement failed; the code (SQLSTATE), if it stands near the beginning.
    Error(Option<&'a [u8]>),
    /// A statement's parameters: how many, and their types, as in a Parse.
    Parameters(&'a [u8]),
    /// The columns of what is to come, or their beginning.
    Columns(&'a [u8]),
    /// There will be no rows.
    NoRows,
    /// The client is to send rows.
    CopyIn,
    /// Rows in both directions: replication.
    CopyBoth,
    /// Anything else.
    Other,
}

impl<'a> BackendMessage<'a> {
    /// Reads what [`look_at_backend`] asks for of a message.
    pub fn read(tag: u8, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(body);
        Ok(match tag {
            b'Z' => Self::Ready(match fields.byte()? {
                b'I' => TransactionStatus::Idle,
                b'T' => TransactionStatus::Open,
                b'E' => TransactionStatus::Failed,
                _ => return Err(Malformed("no transaction has this status")),
            }),
            b'S' => {
                let (name, value) = (fields.text()?, fields.text()?);
                fields.end()?;
                Self::ParameterStatus(ParameterStatus { name, value })
            }
            b'K' => {
                let process_id = fields.int32()?;
                let secret = fields.0;
                match secret.len() {
                    4..=256 => Self::KeyData { process_id, secret },
                    _ => return Err(Malformed("a key has 4 to 256 bytes")),
                }
            }
            b'R' => Self::Authentication(fields.int32()?, fields.0),
            b'v' => Self::NegotiateVersion {
                minor: fields.int32()? & 0xffff,
            },
            b'1' => Self::ParseComplete,
            b'2' => Self::BindComplete,
            b'I' | b's' => Self::Executed,
            b'3' => Self::CloseComplete,
            b'C' => Self::CommandComplete(fields.text()?),
            b'E' => Self::Error(sqlstate(fields)),
            b't' => Self::Parameters(body),
            b'T' => Self::Columns(body),
            b'n' => Self::NoRows,
            b'G' => Self::CopyIn,
            b'W' => Self::CopyBoth,
            _ => Self::Other,
        })
    }
}

/// The field `C` of an error that may be cut off.
fn sqlstate(mut fields: Fields<'_>) -> Option<&[u8]> {
    loop {
        let kind = fields.byte().ok().filter(|kind| *kind != 0)?;
        let text = fields.text().ok()?;
        if kind == b'C' {
            return Some(text);
        }
    }
}

/// Whether an error that may be cut off ends the session: its field `V`, which is not translated,
/// else `S`.
pub fn is_fatal(body: &[u8]) -> bool {
    let mut fields = Fields(body);
    let mut is_fatal = false;
    while let Ok(b'S' | b'V') = fields.byte() {
        let Ok(text) = fields.text() else { break };
        is_fatal = matches!(text, b"FATAL" | b"PANIC");
    }
    is_fatal
}

/// What a whole error message says, and hints.
pub fn message_of_error(message: &[u8]) -> String {
    let mut fields = Fields(message.get(5..).unwrap_or_default());
    let (mut words, mut hint) = (String::new(), String::new());
    while let Ok(kind @ 1..) = fields.byte() {
        let Ok(text) = fields.text() else { break };
        match kind {
            b'M' => words = String::from_utf8_lossy(text).into_owned(),
            b'H' => hint = format!(" ({})", String::from_utf8_lossy(text)),
            _ => {}
        }
    }
    words + &hint
}

/// The SQLSTATE of an error, whole as it came.
pub fn code_of_error(message: &[u8]) -> &[u8] {
    let mut fields = Fields(message.get(5..).unwrap_or_default());
    while let Ok(kind @ 1..) = fields.byte() {
        match fields.text() {
            Ok(code) if kind == b'C' => return code,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    b""
}

/// An error or a notice of the proxy's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReport<'a> {
    /// `FATAL` where the connection ends, else `ERROR`; `NOTICE` or `WARNING` of a notice.
    pub severity: &'a str,
    /// SQLSTATE.
    pub sqlstate: &'a str,
    /// What is wrong, one line.
    pub message: &'a str,
    /// What to do.
    pub hint: Option<&'a str>,
    /// Where PostgreSQL says the same: its file and its routine, which drivers look at.
    pub source: Option<(&'a str, &'a str)>,
}

/// Writes an ErrorResponse.
pub fn write_error(out: &mut BytesMut, report: &ErrorReport<'_>) {
    write_report(out, b'E', report);
}

/// Writes a NoticeResponse.
pub fn write_notice(out: &mut BytesMut, report: &ErrorReport<'_>) {
    write_report(out, b'N', report);
}

fn write_report(out: &mut BytesMut, tag: u8, report: &ErrorReport<'_>) {
    let fields = [
        (b'S', Some(report.severity)),
        (b'V', Some(report.severity)),
        (b'C', Some(report.sqlstate)),
        (b'M', Some(report.message)),
        (b'H', report.hint),
        (b'F', report.source.map(|(file, _)| file)),
        (b'R', report.source.map(|(_, routine)| routine)),
    ];
    message(out, tag, |body| {
        for (kind, text) in fields {
            if let Some(text) = text {
                body.put_u8(kind);
                put_text(body, text.as_bytes());
            }
        }
        body.put_u8(0);
    });
}

/// Writes a ParameterStatus.
pub fn write_parameter_status(out: &mut BytesMut, status: &ParameterStatus<'_>) {
    message(out, b'S', |body| {
        put_text(body, status.name);
        put_text(body, status.value);
    });
}

/// Writes a request for proof, or that it was enough (0); `payload` belongs to the number.
pub fn write_authentication(out: &mut BytesMut, code: i32, payload: &[u8]) {
    message(out, b'R', |body| {
        body.put_i32(code);
        body.put_slice(payload);
    });
}

/// Writes what a cancel request has to say.
pub fn write_key_data(out: &mut BytesMut, process_id: i32, secret: &[u8]) {
    message(out, b'K', |body| {
        body.put_i32(process_id);
        body.put_slice(secret);
    });
}

/// Writes a NegotiateProtocolVersion: the newest minor version, and the extensions that are not
/// known.
pub fn write_negotiate_version(out: &mut BytesMut, version: Version, unknown: &[&[u8]]) {
    message(out, b'v', |body| {
        body.put_i32(version.code());
        body.put_i32(unknown.len() as i32);
        unknown.iter().for_each(|name| put_text(body, name));
    });
}

/// Writes a ReadyForQuery.
pub fn write_ready(out: &mut BytesMut, status: TransactionStatus) {
    message(out, b'Z', |body| body.put_u8(status.byte()));
}

/// A zero would end the text early, and what follows would be read as fields.
fn put_text(body: &mut BytesMut, text: &[u8]) {
    body.extend(text.iter().filter(|byte| **byte != 0));
    body.put_u8(0);
}

fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(tag);
    let at = out.len();
    out.put_i32(0);
    body(out);
    let length = (out.len() - at) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Part, Splitter};
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out);
        out.to_vec()
    }

    fn read(bytes: &[u8]) -> BackendMessage<'_> {
        let mut splitter = Splitter::new(look_at_backend);
        let piece = splitter.next(bytes).unwrap().unwrap();
        assert_eq!((piece.part, piece.is_last), (Part::First, true));
        BackendMessage::read(piece.tag, piece.body()).unwrap()
    }

    #[test]
    fn what_it_says_has_the_bytes_of_the_protocol() {
        let ready = written(|out| write_ready(out, TransactionStatus::Failed));
        assert_eq!(ready, b"Z\0\0\0\x05E");
        assert_eq!(
            read(&ready),
            BackendMessage::Ready(TransactionStatus::Failed)
        );
        let status = ParameterStatus {
            name: b"TimeZone",
            value: b"UTC",
        };
        let bytes = written(|out| write_parameter_status(out, &status));
        assert_eq!(bytes, b"S\0\0\0\x11TimeZone\0UTC\0");
        assert_eq!(read(&bytes), BackendMessage::ParameterStatus(status));
        let report = ErrorReport {
            severity: "FATAL",
            sqlstate: "3D000",
            message: "no such database",
            hint: Some("see SHOW DATABASES"),
            source: None,
        };
        let bytes = written(|out| write_error(out, &report));
        assert_eq!(
            bytes,
            b"E\0\0\0\x40SFATAL\0VFATAL\0C3D000\0Mno such database\0Hsee SHOW DATABASES\0\0"
        );
        assert_eq!(read(&bytes), BackendMessage::Error(Some(b"3D000")));
    }

    #[test]
    fn a_zero_in_a_text_cannot_add_a_field() {
        let report = ErrorReport {
            severity: "ERROR",
            sqlstate: "42601",
            message: "odd\0Cname",
            hint: None,
            source: None,
        };
        let bytes = written(|out| write_notice(out, &report));
        assert!(bytes.ends_with(b"Modd Cname\0\0") || bytes.ends_with(b"ModdCname\0\0"));
    }

    #[test]
    fn keys_have_four_bytes_or_more() {
        let with = |key: &[u8]| {
            [
                &b"K"[..],
                &(8 + key.len() as i32).to_be_bytes(),
                &[0, 0, 0, 7],
                key,
            ]
            .concat()
        };
        for key in [&[1_u8; 4][..], &[1; 32]] {
            let (process_id, secret) = (7, key);
            assert_eq!(
                read(&with(key)),
                BackendMessage::KeyData { process_id, secret }
            );
        }
        assert!(BackendMessage::read(b'K', &[0; 7]).is_err());
    }

    #[test]
    fn an_error_that_is_cut_off_has_a_code_or_none() {
        let body = b"SERROR\0VERROR\0C57014\0Mcanceling statement";
        assert_eq!(
            BackendMessage::read(b'E', body),
            Ok(BackendMessage::Error(Some(b"57014")))
        );
        assert_eq!(
            BackendMessage::read(b'E', &body[..17]),
            Ok(BackendMessage::Error(None))
        );
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(tag: u8, body in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = BackendMessage::read(tag, &body);
        }
    }
}
