//! What a line is made of, put together field by field.

use crate::client;
use crate::formats::{Field, Format};
use crate::line::{AtServer, Entry, NoEntry, Tokens};
use crate::request::Asked;
use crate::taken::{Source, Taken, TimeTaken, behind, field_ns, list_ns, unit_of};
use crate::when::{Stamp, stamp};
use crate::words::{Kind, Words};

/// What takes longer is not believed: no response takes a week.
const TOOK_MAX_NS: u64 = 7 * 86_400 * 1_000_000_000;

/// Nor is a larger size: no response has a hundred terabytes.
const SIZE_MAX_BYTES: u64 = 100_000_000_000_000;

/// What an entry has to have, and may have.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The unit of fields that do not name theirs.
    pub taken: TimeTaken,
    /// A line without a size counts, if it has the time that a request took.
    pub may_lack_size: bool,
    /// Method and target are kept.
    pub request: bool,
}

/// Fields that were read so far.
#[derive(Clone, Debug, Default)]
pub struct Parts<'a> {
    taken: TimeTaken,
    time: Option<Stamp>,
    began: Option<Stamp>,
    ended: Option<Stamp>,
    first_token: Option<Stamp>,
    until_first_token_ns: Option<u64>,
    day: Option<Vec<u8>>,
    clock: Option<Vec<u8>>,
    client: Option<u64>,
    forwarded: Option<u64>,
    status: Option<u16>,
    body: Option<u64>,
    sent: Option<u64>,
    took: Option<Taken>,
    is_link_time: bool,
    /// Of that the part in which the response was written.
    response_ns: u64,
    at_server_ns: Option<u64>,
    until_response_ns: Option<u64>,
    has_sending: bool,
    timers: Vec<Option<u64>>,
    waited_ns: Option<u64>,
    server: Option<u64>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    asked: Asked<'a>,
}

impl Field {
    /// Whether it may stand in what a word stood in.
    pub fn takes(self, kind: Kind) -> bool {
        match self {
            Self::Text | Self::Request | Self::Forwarded => kind == Kind::Quoted,
            Self::Server => kind != Kind::Enclosed,
            Self::Time => kind != Kind::Quoted,
            _ => kind == Kind::Bare,
        }
    }
}

