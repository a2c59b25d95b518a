//! Which requests the programs on the scheduler's tracepoints take for alike, by what a thread of
//! this process reads. Needs CAP_BPF and CAP_PERFMON.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::gettid;
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::workers::{WorkerDoing, WorkerEnded, Workers};

use crate::workers::workers;

const PATIENCE: Duration = Duration::from_secs(10);

/// A server of one thread that is watched: it reads what comes in pieces of these lengths, the last
/// one again and again, and answers after each line of a request that is whole, or each end of
/// parameters.
struct Server {
    workers: Workers,
    place: u32,
    address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    /// None, after saying why, where it cannot be done here.
    fn start(test: &str, pieces: &'static [usize]) -> Option<Server> {
        let (runtime, mut workers) = workers(test)?;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            tell.send(gettid().as_raw_nonzero().get().cast_unsigned())
                .unwrap();
            while let Ok((mut stream, _)) = listener.accept() {
                answer(&mut stream, pieces);
            }
        });
        let place = workers.add(told.recv().unwrap()).unwrap().unwrap();
        Some(Server {
            workers,
            place,
            address,
            _runtime: runtime,
        })
    }

    /// The requests of one connection that are over.
    fn ended(&mut self, requests: &[&[u8]]) -> Vec<WorkerEnded> {
        let before = self.workers.see(self.place, monotonic_ns()).requests;
        let mut stream = TcpStream::connect(self.address).unwrap();
        for request in requests {
            stream.write_all(request).unwrap();
            let mut answer = [0; 2];
            stream.read_exact(&mut answer).unwrap();
        }
        drop(stream);
        let begin = Instant::now();
        let mut ended = Vec::new();
        while ended.len() < requests.len() {
            assert!(begin.elapsed() < PATIENCE, "{ended:?}");
            ended.extend(std::iter::from_fn(|| self.workers.next_ended()));
            thread::sleep(Duration::from_millis(1));
        }
        let seen = self.workers.see(self.place, monotonic_ns());
        assert_eq!(seen.doing, WorkerDoing::Idle);
        assert_eq!(seen.requests - before, requests.len() as u64);
        ended
    }

    /// What each of these, alone on its connection, has in common with others.
    fn kinds(&mut self, requests: &[&[u8]]) -> Vec<Option<NonZeroU64>> {
        requests
            .iter()
            .map(|request| self.ended(&[request])[0].kind)
            .collect()
    }
}

fn answer(stream: &mut TcpStream, pieces: &[usize]) {
    let mut had = Vec::new();
    let mut buffer = vec![0; 65_536];
    let mut at = 0;
    loop {
        let piece = pieces[at.min(pieces.len() - 1)];
        at += 1;
        match stream.read(&mut buffer[..piece]) {
            Ok(bytes @ 1..) => had.extend(&buffer[..bytes]),
            _ => return,
        }
        let ends_parameters = [1, 4, 0, 1, 0, 0, 0, 0];
        if had.ends_with(b"\r\n\r\n") || had.ends_with(&ends_parameters) {
            // What it uses is seen by the clock of the processor.
            let until = Instant::now() + Duration::from_millis(2);
            while Instant::now() < until {}
            stream.write_all(b"ok").unwrap();
            had.clear();
            at = 0;
        }
    }
}

fn line(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: here\r\n\r\n").into_bytes()
}

fn kinds_of(server: &mut Server, targets: &[&str]) -> Vec<Option<NonZeroU64>> {
    let lines: Vec<Vec<u8>> = targets.iter().map(|target| line(target)).collect();
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    server.kinds(&lines)
}

/// Those that are alike have the same letter, in the order in which they come; `-` has none.
fn letters(kinds: &[Option<NonZeroU64>]) -> String {
    let mut known = Vec::new();
    let letter = |kind: &Option<NonZeroU64>| match kind {
        None => '-',
        Some(kind) => {
            let at = known.iter().position(|one| one == kind);
            let at = at.unwrap_or_else(|| {
                known.push(*kind);
                known.len() - 1
            });
            char::from(b'a' + at as u8)
        }
    };
    kinds.iter().map(letter).collect()
}

