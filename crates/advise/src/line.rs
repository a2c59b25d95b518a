//! One line of an access log: what came when, from whom, how large, how long it took.
//!
//! Understood are the common and the combined format of httpd, nginx and Caddy, also with the virtual host before it and the time taken behind it; Caddy's
//! JSON; and Sooner's own. Lines are told apart by their first byte, and nothing but what is needed is read.

use crate::when;
use serde::Deserialize;
use std::borrow::Cow;

/// A response as a log has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Seconds since 1970 when the request came; where a log has the time of the end and the time taken, that is taken off.
    pub at_s: f64,
    /// Names the client.
    pub client: u64,
    /// Bytes of the body.
    pub bytes: u64,
    /// Of the response.
    pub status: u16,
    /// From the request to the last byte, where the log has it.
    pub took_s: Option<f64>,
}

/// What the number behind a combined line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeTaken {
    /// With a decimal point seconds, as nginx writes; without one microseconds, as httpd's %D.
    #[default]
    Guess,
    /// Whole seconds, httpd's %T.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// Why a line is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEntry {
    /// It is in no format known here.
    #[error("in no known format")]
    Unknown,
    /// Its time cannot be read.
    #[error("without a time that can be read")]
    Time,
    /// It has no size.
    #[error("without a size")]
    Size,
}

/// Reads a line.
pub fn read(line: &[u8], taken: TimeTaken) -> Result<Entry, NoEntry> {
    match line.trim_ascii_start().first() {
        Some(b'{') => json(line),
        Some(_) => text(line, taken),
        None => Err(NoEntry::Unknown),
    }
}

/// FNV-1a: names of clients are only compared.
fn name(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// `[VHOST ]CLIENT IDENT USER [TIME] "REQUEST" STATUS BYTES [ "REFERER" "AGENT"[ TAKEN]]`; users may have blanks in their names.
fn text(line: &[u8], taken: TimeTaken) -> Result<Entry, NoEntry> {
    let open = find(line, b'[').ok_or(NoEntry::Unknown)?;
    let close = open + find(&line[open..], b']').ok_or(NoEntry::Unknown)?;
    let (before, rest) = (&line[..open], &line[close + 1..]);
    let client = client(before).ok_or(NoEntry::Unknown)?;
    let quote = find(rest, b'"').ok_or(NoEntry::Unknown)?;
    let after = quoted(&rest[quote..]).ok_or(NoEntry::Unknown)?;
    let mut words = after
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty());
    let status = words.next().and_then(number).ok_or(NoEntry::Unknown)?;
    let bytes = match words.next().map(<[u8]>::trim_ascii) {
        Some(b"-") => 0,
        Some(word) => number(word).ok_or(NoEntry::Size)?,
        None => return Err(NoEntry::Size),
    };
    let at_s = when::httpd(&line[open + 1..close]).ok_or(NoEntry::Time)?;
    let (took_s, is_at_the_end) = match behind(after, taken) {
        Some((seconds, is_at_the_end)) => (Some(seconds), is_at_the_end),
        None => (None, false),
    };
    Ok(Entry {
        at_s: at_s - took_s.filter(|_| is_at_the_end).unwrap_or(0.0),
        client: name(client),
        bytes,
        status: u16::try_from(status).map_err(|_| NoEntry::Unknown)?,
        took_s,
    })
}

/// The client among the words before the time: the first of three, the second where a virtual host is before them.
fn client(before: &[u8]) -> Option<&[u8]> {
    let mut words = before
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty());
    let (first, second, third) = (words.next()?, words.next()?, words.next()?);
    // A host has a dot or a colon, the identity of a client that nobody asks for is a dash.
    let is_host = second != b"-" && words.next().is_some() && third == b"-";
    Some(if is_host { second } else { first })
}

/// What follows the quoted text at the beginning of `text`, in which a backslash hides the next byte.
fn quoted(text: &[u8]) -> Option<&[u8]> {
    let mut place = 1;
    while let Some(byte) = text.get(place) {
        match byte {
            b'\\' => place += 2,
            b'"' => return Some(&text[place + 1..]),
            _ => place += 1,
        }
    }
    None
}

/// The time taken: the first word behind quoted words, where it is a number; and whether it is nginx's, whose line has the time of the end.
fn behind(after: &[u8], taken: TimeTaken) -> Option<(f64, bool)> {
    let end = after.iter().rposition(|byte| *byte == b'"')?;
    let word = after[end + 1..].trim_ascii();
    let word = word
        .split(|byte| *byte == b' ')
        .find(|word| !word.is_empty())?;
    let value: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    let seconds = match taken {
        TimeTaken::Guess if word.contains(&b'.') => value,
        TimeTaken::Guess => value / 1e6,
        TimeTaken::Seconds => value,
        TimeTaken::Milliseconds => value / 1e3,
    };
    let is_at_the_end = taken == TimeTaken::Guess && word.contains(&b'.');
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds, is_at_the_end))
}

fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|byte| *byte == wanted)
}

fn number(word: &[u8]) -> Option<u64> {
    let digits = word.trim_ascii();
    let is_number =
        !digits.is_empty() && digits.len() < 19 && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        digits
            .iter()
            .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
    })
}