impl<'a> Parts<'a> {
    /// Of fields that do not name their unit, as the operator says.
    pub fn in_unit(taken: TimeTaken) -> Self {
        Self {
            taken,
            ..Self::default()
        }
    }

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
    pub fn put(&mut self, field: Field, text: &'a [u8]) -> bool {
        match field {
            Field::Word | Field::Text | Field::Rest | Field::RestWithRequest => true,
            Field::Request => named(&mut self.asked.line, text),
            Field::Method => named(&mut self.asked.method, text),
            Field::Path => named(&mut self.asked.path, text),
            Field::Query => named(&mut self.asked.query, text),
            Field::Model => named(&mut self.asked.model, text),
            Field::Server => {
                let is_none = text.ends_with(b"<NOSRV>");
                let server = client::name(text).filter(|_| !is_none);
                self.server = self.server.or(server);
                true
            }
            Field::Client => {
                self.client = self.client.or_else(|| client::name(text));
                true
            }
            Field::ClientWithPort => {
                self.client = self.client.or_else(|| client::with_port(text));
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
            Field::Timers => self.timers(text),
            Field::Timer => self.timer(text),
            Field::Ended => fill(&mut self.ended, stamp(text)),
            Field::FirstToken => fill(&mut self.first_token, stamp(text)),
            Field::PromptTokens => fill(&mut self.prompt_tokens, number(text)),
            Field::CompletionTokens => fill(&mut self.completion_tokens, number(text)),
            _ => self.time(field, text),
        }
    }

    /// Puts a time in.
    fn time(&mut self, field: Field, text: &[u8]) -> bool {
        let is_none = matches!(text, b"-1" | b"-");
        match field {
            Field::Took(unit) => {
                let is_first = self.took.is_none();
                let Some((unit, source)) = unit_of(unit, self.taken) else {
                    return true;
                };
                if let Some(ns) = field_ns(text, unit).filter(|_| is_first) {
                    self.took = Some(Taken { ns, source });
                }
                true
            }
            Field::TookPart(unit)
            | Field::TookPartOnLink(unit)
            | Field::TookPartOfResponse(unit)
            | Field::TookPartAtServer(unit) => {
                let Some(ns) = field_ns(text, unit) else {
                    return is_none;
                };
                let before = self.took.map_or(0, |taken| taken.ns);
                self.took = Some(of_format(before.saturating_add(ns)));
                match field {
                    Field::TookPartOnLink(_) => self.is_link_time = true,
                    Field::TookPartOfResponse(_) => self.response_ns = ns,
                    Field::TookPartAtServer(_) => self.at_server_ns = Some(ns),
                    _ => {}
                }
                true
            }
            Field::AtServer(unit) | Field::AtServerUnlessZero(unit) => {
                let unit = unit_of(unit, self.taken);
                let found = unit.and_then(|(unit, _)| list_ns(text, unit));
                let may_be_zero = matches!(field, Field::AtServer(_));
                let found = found.filter(|ns| *ns > 0 || may_be_zero);
                self.at_server_ns = self.at_server_ns.or(found);
                true
            }
            Field::UntilResponse(unit) => {
                self.until_response_ns = self.until_response_ns.or_else(|| list_ns(text, unit));
                true
            }
            Field::Waited(unit) => {
                let unit = unit_of(unit, self.taken);
                let found = unit.and_then(|(unit, _)| field_ns(text, unit));
                self.waited_ns = self.waited_ns.or(found);
                true
            }
            Field::UntilFirstToken(unit) => {
                let unit = unit_of(unit, self.taken);
                let found = unit.and_then(|(unit, _)| field_ns(text, unit));
                self.until_first_token_ns = self.until_first_token_ns.or(found);
                true
            }
            _ => false,
        }
    }

    /// What follows the fields of a format.
    pub fn behind(&mut self, rest: &'a [u8], unit: TimeTaken, has_request: bool) {
        if has_request {
            let quoted = Words(rest).filter(|word| word.kind == Kind::Quoted);
            self.asked.line = quoted.last().map(|word| word.text);
            return;
        }
        if self.took.is_none() {
            let times = behind(rest, unit, self.body.or(self.sent));
            self.took = times.taken;
            self.at_server_ns = self.at_server_ns.or(times.at_server_ns);
        }
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
        if texts().count() < 3 || !texts().all(|text| self.timer(text)) {
            return false;
        }
        true
    }

    /// One more of them.
    fn timer(&mut self, text: &[u8]) -> bool {
        let milliseconds = number(plain(text));
        if text != b"-1" && milliseconds.is_none() {
            return false;
        }
        let ns = milliseconds.map(|ms| ms.saturating_mul(1_000_000));
        self.timers.push(ns);
        true
    }

    /// What the timers of HAProxy say: of a request the time until it was read, in the queue, until
    /// the connection, until the head of the response, and of all; of TCP those without the reading
    /// and the head.
    fn settle_timers(&mut self) {
        match self.timers[..] {
            [read, queue, connect, head, all] => {
                // Until the last byte: a server that streams works until then.
                let outside_ns = read.unwrap_or(0).saturating_add(queue.unwrap_or(0));
                let answered = all.filter(|_| connect.is_some() && head.is_some());
                self.at_server_ns = answered.map(|all| all.saturating_sub(outside_ns));
                self.waited_ns = queue;
                self.has_sending = answered.is_some();
            }
            [queue, _, all] => {
                self.at_server_ns = queue.zip(all).map(|(queue, all)| all.saturating_sub(queue));
                self.waited_ns = queue;
                self.has_sending = self.at_server_ns.is_some();
            }
            [] => return,
            _ => {}
        }
        self.took = self.timers.last().copied().flatten().map(of_format);
    }

    /// The time at a server where the log has the time until its response and the whole.
    fn settle_response(&mut self) {
        let Some(until_ns) = self.until_response_ns else {
            return;
        };
        let whole_ns = if self.is_link_time {
            // Until its own server's turn it waited in the queue before the servers.
            let waited_ns = self.waited_ns.unwrap_or(0);
            until_ns
                .saturating_sub(waited_ns)
                .saturating_add(self.response_ns)
        } else {
            self.took.map_or(until_ns, |took| took.ns.max(until_ns))
        };
        self.at_server_ns = Some(whole_ns);
        self.has_sending = true;
    }

    /// The line; `place` is that of its format.
    pub fn entry(
        mut self,
        format: &Format,
        place: usize,
        wanted: Wanted,
    ) -> Result<Entry, NoEntry> {
        self.settle_timers();
        self.settle_response();
        let time = match (self.began, self.time, &self.day, &self.clock) {
            (Some(began), ..) => Some(began),
            (_, Some(time), ..) => Some(time),
            (_, _, Some(day), Some(clock)) => stamp(&[day, &b"T"[..], clock].concat()),
            // Named as W3C names the time of a day, and whole.
            (_, _, _, Some(clock)) => stamp(clock),
            _ => self.ended,
        };
        let size = self.body.or(self.sent);
        let took = self.took.or_else(|| self.between());
        let tokens = self.tokens();
        let is_sizeless_request = wanted.may_lack_size
            && self.is_request(tokens)
            && (took.is_some() || self.at_server_ns.is_some());
        let (time, bytes) = match (time, size) {
            (Some(time), bytes) if bytes.is_some() || is_sizeless_request => (time, bytes),
            (None, None) if took.is_none() || tokens.is_none() => return Err(NoEntry::Unknown),
            (None, _) => return Err(NoEntry::Time),
            (_, _) if wanted.may_lack_size && self.is_request(tokens) => {
                return Err(NoEntry::TimeTaken);
            }
            (_, _) => return Err(NoEntry::Size),
        };
        let took_ns = took.map(|taken| taken.ns);
        let took_from = took.map(|taken| taken.source);
        let is_pointed = took_from == Some(Source::Pointed);
        let believed = |ns: &u64| *ns <= TOOK_MAX_NS;
        let from_start = |at: Stamp| at.ns.checked_sub(self.began?.ns);
        let first_token_ns = self
            .until_first_token_ns
            .or_else(|| self.first_token.and_then(from_start));
        let is_timed = took_ns.is_some() || self.at_server_ns.is_some();
        Ok(Entry {
            stamp_ns: time.ns,
            resolution_ns: time.resolution_ns,
            is_of_the_end: self.began.is_none() && (format.is_of_the_end || is_pointed),
            took_ns: took_ns.filter(believed),
            took_from,
            client: self.forwarded.or(self.client),
            bytes,
            has_head: self.body.is_none(),
            status: self.status.unwrap_or(0),
            at_server: AtServer {
                took_ns: self.at_server_ns.filter(believed),
                waited_ns: self.waited_ns.filter(believed),
                name: self.server,
                is_link_time: self.is_link_time,
                has_sending: self.has_sending,
            },
            kind: if is_timed { self.asked.kind() } else { None },
            request: if wanted.request {
                self.asked.requested().map(Box::new)
            } else {
                None
            },
            tokens,
            first_token_ns: first_token_ns.filter(believed),
            format: place,
        })
    }

    /// What says that a line without a size is of a request, and not of a program's day.
    fn is_request(&self, tokens: Option<Tokens>) -> bool {
        let Asked { line, path, .. } = self.asked;
        tokens.is_some() || self.status.is_some() || line.is_some() || path.is_some()
    }

    /// From the request to the end, where the line has both times.
    fn between(&self) -> Option<Taken> {
        let ns = self.ended?.ns.checked_sub(self.began?.ns)?;
        Some(of_format(ns))
    }

    fn tokens(&self) -> Option<Tokens> {
        let (prompt, completion) = (self.prompt_tokens, self.completion_tokens);
        (prompt.is_some() || completion.is_some()).then(|| Tokens {
            prompt: prompt.unwrap_or(0),
            completion: completion.unwrap_or(0),
        })
    }
}

/// Names what is there; a dash is nothing.
fn named<'a>(slot: &mut Option<&'a [u8]>, text: &'a [u8]) -> bool {
    if slot.is_none() && !matches!(text, b"" | b"-") {
        *slot = Some(text);
    }
    true
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