#[test]
fn numbers_identifiers_and_values_make_no_difference() {
    let test = "numbers_identifiers_and_values_make_no_difference";
    let Some(mut server) = Server::start(test, &[8000]) else {
        return;
    };
    let long = format!("/{}", "x".repeat(400));
    let longer = format!("{long}/and/more");
    let kinds = kinds_of(
        &mut server,
        &[
            "/users/17",
            "/users/4711",
            "/users/me",
            "/users/17/",
            "/o/3f2504e0-4f89-11d3-9a0c-0305e82c3301/v2",
            "/o/d41d8cd98f00b204e9800998ecf8427e/v31",
            "/o/deadbeef/v2",
            "/search?q=ada&page=7",
            "/search?q=byron&page=8",
            "/search?q=ada",
            "/search",
            "http://here/users/17",
            &long,
            &longer,
            "/users/18?",
            "/3f2504e04f8911d39a0c0305e82c3301",
            "/d41d8cd98f00b204e9800998ecf8427e?",
            "/d41d8cd98f00b204e9800998ecf8427e",
        ],
    );
    assert_eq!(letters(&kinds), "aabcddeffghijjklml");
    let others: [&[u8]; 4] = [
        b"POST /users/17 HTTP/1.1\r\n\r\n",
        b"GET /users/17\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01 /users/17 \r\n\r\n",
        b"get /users/17 HTTP/1.1\r\n\r\n",
    ];
    let others = server.kinds(&others);
    assert_eq!(letters(&others), "ab--");
    assert_eq!((others[1], others[0] == kinds[0]), (kinds[0], false));
}

#[test]
fn each_request_of_a_connection_is_read() {
    let Some(mut server) = Server::start("each_request_of_a_connection_is_read", &[8000]) else {
        return;
    };
    let (one, other) = (line("/one"), line("/other"));
    let ended = server.ended(&[&one, &other, &one]);
    let kinds: Vec<_> = ended.iter().map(|one| one.kind).collect();
    assert_eq!(letters(&kinds), "aba");
    assert!(ended.iter().all(|one| one.used_ns > 0), "{ended:?}");
    assert!(ended.is_sorted_by_key(|one| one.began_at_ns));
    // A path in two pieces is not read.
    let Some(mut server) = Server::start("each_request_of_a_connection_is_read", &[12, 8000])
    else {
        return;
    };
    assert_eq!(
        letters(&kinds_of(&mut server, &["/one/two/three", "/"])),
        "-a"
    );
}

fn parameter(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![name.len() as u8];
    match u8::try_from(value.len()) {
        Ok(length @ ..0x80) => bytes.push(length),
        _ => bytes.extend((value.len() as u32 | 1 << 31).to_be_bytes()),
    }
    bytes.extend(name.as_bytes());
    bytes.extend(value.as_bytes());
    bytes
}

/// A request of FastCGI with these parameters.
fn fastcgi(parameters: &[(&str, &str)]) -> Vec<u8> {
    let content: Vec<u8> = parameters
        .iter()
        .flat_map(|(name, value)| parameter(name, value))
        .collect();
    let [high, low] = (content.len() as u16).to_be_bytes();
    let mut bytes = vec![1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0];
    bytes.extend([1, 4, 0, 1, high, low, 0, 0]);
    bytes.extend(content);
    bytes.extend([1, 4, 0, 1, 0, 0, 0, 0]);
    bytes
}