/// Caddy's object and Sooner's; what both have by another name stands twice.
#[derive(Deserialize)]
struct Object<'a> {
    // Caddy.
    ts: Option<serde_json::Value>,
    #[serde(borrow)]
    request: Option<Request<'a>>,
    size: Option<u64>,
    duration: Option<f64>,
    // Sooner.
    #[serde(borrow)]
    time: Option<Cow<'a, str>>,
    #[serde(borrow)]
    remote: Option<Cow<'a, str>>,
    size_bytes: Option<u64>,
    wait_ns: Option<u64>,
    service_ns: Option<u64>,
    // Both.
    status: Option<u16>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    remote_ip: Option<Cow<'a, str>>,
    #[serde(borrow)]
    client_ip: Option<Cow<'a, str>>,
}

fn json(line: &[u8]) -> Result<Entry, NoEntry> {
    let object: Object<'_> = serde_json::from_slice(line).map_err(|_| NoEntry::Unknown)?;
    let at_s = match (&object.ts, &object.time) {
        (Some(serde_json::Value::Number(seconds)), _) => seconds.as_f64(),
        (Some(serde_json::Value::String(text)), _) => when::rfc3339(text),
        (_, Some(text)) => when::rfc3339(text),
        _ => return Err(NoEntry::Unknown),
    };
    let address = match (&object.request, &object.remote) {
        (Some(request), _) => request
            .client_ip
            .as_deref()
            .or(request.remote_ip.as_deref()),
        // Without the port.
        (None, Some(remote)) => remote.rsplit_once(':').map(|(address, _)| address),
        (None, None) => None,
    };
    let ours_s = object
        .wait_ns
        .zip(object.service_ns)
        .map(|(wait, service)| wait.saturating_add(service) as f64 / 1e9);
    Ok(Entry {
        // Caddy writes its line at the end.
        at_s: at_s.ok_or(NoEntry::Time)? - object.duration.unwrap_or(0.0),
        client: name(address.ok_or(NoEntry::Unknown)?.as_bytes()),
        bytes: object.size.or(object.size_bytes).ok_or(NoEntry::Size)?,
        status: object.status.ok_or(NoEntry::Unknown)?,
        took_s: object.duration.or(ours_s),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(line: &str) -> Entry {
        read(line.as_bytes(), TimeTaken::Guess).expect(line)
    }

    const COMMON: &str =
        r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326"#;

    #[test]
    fn the_common_format() {
        let common = entry(COMMON);
        assert_eq!(
            (common.at_s, common.bytes, common.status, common.took_s),
            (971_211_336.0, 2326, 200, None)
        );
        assert_eq!(common.client, name(b"127.0.0.1"));
        assert_eq!(entry(&COMMON.replace(" 2326", " -")).bytes, 0);
        assert_eq!(entry(&format!("{COMMON}\r")).bytes, 2326);
    }

    #[test]
    fn what_stands_before_and_behind() {
        let combined = format!(r#"{COMMON} "http://x/ \"y\" 5" "Mozilla [en]""#);
        assert_eq!(entry(&combined), entry(COMMON));
        assert_eq!(entry(&format!("{combined} 0.125")).took_s, Some(0.125));
        assert_eq!(entry(&format!("{combined} 2500")).took_s, Some(0.0025));
        let milliseconds = read(
            format!("{combined} 2500").as_bytes(),
            TimeTaken::Milliseconds,
        );
        assert_eq!(milliseconds.expect("an entry").took_s, Some(2.5));
        let hosted = entry(&format!("www.example.org:80 {combined}"));
        assert_eq!(hosted, entry(COMMON));
        let blank = entry(&COMMON.replace("frank", "frank of the hill"));
        assert_eq!(blank.client, name(b"127.0.0.1"));
    }

    #[test]
    fn objects() {
        let caddy = entry(
            r#"{"level":"info","ts":1700000000.25,"request":{"remote_ip":"10.0.0.9","method":"GET"},"duration":0.5,"size":77,"status":200}"#,
        );
        assert_eq!(
            (caddy.at_s, caddy.bytes, caddy.took_s),
            (1_699_999_999.75, 77, Some(0.5))
        );
        let ours = entry(
            r#"{"time":"2026-11-22T10:00:00.500000Z","remote":"[::1]:4711","status":200,"size_bytes":12,"wait_ns":3000000,"service_ns":500000}"#,
        );
        assert_eq!(
            (ours.bytes, ours.took_s, ours.client),
            (12, Some(0.0035), name(b"[::1]"))
        );
        assert_eq!(ours.at_s.fract(), 0.5);
    }

    #[test]
    fn lines_that_are_none() {
        let of = |line: &str| read(line.as_bytes(), TimeTaken::Guess);
        assert_eq!(of(""), Err(NoEntry::Unknown));
        assert_eq!(of("starting worker process 12"), Err(NoEntry::Unknown));
        assert_eq!(of(&COMMON.replace("Oct", "Okt")), Err(NoEntry::Time));
        assert_eq!(of(&COMMON.replace(" 2326", " x")), Err(NoEntry::Size));
        assert_eq!(of(&COMMON.replace(" 2326", "")), Err(NoEntry::Size));
        assert_eq!(of("{\"a\": 1}"), Err(NoEntry::Unknown));
        assert_eq!(of("{"), Err(NoEntry::Unknown));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&line, TimeTaken::Guess);
        }

        #[test]
        fn a_damaged_line_is_read_or_refused(place in 0..COMMON.len(), byte: u8) {
            let mut line = COMMON.as_bytes().to_vec();
            line[place] = byte;
            let _ = read(&line, TimeTaken::Guess);
        }
    }
}
