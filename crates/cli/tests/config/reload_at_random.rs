//! Random configurations reloaded over each other while requests, a download, a proxied response
//! and a tunnel are under way.

use super::place::{ConfigFolder, Server, certify};
use super::random_config::{Expected, Maker};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

const RELOADS: usize = 24;
/// Bytes of a download that socket buffers cannot hold.
const DOWNLOAD_BYTES: usize = 24 << 20;

/// A backend that answers with its number and the path; `/app/long` and the tunnel go on as its
/// client asks.
fn backend(number: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || converse(stream, number));
        }
    });
    address
}

fn converse(stream: TcpStream, number: usize) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let path = head.split(' ').nth(1)?.to_owned();
        if path.ends_with("/tunnel") {
            let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
            reader.get_mut().write_all(answer.as_bytes()).ok()?;
            let mut byte = [0];
            while reader.read(&mut byte).ok()? == 1 {
                reader.get_mut().write_all(&byte).ok()?;
            }
            return None;
        }
        if path.ends_with("/long") {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {DOWNLOAD_BYTES}\r\n\r\n");
            reader.get_mut().write_all(head.as_bytes()).ok()?;
            for _ in 0..DOWNLOAD_BYTES >> 16 {
                reader.get_mut().write_all(&[b'x'; 1 << 16]).ok()?;
            }
            continue;
        }
        let body = format!("{number} {path}");
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        reader.get_mut().write_all(answer.as_bytes()).ok()?;
    }
}

/// The body of `path`, over a connection of its own.
fn ask(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nhost: a\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200"), "{path}: {answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A response that is read a piece at a time.
struct Slow(BufReader<TcpStream>);

impl Slow {
    fn begin(address: &str, path: &str, headers: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        let mut reader = BufReader::new(stream);
        write!(
            reader.get_mut(),
            "GET {path} HTTP/1.1\r\nhost: a\r\n{headers}\r\n"
        )
        .unwrap();
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 ") || line.contains(" 101 "), "{line}");
        while line != "\r\n" {
            line.clear();
            assert_ne!(reader.read_line(&mut line).unwrap(), 0, "cut in the head");
        }
        Self(reader)
    }

    fn take(&mut self, bytes: usize) {
        let mut piece = vec![0; bytes];
        self.0.read_exact(&mut piece).expect("it was cut");
        assert!(piece.iter().all(|byte| *byte == b'x'));
    }

    fn echo(&mut self) {
        self.0.get_mut().write_all(b"x").unwrap();
        self.take(1);
    }
}

#[test]
fn random_configurations_cover_every_key() {
    let place = ConfigFolder::new("");
    let mut maker = Maker::new(7, &place, ["a:1".into(), "b:2".into()]);
    for number in 0..40 {
        maker.make(number, number == 0);
    }
    let keys: BTreeSet<String> = sooner_web::config::keys().into_iter().collect();
    assert_eq!(maker.keys, keys);
}

fn is_in_force(server: &Server, lines: &Receiver<String>, expected: &Expected) {
    while ask(&server.address, "/number.txt") != expected.number {
        for line in lines.try_iter() {
            assert!(
                !line.contains("stays") && !line.contains("panicked"),
                "{line}"
            );
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..2 {
        let answer = ask(&server.address, "/app/x");
        let (number, path) = answer.split_once(' ').unwrap();
        assert_eq!(path, expected.path);
        assert!(
            expected.servers.contains(&number.parse().unwrap()),
            "{answer}"
        );
    }
}

#[test]
fn random_reloads_cut_nothing_and_the_last_one_answers() {
    let place = ConfigFolder::new("");
    for name in ["red", "blue"] {
        certify(&place, name, 2100);
    }
    // What a failure has named can be tried again.
    let given = std::env::var("SOONER_SEED").ok();
    let seed = given.and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let mut maker = Maker::new(seed, &place, [backend(0), backend(1)]);
    let (text, expected) = maker.make(0, true);
    let large = fs::File::create(place.path("root-0/large")).unwrap();
    (&large).write_all(&vec![b'x'; DOWNLOAD_BYTES]).unwrap();
    place.write(&text);
    let mut server = place.start(&[]);
    let lines = server.lines();
    is_in_force(&server, &lines, &expected);
    let mut download = Slow::begin(&server.address, "/large", "");
    let mut proxied = Slow::begin(&server.address, "/app/long", "");
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\n";
    let mut tunnel = Slow::begin(&server.address, "/app/tunnel", upgrade);
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for path in ["/a.txt", "/app/x"] {
            let (done, answered, address) = (&done, &answered, &server.address);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    ask(address, path);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let reload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for number in 1..=RELOADS {
                let (text, expected) = maker.make(number, false);
                place.write(&text);
                server.send(Signal::HUP);
                is_in_force(&server, &lines, &expected);
                download.take(DOWNLOAD_BYTES / RELOADS / 2);
                proxied.take(DOWNLOAD_BYTES / RELOADS / 2);
                tunnel.echo();
            }
        }));
        done.store(true, Ordering::Relaxed);
        assert!(
            reload.is_ok(),
            "seed {seed}, {}",
            fs::read_to_string(place.file()).unwrap()
        );
    });
    let rest = DOWNLOAD_BYTES - DOWNLOAD_BYTES / RELOADS / 2 * RELOADS;
    download.take(rest);
    proxied.take(rest);
    tunnel.echo();
    drop((download, proxied, tunnel));
    assert!(answered.load(Ordering::Relaxed) > 0);
    assert_eq!(server.stop(), Some(0));
}