#[test]
fn fastcgi_is_read_in_the_order_of_either_server_in_front() {
    let test = "fastcgi_is_read_in_the_order_of_either_server_in_front";
    let cookie = "c".repeat(3000);
    let nginx = |uri: &'static str| {
        let script = ("SCRIPT_NAME", "/index.php");
        [
            ("QUERY_STRING", ""),
            ("REQUEST_METHOD", "GET"),
            script,
            ("REQUEST_URI", uri),
        ]
    };
    let apache = |uri: &'static str| {
        [
            ("HTTP_COOKIE", cookie.as_str()),
            ("SCRIPT_FILENAME", "/srv/index.php"),
            ("REQUEST_METHOD", "GET"),
            ("QUERY_STRING", ""),
            ("REQUEST_URI", uri),
            ("SCRIPT_NAME", "/index.php"),
        ]
    };
    let only = |name: &'static str| [("REQUEST_METHOD", "GET"), (name, "/users/17")];
    let requests = [
        fastcgi(&nginx("/users/17")),
        fastcgi(&apache("/users/18")),
        fastcgi(&nginx("/other")),
        fastcgi(&only("SCRIPT_NAME")),
        fastcgi(&only("SCRIPT_FILENAME")),
        fastcgi(&only("HTTP_SOMETHING")),
        fastcgi(&[("REQUEST_URI", "/users/17")]),
        // Lengths that lie.
        fastcgi(&[("REQUEST_METHOD", "GET")])
            .iter()
            .map(|byte| if *byte == 14 { 200 } else { *byte })
            .collect(),
    ];
    let requests: Vec<&[u8]> = requests.iter().map(Vec::as_slice).collect();
    // Record by record as PHP reads them, and all at once.
    let by_record: &[usize] = &[8, 8, 8, 60_000];
    for pieces in [by_record, &[60_000]] {
        let Some(mut server) = Server::start(test, pieces) else {
            return;
        };
        assert_eq!(letters(&server.kinds(&requests)), "aabaa---", "{pieces:?}");
        let kept = server.ended(&[requests[2], requests[0]]);
        assert_ne!(kept[0].kind, kept[1].kind);
        // The same as HTTP's.
        let http = kinds_of(&mut server, &["/users/17"])[0];
        assert_eq!(
            Some(http),
            (pieces.len() == 1).then_some(kept[1].kind).or(Some(None))
        );
    }
}

#[test]
fn a_thread_that_reads_what_another_one_accepted_works_on_it() {
    let test = "a_thread_that_reads_what_another_one_accepted_works_on_it";
    let Some((_runtime, mut workers)) = workers(test) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    let (hand, handed) = mpsc::channel::<TcpStream>();
    let number = || gettid().as_raw_nonzero().get().cast_unsigned();
    let tell_too = tell.clone();
    thread::spawn(move || {
        tell.send(number()).unwrap();
        listener
            .incoming()
            .for_each(|stream| hand.send(stream.unwrap()).unwrap());
    });
    let acceptor = workers.add(told.recv().unwrap()).unwrap().unwrap();
    thread::spawn(move || {
        tell_too.send(number()).unwrap();
        handed
            .iter()
            .for_each(|mut stream| answer(&mut stream, &[8000]));
    });
    let reader = workers.add(told.recv().unwrap()).unwrap().unwrap();
    let ask = |requests: &[&str]| {
        let mut stream = TcpStream::connect(address).unwrap();
        for target in requests {
            stream.write_all(&line(target)).unwrap();
            stream.read_exact(&mut [0; 2]).unwrap();
        }
    };
    ask(&["/one", "/two"]);
    ask(&["/one"]);
    let seen = |place: u32| workers.see(place, monotonic_ns());
    assert_eq!((seen(reader).requests, seen(reader).hands_on), (3, false));
    assert!(seen(acceptor).hands_on && seen(acceptor).kind.is_none());
    // The last one is over when another begins. Before the first was handed on, nothing was known of
    // that.
    let ended: Vec<_> = std::iter::from_fn(|| workers.next_ended())
        .filter(|one| one.kind.is_some())
        .collect();
    let kinds: Vec<_> = ended.iter().map(|one| one.kind).collect();
    assert_eq!(letters(&kinds), "ab");
    assert!(ended.iter().all(|one| one.used_ns > 1_000_000), "{ended:?}");
}
