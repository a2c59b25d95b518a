//! What comes out is what went in, at once where it can be, in bounded memory.

use super::compressor::Compressor;
use super::workshop::SLICE_BYTES;
use super::*;
use crate::active_config::Means;
use crate::body::Source;
use crate::files::{CacheLimits, File};
use crate::request_body::BodyError;
use crate::response::Response;
use crate::service::Reply;
use crate::static_site::{StaticConfig, StaticReply, StaticSite};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use hyper::{HeaderMap, Request, StatusCode};
use proptest::prelude::*;
use sooner_http::negotiation::Coding;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::Read;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// More than what may be held of any body: a slice and a piece before the compressor, and what the
/// largest of its blocks becomes.
const HELD_BYTES_MAX: usize = 10 * SLICE_BYTES;

#[derive(Clone, Debug)]
enum Event {
    Data(Bytes),
    Pause(u64),
    Trailers,
    Error,
}

/// A source that does what it is told.
struct Scripted {
    events: VecDeque<Event>,
    length: Option<u64>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Body for Scripted {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            return Poll::Ready(match self.events.pop_front() {
                None => None,
                Some(Event::Pause(ms)) => {
                    self.sleep = Some(Box::pin(sleep(Duration::from_millis(ms))));
                    continue;
                }
                Some(Event::Data(bytes)) => {
                    if let Some(length) = &mut self.length {
                        *length -= bytes.len() as u64;
                    }
                    Some(Ok(Frame::data(bytes)))
                }
                Some(Event::Trailers) => {
                    let trailer = ("x-sum".parse().unwrap(), "1".parse().unwrap());
                    Some(Ok(Frame::trailers(HeaderMap::from_iter([trailer]))))
                }
                Some(Event::Error) => Some(Err("broken".into())),
            });
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

fn source(events: Vec<Event>, has_length: bool) -> Source {
    let length = events.iter().map(|event| match event {
        Event::Data(bytes) => bytes.len() as u64,
        _ => 0,
    });
    Source::stream(Box::pin(Scripted {
        length: has_length.then(|| length.sum()),
        events: events.into(),
        sleep: None,
    }))
}

fn compressor_of(table: &CompressionTable) -> (Rc<Compressor>, Arc<CompressionCounts>) {
    let counts = Arc::default();
    let none = std::iter::empty();
    let compression = Compression::new(table, true, none, Means::of_test(), &counts).unwrap();
    (compression.of(0, None).unwrap(), counts)
}

fn compressor() -> Rc<Compressor> {
    compressor_of(&CompressionTable::default()).0
}

fn request(accept: &str) -> Request<()> {
    let request = Request::builder().header(ACCEPT_ENCODING, accept);
    request.body(()).unwrap()
}

fn html(source: Source) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, "text/html".parse().unwrap());
    if let Some(length) = source.len() {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    Response {
        status: StatusCode::OK,
        reason: None,
        headers,
        source,
    }
}

/// The response to a client that takes `coding` alone.
async fn ask(compressor: &Rc<Compressor>, coding: Coding, source: Source) -> Response {
    let wanted = compressor.wanted(&request(coding.token()));
    compressor.clone().response(&wanted, html(source)).await
}

/// Everything that comes: the bytes, and how it ends.
async fn drain(source: &mut Source) -> (Vec<u8>, Result<Option<HeaderMap>, String>) {
    let (mut all, mut trailers) = (Vec::new(), None);
    loop {
        match poll_fn(|cx| source.poll_frame(cx)).await {
            None => return (all, Ok(trailers)),
            Some(Err(error)) => return (all, Err(error.to_string())),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) => all.extend_from_slice(&bytes),
                Err(frame) => trailers = frame.into_trailers().ok(),
            },
        }
        if let Source::Compressed(body) = source {
            assert!(body.held_bytes() <= HELD_BYTES_MAX, "{}", body.held_bytes());
        }
    }
}

