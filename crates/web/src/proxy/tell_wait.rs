//! `[[upstream]] tell_wait`: who is told how long a request waited here. The server, in fields of
//! the request's head; the client, in `Server-Timing` (W3C Server Timing, 3), and while it waits for an
//! event stream, in comments on it (`waiting_stream`).

use super::waiting_stream::Comments;
use crate::config::Misconfigured;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use sooner_http::forwarding::headers::remove_disguised;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};
use toml::Spanned;

/// When the request came, as servers' monitors read it: `t=` and Unix time, s.
const REQUEST_START: HeaderName = HeaderName::from_static("x-request-start");
/// How long it waited, ms.
const QUEUE_MS: HeaderName = HeaderName::from_static("x-queue-ms");
/// How many others waited when it came.
const QUEUE_AHEAD: HeaderName = HeaderName::from_static("x-queue-ahead");
/// Its class, where it is in one.
const QUEUE_CLASS: HeaderName = HeaderName::from_static("x-queue-class");
/// All that a server is told.
static TOLD: [HeaderName; 4] = [REQUEST_START, QUEUE_MS, QUEUE_AHEAD, QUEUE_CLASS];
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Who is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TellWait {
    /// The server.
    pub server: bool,
    /// The client.
    pub client: bool,
    /// The client while it waits for an event stream.
    pub stream: Option<Comments>,
}

/// How a request waited.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// When it came.
    pub came_at: SystemTime,
    /// How long it waited, ns.
    pub wait_ns: u64,
    /// How many others waited when it came.
    pub ahead: usize,
    /// Its class, where it is in one.
    pub class: Option<&'a str>,
    /// Whether what it says itself of when it came is believed: a proxy in between knows better.
    pub is_trusted: bool,
}

impl TellWait {
    /// What the configuration says.
    pub fn parse(texts: &Option<Vec<Spanned<String>>>) -> Result<Self, Misconfigured> {
        let mut told = Self::default();
        for text in texts.iter().flatten() {
            let wrong = |words: String| Misconfigured::at(text, "upstream.tell_wait", words);
            match text.get_ref().as_str() {
                "server" => told.server = true,
                "client" => told.client = true,
                "stream" => {
                    let comments = Comments::new().map_err(|error| wrong(error.to_string()))?;
                    told.stream = Some(comments);
                }
                other => {
                    return Err(wrong(format!(
                        "`{other}` is unknown; write \"server\", \"client\" or \"stream\""
                    )));
                }
            }
        }
        Ok(told)
    }
}

impl Wait<'_> {
    /// Puts it into the head of the request; what the client wrote there itself goes, also with `_`
    /// for `-`.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        remove_disguised(headers, &TOLD);
        if !(self.is_trusted && headers.contains_key(REQUEST_START)) {
            let since_epoch = self.came_at.duration_since(UNIX_EPOCH).unwrap_or_default();
            let (seconds, ms) = (since_epoch.as_secs(), since_epoch.subsec_millis());
            set(headers, REQUEST_START, Some(format!("t={seconds}.{ms:03}")));
        }
        let wait = Milliseconds(self.wait_ns);
        set(headers, QUEUE_MS, Some(wait.to_string()));
        set(headers, QUEUE_AHEAD, Some(HeaderValue::from(self.ahead)));
        set(headers, QUEUE_CLASS, self.class);
    }
}

/// Whether a server that is told is told this.
pub fn is_told(name: &str) -> bool {
    TOLD.iter().any(|own| own == name)
}

/// Removes what a client says of its wait itself from the trailers of its request: servers may add
/// them to the fields of its head.
pub fn clean_request_trailers(trailers: &mut HeaderMap) {
    for name in &TOLD {
        trailers.remove(name);
    }
    remove_disguised(trailers, &TOLD);
}

/// Tells the client how long its request waited, and how long the server took to answer.
pub fn add_server_timing(headers: &mut HeaderMap, wait_ns: u64, response_ns: u64) {
    let (wait, response) = (Milliseconds(wait_ns), Milliseconds(response_ns));
    let timing = format!("queue;dur={wait}, server;dur={response}");
    if let Ok(timing) = HeaderValue::try_from(timing) {
        headers.append(SERVER_TIMING, timing);
    }
}

/// A name that no head can have is left out.
fn set<T>(headers: &mut HeaderMap, name: HeaderName, value: Option<T>)
where
    HeaderValue: TryFrom<T>,
{
    match value.and_then(|value| HeaderValue::try_from(value).ok()) {
        Some(value) => drop(headers.insert(name, value)),
        None => drop(headers.remove(name)),
    }
}

/// A time in ns, written in ms with three places.
struct Milliseconds(u64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0 / 1000;
        write!(f, "{}.{:03}", us / 1000, us % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn said(wait: Wait<'_>, before: &[(&'static str, &'static str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in before {
            headers.append(*name, HeaderValue::from_static(value));
        }
        wait.add_to(&mut headers);
        let mut lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        lines.join("\n")
    }

    #[test]
    fn the_server_is_told_and_what_a_client_made_up_goes() {
        let wait = Wait {
            came_at: UNIX_EPOCH + Duration::from_millis(1_700_000_000_042),
            wait_ns: 12_345_678,
            ahead: 7,
            class: Some("gold"),
            is_trusted: false,
        };
        let told = "x-queue-ahead: 7\nx-queue-class: gold\nx-queue-ms: 12.345\n\
                    x-request-start: t=1700000000.042";
        assert_eq!(said(wait, &[]), told);
        let made_up = [
            ("x-queue-ms", "0"),
            ("x-queue-ms", "1"),
            ("x-queue-class", "vip"),
            ("x-request-start", "t=5"),
        ];
        assert_eq!(said(wait, &made_up), told);
        let trusted = Wait {
            is_trusted: true,
            class: None,
            ..wait
        };
        assert_eq!(
            said(trusted, &made_up),
            "x-queue-ahead: 7\nx-queue-ms: 12.345\nx-request-start: t=5"
        );
    }

    #[test]
    fn the_client_is_told_beside_what_the_server_says() {
        let mut headers = HeaderMap::new();
        headers.append(SERVER_TIMING, HeaderValue::from_static("db;dur=5"));
        add_server_timing(&mut headers, 2_000_000, 999);
        let all: Vec<_> = headers.get_all(SERVER_TIMING).iter().collect();
        assert_eq!(all, ["db;dur=5", "queue;dur=2.000, server;dur=0.000"]);
    }

    #[test]
    fn nothing_else_can_be_told() {
        let place = |text: &str| Some(vec![Spanned::new(3..4, text.to_owned())]);
        assert!(TellWait::parse(&place("client")).unwrap().client);
        assert!(TellWait::parse(&place("stream")).unwrap().stream.is_some());
        assert_eq!(TellWait::parse(&None).unwrap(), TellWait::default());
        let error = TellWait::parse(&place("clients")).unwrap_err();
        assert_eq!(error.span, Some(3..4));
    }
}
