//! One line of the access log: begun with the request, answered with the status, completed when the
//! response ends.

use super::combined::{push_escaped, push_outcome, push_quoted, push_user};
use super::config::LogFormat;
use super::json::{push_number, push_optional, push_string};
use super::timestamp::WallClock;
use super::upstream_facts::UpstreamFacts;
use crate::peer::TlsPeer;
use hyper::header::{HOST, HeaderName, REFERER, USER_AGENT};
use hyper::{Request, Version};
use sooner_link::JobReport;
use std::net::SocketAddr;
use std::time::Instant;

/// Most lines are no longer, so one allocation will do.
const LINE_BYTES: usize = 512;

/// The client of a connection, as all lines of the connection say it.
#[derive(Debug)]
pub struct Remote {
    json: Box<str>,
    combined: Box<str>,
}

impl Remote {
    /// The client at `remote`, and what its TLS handshake said.
    pub fn new(remote: SocketAddr, tls: Option<&TlsPeer>) -> Self {
        let address = remote.ip().to_canonical();
        let remote = SocketAddr::new(address, remote.port());
        let tls = match tls {
            Some(tls) => format!("\"{}\"", tls.version),
            None => "null".into(),
        };
        Self {
            json: format!("\",\"remote\":\"{}\",\"tls\":{tls},\"method\":", remote).into(),
            combined: format!("{} - ", remote.ip()).into(),
        }
    }
}

/// A line with its request written.
#[derive(Debug)]
pub struct OpenRecord {
    format: LogFormat,
    text: Vec<u8>,
    /// Where in `text` stands what follows the status and the size.
    rest_from: usize,
    /// Where in `text` stands what follows the user.
    user_at: usize,
}

/// What is known of an answer before it is sent.
#[derive(Debug, Clone, Default)]
pub struct ResponseFacts {
    /// The status.
    pub status: u16,
    /// Bytes of the head on the wire, an estimate under HTTP/2.
    pub head_bytes: u32,
    /// Bytes of the body; `None` if they are not known before the end.
    pub body_bytes: Option<u64>,
    /// The urgency the client gave (RFC 9218, 0 is the highest).
    pub urgency: Option<u8>,
    /// The name that the client gave where one was needed, be it right or not.
    pub user: Option<Box<[u8]>>,
    /// The upstream that made the response, if one did.
    pub upstream_facts: Option<UpstreamFacts>,
}

/// A line that lacks what only the end of the response tells.
#[derive(Debug)]
pub struct Record {
    record: OpenRecord,
    with_response: ResponseFacts,
}

/// Bytes of a body that were sent, of what was sent in all.
pub fn body_bytes_sent(report: &JobReport, head_bytes: u32, body_bytes: Option<u64>) -> u64 {
    let sent_bytes = report.sent_bytes.saturating_sub(head_bytes.into());
    sent_bytes.min(body_bytes.unwrap_or(u64::MAX))
}

impl OpenRecord {
    /// Begins the line of a response to `request`, which was read at `now`.
    pub(super) fn new<B>(
        format: LogFormat,
        clock: &mut WallClock,
        now: Instant,
        remote: &Remote,
        request: &Request<B>,
    ) -> Self {
        let header = |name: HeaderName| request.headers().get(name).map(|value| value.as_bytes());
        let mut text = begin(format, clock, now, remote);
        let mut rest_from = 0;
        match format {
            LogFormat::Json => {
                push_string(request.method().as_str().as_bytes(), &mut text);
                text.extend_from_slice(b",\"target\":");
                with_target(request, |target| push_string(target, &mut text));
                text.extend_from_slice(b",\"protocol\":\"");
                text.extend_from_slice(protocol(request.version()).as_bytes());
                text.extend_from_slice(b"\",\"host\":");
                push_optional(host(request), &mut text);
                text.extend_from_slice(b",\"user_agent\":");
                push_optional(header(USER_AGENT), &mut text);
                text.extend_from_slice(b",\"referer\":");
                push_optional(header(REFERER), &mut text);
            }
            LogFormat::Combined => {
                text.push(b'"');
                push_escaped(request.method().as_str().as_bytes(), &mut text);
                text.push(b' ');
                with_target(request, |target| push_escaped(target, &mut text));
                text.push(b' ');
                text.extend_from_slice(protocol(request.version()).as_bytes());
                if request.version() == Version::HTTP_2 {
                    // As httpd and nginx write it.
                    text.extend_from_slice(b".0");
                }
                text.push(b'"');
                rest_from = text.len();
                push_headers(header(REFERER), header(USER_AGENT), &mut text);
            }
        }
        Self {
            format,
            text,
            rest_from,
            user_at: remote.combined.len(),
        }
    }

