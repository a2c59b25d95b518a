//! What a log's clients requested, so that it can be requested again; and what the log cannot say.

use crate::files::Sink;
use crate::line::{Entry, NoEntry};
use crate::request::Requested;
use crate::taken::{Source, TimeTaken};
use sooner_workload::Rng;
use std::collections::{BTreeMap, HashMap};

/// Names the random stream of places within a second.
const PURPOSE: u64 = 103;
/// Times that are finer need no place within theirs, ns.
const FINE_NS: u64 = 1_000_000;
/// Of a line that was not understood, so much is shown.
const SHOWN_BYTES: usize = 100;

/// A request of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// When it came, ns since the first.
    pub at_ns: u64,
    /// Index of what was requested.
    pub what: u32,
    /// Number of the client, in the order in which they first appear.
    pub client: u32,
    /// Bytes of the response; 0 where the log does not say.
    pub bytes: u64,
    /// Status; 0 where the log has none.
    pub status: u16,
}

/// What a log cannot say, or does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsaid {
    /// Lines in no known format.
    pub others: u64,
    /// The first of them.
    pub first_other: Option<String>,
    /// Lines that do not say what was requested.
    pub without_request: u64,
    /// Requests of which only a part of the time is known, mostly the second.
    pub coarse: u64,
    /// Requests of which it is not said how long they took, so that their time may be that of the
    /// end.
    pub without_duration: u64,
    /// Requests that come before their end by a time of which the unit is assumed.
    pub assumed: BTreeMap<TimeTaken, u64>,
    /// Requests without a size.
    pub without_size: u64,
    /// Requests with a size that has the response's head in it.
    pub with_head: u64,
    /// Requests without a client.
    pub without_client: u64,
    /// Files that break off, or were given twice.
    pub files: Vec<String>,
}

/// The requests of logs.
#[derive(Default)]
pub struct Requests {
    /// With times in ns since 1970.
    requests: Vec<LoggedRequest>,
    whats: HashMap<Requested, u32>,
    clients: HashMap<Option<u64>, u32>,
    unsaid: Unsaid,
    /// Those at the end of `requests` that came in this second, in their order.
    second: Option<(u64, u64)>,
    in_second: usize,
}

impl Requests {
    /// The requests in order of time, with what was requested by index, and what is not said.
    pub fn finish(mut self) -> (Vec<LoggedRequest>, Vec<Requested>, Unsaid) {
        self.spread();
        self.requests.sort_by_key(|request| request.at_ns);
        let first_ns = self.requests.first().map_or(0, |request| request.at_ns);
        for request in &mut self.requests {
            request.at_ns -= first_ns;
        }
        let mut whats: Vec<_> = self.whats.into_iter().collect();
        whats.sort_by_key(|(_, index)| *index);
        let whats = whats.into_iter().map(|(what, _)| what).collect();
        (self.requests, whats, self.unsaid)
    }

    /// Gives those that came in one second, and are known by nothing else, places in it: as many
    /// draws, in order.
    fn spread(&mut self) {
        let Some((stamp_ns, resolution_ns)) = self.second.take() else {
            return;
        };
        let mut rng = Rng::new(stamp_ns, PURPOSE);
        let count = std::mem::take(&mut self.in_second);
        let mut offsets: Vec<f64> = (0..count).map(|_| rng.uniform()).collect();
        offsets.sort_by(f64::total_cmp);
        let begin = self.requests.len() - count;
        for (request, offset) in self.requests[begin..].iter_mut().zip(offsets) {
            request.at_ns += (offset * resolution_ns as f64) as u64;
        }
    }

    fn count(&mut self, entry: &Entry) {
        let unsaid = &mut self.unsaid;
        unsaid.coarse += u64::from(entry.resolution_ns > FINE_NS);
        unsaid.without_duration += u64::from(entry.took_ns.is_none());
        if let (Some(Source::Assumed(unit)), Some(_)) = (entry.took_from, entry.took_ns) {
            *unsaid.assumed.entry(unit).or_insert(0) += 1;
        }
        unsaid.without_size += u64::from(entry.bytes.is_none());
        unsaid.with_head += u64::from(entry.bytes.is_some() && entry.has_head);
        unsaid.without_client += u64::from(entry.client.is_none());
    }
}

