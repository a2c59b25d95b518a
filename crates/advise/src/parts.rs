//! What a line is made of, put together field by field.

use crate::client;
use crate::formats::{Field, Format};
use crate::line::{Entry, NoEntry};
use crate::taken::{Source, Taken, TimeTaken, behind, field_ns};
use crate::when::{Stamp, stamp};
use crate::words::Kind;

/// What takes longer is not believed: no response takes a week.
const TOOK_MAX_NS: u64 = 7 * 86_400 * 1_000_000_000;

/// Nor is a larger size: no response has a hundred terabytes.
const SIZE_MAX_BYTES: u64 = 100_000_000_000_000;

/// Fields that were read so far.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    time: Option<Stamp>,
    began: Option<Stamp>,
    day: Option<Vec<u8>>,
    clock: Option<Vec<u8>>,
    client: Option<u64>,
    forwarded: Option<u64>,
    status: Option<u16>,
    body: Option<u64>,
    sent: Option<u64>,
    took: Option<Taken>,
}

impl Field {
    /// Whether it may stand in what a word stood in.
    pub fn takes(self, kind: Kind) -> bool {
        match self {
            Self::Text | Self::Forwarded => kind == Kind::Quoted,
            _ => kind == Kind::Bare,
        }
    }
}

impl Parts {
    /// With a time that stands before the fields of a format.
    pub fn at(time: Stamp) -> Self {
        Self {
            time: Some(time),
            ..Self::default()
        }
    }

    /// With a client that stands before them.
    pub fn set_client(&mut self, client: Option<u64>) {
        self.client = client;
    }

    /// Puts a field in; what is there already stays. Whether the text can be such a field.
    pub fn put(&mut self, field: Field, text: &[u8]) -> bool {
        match field {
            Field::Word | Field::Text | Field::Rest => true,
            Field::Client => {
                self.client = self.client.or_else(|| client::name(text));
                true
            }
            Field::Forwarded => {
                let found = client::forwarded(text);
                self.forwarded = self.forwarded.or(found);
                found.is_some() || matches!(text, b"" | b"-")
            }
            Field::Time => fill(&mut self.time, stamp(text)),
            Field::Began => fill(&mut self.began, stamp(text)),
            Field::TimeMilliseconds => self.more_time(text),
            Field::Date => fill(&mut self.day, Some(text.to_vec())),
            Field::Clock => fill(&mut self.clock, Some(text.to_vec())),
            Field::Status => fill(&mut self.status, status(text)),
            Field::Body => fill(&mut self.body, size(text)),
            Field::Sent => fill(&mut self.sent, size(text)),
            Field::Took(unit) => {
                let is_first = self.took.is_none();
                if let Some(ns) = field_ns(text, unit).filter(|_| is_first) {
                    self.took = Some(of_format(ns));
                }
                true
            }
            Field::TookPart(unit) => {
                if let Some(ns) = field_ns(text, unit) {
                    let before = self.took.map_or(0, |taken| taken.ns);
                    self.took = Some(of_format(before.saturating_add(ns)));
                    return true;
                }
                matches!(text, b"-1" | b"-")
            }
            Field::Timers => self.timers(text),
        }
    }

    /// What follows the fields of a format.
    pub fn behind(&mut self, rest: &[u8], unit: TimeTaken) {
        self.took = self.took.or_else(|| behind(rest, unit));
    }

    fn more_time(&mut self, text: &[u8]) -> bool {
        match (&mut self.time, number(text)) {
            (Some(time), Some(milliseconds @ 0..1000)) => {
                time.ns += milliseconds * 1_000_000;
                time.resolution_ns = 1_000_000;
                true
            }
            _ => false,
        }
    }

    /// `10/0/30/69/109`: milliseconds, -1 for what did not come to pass.
    fn timers(&mut self, text: &[u8]) -> bool {
        let texts = || text.split(|byte| *byte == b'/');
        let is_timer = |text: &[u8]| text == b"-1" || number(plain(text)).is_some();
        if texts().count() < 3 || !texts().all(is_timer) {
            return false;
        }
        let all = texts().next_back().and_then(|all| number(plain(all)));
        self.took = all.map(|ms| of_format(ms.saturating_mul(1_000_000)));
        true
    }

    /// The line; `place` is that of its format.
    pub fn entry(self, format: &Format, place: usize) -> Result<Entry, NoEntry> {
        let time = match (self.began, self.time, &self.day, &self.clock) {
            (Some(began), ..) => Some(began),
            (_, Some(time), ..) => Some(time),
            (_, _, Some(day), Some(clock)) => stamp(&[day, &b"T"[..], clock].concat()),
            // Named as W3C names the time of a day, and whole.
            (_, _, _, Some(clock)) => stamp(clock),
            _ => None,
        };
        let size = self.body.or(self.sent);
        let (time, bytes) = match (time, size) {
            (Some(time), Some(bytes)) => (time, bytes),
            (None, None) => return Err(NoEntry::Unknown),
            (None, _) => return Err(NoEntry::Time),
            (_, None) => return Err(NoEntry::Size),
        };
        let took_ns = self.took.map(|taken| taken.ns);
        let took_from = self.took.map(|taken| taken.source);
        let is_pointed = took_from == Some(Source::Pointed);
        Ok(Entry {
            stamp_ns: time.ns,
            resolution_ns: time.resolution_ns,
            is_of_the_end: self.began.is_none() && (format.is_of_the_end || is_pointed),
            took_ns: took_ns.filter(|took_ns| *took_ns <= TOOK_MAX_NS),
            took_from,
            client: self.forwarded.or(self.client),
            bytes,
            has_head: self.body.is_none(),
            status: self.status.unwrap_or(0),
            format: place,
        })
    }
}

fn of_format(ns: u64) -> Taken {
    let source = Source::Format;
    Taken { ns, source }
}

/// Puts a value where none is; whether there was one to put.
fn fill<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    let is_there = value.is_some();
    if slot.is_none() {
        *slot = value;
    }
    is_there
}

/// A status; 0 where no response came.
fn status(text: &[u8]) -> Option<u16> {
    match text {
        b"-" | b"-1" | b"0" => Some(0),
        [_, _, _] => number(text).and_then(|value| u16::try_from(value).ok()),
        _ => None,
    }
}

/// Bytes; none where nothing was sent.
fn size(text: &[u8]) -> Option<u64> {
    match text {
        b"-" => Some(0),
        _ => number(plain(text)).filter(|bytes| *bytes <= SIZE_MAX_BYTES),
    }
}

/// Without the sign of what was still growing when the line was written.
fn plain(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"+").unwrap_or(text)
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number =
        !digits.is_empty() && digits.len() < 19 && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        digits
            .iter()
            .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
    })
}
