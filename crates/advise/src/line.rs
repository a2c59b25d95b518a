//! One line of an access log: what came when, from which client, how large, how long it took. The
//! formats are in [`crate::formats`].

use crate::client;
use crate::formats::{FORMATS, Field, Format, Layout};
use crate::members;
use crate::parts::{Parts, Wanted};
use crate::request::Requested;
use crate::taken::{Source, TimeTaken};
use crate::when::{self, Stamp};
use crate::words::Words;

/// A response as a log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Nanoseconds since 1970 of the time in the line.
    pub stamp_ns: u64,
    /// The true time is less than this later.
    pub resolution_ns: u64,
    /// Whether that is the time of the response's end; otherwise of the request.
    pub is_of_the_end: bool,
    /// From the request to the last byte, where the log has it and it can be.
    pub took_ns: Option<u64>,
    /// Where that comes from.
    pub took_from: Option<Source>,
    /// Names the client, where the log has it.
    pub client: Option<u64>,
    /// Bytes of the body, or of body and head; none where the log leaves them out.
    pub bytes: Option<u64>,
    /// Whether the head is among the bytes.
    pub has_head: bool,
    /// Of the response; 0 where there was none.
    pub status: u16,
    /// What the log of a proxy has of the server that answered.
    pub at_server: AtServer,
    /// What requests like this one have in common, where the line has a time taken.
    pub kind: Option<String>,
    /// Method and target as they can be sent again; only where they are wanted, see
    /// [`LineReader::with_requests`].
    pub request: Option<Box<Requested>>,
    /// Of a language model.
    pub tokens: Option<Tokens>,
    /// From the request to the first token of the answer, ns.
    pub first_token_ns: Option<u64>,
    /// Place of its format among all.
    pub format: usize,
}

/// The part of a request that a server behind a proxy has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtServer {
    /// How long it was there, ns.
    pub took_ns: Option<u64>,
    /// How long it waited before, ns.
    pub waited_ns: Option<u64>,
    /// Names the server.
    pub name: Option<u64>,
    /// Whether the time that the request took is that of writing the response alone.
    pub is_link_time: bool,
    /// Whether the time there goes on until the client had the last byte.
    pub has_sending: bool,
}

/// What a language model read and wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Of the prompt.
    pub prompt: u64,
    /// Of the answer.
    pub completion: u64,
}

impl Entry {
    /// The earliest time when the request can have come, ns since 1970.
    pub fn arrival_ns(&self) -> u64 {
        if self.is_of_the_end {
            self.stamp_ns.saturating_sub(self.took_ns.unwrap_or(0))
        } else {
            self.stamp_ns
        }
    }
}

/// Why a line is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEntry {
    /// It is in no format known here.
    #[error("in no known format")]
    Unknown,
    /// Its time cannot be read.
    #[error("without a readable time")]
    Time,
    /// It has neither a size nor the time that the request took.
    #[error(
        "without the time that the request took; log it too, in seconds as duration or in milliseconds as duration_ms"
    )]
    TimeTaken,
    /// It has no size.
    #[error("without a size")]
    Size,
    /// Columns of the W3C's, without the line that names them.
    #[error("columns without a #Fields line above them")]
    Columns,
    /// The line that names the columns has no size among them.
    #[error("the #Fields line has no sc-bytes; let the server log that field")]
    ColumnOfSizes,
    /// Longer than is looked at.
    #[error("longer than 1 MiB")]
    Long,
}

/// Objects in which a payload may stand.
const WRAPPERS: [&str; 4] = [
    "standard_logging_object",
    "standard_logging_payload",
    "kwargs",
    "payload",
];
/// One in another is as deep as it goes.
const WRAPPERS_DEPTH: usize = 2;

/// Seconds since 1970 have no fewer digits, since 1973.
const TIME_LEN_MIN: usize = 9;

/// Reads the lines of one log, one after the other.
#[derive(Clone, Debug, Default)]
pub struct LineReader {
    taken: TimeTaken,
    wants_requests: bool,
    /// What a `#Fields` line has named.
    columns: Vec<Option<Field>>,
    /// Of a `#Date` line.
    day: Option<Vec<u8>>,
}

impl LineReader {
    /// A reader that takes the number behind a line of httpd's kind for `taken`.
    pub fn new(taken: TimeTaken) -> Self {
        Self {
            taken,
            ..Self::default()
        }
    }