impl Sink for Requests {
    fn add(&mut self, mut entry: Entry) {
        let Some(requested) = entry.request.take() else {
            self.unsaid.without_request += 1;
            return;
        };
        self.count(&entry);
        let (stamp_ns, resolution_ns) = (entry.stamp_ns, entry.resolution_ns);
        let is_placed = resolution_ns <= FINE_NS || entry.took_ns.is_some();
        if is_placed || self.second != Some((stamp_ns, resolution_ns)) {
            self.spread();
        }
        let mut at_ns = entry.arrival_ns();
        if is_placed && resolution_ns > FINE_NS {
            let mut rng = Rng::new(self.requests.len() as u64, PURPOSE);
            at_ns += (rng.uniform() * resolution_ns as f64) as u64;
        }
        let next = self.whats.len() as u32;
        let what = *self.whats.entry(*requested).or_insert(next);
        let next = self.clients.len() as u32;
        let client = *self.clients.entry(entry.client).or_insert(next);
        self.requests.push(LoggedRequest {
            at_ns,
            what,
            client,
            bytes: entry.bytes.unwrap_or(0),
            status: entry.status,
        });
        if !is_placed {
            self.second = Some((stamp_ns, resolution_ns));
            self.in_second += 1;
        }
    }

    fn add_other(&mut self, name: &str, number: u64, line: &[u8], reason: NoEntry) {
        self.unsaid.others += 1;
        if self.unsaid.first_other.is_none() {
            let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]);
            let shown: String = shown
                .chars()
                .map(|letter| if letter.is_control() { ' ' } else { letter })
                .collect();
            self.unsaid.first_other = Some(format!("{name}:{number}: {reason}: {shown}"));
        }
    }

    fn add_broken(&mut self, name: &str, line: u64, error: &std::io::Error) {
        let said = format!("{name}: read to line {line}, then: {error}");
        self.unsaid.files.push(said);
    }

    fn add_repeated(&mut self, name: &str) {
        self.unsaid
            .files
            .push(format!("{name}: given twice, read once"));
    }
}

impl Unsaid {
    /// A sentence for everything that is not said of when requests came and what they were.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = self.files.clone();
        if let Some(first) = &self.first_other {
            said.push(format!(
                "{} lines are in no known format and left out; the first: {first}",
                self.others
            ));
        }
        let counted = [
            (
                self.without_request,
                "lines do not say what was requested and are left out",
            ),
            (
                self.coarse,
                "requests have no finer time than a second: each is put at a random place in it, in \
                 the log's order where it has no time taken",
            ),
            (
                self.without_duration,
                "requests have no time taken: where the server logs at the end, as nginx does, they \
                 come as late as their responses ended",
            ),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        said.extend(counted.map(|(count, words)| format!("{count} {words}")));
        said.extend(self.assumed.iter().map(|(unit, count)| {
            format!(
                "{count} requests have a time taken without its unit, which is assumed to be {}: they \
                 come so much before their end; --time-taken says another one",
                unit.name()
            )
        }));
        said
    }

    /// The same of sizes and clients.
    pub fn of_responses(&self) -> Vec<String> {
        let counted = [
            (self.without_size, "requests have no size: it counts as 0"),
            (
                self.with_head,
                "sizes have the head of the response in them",
            ),
            (
                self.without_client,
                "requests do not say who asked: all are of one client",
            ),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        counted
            .map(|(count, words)| format!("{count} {words}"))
            .collect()
    }
}

/// How often each method comes, the others than GET and HEAD.
pub fn other_methods(requests: &[LoggedRequest], whats: &[Requested]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for request in requests {
        let method = &whats[request.what as usize].method;
        if !is_safe(method) {
            *counts.entry(method.clone()).or_insert(0) += 1;
        }
    }
    counts
}

/// Whether a method changes nothing at the server.
pub fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::LineReader;
    use crate::taken::TimeTaken;

    fn read(lines: &[&str]) -> (Vec<LoggedRequest>, Vec<Requested>, Unsaid) {
        let mut reader = LineReader::new(TimeTaken::Guess).with_requests();
        let mut requests = Requests::default();
        for (number, line) in lines.iter().enumerate() {
            match reader.read(line.as_bytes()) {
                Ok(Some(entry)) => requests.add(entry),
                Ok(None) => {}
                Err(reason) => requests.add_other("log", number as u64, line.as_bytes(), reason),
            }
        }
        requests.finish()
    }

