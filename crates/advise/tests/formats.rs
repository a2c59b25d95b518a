//! Random logs, written in every known format from known arrivals and read back: the same counts,
//! bytes, times and clients.

use proptest::prelude::*;
use sooner_advise::{Entry, FORMATS, LineReader, TimeTaken};
use std::collections::HashMap;
use std::fmt::Write;

/// A response as it was.
#[derive(Clone, Debug)]
struct Known {
    at_ns: u64,
    took_ns: u64,
    bytes: u64,
    client: u8,
    status: u16,
}

impl Known {
    fn end_ns(&self) -> u64 {
        self.at_ns + self.took_ns
    }

    /// With a port, which differs from line to line.
    fn peer(&self, line: usize) -> String {
        match self.client % 2 {
            0 => format!("198.51.100.{}:{}", self.client, 1024 + line % 60_000),
            _ => format!("[2001:db8::{:x}]:{}", self.client, 1024 + line % 60_000),
        }
    }

    fn address(&self) -> String {
        match self.client % 2 {
            0 => format!("198.51.100.{}", self.client),
            _ => format!("2001:db8::{:x}", self.client),
        }
    }

    fn ms(&self) -> u64 {
        self.took_ns / 1_000_000
    }

    fn seconds(&self) -> String {
        format!("{:.3}", self.ms() as f64 / 1e3)
    }
}

/// What a format keeps of it.
struct Kept {
    /// A line is written at the end of the response.
    by_end: bool,
    /// Times are cut to this.
    resolution_ns: u64,
    /// The time taken is there, cut to this.
    took_resolution_ns: Option<u64>,
}

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const US: u64 = 1000;

fn date(ns: u64) -> (i32, u8, u8, u64) {
    let day = time::OffsetDateTime::from_unix_timestamp((ns / S) as i64).expect("a date");
    (day.year(), day.month().into(), day.day(), ns / S % 86_400)
}

