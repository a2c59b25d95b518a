//! The numbers in the words behind a line, by how they are written and what they are called.

use super::{
    DECIMALS, Source, TIME_MAX_S, Taken, TimeTaken, decimal, decimals, is_exact, is_size_again,
    list_ns, nanoseconds, sum_of_list, unquoted, with_unit,
};
use crate::formats::Unit;
use crate::words::{Kind, Words};

/// Names that a number behind a line may have where it is a time: `rt=0.125`.
const KEYS: [&[u8]; 5] = [b"rt", b"request_time", b"rtime", b"time", b"duration"];
/// Names that the time at the server behind a proxy may have.
const SERVER_KEYS: [&[u8]; 4] = [b"urt", b"upstream_response_time", b"upstream_time", b"ut"];

/// Numbers behind a line, by how they are written.
#[derive(Default)]
pub struct Numbers {
    /// The longest with nginx's three decimals.
    exact: Option<f64>,
    /// The longest of the others with three decimals.
    pub second: Option<f64>,
    pointed: Option<f64>,
    /// Whole numbers: of a name that says it is a time, else the last, and the one before that.
    named: Option<f64>,
    whole: Option<f64>,
    before_whole: Option<f64>,
    /// Of a name that says so.
    pub at_server_ns: Option<u64>,
    with_unit_ns: Option<u64>,
    /// The list that is being read.
    list: Option<List>,
}

/// Times with commas between them, which may be words of their own.
#[derive(Clone, Copy)]
struct List {
    /// What there is of it; none where no server was asked.
    sum: Option<f64>,
    is_of_servers: bool,
    /// Whether a comma was the last of it.
    goes_on: bool,
}

/// Reads them.
pub fn numbers(rest: &[u8], unit: TimeTaken) -> Numbers {
    let mut found = Numbers::default();
    for word in Words(rest) {
        match word.kind {
            Kind::Enclosed => found.end_list(),
            Kind::Quoted => {
                found.end_list();
                found.add_quoted(word.text, unit);
            }
            Kind::Bare => {
                for piece in pieces(word.text) {
                    found.add_bare(piece, unit);
                }
            }
        }
    }
    found.end_list();
    found
}

/// `rt=0.5,urt=0.4` is two: what begins with a name is one of its own. Each keeps the comma at its
/// end.
fn pieces(word: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let is_name = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        let mut is_quoted = false;
        let end = (0..rest.len()).find(|place| {
            is_quoted ^= rest[*place] == b'"';
            if is_quoted || !is_separator(rest[*place]) {
                return false;
            }
            let behind = &rest[place + 1..];
            let name = behind.iter().take_while(|byte| is_name(byte)).count();
            name > 0 && behind.get(name) == Some(&b'=')
        });
        let (piece, more) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        rest = more;
        Some(piece)
    })
}

fn may_be_time(value: f64, unit: TimeTaken) -> bool {
    value < TIME_MAX_S || unit == TimeTaken::Microseconds
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b',' | b';')
}

impl Numbers {
    fn add_bare(&mut self, piece: &[u8], unit: TimeTaken) {
        let (text, goes_on) = match piece.split_last() {
            Some((last, text)) if is_separator(*last) => (text, true),
            _ => (piece, false),
        };
        let name_end = text.iter().position(|byte| *byte == b'=');
        let Some(name_end) = name_end else {
            return self.add_unnamed(text, goes_on, unit);
        };
        self.end_list();
        let (name, value) = (&text[..name_end], unquoted(&text[name_end + 1..]));
        let is_of_servers = SERVER_KEYS.contains(&name);
        if !is_of_servers && !KEYS.contains(&name) {
            return;
        }
        let is_whole = !value.contains(&b'.') && value != b"-";
        let may_be = |value: &f64| is_of_servers || may_be_time(*value, unit);
        match sum_of_list(value, |_| true).map(|sum| sum.filter(may_be)) {
            Some(sum) if is_of_servers || !is_whole => {
                self.list = Some(List {
                    sum,
                    is_of_servers,
                    goes_on,
                });
            }
            Some(whole) => self.named = self.named.or(whole),
            None if is_of_servers => {
                self.at_server_ns = self.at_server_ns.or_else(|| list_ns(value, Unit::S));
            }
            None => self.with_unit_ns = self.with_unit_ns.or_else(|| with_unit(value)),
        }
    }