    /// The same, which also keeps what each line requests.
    pub fn with_requests(self) -> Self {
        Self {
            wants_requests: true,
            ..self
        }
    }

    /// Reads a line; none of one that is empty or a comment.
    pub fn read(&mut self, line: &[u8]) -> Result<Option<Entry>, NoEntry> {
        let line = line.trim_ascii();
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        match line {
            [] => Ok(None),
            [b'#', comment @ ..] => {
                self.directive(comment);
                Ok(None)
            }
            // In a list of objects each but the last ends so.
            [b'{', .., b'}', b','] => self.object(&line[..line.len() - 1]).map(Some),
            [b'{', ..] => self.object(line).map(Some),
            _ if !self.columns.is_empty() => self.row(line).map(Some),
            _ => self.text(line).map(Some),
        }
    }

    /// A line of words, or an object behind what a collector put before it.
    fn text(&self, line: &[u8]) -> Result<Entry, NoEntry> {
        if line.ends_with(b"}")
            && let Some(place) = line.windows(2).position(|two| two == b"{\"")
            && let Ok(entry) = self.object(&line[place..])
        {
            return Ok(entry);
        }
        let (is_httpd, bracket) = bracket(line)?;
        // The reason of the format that went furthest.
        let mut reason = (0, NoEntry::Unknown);
        let words = |(_, format): &(usize, &Format)| matches!(format.layout, Layout::Words(_));
        let formats = || FORMATS.iter().enumerate();
        // Of a format that begins with a time in brackets what is before them is a collector's.
        let begin = bracket
            .filter(|_| !is_httpd)
            .map_or(0, |(_, before, _)| before.len());
        let first = formats().filter(|format| !is_httpd && words(format));
        let rest = formats().filter(|format| is_httpd || !words(format));
        for (place, format) in first.chain(rest) {
            let (fields, text, parts) = match (&format.layout, bracket) {
                (Layout::Words(fields), _) => (fields, &line[begin..], Parts::default()),
                (Layout::Httpd(fields) | Layout::HaProxy(fields), Some((time, _, behind))) => {
                    (fields, behind, Parts::at(time))
                }
                _ => continue,
            };
            let mut parts = match in_order(fields, text, parts, self.taken) {
                Ok(parts) => parts,
                Err(far) => {
                    if far.0 > reason.0 {
                        reason = far;
                    }
                    continue;
                }
            };
            match (&format.layout, bracket) {
                (Layout::Httpd(_), Some((_, before, _))) => {
                    parts.set_client(client::before_time(before));
                }
                (Layout::HaProxy(_), Some((_, before, _))) => {
                    let last = Words(before).last();
                    parts.set_client(last.and_then(|word| client::with_port(word.text)));
                }
                _ => {}
            }
            return parts.entry(format, place, self.may(false));
        }
        match (reason.1, line.first()) {
            (NoEntry::Unknown, Some(b'0'..=b'9')) if begins_with_a_day(line) => {
                Err(NoEntry::Columns)
            }
            (reason, _) => Err(reason),
        }
    }

    fn object(&self, line: &[u8]) -> Result<Entry, NoEntry> {
        let line = String::from_utf8_lossy(line);
        let object = members::Object::read(&line).ok_or(NoEntry::Unknown)?;
        if let Some(inner) = object.text("log")
            && let Ok(Some(entry)) = self.of_inner(inner.as_bytes())
        {
            return Ok(entry);
        }
        of_object(&object, WRAPPERS_DEPTH, self.may(false))
    }

    /// A line inside another one.
    fn of_inner(&self, line: &[u8]) -> Result<Option<Entry>, NoEntry> {
        let mut inner = Self {
            wants_requests: self.wants_requests,
            ..Self::new(self.taken)
        };
        inner.read(line)
    }

    fn may(&self, lack_size: bool) -> Wanted {
        Wanted {
            taken: self.taken,
            may_lack_size: lack_size,
            request: self.wants_requests,
        }
    }