    const COMBINED: [&str; 5] = [
        r#"10.0.0.1 - - [10/Oct/2000:13:55:36 +0000] "GET /a?b HTTP/1.1" 200 512 "-" "x""#,
        r#"10.0.0.2 - - [10/Oct/2000:13:55:36 +0000] "POST /b HTTP/1.1" 201 5 "-" "x""#,
        r#"10.0.0.1 - - [10/Oct/2000:13:55:38 +0000] "GET /a?b HTTP/1.1" 304 0 "-" "x""#,
        r#"10.0.0.1 - - [10/Oct/2000:13:55:38 +0000] "\x16\x03" 400 0 "-" "-""#,
        "no line of a log",
    ];

    #[test]
    fn requests_of_a_second_keep_their_order_and_stay_in_it() {
        let (requests, whats, unsaid) = read(&COMBINED);
        assert_eq!(requests.len(), 3);
        let targets: Vec<_> = whats.iter().map(|what| what.target.as_str()).collect();
        assert_eq!(targets, ["/a?b", "/b"]);
        let asked: Vec<_> = requests
            .iter()
            .map(|one| (one.what, one.client, one.bytes))
            .collect();
        assert_eq!(asked, [(0, 0, 512), (1, 1, 5), (0, 0, 0)]);
        assert_eq!(requests[0].at_ns, 0);
        assert!(requests[1].at_ns < 1_000_000_000, "{requests:?}");
        assert!(
            (1_000_000_000..3_000_000_000).contains(&requests[2].at_ns),
            "{requests:?}"
        );
        assert_eq!(
            (unsaid.others, unsaid.without_request, unsaid.coarse),
            (1, 1, 3)
        );
        assert_eq!(unsaid.sentences().len(), 4);
        assert_eq!(
            other_methods(&requests, &whats)
                .into_iter()
                .collect::<Vec<_>>(),
            [("POST".into(), 1)]
        );
    }

    #[test]
    fn a_time_taken_puts_the_request_before_its_end() {
        let caddy = |ts: f64, duration: f64, uri: &str| {
            format!(
                r#"{{"ts":{ts},"request":{{"remote_ip":"10.0.0.1","method":"GET","uri":"{uri}"}},"duration":{duration},"size":7,"status":200}}"#
            )
        };
        let lines = [caddy(1000.25, 0.125, "/short"), caddy(1000.5, 0.5, "/long")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (requests, whats, unsaid) = read(&lines);
        let times: Vec<_> = requests
            .iter()
            .map(|one| (whats[one.what as usize].target.as_str(), one.at_ns))
            .collect();
        assert_eq!(times, [("/long", 0), ("/short", 125_000_000)]);
        let assumed = Unsaid {
            assumed: BTreeMap::from([(TimeTaken::Seconds, 2)]),
            ..Unsaid::default()
        };
        assert_eq!(unsaid, assumed);
        let said = unsaid.sentences().join("\n");
        assert!(
            said.starts_with("2 requests have a time taken without its unit")
                && said.contains("assumed to be seconds")
                && said.contains("--time-taken"),
            "{said}"
        );
    }

    #[test]
    fn a_unit_that_is_given_or_named_is_not_assumed() {
        let line = |member: &str| {
            format!(
                r#"{{"ts":1000.25,"remote_addr":"10.0.0.1","uri":"/","status":200,"size":7,{member}}}"#
            )
        };
        let (of_name, of_field) = (line(r#""duration_ms":125"#), line(r#""duration":125"#));
        assert_eq!(read(&[&of_name]).2, Unsaid::default());
        let mut reader = LineReader::new(TimeTaken::Milliseconds).with_requests();
        let mut requests = Requests::default();
        requests.add(reader.read(of_field.as_bytes()).unwrap().unwrap());
        assert_eq!(requests.finish().2, Unsaid::default());
        // Before its end by more than any response takes: that is not believed.
        let (_, _, unsaid) = read(&[&line(r#""duration":125000000"#)]);
        assert_eq!((unsaid.assumed.len(), unsaid.without_duration), (0, 1));
    }
}