    /// A bare word without a name: of a list, if one goes on.
    fn add_unnamed(&mut self, text: &[u8], goes_on: bool, unit: TimeTaken) {
        if let (Some(list), b":") = (&mut self.list, text) {
            list.goes_on = true;
            return;
        }
        let value = decimal(text);
        if let Some(list) = self.list.as_mut().filter(|list| list.goes_on)
            && (value.is_some_and(|_| is_exact(text)) || text == b"-")
        {
            list.goes_on = goes_on;
            list.sum = match (list.sum, value) {
                (Some(sum), Some(value)) => Some(sum + value),
                (sum, value) => sum.or(value),
            };
            return;
        }
        self.end_list();
        let Some(value) = value else {
            self.with_unit_ns = self.with_unit_ns.or_else(|| with_unit(text));
            return;
        };
        if !may_be_time(value, unit) {
            return;
        }
        if is_exact(text) {
            self.list = Some(List {
                sum: Some(value),
                is_of_servers: false,
                goes_on,
            });
        } else if text.contains(&b'.') {
            self.pointed = self.pointed.or(Some(value));
        } else {
            self.before_whole = self.whole.replace(value);
        }
    }

    /// A number in quotes, or several: whole ones, and ratios with one or two decimals, are no
    /// times.
    fn add_quoted(&mut self, text: &[u8], unit: TimeTaken) {
        let may_be = |value: &f64| may_be_time(*value, unit);
        if let Some(sum) = sum_of_list(text, is_exact) {
            if let Some(sum) = sum.filter(may_be) {
                self.add_exact(sum);
            }
            return;
        }
        match decimal(text) {
            Some(value) if decimals(text) > Some(DECIMALS) => {
                self.pointed = self.pointed.or(Some(value).filter(may_be));
            }
            Some(_) => {}
            None => self.with_unit_ns = self.with_unit_ns.or_else(|| with_unit(text)),
        }
    }

    fn end_list(&mut self) {
        let Some(list) = self.list.take() else { return };
        let Some(sum) = list.sum else { return };
        if list.is_of_servers {
            self.at_server_ns = self.at_server_ns.or_else(|| nanoseconds(sum, 1e9));
        } else {
            self.add_exact(sum);
        }
    }

    fn add_exact(&mut self, value: f64) {
        match self.exact {
            Some(longest) if longest >= value => {
                self.second = Some(self.second.map_or(value, |second| second.max(value)));
            }
            longest => {
                self.second = longest;
                self.exact = Some(value);
            }
        }
    }

    /// Whether the last whole number is the size of the response once more.
    pub fn is_size_again(&self, size: Option<u64>) -> bool {
        let (Some(bytes @ 1..), Some(last), Some(before)) = (size, self.whole, self.before_whole)
        else {
            return false;
        };
        let is_size = |number: f64| is_size_again(number as u64, bytes);
        self.named.is_none() && is_size(last) && !is_size(before)
    }

    /// The time that the request took.
    pub fn taken(&self, unit: TimeTaken) -> Option<Taken> {
        if let Some(ns) = self.with_unit_ns {
            let source = Source::WithUnit;
            return Some(Taken { ns, source });
        }
        let of = |value: f64, unit_ns: f64, source| {
            nanoseconds(value, unit_ns).map(|ns| Taken { ns, source })
        };
        let whole = self.named.or(self.whole);
        match (self.exact.or(self.pointed), whole, unit) {
            (Some(seconds), _, TimeTaken::Guess | TimeTaken::Seconds) => {
                of(seconds, 1e9, Source::Pointed)
            }
            (_, Some(value), TimeTaken::Guess) => of(value, 1e3, Source::Guessed),
            (_, Some(value), TimeTaken::Seconds) => of(value, 1e9, Source::Given(unit)),
            (pointed, whole, TimeTaken::Milliseconds) => {
                of(whole.or(pointed)?, 1e6, Source::Given(unit))
            }
            (pointed, whole, TimeTaken::Microseconds) => {
                of(whole.or(pointed)?, 1e3, Source::Given(unit))
            }
            _ => None,
        }
    }
}