    fn directive(&mut self, comment: &[u8]) {
        if let Some(names) = comment.strip_prefix(b"Fields:") {
            let of = |name: &[u8]| {
                let name = name.to_ascii_lowercase();
                let mut known = columns().1.iter();
                let found = known.find(|(known, _)| known.as_bytes() == name);
                found.map(|(_, field)| *field)
            };
            let names = names.split(u8::is_ascii_whitespace);
            self.columns = names.filter(|name| !name.is_empty()).map(of).collect();
        } else if let Some(date) = comment.strip_prefix(b"Date:") {
            let day = date.trim_ascii().split(u8::is_ascii_whitespace).next();
            self.day = day.map(<[u8]>::to_vec);
        }
    }

    /// A line of named columns.
    fn row(&self, line: &[u8]) -> Result<Entry, NoEntry> {
        if !self.columns.contains(&Some(Field::Sent)) {
            return Err(NoEntry::ColumnOfSizes);
        }
        let n = self.columns.len();
        let by = |cut: u8| line.split(move |byte| *byte == cut);
        let texts: Vec<&[u8]> = if by(b'\t').count() == n {
            by(b'\t').collect()
        } else if by(b' ').count() == n {
            by(b' ').collect()
        } else {
            Words(line).map(|word| word.text).collect()
        };
        if texts.len() != n {
            return Err(NoEntry::Unknown);
        }
        let mut parts = Parts::in_unit(self.taken);
        for (text, field) in texts.into_iter().zip(&self.columns) {
            if let Some(field) = field {
                parts.put(*field, text);
            }
        }
        if let Some(day) = &self.day {
            parts.put(Field::Date, day);
        }
        parts.entry(&FORMATS[columns().0], columns().0, self.may(false))
    }
}

/// What an object says, or one that it wraps.
fn of_object(object: &members::Object<'_>, depth: usize, wanted: Wanted) -> Result<Entry, NoEntry> {
    let sizeless = Wanted {
        may_lack_size: true,
        ..wanted
    };
    // A format that knows the size comes before one that only knows the time.
    let reason = match of_members(object, wanted).or_else(|first| {
        of_members(object, sizeless).map_err(|second| match second {
            NoEntry::TimeTaken => second,
            _ => first,
        })
    }) {
        Ok(entry) => return Ok(entry),
        Err(reason) => reason,
    };
    let mut inside = WRAPPERS.iter().filter_map(|name| object.inside(name));
    let entry = inside.find_map(|text| {
        let inside = members::Object::read(text).filter(|_| depth > 0)?;
        of_object(&inside, depth - 1, wanted).ok()
    });
    entry.ok_or(reason)
}

/// What an object says in the first format that it is in.
fn of_members(object: &members::Object<'_>, wanted: Wanted) -> Result<Entry, NoEntry> {
    let mut reason = NoEntry::Unknown;
    for (place, format) in FORMATS.iter().enumerate() {
        let Layout::Members { marks, members } = format.layout else {
            continue;
        };
        if !marks.is_empty() && !marks.iter().any(|mark| is_marked(object, mark)) {
            continue;
        }
        let found = members.iter();
        let found = found.filter_map(|(name, field)| Some((*field, object.text(name)?)));
        let found: Vec<_> = found.collect();
        let mut parts = Parts::in_unit(wanted.taken);
        for (field, text) in &found {
            parts.put(*field, text.as_bytes());
        }
        match parts.entry(format, place, wanted) {
            Ok(entry) => return Ok(entry),
            Err(NoEntry::Unknown) => {}
            // That says the most.
            Err(_) if reason == NoEntry::TimeTaken => {}
            Err(other) => reason = other,
        }
    }
    Err(reason)
}

/// Whether an object has this member; with a dot behind the name, as an object.
fn is_marked(object: &members::Object<'_>, mark: &str) -> bool {
    match mark.strip_suffix('.') {
        Some(name) => object.inside(name).is_some(),
        None => object.has(mark),
    }
}

/// The format of named columns, with its place.
fn columns() -> (usize, &'static [(&'static str, Field)]) {
    let found = FORMATS.iter().enumerate().find_map(|(place, format)| {
        let Layout::Columns(columns) = format.layout else {
            return None;
        };
        Some((place, columns))
    });
    found.unwrap_or((0, &[]))
}

