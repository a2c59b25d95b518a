//! What is asked of which servers, and how often: URLs with weights, from the command line or a
//! file.

use crate::message::{self, Message, MessageError, Question};
use crate::rate::Asked;
use crate::target::{Target, TargetError, authority_end, encoded, from_slash, without_user};
use crate::tls::TlsOptions;
use http::Method;
use sooner_workload::Rng;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

/// Begins texts of some editors.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// Names the random stream of choices.
const PURPOSE: u64 = 102;

/// A URL in a list of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Number of its line.
    pub line: usize,
    /// How often it is asked for, beside the others'.
    pub weight: f64,
    /// The method, where the list says one.
    pub method: Option<Method>,
    /// The URL.
    pub url: String,
    /// File of the body, where the list says one.
    pub body: Option<String>,
}

/// Why a URL cannot be asked for.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    /// No URL that leads to a server.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// No request can be made of it.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// Reads a list: a line each, `[WEIGHT] [METHOD] URL [@BODYFILE]`; empty lines, and words from one
/// that begins with `#`, are passed over. A mistake comes with the number of its line.
pub fn list(text: &str) -> Result<Vec<Listed>, (usize, String)> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let lines = text.lines().map(str::trim).enumerate();
    let mut all = Vec::new();
    for (index, line) in lines {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let one = listed(index + 1, line).map_err(|problem| (index + 1, problem))?;
        all.push(one);
    }
    Ok(all)
}

fn listed(number: usize, line: &str) -> Result<Listed, String> {
    let form = || {
        format!(
            "`{}`: write [WEIGHT] [METHOD] URL [@BODYFILE]",
            without_user(line)
        )
    };
    let words = line.split_whitespace();
    let mut words = words.take_while(|word| !word.starts_with('#')).peekable();
    let mut weight = 1.0;
    let mut method = None;
    if let Some(number) = words.peek().and_then(|word| word.parse::<f64>().ok()) {
        if !(number > 0.0 && number.is_finite()) {
            return Err(format!("`{number}`: a weight is above 0"));
        }
        weight = number;
        words.next();
    }
    // One that is made of letters that a method may have is meant as one.
    let is_method = |word: &&str| word.parse::<Method>().is_ok();
    if let Some(word) = words.next_if(is_method) {
        method = Some(message::method(word).map_err(|error| error.to_string())?);
    }
    let url = words
        .next()
        .filter(|word| word.contains("://"))
        .ok_or_else(form)?;
    let body = match words.next() {
        Some(word) => Some(word.strip_prefix('@').ok_or_else(form)?.to_owned()),
        None => None,
    };
    match words.next() {
        Some(_) => Err(form()),
        None => Ok(Listed {
            line: number,
            weight,
            method,
            url: url.into(),
            body,
        }),
    }
}

/// Everything that may be asked, and where.
pub struct Questions {
    tls: TlsOptions,
    http2: bool,
    requests_per_connection: NonZeroU32,
    servers: Vec<Target>,
    places: HashMap<String, usize>,
    requests: Vec<Asked>,
    sums: Vec<f64>,
}