    /// Begins the line of a request that could not be read.
    pub(super) fn of_unreadable(
        format: LogFormat,
        clock: &mut WallClock,
        now: Instant,
        remote: &Remote,
    ) -> Self {
        let mut text = begin(format, clock, now, remote);
        let mut rest_from = 0;
        match format {
            LogFormat::Json => text.extend_from_slice(
                b"null,\"target\":null,\"protocol\":null,\"host\":null,\"user_agent\":null,\"referer\":null",
            ),
            LogFormat::Combined => {
                text.extend_from_slice(b"\"-\"");
                rest_from = text.len();
                push_headers(None, None, &mut text);
            }
        }
        Self {
            format,
            text,
            rest_from,
            user_at: remote.combined.len(),
        }
    }

    /// The line of the response that `with_response` tells of.
    pub fn with_response(self, with_response: ResponseFacts) -> Record {
        Record {
            record: self,
            with_response,
        }
    }
}

impl Record {
    /// Which upstream made the response, as is known when it is over.
    pub fn set_upstream_facts(&mut self, upstream_facts: Option<UpstreamFacts>) {
        self.with_response.upstream_facts = upstream_facts;
    }

    /// How long a body turned out to be, bytes.
    pub fn set_body_bytes(&mut self, body_bytes: u64) {
        self.with_response.body_bytes = Some(body_bytes);
    }

    /// Appends the line to `out`, with what the uplink says about the response, and with what FAIR
    /// gave it where that is known already.
    pub fn write(&self, report: &JobReport, fair_ns: Option<u64>, out: &mut Vec<u8>) {
        let ResponseFacts {
            status,
            head_bytes,
            body_bytes,
            ..
        } = self.with_response;
        let size_bytes = body_bytes_sent(report, head_bytes, body_bytes);
        match self.record.format {
            LogFormat::Json => {
                out.extend_from_slice(&self.record.text);
                self.push_json_end(size_bytes, report, fair_ns, out);
            }
            LogFormat::Combined => {
                let (request, headers) = self.record.text.split_at(self.record.rest_from);
                let (client, request) = request.split_at(self.record.user_at);
                out.extend_from_slice(client);
                push_user(self.with_response.user.as_deref(), out);
                out.extend_from_slice(request);
                push_outcome(status, size_bytes, out);
                out.extend_from_slice(headers);
            }
        }
    }

    fn push_json_end(
        &self,
        size_bytes: u64,
        report: &JobReport,
        fair_ns: Option<u64>,
        out: &mut Vec<u8>,
    ) {
        // A body that failed is done for the uplink too, only shorter than announced.
        let is_whole = self
            .with_response
            .body_bytes
            .is_none_or(|all| size_bytes == all);
        push_field(b",\"status\":", self.with_response.status.into(), out);
        push_field(b",\"size_bytes\":", size_bytes, out);
        push_field(b",\"wait_ns\":", report.wait_ns, out);
        push_field(b",\"service_ns\":", report.service_ns, out);
        match fair_ns {
            Some(fair_ns) => push_field(b",\"fair_ns\":", fair_ns, out),
            None => out.extend_from_slice(b",\"fair_ns\":null"),
        }
        out.extend_from_slice(b",\"policy\":");
        push_string(report.policy.as_bytes(), out);
        push_field(b",\"rank_at_start\":", report.rank_at_start, out);
        push_field(
            b",\"bytes_of_others_meanwhile\":",
            report.bytes_of_others_meanwhile,
            out,
        );
        if let Some(urgency) = self.with_response.urgency {
            push_field(b",\"urgency\":", urgency.into(), out);
        }
        if let Some(user) = &self.with_response.user {
            out.extend_from_slice(b",\"user\":");
            push_string(user, out);
        }
        if let Some(upstream_facts) = &self.with_response.upstream_facts {
            upstream_facts.push(out);
        }
        out.extend_from_slice(if report.completed && is_whole {
            b",\"completed\":true}\n"
        } else {
            b",\"completed\":false}\n"
        });
    }
}

