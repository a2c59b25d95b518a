//! One line of the access log, begun when a response starts and completed when it ends.

use super::json::{push_number, push_optional, push_string};
use hyper::Request;
use hyper::header::{HeaderName, REFERER, USER_AGENT};
use sooner_uplink::JobReport;
use std::net::SocketAddr;

/// Most lines are no longer, so one allocation will do.
const LINE_BYTES: usize = 384;

/// The client of a connection, as all lines of the connection say it.
#[derive(Debug)]
pub struct Remote(Box<str>);

impl Remote {
    /// A client at `address`.
    pub fn new(address: SocketAddr) -> Self {
        Self(format!("\",\"remote\":\"{address}\",\"method\":").into())
    }
}

/// A line that lacks what only the end of the response tells.
#[derive(Debug)]
pub struct Record {
    begun: Vec<u8>,
    head_bytes: u32,
    body_bytes: u64,
}

impl Record {
    /// Begins the line of a response to `request` of `date` (RFC 3339) with a head and a body of these lengths.
    pub fn new<B>(
        date: &[u8],
        remote: &Remote,
        request: &Request<B>,
        status: u16,
        head_bytes: u32,
        body_bytes: u64,
    ) -> Self {
        let header = |name: HeaderName| request.headers().get(name).map(|value| value.as_bytes());
        let mut begun = begin(date, remote);
        push_string(request.method().as_str().as_bytes(), &mut begun);
        begun.extend_from_slice(b",\"target\":");
        push_target(request, &mut begun);
        begun.extend_from_slice(b",\"user_agent\":");
        push_optional(header(USER_AGENT), &mut begun);
        begun.extend_from_slice(b",\"referer\":");
        push_optional(header(REFERER), &mut begun);
        push_field(b",\"status\":", status.into(), &mut begun);
        Self {
            begun,
            head_bytes,
            body_bytes,
        }
    }

    /// Begins the line of a request that could not be read; the HTTP engine refused it with an empty body.
    pub fn of_unreadable(date: &[u8], remote: &Remote, status: u16) -> Self {
        let mut begun = begin(date, remote);
        begun.extend_from_slice(b"null,\"target\":null,\"user_agent\":null,\"referer\":null");
        push_field(b",\"status\":", status.into(), &mut begun);
        Self {
            begun,
            head_bytes: 0,
            body_bytes: 0,
        }
    }

    /// Appends the line, with what the uplink says about the response, to `out`.
    pub fn write(&self, report: &JobReport, out: &mut Vec<u8>) {
        let sent_bytes = report.sent_bytes.saturating_sub(self.head_bytes.into());
        let size_bytes = sent_bytes.min(self.body_bytes);
        // A body that failed is done for the uplink too, only shorter than announced.
        let is_complete = report.completed && size_bytes == self.body_bytes;
        out.extend_from_slice(&self.begun);
        push_field(b",\"size_bytes\":", size_bytes, out);
        push_field(b",\"wait_ns\":", report.wait_ns, out);
        push_field(b",\"service_ns\":", report.service_ns, out);
        out.extend_from_slice(b",\"policy\":");
        push_string(report.policy.as_bytes(), out);
        push_field(b",\"rank_at_start\":", report.rank_at_start, out);
        push_field(
            b",\"bytes_of_others_meanwhile\":",
            report.bytes_of_others_meanwhile,
            out,
        );
        out.extend_from_slice(if is_complete {
            b",\"completed\":true}\n"
        } else {
            b",\"completed\":false}\n"
        });
    }
}

fn begin(date: &[u8], remote: &Remote) -> Vec<u8> {
    let mut begun = Vec::with_capacity(LINE_BYTES);
    begun.extend_from_slice(b"{\"time\":\"");
    begun.extend_from_slice(date);
    begun.extend_from_slice(remote.0.as_bytes());
    begun
}

fn push_field(name: &[u8], value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    push_number(value, out);
}

/// As it was sent; in origin form, and that is nearly always, it is one slice already.
fn push_target<B>(request: &Request<B>, out: &mut Vec<u8>) {
    match request.uri().path_and_query() {
        Some(path) if request.uri().scheme().is_none() => {
            push_string(path.as_str().as_bytes(), out)
        }
        _ => push_string(request.uri().to_string().as_bytes(), out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &[u8] = b"2026-11-21T20:41:07.000123Z";

    fn remote() -> Remote {
        Remote::new("127.0.0.1:4000".parse().unwrap())
    }

    fn line(record: &Record, sent_bytes: u64) -> serde_json::Value {
        let report = JobReport {
            wait_ns: 1,
            service_ns: 2,
            sent_bytes,
            policy: "srpt",
            rank_at_start: 4,
            bytes_of_others_meanwhile: 5,
            completed: true,
        };
        let mut out = Vec::new();
        record.write(&report, &mut out);
        assert_eq!(
            out.iter().position(|&byte| byte == b'\n'),
            Some(out.len() - 1)
        );
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn says_everything_once() {
        let request = Request::builder()
            .uri("/a?b=c")
            .header("user-agent", "\"x\"")
            .body(())
            .unwrap();
        let record = Record::new(DATE, &remote(), &request, 200, 100, 200);
        let got = line(&record, 300);
        let expected = serde_json::json!({
            "time": "2026-11-21T20:41:07.000123Z", "remote": "127.0.0.1:4000", "method": "GET", "target": "/a?b=c", "user_agent": "\"x\"",
            "referer": null, "status": 200, "size_bytes": 200, "wait_ns": 1, "service_ns": 2, "policy": "srpt",
            "rank_at_start": 4, "bytes_of_others_meanwhile": 5, "completed": true,
        });
        assert_eq!(got, expected);
    }

    #[test]
    fn a_short_body_is_not_complete() {
        let record = Record::new(DATE, &remote(), &Request::new(()), 200, 100, 200);
        let got = line(&record, 250);
        assert_eq!(
            (&got["size_bytes"], &got["completed"]),
            (&150.into(), &false.into())
        );
    }

    #[test]
    fn a_request_that_could_not_be_read_has_a_line() {
        let got = line(&Record::of_unreadable(DATE, &remote(), 431), 0);
        assert_eq!(
            (&got["status"], &got["method"], &got["completed"]),
            (&431.into(), &serde_json::Value::Null, &true.into())
        );
    }
}