fn clock(second: u64) -> String {
    format!(
        "{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// `26/Nov/2026:10:00:00`, an hour ahead of UTC.
fn httpd_local(ns: u64) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (year, month, day, second) = date(ns);
    let month = MONTHS[usize::from(month) - 1];
    format!("{day:02}/{month}/{year}:{}", clock(second))
}

fn httpd(ns: u64) -> String {
    format!("{} +0100", httpd_local(ns + 3600 * S))
}

fn day(ns: u64) -> String {
    let (year, month, day, _) = date(ns);
    format!("{year}-{month:02}-{day:02}")
}

/// To the microsecond.
fn iso(ns: u64) -> String {
    format!("{}T{}.{:06}Z", day(ns), clock(date(ns).3), ns % S / US)
}

const AGENT: &str = r#""Mozilla/5.0 (X11; \"Linux\" [x]) 7""#;
const W3C_FIELDS: &str =
    "date time s-ip cs-method cs-uri-stem s-port c-ip sc-status sc-bytes time-taken";

fn text_line(name: &str, one: &Known, line: usize) -> Option<(String, Kept)> {
    let (status, bytes, client) = (one.status, one.bytes, one.address());
    let request = r#""GET /a%20b HTTP/1.1""#;
    let common = |at| {
        format!(
            "{client} - frank [{}] {request} {status} {bytes}",
            httpd(at)
        )
    };
    let combined = |at| format!(r#"{} "https://example.org/" {AGENT}"#, common(at));
    let kept = |by_end, resolution_ns, took_resolution_ns| Kept {
        by_end,
        resolution_ns,
        took_resolution_ns,
    };
    Some(match name {
        "common" => (common(one.at_ns), kept(false, S, None)),
        "combined" => (combined(one.at_ns), kept(false, S, None)),
        "combined, httpd's %D" => (
            format!(
                "www.example.org:443 {} {}",
                combined(one.at_ns),
                one.took_ns / US
            ),
            kept(false, S, Some(US)),
        ),
        "combined, nginx's $request_time" => (
            format!("{} {}", combined(one.end_ns()), one.seconds()),
            kept(true, S, Some(MS)),
        ),
        "combined, nginx's $request_length $request_time" => (
            format!("{} 512 {} 0.000 .", combined(one.end_ns()), one.seconds()),
            kept(true, S, Some(MS)),
        ),
        "combined, with X-Forwarded-For" => (
            format!(
                r#"10.0.0.{} - - [{}] {request} {status} {bytes} "-" {AGENT} "{client}, 10.9.9.9""#,
                line % 250,
                httpd(one.at_ns)
            ),
            kept(false, S, None),
        ),
        _ => return None,
    })
}

fn proxy_line(name: &str, one: &Known, line: usize) -> Option<(String, Kept)> {
    let (status, bytes, client) = (one.status, one.bytes, one.address());
    let request = r#""GET /a%20b HTTP/1.1""#;
    let kept = |resolution_ns| Kept {
        by_end: false,
        resolution_ns,
        took_resolution_ns: Some(MS),
    };
    Some(match name {
        "HAProxy, option httplog" => (
            format!(
                "Nov 26 04:00:00 web1 haproxy[{line}]: {} [{}.{:03}] front~ back/s1 1/0/0/2/{} {status} {bytes} - - ---- 1/1/0/0/0 0/0 {{x y|}} {{}} {request}",
                one.peer(line).replace(['[', ']'], ""),
                httpd_local(one.at_ns),
                one.at_ns % S / MS,
                one.ms()
            ),
            kept(MS),
        ),
        "HAProxy, option tcplog" => (
            format!(
                "{} [{}.{:03}] front back/s1 1/0/{} {bytes} -- 1/1/0/0/0 0/0",
                one.peer(line).replace(['[', ']'], ""),
                httpd_local(one.at_ns),
                one.at_ns % S / MS,
                one.ms()
            ),
            kept(MS),
        ),
        "HAProxy, option httplog clf" => (
            format!(
                r#"{client} - - [{}] {request} {status} {bytes} "" "" {} {:03} "front" "back" "s1" 0 0 0 2 {} ---- 1 1 0 0 0 0 0 "" "" "" """#,
                httpd(one.at_ns),
                1024 + line % 60_000,
                one.at_ns % S / MS,
                one.ms()
            ),
            kept(MS),
        ),
        "Envoy, default" => (
            format!(
                r#"[{}] "GET /a%20b HTTP/2" {status} - 154 {bytes} {} 1 "{client}" "curl/8" "cc21d9b0-cf5c" "example.org" "10.0.2.1:80""#,
                iso(one.at_ns),
                one.ms()
            ),
            kept(US),
        ),
        "Envoy, Istio's" => (
            format!(
                r#"[{}] "GET /a%20b HTTP/1.1" {status} - via_upstream - "-" 0 {bytes} {} 1 "{client}" "curl/8" "cc21d9b0-cf5c" "example.org" "10.0.2.1:80" outbound|80||a.default 10.0.0.1:1 10.0.0.2:80 10.0.0.3:2 - default"#,
                iso(one.at_ns),
                one.ms()
            ),
            kept(US),
        ),
        "Traefik, common" => (
            format!(
                r#"{client} - - [{}] {request} {status} {bytes} "-" "-" {line} "router@docker" "http://10.0.0.1:80" {}ms"#,
                httpd(one.at_ns),
                one.ms()
            ),
            kept(S),
        ),
        _ => return None,
    })
}

fn cloud_line(name: &str, one: &Known, line: usize) -> Option<(String, Kept)> {
    let (status, bytes, seconds) = (one.status, one.bytes, one.seconds());
    let peer = one.peer(line).replace(['[', ']'], "");
    let arn = "arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/t/1";
    let request = r#""GET http://example.org:80/ HTTP/1.1" "curl/7.46.0""#;
    let old = format!(
        "https {} app/lb/50dc6c495c0c9188 {peer} 10.0.0.1:80 {seconds} 0.000 0.000 {status} {status} 34 {bytes} {request} ECDHE TLSv1.2",
        iso(one.end_ns())
    );
    let kept = |resolution_ns, took_resolution_ns| Kept {
        by_end: true,
        resolution_ns,
        took_resolution_ns: Some(took_resolution_ns),
    };
    Some(match name {
        "AWS ALB" => (
            format!(
                r#"{old} {arn} "Root=1" "-" "-" 0 {} "forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#,
                iso(one.at_ns)
            ),
            kept(US, MS),
        ),
        "AWS ALB, before it told when requests came" => (format!("{old} {arn}"), kept(US, MS)),
        "AWS Classic Load Balancer" => (
            format!(
                "{} lb {peer} 10.0.0.1:80 0.000000 {seconds} -1 {status} {status} 0 {bytes} {request} - -",
                iso(one.end_ns())
            ),
            kept(US, MS),
        ),
        "W3C" => (
            format!(
                "{} {} 10.0.0.1 GET /a 443 {} {status} {bytes} {}",
                day(one.end_ns()),
                clock(date(one.end_ns()).3),
                one.address(),
                one.ms()
            ),
            kept(S, MS),
        ),
        "W3C, CloudFront" => (
            format!(
                "{}\t{}\tFRA2\t{bytes}\t{}\tGET\td111.cloudfront.net\t/a b\t{status}\t-\t{seconds}",
                day(one.end_ns()),
                clock(date(one.end_ns()).3),
                one.address()
            ),
            kept(S, MS),
        ),
        _ => return None,
    })
}

fn model_line(name: &str, one: &Known) -> Option<(String, Kept)> {
    let (status, client) = (one.status, one.address());
    let kept = |by_end, took_resolution_ns| Kept {
        by_end,
        resolution_ns: US,
        took_resolution_ns: Some(took_resolution_ns),
    };
    Some(match name {
        "JSON of language models" => (
            format!(
                r#"{{"created_at":"{}","end_user":"{client}","status":{status},"total_duration":{},"prompt_eval_count":26,"eval_count":298,"model":"llama3"}}"#,
                iso(one.end_ns()),
                one.took_ns
            ),
            kept(true, 1),
        ),
        "JSON of language models, LiteLLM" => (
            format!(
                r#"{{"status":{status},"startTime":{}.{:06},"endTime":{}.{:06},"prompt_tokens":26,"completion_tokens":298,"model":"gpt","end_user":null,"requester_ip_address":"{client}"}}"#,
                one.at_ns / S,
                one.at_ns % S / US,
                one.end_ns() / S,
                one.end_ns() % S / US
            ),
            kept(false, US),
        ),
        _ => return None,
    })
}

fn json_line(name: &str, one: &Known, line: usize) -> Option<(String, Kept)> {
    let (status, bytes, client) = (one.status, one.bytes, one.address());
    let kept = |by_end, resolution_ns, took_resolution_ns| Kept {
        by_end,
        resolution_ns,
        took_resolution_ns: Some(took_resolution_ns),
    };
    Some(match name {
        "Sooner, JSON" => (
            format!(
                r#"{{"time":"{}","remote":"{}","status":{status},"size_bytes":{bytes},"wait_ns":{},"service_ns":{},"fair_ns":null}}"#,
                iso(one.at_ns),
                one.peer(line),
                one.took_ns / 3,
                one.took_ns - one.took_ns / 3
            ),
            kept(false, US, 1),
        ),
        "Traefik, JSON" => (
            format!(
                r#"{{"ClientAddr":"{}","ClientHost":"{client}","DownstreamContentSize":{bytes},"DownstreamStatus":{status},"Duration":{},"StartUTC":"{}","time":"2020-01-01T00:00:00Z"}}"#,
                one.peer(line),
                one.took_ns,
                iso(one.at_ns)
            ),
            kept(false, US, 1),
        ),
        "Caddy, JSON" => (
            format!(
                r#"{{"level":"info","ts":{}.{:06},"logger":"http.log.access","request":{{"remote_ip":"{client}","remote_port":"{line}","headers":{{"User-Agent":["x\"y"]}}}},"bytes_read":0,"duration":0.{:09},"size":{bytes},"status":{status}}}"#,
                one.end_ns() / S,
                one.end_ns() % S / US,
                one.took_ns % S
            ),
            kept(true, US, 1),
        ),
        "CloudFront, JSON" => (
            format!(
                r#"{{"date":"{}","time":"{}","x-edge-location":"FRA2","sc-bytes":"{bytes}","c-ip":"{client}","sc-status":"{status}","time-taken":"{}"}}"#,
                day(one.end_ns()),
                clock(date(one.end_ns()).3),
                one.seconds()
            ),
            kept(true, S, MS),
        ),
        "Envoy, JSON" => (
            format!(
                r#"{{"start_time":"{}","response_code":{status},"bytes_sent":{bytes},"duration":{},"downstream_remote_address":"{}","x_forwarded_for":null}}"#,
                iso(one.at_ns),
                one.ms(),
                one.peer(line)
            ),
            kept(false, US, MS),
        ),
        "JSON by nginx's names" => (
            format!(
                r#"{{"msec":"{}.{:03}","remote_addr":"{client}","status":"{status}","body_bytes_sent":"{bytes}","request_time":"{}","http_user_agent":"\u0007","request":"GET / HTTP/1.1"}}"#,
                one.end_ns() / S,
                one.end_ns() % S / MS,
                one.seconds()
            ),
            kept(true, MS, MS),
        ),
        _ => return None,
    })
}

fn rails_line(name: &str, one: &Known) -> Option<(String, Kept)> {
    let line = format!(
        r#"{{"controller":"C","path":"/","ip":"{}","status":{},"size":{},"duration":{}.{:03},"time":"{}"}}"#,
        one.address(),
        one.status,
        one.bytes,
        one.took_ns / MS,
        one.took_ns % MS / 1000,
        iso(one.end_ns())
    );
    let kept = Kept {
        by_end: true,
        resolution_ns: 1000,
        took_resolution_ns: Some(1000),
    };
    (name == "Rails, JSON of lograge").then_some((line, kept))
}

fn written(name: &str, known: &[Known]) -> Option<(String, Vec<Known>, Kept)> {
    let of = |one: &Known, line| {
        text_line(name, one, line)
            .or_else(|| proxy_line(name, one, line))
            .or_else(|| rails_line(name, one))
            .or_else(|| cloud_line(name, one, line))
            .or_else(|| json_line(name, one, line))
            .or_else(|| model_line(name, one))
    };
    let kept = of(known.first()?, 0)?.1;
    let mut known = known.to_vec();
    if kept.by_end {
        known.sort_by_key(Known::end_ns);
    }
    let mut log = match name {
        "W3C" => format!("#Software: Microsoft Internet Information Services 10.0\r\n#Fields: {W3C_FIELDS}\r\n"),
        "W3C, CloudFront" => "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) time-taken\n".into(),
        _ => String::new(),
    };
    for (line, one) in known.iter().enumerate() {
        writeln!(log, "{}", of(one, line)?.0).expect("memory");
    }
    Some((log, known, kept))
}

fn check(name: &str, known: &[Known]) -> Result<(), TestCaseError> {
    let Some((log, known, kept)) = written(name, known) else {
        return Err(TestCaseError::fail(format!("{name}: no writer")));
    };
    let mut reader = LineReader::new(TimeTaken::Guess);
    let mut entries: Vec<Entry> = Vec::new();
    for line in log.lines() {
        let entry = reader.read(line.as_bytes());
        prop_assert!(entry.is_ok(), "{name}: {entry:?}: {line}");
        entries.extend(entry.ok().flatten());
    }
    prop_assert_eq!(entries.len(), known.len(), "{}", name);
    let mut clients = HashMap::new();
    for (entry, one) in entries.iter().zip(&known) {
        let status = if name.contains("tcplog") {
            0
        } else {
            one.status
        };
        let bytes = (!name.contains("language models")).then_some(one.bytes);
        prop_assert_eq!((entry.bytes, entry.status), (bytes, status), "{}", name);
        let read_as = FORMATS[entry.format].name;
        prop_assert!(name.starts_with(read_as), "{name} read as {read_as}");
        let cut_ns = kept.resolution_ns + kept.took_resolution_ns.unwrap_or(0);
        let off_ns = entry.arrival_ns().abs_diff(one.at_ns);
        prop_assert!(off_ns <= cut_ns, "{name}: {off_ns} ns off: {one:?}");
        prop_assert_eq!(
            entry.took_ns.is_some(),
            kept.took_resolution_ns.is_some(),
            "{}",
            name
        );
        if let (Some(took_ns), Some(cut_ns)) = (entry.took_ns, kept.took_resolution_ns) {
            prop_assert!(
                took_ns.abs_diff(one.took_ns) <= cut_ns,
                "{name}: {took_ns}, {one:?}"
            );
        }
        let client = entry
            .client
            .ok_or_else(|| TestCaseError::fail("a client"))?;
        prop_assert_eq!(
            *clients.entry(one.client).or_insert(client),
            client,
            "{}",
            name
        );
    }
    let mut names: Vec<u64> = clients.values().copied().collect();
    names.sort_unstable();
    names.dedup();
    prop_assert_eq!(
        names.len(),
        clients.len(),
        "{}: two clients with one name",
        name
    );
    Ok(())
}

/// Other forms of the formats in the table.
const MORE: [&str; 5] = [
    "JSON of language models, LiteLLM",
    "combined, httpd's %D",
    "combined, nginx's $request_time",
    "combined, nginx's $request_length $request_time",
    "W3C, CloudFront",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn every_format_is_read_back(
        all in proptest::collection::vec((0..3_000_000_000_u64, 0..900_000_000_u64, 0..1_u64 << 40, 1..40_u8, 200..600_u16), 1..60)
    ) {
        let mut at_ns = 1_790_000_000 * S;
        let known: Vec<Known> = all
            .into_iter()
            .map(|(gap, took_ns, bytes, client, status)| {
                at_ns += gap;
                Known { at_ns, took_ns, bytes, client, status }
            })
            .collect();
        for name in FORMATS.iter().map(|format| format.name).chain(MORE) {
            check(name, &known)?;
        }
    }
}