/// The protocol of a request, as JSON and metrics name it.
fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}

fn begin(format: LogFormat, clock: &mut WallClock, now: Instant, remote: &Remote) -> Vec<u8> {
    let mut text = Vec::with_capacity(LINE_BYTES);
    match format {
        LogFormat::Json => {
            text.extend_from_slice(b"{\"time\":\"");
            text.extend_from_slice(clock.date(now));
            text.extend_from_slice(remote.json.as_bytes());
        }
        LogFormat::Combined => {
            text.extend_from_slice(remote.combined.as_bytes());
            text.extend_from_slice(b" [");
            text.extend_from_slice(clock.date_of_httpd(now));
            text.extend_from_slice(b"] ");
        }
    }
    text
}

fn push_headers(referer: Option<&[u8]>, user_agent: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(b' ');
    push_quoted(referer, out);
    out.push(b' ');
    push_quoted(user_agent, out);
    out.push(b'\n');
}

pub(super) fn push_field(name: &[u8], value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    push_number(value, out);
}

/// The host that was asked: in the target, which goes first (RFC 9112, 3.2.2), or in the header.
fn host<B>(request: &Request<B>) -> Option<&[u8]> {
    let of_target = request
        .uri()
        .authority()
        .map(|host| host.as_str().as_bytes());
    of_target.or_else(|| request.headers().get(HOST).map(|host| host.as_bytes()))
}