/// Reads fields in order; where one does not fit, how many did and what is wrong.
fn in_order<'a>(
    fields: &[Field],
    text: &'a [u8],
    mut parts: Parts<'a>,
    taken: TimeTaken,
) -> Result<Parts<'a>, (usize, NoEntry)> {
    let mut words = Words(text);
    for (place, field) in fields.iter().enumerate() {
        if let Field::Rest | Field::RestWithRequest = field {
            parts.behind(words.0, taken, *field == Field::RestWithRequest);
            return Ok(parts);
        }
        let word = words.next();
        if !word.is_some_and(|word| field.takes(word.kind) && parts.put(*field, word.text)) {
            let reason = match field {
                Field::Body | Field::Sent => NoEntry::Size,
                _ => NoEntry::Unknown,
            };
            return Err((place + 1, reason));
        }
    }
    match words.next() {
        Some(_) => Err((fields.len(), NoEntry::Unknown)),
        None => Ok(parts),
    }
}

/// A time in brackets, and what is before and behind them.
type Bracket<'a> = (Stamp, &'a [u8], &'a [u8]);

/// The time in brackets of a line, and whether it is in httpd's form or not there.
fn bracket(line: &[u8]) -> Result<(bool, Option<Bracket<'_>>), NoEntry> {
    let around = |open: usize, close: usize| (&line[..open - 1], &line[close + 1..]);
    if let Some((open, close)) = time_in_brackets(line) {
        let time = when::stamp(&line[open..close]).ok_or(NoEntry::Time)?;
        let (before, behind) = around(open, close);
        return Ok((true, Some((time, before, behind))));
    }
    let other = other_time_in_brackets(line).map(|(open, close, time)| {
        let (before, behind) = around(open, close);
        (time, before, behind)
    });
    Ok((other.is_none(), other))
}

/// Where the text in `[10/Oct/2000:...]` is.
fn time_in_brackets(line: &[u8]) -> Option<(usize, usize)> {
    let is_time = |bytes: &[u8]| matches!(bytes, [b'[', d1, d2, b'/', ..] if d1.is_ascii_digit() && d2.is_ascii_digit());
    let open = line.windows(4).position(is_time)? + 1;
    let length = line[open..].iter().position(|byte| *byte == b']')?;
    Some((open, open + length))
}

/// The first time in brackets of another form before the quotes of a line: `$time_iso8601` or
/// `$msec` of nginx.
fn other_time_in_brackets(line: &[u8]) -> Option<(usize, usize, Stamp)> {
    let quote = line.iter().position(|byte| *byte == b'"');
    let line = &line[..quote.unwrap_or(line.len())];
    let mut begin = 0;
    while let Some(place) = line[begin..].iter().position(|byte| *byte == b'[') {
        let open = begin + place + 1;
        let length = line[open..].iter().position(|byte| *byte == b']')?;
        let text = &line[open..open + length];
        // Shorter numbers are those of processes.
        if length >= TIME_LEN_MIN
            && let Some(time) = when::stamp(text)
        {
            return Some((open, open + length, time));
        }
        begin = open;
    }
    None
}

/// `2026-11-22 10:00:00 `, with which lines of the W3C's begin.
fn begins_with_a_day(line: &[u8]) -> bool {
    line.len() > 20
        && line[19].is_ascii_whitespace()
        && (line[10] == b' ' || line[10] == b'\t')
        && when::stamp(&[&line[..10], b"T", &line[11..19]].concat()).is_some()
}

impl Format {
    /// What the time of its lines is, and how a time taken is known, for people.
    pub fn reading(&self, took_from: Option<Source>, is_guess_believed: bool) -> String {
        let time = match (self.is_of_the_end, took_from) {
            (true, _) | (_, Some(Source::Pointed)) => "its time is that of the end",
            _ => "its time is that of the request",
        };
        let named;
        let took = match took_from {
            None => "",
            Some(Source::Format) => ", with the time taken",
            Some(Source::Pointed) => {
                ", the seconds with a decimal point behind it are the time taken"
            }
            Some(Source::WithUnit) => ", the number behind it is the time taken",
            Some(Source::Given(unit)) => {
                named = format!(", the time taken is in {}, as given", unit.name());
                &named
            }
            Some(Source::Assumed(unit)) => {
                named = format!(
                    ", the time taken is taken to be in {}, which --time-taken changes",
                    unit.name()
                );
                &named
            }
            Some(Source::Guessed | Source::Repeated) if is_guess_believed => {
                ", the whole number behind it is taken for microseconds"
            }
            Some(Source::Guessed | Source::Repeated) => ", the whole number behind it is ignored",
        };
        format!("{}: {time}{took}", self.name)
    }
}