fn decoder<'a>(coding: Coding, bytes: &'a [u8]) -> Box<dyn Read + 'a> {
    match coding {
        Coding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        Coding::Br => Box::new(brotli::Decompressor::new(bytes, 4096)),
        Coding::Zstd => Box::new(zstd::stream::read::Decoder::new(bytes).unwrap()),
    }
}

fn decode(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    decoder(coding, bytes).read_to_end(&mut decoded).unwrap();
    decoded
}

/// Runs `future` with a clock that jumps over every wait.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn text(len: usize) -> Vec<u8> {
    let lines = (0..).flat_map(|line: u32| format!("<li>{} line {line}\n", line ^ 7).into_bytes());
    lines.take(len).collect()
}

fn event() -> impl Strategy<Value = Event> {
    let data = (0..SLICE_BYTES + 5000, 0..3, any::<u64>()).prop_map(|(len, kind, seed)| {
        Event::Data(match kind {
            0 => noise(len, seed).into(),
            1 => text(len).into(),
            _ => vec![seed as u8; len].into(),
        })
    });
    let little =
        proptest::collection::vec(any::<u8>(), 0..50).prop_map(|it| Event::Data(it.into()));
    prop_oneof![3 => data, 3 => little, 2 => (0..60u64).prop_map(Event::Pause)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_body_in_any_pieces_comes_out_as_it_went_in(
        events in proptest::collection::vec(event(), 0..9),
        coding in proptest::sample::select(&Coding::ALL[..]),
        has_length in any::<bool>(),
        has_trailers in any::<bool>(),
    ) {
        let body: Vec<u8> = events.iter().flat_map(|event| match event {
            Event::Data(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        }).collect();
        let mut events = events;
        if has_trailers {
            events.push(Event::Trailers);
        }
        run(async {
            let mut response = ask(&compressor(), coding, source(events, has_length)).await;
            let (bytes, end) = drain(&mut response.source).await;
            assert!(response.source.is_end());
            assert_eq!(end.unwrap().is_some(), has_trailers);
            if let Some(length) = response.headers.get(CONTENT_LENGTH) {
                assert_eq!(length, &bytes.len().to_string());
            }
            let sent = match response.headers.get(CONTENT_ENCODING) {
                Some(said) => {
                    assert_eq!(said, coding.token());
                    decode(coding, &bytes)
                }
                None => bytes,
            };
            assert!(sent == body, "{} and not {} bytes", sent.len(), body.len());
        });
    }
}

#[test]
fn a_long_body_is_never_held() {
    for coding in Coding::ALL {
        let pieces = (0..200).map(|seed| Event::Data(noise(40_000, seed + 1).into()));
        run(async {
            let mut response = ask(&compressor(), coding, source(pieces.collect(), false)).await;
            assert_eq!(response.headers[CONTENT_ENCODING], coding.token());
            assert!(!response.headers.contains_key(CONTENT_LENGTH));
            let (bytes, end) = drain(&mut response.source).await;
            assert_eq!(decode(coding, &bytes).len(), 8_000_000);
            assert_eq!(end, Ok(None));
        });
    }
}

#[test]
fn what_came_before_a_pause_can_be_read_in_it() {
    for coding in Coding::ALL {
        run(async {
            let hour = Event::Pause(3_600_000);
            let (first, second) = (text(3000), text(70_000));
            let data = |bytes: &[u8]| Event::Data(Bytes::copy_from_slice(bytes));
            let events = vec![data(&first), hour.clone(), data(&second), hour];
            let began = tokio::time::Instant::now();
            let mut response = ask(&compressor(), coding, source(events, false)).await;
            let mut received = Vec::new();
            for (expected, hours) in [(first.len(), 0), (first.len() + second.len(), 1)] {
                let mut decoded = vec![0; expected];
                while decoder(coding, &received).read_exact(&mut decoded).is_err() {
                    let frame = poll_fn(|cx| response.source.poll_frame(cx)).await;
                    received.extend(frame.unwrap().unwrap().into_data().unwrap());
                }
                let whole = [first.clone(), second.clone()].concat();
                assert!(decoded == whole[..expected]);
                let waited = began.elapsed().as_secs();
                assert!(waited / 3600 == hours, "{coding:?}: {waited} s");
            }
        });
    }
}

#[test]
fn an_event_stream_that_says_nothing_yet_begins() {
    run(async {
        let events = vec![Event::Pause(3_600_000), Event::Data("data: 1\n\n".into())];
        let began = tokio::time::Instant::now();
        let mut response = ask(&compressor(), Coding::Gzip, source(events, false)).await;
        assert!(began.elapsed() < Duration::from_secs(1));
        assert_eq!(response.headers[CONTENT_ENCODING], "gzip");
        let (bytes, _) = drain(&mut response.source).await;
        assert_eq!(decode(Coding::Gzip, &bytes), b"data: 1\n\n");
    });
}

#[test]
fn a_stream_that_never_pauses_begins_before_it_has_come_far() {
    run(async {
        let piece = [Event::Data("data: 1\n\n".into()), Event::Pause(2)];
        let events = std::iter::repeat_n(piece, 2000).flatten().collect();
        let began = tokio::time::Instant::now();
        let mut response = ask(&compressor(), Coding::Gzip, source(events, false)).await;
        assert_eq!(response.headers[CONTENT_ENCODING], "gzip");
        let first = poll_fn(|cx| response.source.poll_frame(cx)).await;
        let mut sent = first.unwrap().unwrap().into_data().unwrap().to_vec();
        // Four seconds of it are to come.
        let waited = began.elapsed();
        assert!(waited < Duration::from_millis(200), "{waited:?}");
        sent.extend(drain(&mut response.source).await.0);
        assert!(decode(Coding::Gzip, &sent) == b"data: 1\n\n".repeat(2000));
    });
}

#[test]
fn what_is_here_whole_has_its_length_and_what_gets_no_shorter_stays() {
    for coding in Coding::ALL {
        run(async {
            let (page, packed) = (text(20_000), noise(20_000, 7));
            let whole = |body: &[u8]| source(vec![Event::Data(Bytes::copy_from_slice(body))], true);
            let compressor = compressor();
            let response = ask(&compressor, coding, whole(&page)).await;
            let length = response.source.len().unwrap();
            assert!(length < 10_000, "{length}");
            assert_eq!(response.headers[CONTENT_LENGTH], length.to_string());
            assert_eq!(response.headers[VARY], "accept-encoding");
            let mut response = ask(&compressor, coding, whole(&packed)).await;
            assert!(!response.headers.contains_key(CONTENT_ENCODING));
            assert_eq!(response.headers[VARY], "accept-encoding");
            assert_eq!(response.headers[CONTENT_LENGTH], "20000");
            assert!(drain(&mut response.source).await.0 == packed);
        });
    }
}

#[test]
fn a_body_that_breaks_does_not_end_as_if_it_were_whole() {
    for (len, has_length) in [
        (100, false),
        (2000, true),
        (200_000, false),
        (200_000, true),
    ] {
        run(async {
            let events = vec![Event::Data(text(len).into()), Event::Error];
            let mut response = ask(&compressor(), Coding::Gzip, source(events, has_length)).await;
            let (_, end) = drain(&mut response.source).await;
            assert_eq!(end, Err("broken".into()), "{len}");
        });
    }
}

#[test]
fn without_memory_bodies_are_sent_as_they_are() {
    let table: CompressionTable = toml::from_str("memory_bytes = 4194304").unwrap();
    run(async {
        let (compressor, counts) = compressor_of(&table);
        let page = || source(vec![Event::Data(text(300_000).into())], false);
        let mut responses = Vec::new();
        while counts.left() == 0 {
            responses.push(ask(&compressor, Coding::Br, page()).await);
            assert!(responses.len() < 100);
        }
        let mut left = responses.pop().unwrap();
        assert!(!left.headers.contains_key(CONTENT_ENCODING));
        assert!(drain(&mut left.source).await.0 == text(300_000));
        assert!(!responses.is_empty());
        drop(responses);
        let again = ask(&compressor, Coding::Br, page()).await;
        assert_eq!(again.headers[CONTENT_ENCODING], "br", "it was given back");
    });
}

/// A body by itself, with the sum of its estimates.
async fn estimates(coding: Coding, body: Vec<u8>) -> (u64, u64, u64) {
    let pieces = body
        .chunks(16 << 10)
        .map(|piece| Event::Data(Bytes::copy_from_slice(piece)));
    let source = source(pieces.collect(), true);
    let mut response = ask(&compressor(), coding, source).await;
    let first = response.source.estimated_bytes().unwrap();
    let (mut told, mut sent) = (first, 0);
    while let Some(frame) = poll_fn(|cx| response.source.poll_frame(cx)).await {
        sent += frame.unwrap().into_data().unwrap().len() as u64;
        told += response.source.take_growth().unwrap_or(0);
        // At most what the last slices add before it is told.
        assert!(
            sent <= told + told / 8 + 4 * SLICE_BYTES as u64,
            "{sent} of {told}"
        );
    }
    (first, told, sent)
}

#[test]
fn the_link_is_told_about_how_much_will_come() {
    for coding in Coding::ALL {
        run(async {
            let (first, _, sent) = estimates(coding, text(3_000_000)).await;
            assert!(
                first > sent / 4 && first < 4 * sent,
                "{coding:?}: {first} for {sent}"
            );
            let body = [vec![0; 200_000], noise(1_000_000, 3)].concat();
            let (first, told, sent) = estimates(coding, body).await;
            assert!(
                first < 100_000 && sent > 900_000,
                "{coding:?}: {first} for {sent}"
            );
            assert!(told > sent * 4 / 5, "{coding:?}: {told} for {sent}");
        });
    }
}

#[test]
fn a_file_is_compressed_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.css"), text(100_000)).unwrap();
    let config = StaticConfig {
        root: Some(toml::Spanned::new(0..0, folder.path().into())),
        ..StaticConfig::default()
    };
    let site = StaticSite::new(&config, CacheLimits::default(), 4096).unwrap();
    let answer = |accept: &str| -> (Response, Arc<File>) {
        let mut request = request(accept);
        *request.uri_mut() = "/a.css".parse().unwrap();
        match site.respond(&request, crate::clock::Moment::now()) {
            StaticReply::File(response, file) => (response, file),
            _ => panic!("no file"),
        }
    };
    run(async {
        let (compressor, counts) = compressor_of(&CompressionTable::default());
        let wanted = compressor.wanted(&request("gzip"));
        let ask = || {
            let (response, file) = answer("gzip");
            compressor.reply(&wanted, response, Some(file))
        };
        let (Reply::Later(one), Reply::Later(other)) = (ask(), ask()) else {
            panic!("it cannot be there yet");
        };
        let (one, other) = tokio::join!(one, other);
        assert_eq!(one.headers, other.headers);
        assert_eq!(counts.read()[2].in_bytes, 100_000);
        let Reply::Now(mut again) = ask() else {
            panic!("it is there");
        };
        assert_eq!(again.headers, one.headers);
        assert!(again.headers["etag"].as_bytes().starts_with(b"W/\""));
        let length = again.source.len().unwrap();
        assert_eq!(again.headers[CONTENT_LENGTH], length.to_string());
        let (bytes, _) = drain(&mut again.source).await;
        assert!(decode(Coding::Gzip, &bytes) == text(100_000));
        assert_eq!(counts.read()[2].out_bytes, length);
    });
}
