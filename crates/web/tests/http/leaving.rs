//! Clients that leave while they wait for a backend: what they held is free again.

use super::support::{Client, Site};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::site::PATIENCE;

/// Long enough for a refusal to come.
const REFUSAL_WAIT: Duration = Duration::from_millis(300);

/// A backend that answers `/held` when it is let go, `/left` never, and anything else at once.
#[derive(Clone, Default)]
struct Backend {
    lines: Arc<Mutex<Vec<String>>>,
    is_let_go: Arc<AtomicBool>,
}

impl Backend {
    fn start() -> (Self, TcpListener) {
        let backend = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (accepting, answering) = (listener.try_clone().unwrap(), backend.clone());
        spawn(move || {
            for stream in accepting.incoming() {
                let backend = answering.clone();
                spawn(move || backend.answer(stream.unwrap()));
            }
        });
        (backend, listener)
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut said = BufReader::new(stream.try_clone()?);
        loop {
            let mut line = String::new();
            if said.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let mut field = String::new();
            while field != "\r\n" {
                field.clear();
                said.read_line(&mut field)?;
            }
            self.lines.lock().unwrap().push(line.trim_end().to_owned());
            if line.contains("/left") {
                said.read_to_end(&mut Vec::new())?;
                return Ok(());
            }
            while line.contains("/held") && !self.is_let_go.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(1));
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
        }
    }

    fn saw(&self, path: &str) -> bool {
        let lines = self.lines.lock().unwrap();
        lines.iter().any(|line| line.contains(path))
    }
}

fn until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "it does not come");
        sleep(Duration::from_millis(1));
    }
}

/// A site with one place before the backend, and room for one that waits.
fn narrow(listener: &TcpListener) -> Site {
    let address = listener.local_addr().unwrap();
    Site::start_with(&format!(
        "[[upstream]]\nname = 'app'\nservers = ['http://{address}']\nlimit = 1\nwaiting_max = 1\n\
         [[route]]\npath = '/'\nupstream = 'app'\n"
    ))
}

/// A client that waits: the queue has room again.
fn wait_in_the_queue(site: &Site) -> Client {
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < PATIENCE, "who has left still waits");
        let mut client = site.connect();
        client.send_get("/next");
        client
            .stream()
            .set_read_timeout(Some(REFUSAL_WAIT))
            .unwrap();
        if client.stream().peek(&mut [0]).is_err() {
            client.stream().set_read_timeout(Some(PATIENCE)).unwrap();
            return client;
        }
    }
}

fn requests_that_leave() -> [String; 5] {
    let whole = "x".repeat(100_000);
    [
        format!("POST /left HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{whole}"),
        "POST /left HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nbeginning".into(),
        "POST /left HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n".into(),
        "GET /left HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2),
        "GET /left HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n".into(),
    ]
}

#[test]
fn who_leaves_the_queue_is_not_sent_on() {
    for request in requests_that_leave() {
        let (backend, listener) = Backend::start();
        let site = narrow(&listener);
        let mut held = site.connect();
        held.send_get("/held");
        until(|| backend.saw("/held"));
        let mut leaving = site.connect();
        leaving.send(&request);
        // Whether it waits or has not come yet: it leaves.
        leaving.stream().shutdown(Shutdown::Write).unwrap();
        let mut next = wait_in_the_queue(&site);
        backend.is_let_go.store(true, Ordering::Relaxed);
        assert_eq!(held.head().status, 200);
        assert_eq!(next.head().status, 200);
        assert!(!backend.saw("/left"), "{}", &request[..60]);
    }
}

#[test]
fn who_leaves_a_backend_gives_its_place_back() {
    for request in requests_that_leave() {
        let (backend, listener) = Backend::start();
        let site = narrow(&listener);
        let mut leaving = site.connect();
        leaving.send(&request);
        until(|| backend.saw("/left"));
        drop(leaving);
        let mut next = site.connect();
        next.send_get("/next");
        assert_eq!(next.head().status, 200, "{}", &request[..60]);
    }
}

/// A file that is larger than what sockets hold, beside a route for other hosts.
#[test]
fn a_client_that_shuts_its_sending_side_gets_files_whole() {
    const BYTES: usize = 20_000_000;
    let site = Site::start_with(
        "[[upstream]]\nname = 'app'\nservers = ['http://127.0.0.1:9']\n\
         [[route]]\nhosts = ['api.example.org']\npath = '/'\nupstream = 'app'\n",
    );
    site.write("large", vec![b'x'; BYTES]);
    for _ in 0..3 {
        let mut client = site.connect();
        client.send("GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        client.stream().shutdown(Shutdown::Write).unwrap();
        let whole = client.rest().unwrap();
        assert!(whole.len() > BYTES, "{}", whole.len());
    }
}