impl Questions {
    /// Nothing yet; over HTTP/1.1 the last request of a connection asks the server to close it.
    pub fn new(tls: TlsOptions, requests_per_connection: NonZeroU32) -> Self {
        Self {
            http2: tls.http2,
            tls,
            requests_per_connection,
            servers: Vec::new(),
            places: HashMap::new(),
            requests: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Adds a request for `url` (whatever path `question` has), chosen with this weight. A server
    /// is resolved once.
    pub fn add(
        &mut self,
        url: &str,
        question: &Question,
        weight: f64,
    ) -> Result<(), QuestionError> {
        // What is behind `#` is the browser's.
        let url = url.split('#').next().unwrap_or(url);
        let begin = url.find("://").map_or(0, |place| place + 3);
        let end = begin + authority_end(&url[begin..]);
        let (base, path) = url.split_at(end);
        // Neither schemes nor hosts have large letters of their own.
        let name = base.to_ascii_lowercase();
        let server = match self.places.get(&name) {
            Some(server) => *server,
            None => {
                self.servers.push(Target::resolve(base, &self.tls)?);
                let server = self.servers.len() - 1;
                self.places.insert(name, server);
                server
            }
        };
        let question = Question {
            path: encoded(&from_slash(path)),
            ..question.clone()
        };
        let of = |close| Message::new(&question, &self.servers[server], self.http2, close);
        let most = self.requests_per_connection;
        let message = of(most == NonZeroU32::MIN)?;
        let is_other = !self.http2 && most > NonZeroU32::MIN && most < NonZeroU32::MAX;
        let closing = if is_other { Some(of(true)?) } else { None };
        self.requests.push(Asked {
            message,
            closing,
            server,
        });
        self.sums.push(self.sums.last().unwrap_or(&0.0) + weight);
        Ok(())
    }

    /// The servers.
    pub fn servers(&self) -> &[Target] {
        &self.servers
    }

    /// The requests, in the order in which they were added.
    pub fn requests(&self) -> &[Asked] {
        &self.requests
    }

    /// What each of so many connections always asks: in turns, or where weights differ by them.
    pub fn by_connection(&self, connections: u32) -> Vec<(Target, Message)> {
        let one = |place: usize| {
            let asked = &self.requests[place];
            (self.servers[asked.server].clone(), asked.message.clone())
        };
        self.places(connections).into_iter().map(one).collect()
    }

    /// How many requests none of so many connections asks.
    pub fn without_connection(&self, connections: u32) -> usize {
        let places = self.places(connections).into_iter();
        let asked: HashSet<usize> = places.take(connections as usize).collect();
        self.requests.len() - asked.len()
    }

    /// Which request is each connection's; a connection behind the last begins again.
    fn places(&self, connections: u32) -> Vec<usize> {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let mean = all / self.sums.len().max(1) as f64;
        let even = (1_u32..)
            .zip(&self.sums)
            .all(|(place, sum)| *sum == mean * f64::from(place));
        if even {
            return (0..self.requests.len()).collect();
        }
        let of = |connection: u32| {
            let share = (f64::from(connection) + 0.5) / f64::from(connections) * all;
            let place = self.sums.partition_point(|sum| *sum <= share);
            place.min(self.sums.len() - 1)
        };
        (0..connections).map(of).collect()
    }

    /// Draws requests by their weights; one seed always draws the same.
    pub fn choices(&self, seed: u64) -> impl Iterator<Item = u32> + use<> {
        let sums = self.sums.clone();
        let all = sums.last().copied().unwrap_or(0.0);
        let mut rng = Rng::new(seed, PURPOSE);
        std::iter::repeat_with(move || {
            if sums.len() < 2 {
                return 0;
            }
            let drawn = rng.uniform() * all;
            let place = sums.partition_point(|sum| *sum <= drawn);
            place.min(sums.len() - 1) as u32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_encoded_as_browsers_do() {
        for http2 in [false, true] {
            let tls = TlsOptions {
                http2,
                ..TlsOptions::default()
            };
            let mut all = Questions::new(tls, NonZeroU32::MAX);
            let url = "http://127.0.0.1:9/a b/%20?q=ü&r=\"x y\"#ü";
            all.add(url, &Question::get("/"), 1.0).expect(url);
            let target = "/a%20b/%20?q=%C3%BC&r=%22x%20y%22";
            match &all.requests()[0].message {
                Message::Http1 { begin, .. } => {
                    let head = String::from_utf8_lossy(begin);
                    assert!(
                        head.starts_with(&format!("GET {target} HTTP/1.1\r\n")),
                        "{head}"
                    );
                }
                Message::Http2 { head, .. } => {
                    let uri = head.uri().path_and_query().expect("a path");
                    assert_eq!(uri.as_str(), target);
                }
            }
            for url in ["http://127.0.0.1:9/\r\nx: y", "http://127.0.0.1:9/\t"] {
                assert!(all.add(url, &Question::get("/"), 1.0).is_err(), "{url}");
            }
        }
    }

    #[test]
    fn a_list_has_weights_methods_and_bodies() {
        let text = "# a comment\n\nhttp://h/\n 3 http://h/a\nPOST http://h/b @body.json\n0.5 PUT http://h/c\n";
        let lines = list(text).expect("right");
        assert_eq!(list(&format!("\u{feff}{text}")).as_ref(), Ok(&lines));
        let numbers: Vec<usize> = lines.iter().map(|line| line.line).collect();
        assert_eq!(numbers, [3, 4, 5, 6]);
        let (_, said) = list("http://user:geheim@h/ body").expect_err("no @");
        assert!(!said.contains("geheim"), "{said}");
        let weights: Vec<f64> = lines.iter().map(|line| line.weight).collect();
        assert_eq!(weights, [1.0, 3.0, 1.0, 0.5]);
        assert_eq!(lines[2].method, Some(Method::POST));
        assert_eq!(lines[2].body.as_deref(), Some("body.json"));
        assert_eq!(
            (lines[3].method.as_ref(), lines[3].url.as_str()),
            (Some(&Method::PUT), "http://h/c")
        );
        let commented = list("2 M-SEARCH http://h/a#b @body # home page\nget http://h/ #\n");
        let commented = commented.expect("right");
        assert_eq!(commented[0].url, "http://h/a#b");
        assert_eq!(commented[0].body.as_deref(), Some("body"));
        let methods: Vec<_> = commented.into_iter().map(|line| line.method).collect();
        assert_eq!(
            methods,
            [Some("M-SEARCH".parse().unwrap()), Some(Method::GET)]
        );
        for connect in ["CONNECT http://h/", "connect http://h/"] {
            let (_, said) = list(connect).expect_err("asks for nothing");
            assert!(
                said.contains("is not a method; write for example GET"),
                "{said}"
            );
        }
        for wrong in [
            "GET # http://h/",
            "example.org",
            "0 http://h/",
            "-1 http://h/",
            "GET",
            "h/a",
            "http://h/ body",
            "http://h/ @a b",
        ] {
            let (line, problem) = list(&format!("http://h/\n{wrong}\n")).expect_err(wrong);
            assert_eq!(line, 2);
            assert!(
                problem.contains("URL") || problem.contains("above 0"),
                "{problem}"
            );
        }
    }

    fn questions(urls: &[(&str, f64)]) -> Questions {
        let mut questions = Questions::new(TlsOptions::default(), NonZeroU32::MAX);
        for (url, weight) in urls {
            questions.add(url, &Question::get("/"), *weight).expect(url);
        }
        questions
    }

    #[test]
    fn urls_of_one_server_share_it() {
        let same = "http://127.0.0.1:8080";
        let urls = [
            same,
            "http://127.0.0.1:8080/a?b#c",
            "http://127.0.0.1:8081/",
        ];
        let questions = questions(&urls.map(|url| (url, 1.0)));
        assert_eq!(questions.servers().len(), 2);
        let servers: Vec<usize> = questions
            .requests()
            .iter()
            .map(|asked| asked.server)
            .collect();
        assert_eq!(servers, [0, 0, 1]);
        match &questions.requests()[1].message {
            Message::Http1 { begin, .. } => assert!(begin.starts_with(b"GET /a?b HTTP/1.1\r\n")),
            other @ Message::Http2 { .. } => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_query_needs_no_path_and_a_scheme_may_be_written_large() {
        let urls = [
            "http://127.0.0.1:9?x=1/2",
            "HTTP://127.0.0.1:9/",
            "Http://127.0.0.1:9",
        ];
        let questions = questions(&urls.map(|url| (url, 1.0)));
        assert_eq!(questions.servers().len(), 1);
        let heads = questions
            .requests()
            .iter()
            .map(|asked| match &asked.message {
                Message::Http1 { begin, .. } => String::from_utf8_lossy(begin).into_owned(),
                other @ Message::Http2 { .. } => panic!("{other:?}"),
            });
        let heads: Vec<String> = heads.collect();
        assert!(heads[0].starts_with("GET /?x=1/2 HTTP/1.1\r\nhost: 127.0.0.1:9\r\n"));
        assert!(heads[1].starts_with("GET / HTTP/1.1\r\n") && heads[1] == heads[2]);
    }

    #[test]
    fn connections_are_divided_by_weight() {
        let paths = |urls: &[(&str, f64)], connections| {
            let asked = questions(urls).by_connection(connections);
            let path = |(_, message): (Target, Message)| match message {
                Message::Http1 { begin, .. } => char::from(begin[5]),
                Message::Http2 { .. } => '2',
            };
            asked.into_iter().map(path).collect::<String>()
        };
        let (a, b) = ("http://127.0.0.1/a", "http://127.0.0.1/b");
        assert_eq!(paths(&[(a, 1.0), (b, 1.0)], 4), "ab");
        assert_eq!(paths(&[(a, 3.0), (b, 1.0)], 4), "aaab");
        assert_eq!(paths(&[(a, 1.0), (b, 9.0)], 4), "bbbb");
    }

    #[test]
    fn urls_that_no_connection_requests_are_counted() {
        let (a, b, c) = (
            "http://127.0.0.1/a",
            "http://127.0.0.1/b",
            "http://127.0.0.1/c",
        );
        let even = questions(&[(a, 1.0), (b, 1.0), (c, 1.0)]);
        let light = questions(&[(a, 1.0), (b, 98.0), (c, 1.0)]);
        for (all, connections, left) in [
            (&even, 2, 1),
            (&even, 3, 0),
            (&even, 7, 0),
            (&light, 4, 2),
            (&light, 100, 0),
        ] {
            assert_eq!(all.without_connection(connections), left, "{connections}");
        }
    }

    #[test]
    fn the_last_request_of_a_connection_is_another_where_there_are_some_before() {
        let closes = |http2, most| {
            let tls = TlsOptions {
                http2,
                ..TlsOptions::default()
            };
            let mut all = Questions::new(tls, NonZeroU32::new(most).expect("above 0"));
            let url = "http://127.0.0.1/a";
            all.add(url, &Question::get("/"), 1.0).expect(url);
            let asked = &all.requests()[0];
            let closes = |message: &Message| match message {
                Message::Http1 { begin, .. } => begin.ends_with(b"connection: close\r\n\r\n"),
                Message::Http2 { .. } => false,
            };
            (closes(&asked.message), asked.closing.as_ref().map(closes))
        };
        assert_eq!(closes(false, 1), (true, None));
        assert_eq!(closes(false, 3), (false, Some(true)));
        assert_eq!(closes(false, u32::MAX), (false, None));
        assert_eq!(closes(true, 3), (false, None));
    }

    #[test]
    fn what_weighs_more_is_asked_for_more_often() {
        let questions = questions(&[("http://127.0.0.1/a", 3.0), ("http://127.0.0.1/b", 1.0)]);
        let chosen: Vec<u32> = questions.choices(1).take(4000).collect();
        let first = chosen.iter().filter(|place| **place == 0).count();
        assert!((2900..3100).contains(&first), "{first}");
        assert_eq!(chosen, questions.choices(1).take(4000).collect::<Vec<_>>());
    }
}