/// As it was sent; in origin form, and that is nearly always, it is one slice already.
fn with_target<B>(request: &Request<B>, push: impl FnOnce(&[u8])) {
    let is_path = request.uri().scheme().is_none() || request.version() == Version::HTTP_2;
    match request.uri().path_and_query() {
        Some(path) if is_path => push(path.as_str().as_bytes()),
        _ => push(request.uri().to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(is_tls: bool) -> Remote {
        let tls = TlsPeer {
            version: "TLSv1.3",
            ..TlsPeer::default()
        };
        Remote::new("192.0.2.7:4000".parse().unwrap(), is_tls.then_some(&tls))
    }

    fn record(format: LogFormat, request: &Request<()>) -> OpenRecord {
        let now = Instant::now();
        OpenRecord::new(
            format,
            &mut WallClock::new(now),
            now,
            &remote(false),
            request,
        )
    }

    fn unreadable(format: LogFormat) -> OpenRecord {
        let now = Instant::now();
        OpenRecord::of_unreadable(format, &mut WallClock::new(now), now, &remote(true))
    }

    fn with_response(status: u16, body_bytes: Option<u64>) -> ResponseFacts {
        ResponseFacts {
            status,
            head_bytes: 100,
            body_bytes,
            ..ResponseFacts::default()
        }
    }

    fn report(sent_bytes: u64) -> JobReport {
        JobReport {
            wait_ns: 1,
            service_ns: 2,
            sent_bytes,
            policy: "srpt",
            rank_at_start: 4,
            bytes_of_others_meanwhile: 5,
            completed: true,
        }
    }

    fn line(record: &Record, sent_bytes: u64) -> String {
        let mut out = Vec::new();
        record.write(&report(sent_bytes), Some(7), &mut out);
        let line = String::from_utf8(out).unwrap();
        assert_eq!(line.find('\n'), Some(line.len() - 1));
        line
    }

    fn json(record: &Record, sent_bytes: u64) -> serde_json::Value {
        serde_json::from_str(&line(record, sent_bytes)).unwrap()
    }

    #[test]
    fn json_says_everything_once() {
        let request = Request::builder()
            .uri("/a?b=c")
            .header("user-agent", "\"x\"")
            .header("host", "example.org")
            .body(())
            .unwrap();
        let mut with_response = with_response(200, Some(200));
        let mut expected = serde_json::json!({
            "remote": "192.0.2.7:4000", "tls": null, "method": "GET", "target": "/a?b=c", "protocol": "HTTP/1.1", "host": "example.org",
            "user_agent": "\"x\"", "referer": null, "status": 200, "size_bytes": 200, "wait_ns": 1, "service_ns": 2, "fair_ns": 7,
            "policy": "srpt", "rank_at_start": 4, "bytes_of_others_meanwhile": 5, "completed": true,
        });
        let mut got = json(
            &record(LogFormat::Json, &request).with_response(with_response.clone()),
            300,
        );
        assert_eq!(got["time"].as_str().map(str::len), Some(27));
        expected["time"] = got["time"].clone();
        assert_eq!(got, expected);

        with_response.urgency = Some(3);
        with_response.user = Some(b"an\"na"[..].into());
        with_response.upstream_facts = Some(UpstreamFacts {
            upstream: "app".into(),
            server: None,
            answer_ns: 9,
            wait_ns: 4,
            tries: 0,
            error: None,
        });
        got = json(
            &record(LogFormat::Json, &request).with_response(with_response),
            300,
        );
        assert_eq!(
            (&got["urgency"], &got["upstream"], &got["upstream_ns"]),
            (&3.into(), &"app".into(), &9.into())
        );
        assert_eq!(got["user"], "an\"na");
        assert_eq!(got["upstream_tries"], 0);
        assert!(got.get("upstream_server").is_none() && got.get("upstream_error").is_none());
    }

    #[test]
    fn a_short_body_is_not_complete_and_one_of_unknown_length_is() {
        let request = Request::new(());
        for (body_bytes, size_bytes, completed) in [(Some(200), 150, false), (None, 150, true)] {
            let record =
                record(LogFormat::Json, &request).with_response(with_response(200, body_bytes));
            let got = json(&record, 250);
            assert_eq!(
                (&got["size_bytes"], &got["completed"]),
                (&size_bytes.into(), &completed.into())
            );
        }
    }

    #[test]
    fn combined_is_what_httpd_writes() {
        let request = Request::builder()
            .method("POST")
            .uri("/a%20b?c")
            .header("referer", "http://x/\"")
            .version(Version::HTTP_10)
            .body(())
            .unwrap();
        let got = line(
            &record(LogFormat::Combined, &request).with_response(ResponseFacts {
                user: Some(b"anna"[..].into()),
                ..with_response(404, Some(200))
            }),
            300,
        );
        let (client, rest) = got.split_once('[').unwrap();
        let (date, rest) = rest.split_once(']').unwrap();
        assert_eq!(client, "192.0.2.7 - anna ");
        assert!(date.len() == 26 && date.ends_with(" +0000"), "{date}");
        assert_eq!(
            rest,
            " \"POST /a%20b?c HTTP/1.0\" 404 200 \"http://x/\\\"\" \"-\"\n"
        );
    }

    #[test]
    fn a_target_of_http2_is_its_path() {
        let request = Request::builder()
            .uri("https://example.org/a")
            .version(Version::HTTP_2)
            .body(())
            .unwrap();
        let combined = line(
            &record(LogFormat::Combined, &request).with_response(with_response(304, Some(0))),
            100,
        );
        assert!(
            combined.contains("] \"GET /a HTTP/2.0\" 304 - \"-\" \"-\""),
            "{combined}"
        );
        let got = json(
            &record(LogFormat::Json, &request).with_response(with_response(304, Some(0))),
            100,
        );
        assert_eq!(
            (&got["target"], &got["host"], &got["protocol"]),
            (&"/a".into(), &"example.org".into(), &"HTTP/2".into())
        );
    }

    #[test]
    fn a_request_that_could_not_be_read_has_a_line() {
        let got = json(
            &unreadable(LogFormat::Json).with_response(with_response(431, Some(0))),
            0,
        );
        assert_eq!(
            (&got["status"], &got["method"], &got["tls"]),
            (&431.into(), &serde_json::Value::Null, &"TLSv1.3".into())
        );
        let got = line(
            &unreadable(LogFormat::Combined).with_response(with_response(400, Some(0))),
            0,
        );
        assert!(got.ends_with("] \"-\" 400 - \"-\" \"-\"\n"), "{got}");
    }
}
