//! One line of the access log.

use hyper::header::HeaderValue;
use hyper::{Method, Uri};
use serde::{Serialize, Serializer};
use sooner_uplink::JobReport;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What is known about a response when it starts. Cheap to make: only reference counts go up.
#[derive(Debug, Clone)]
pub struct Record {
    /// When the request had been read.
    pub time: SystemTime,
    /// Address and port of the client.
    pub remote: Arc<str>,
    /// The method, if the request could be read.
    pub method: Option<Method>,
    /// The request target as it was sent, if the request could be read.
    pub target: Option<Uri>,
    /// The status.
    pub status: u16,
    /// Length of the head, estimated.
    pub head_bytes: u32,
    /// Length of the body.
    pub body_bytes: u64,
    /// The header of that name.
    pub user_agent: Option<HeaderValue>,
    /// The header of that name.
    pub referer: Option<HeaderValue>,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(serialize_with = "timestamp")]
    time: SystemTime,
    remote: &'a str,
    method: Option<&'a str>,
    target: Option<Cow<'a, str>>,
    status: u16,
    size_bytes: u64,
    wait_ns: u64,
    service_ns: u64,
    policy: &'a str,
    rank_at_start: u64,
    bytes_of_others_meanwhile: u64,
    completed: bool,
    user_agent: Option<Cow<'a, str>>,
    referer: Option<Cow<'a, str>>,
}

impl Record {
    /// A request that could not be read and was refused by the HTTP engine, with an empty body.
    pub fn of_unreadable(remote: SocketAddr, status: u16) -> Self {
        Self {
            time: SystemTime::now(),
            remote: remote.to_string().into(),
            method: None,
            target: None,
            status,
            head_bytes: 0,
            body_bytes: 0,
            user_agent: None,
            referer: None,
        }
    }

    /// Appends the line, with what the uplink says about the response, to `out`.
    pub fn write(&self, report: &JobReport, out: &mut Vec<u8>) {
        let sent_bytes = report.sent_bytes.saturating_sub(self.head_bytes.into());
        let size_bytes = sent_bytes.min(self.body_bytes);
        let line = Line {
            time: self.time,
            remote: &self.remote,
            method: self.method.as_ref().map(Method::as_str),
            target: self.target.as_ref().map(target_text),
            status: self.status,
            size_bytes,
            wait_ns: report.wait_ns,
            service_ns: report.service_ns,
            policy: report.policy,
            rank_at_start: report.rank_at_start,
            bytes_of_others_meanwhile: report.bytes_of_others_meanwhile,
            // A body that failed is done for the uplink too, only shorter than announced.
            completed: report.completed && size_bytes == self.body_bytes,
            user_agent: self.user_agent.as_ref().map(text),
            referer: self.referer.as_ref().map(text),
        };
        let start = out.len();
        match serde_json::to_writer(&mut *out, &line) {
            Ok(()) => out.push(b'\n'),
            Err(_) => out.truncate(start),
        }
    }
}

fn text(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// In origin form, and that is nearly always, the target is one slice already.
fn target_text(target: &Uri) -> Cow<'_, str> {
    match target.path_and_query() {
        Some(path) if target.scheme().is_none() => Cow::Borrowed(path.as_str()),
        _ => Cow::Owned(target.to_string()),
    }
}

/// RFC 3339 in UTC with microseconds: `2026-11-21T20:41:07.000123Z`.
fn timestamp<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let text = rfc3339(
        time.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO),
    );
    serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
}

fn rfc3339(since_1970: Duration) -> [u8; 27] {
    let (days, second_of_day) = (since_1970.as_secs() / 86_400, since_1970.as_secs() % 86_400);
    let (year, month, day) = civil_date(days);
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    for (range, value) in [
        (0..4, year),
        (5..7, month),
        (8..10, day),
        (11..13, second_of_day / 3600),
        (14..16, second_of_day / 60 % 60),
        (17..19, second_of_day % 60),
        (20..26, since_1970.subsec_micros().into()),
    ] {
        write_decimal(&mut text[range], value);
    }
    text
}

fn write_decimal(digits: &mut [u8], mut value: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Year, month and day, from days since 1970 (Hinnant, chrono-compatible low-level date algorithms: `civil_from_days`).
fn civil_date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn report() -> JobReport {
        JobReport {
            wait_ns: 1,
            service_ns: 2,
            sent_bytes: 300,
            policy: "srpt",
            rank_at_start: 4,
            bytes_of_others_meanwhile: 5,
            completed: true,
        }
    }

    fn line(user_agent: &[u8]) -> serde_json::Value {
        let record = Record {
            time: SystemTime::UNIX_EPOCH + Duration::from_micros(1_795_293_667_000_123),
            remote: "127.0.0.1:4000".into(),
            method: Some(Method::GET),
            target: Some(Uri::from_static("/a?b=c")),
            status: 200,
            head_bytes: 100,
            body_bytes: 200,
            user_agent: HeaderValue::from_bytes(user_agent).ok(),
            referer: None,
        };
        let mut out = Vec::new();
        record.write(&report(), &mut out);
        assert_eq!(out.pop(), Some(b'\n'));
        assert!(!out.contains(&b'\n'));
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn says_everything_once() {
        let expected = serde_json::json!({
            "time": "2026-11-21T20:41:07.000123Z", "remote": "127.0.0.1:4000", "method": "GET", "target": "/a?b=c",
            "status": 200, "size_bytes": 200, "wait_ns": 1, "service_ns": 2, "policy": "srpt", "rank_at_start": 4,
            "bytes_of_others_meanwhile": 5, "completed": true, "user_agent": "x", "referer": null,
        });
        assert_eq!(line(b"x"), expected);
    }

    #[test]
    fn dates_agree_with_the_http_ones() {
        for days in (0..2_932_896)
            .step_by(97)
            .chain([0, 59, 60, 11_016, 11_017, 2_932_896])
        {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400);
            let http = httpdate::fmt_http_date(time);
            let (year, month, day) = civil_date(days);
            let names = [
                "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
            ];
            assert_eq!(
                http[5..16],
                format!("{day:02} {} {year:04}", names[month as usize - 1])
            );
        }
    }

    proptest! {
        #[test]
        fn any_header_gives_one_line_of_json(user_agent in proptest::collection::vec(any::<u8>(), 0..40)) {
            line(&user_agent);
        }
    }
}
