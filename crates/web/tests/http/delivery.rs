//! Bodies on their way: large, interrupted, changed meanwhile; many connections; the stop; the log.

use super::support::{Client, Response, Site};
use std::net::Shutdown;
use std::time::Duration;

/// Larger than all socket buffers of a connection together.
const LARGE_BYTES: usize = 64 << 20;

/// Bytes that tell where in the file they belong.
fn pattern(offset: usize, len: usize) -> impl Iterator<Item = u8> {
    (offset..offset + len).map(|position| (position ^ (position >> 8) ^ (position >> 16)) as u8)
}

fn write_pattern(site: &Site, name: &str, bytes: usize) {
    let content: Vec<u8> = pattern(0, bytes).collect();
    site.write(name, content);
}

/// A file of zeros that takes no room on the disk.
fn write_large(site: &Site, name: &str, bytes: usize) {
    std::fs::File::create(site.path(name))
        .unwrap()
        .set_len(bytes as u64)
        .unwrap();
}

#[test]
fn a_hundred_megabytes_arrive_as_they_are() {
    const BYTES: usize = 100 << 20;
    let site = Site::start();
    write_pattern(&site, "large", BYTES);
    let mut client = site.connect();
    client.send_get("/large");
    assert_eq!(
        client.head().header("content-length"),
        Some(BYTES.to_string().as_str())
    );
    let (mut received, mut buffer) = (0, vec![0; 1 << 20]);
    while received < BYTES {
        let count = client.read(&mut buffer).unwrap();
        assert!(count > 0, "the connection ended after {received} bytes");
        assert!(pattern(received, count).eq(buffer[..count].iter().copied()));
        received += count;
    }
    client.send_get("/missing");
    assert_eq!(client.response("GET").status, 404);
}

#[test]
fn a_file_that_is_kept_in_memory_arrives_as_it_is_whole_and_in_part() {
    const BYTES: usize = 100_000;
    let site = Site::start();
    write_pattern(&site, "page", BYTES);
    let mut client = site.connect();
    let mut ask = |method, range: &str| {
        client.send(&format!(
            "{method} /page HTTP/1.1\r\nhost: x\r\n{range}\r\n"
        ));
        client.response(method)
    };
    for _ in 0..3 {
        assert!(pattern(0, BYTES).eq(ask("GET", "").body));
        let head = ask("HEAD", "");
        assert_eq!(head.header("content-length"), Some("100000"));
        for (start, len) in [(20_001, 70_000), (83_616, 16_384), (99_990, 10)] {
            let range = format!("range: bytes={start}-{}\r\n", start + len - 1);
            let part = ask("GET", &range);
            assert_eq!(part.status, 206);
            assert!(pattern(start, len).eq(part.body));
        }
        let parts = ask("GET", "range: bytes=0-39999,50001-90000\r\n").body;
        for (start, len) in [(0, 40_000), (50_001, 40_000)] {
            let part: Vec<u8> = pattern(start, len).collect();
            assert!(parts.windows(len).any(|window| window == part));
        }
    }
}

#[test]
fn a_version_kept_in_memory_is_sent_to_its_end_when_it_is_replaced() {
    let site = Site::start();
    write_pattern(&site, "page", 250_000);
    // Many times what sockets hold, all of the first version.
    let mut client = site.connect();
    for _ in 0..100 {
        client.send_get("/page");
    }
    let mut responses = vec![client.response("GET")];
    site.write("page", "new");
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(site.get("/page", "").text(), "new");
    responses.extend((1..100).map(|_| client.response("GET")));
    let (old, new): (Vec<_>, Vec<_>) = responses.iter().partition(|one| one.body.len() > 3);
    assert!(
        old.iter()
            .all(|one| pattern(0, 250_000).eq(one.body.iter().copied()))
    );
    assert!(new.iter().all(|one| one.text() == "new"));
}

#[test]
fn a_file_that_is_not_in_the_page_cache_arrives_as_it_is() {
    const BYTES: usize = 8 << 20;
    let site = Site::start();
    write_pattern(&site, "cold", BYTES);
    let file = std::fs::File::open(site.path("cold")).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    assert!(pattern(0, BYTES).eq(site.get("/cold", "").body));
}

#[test]
fn a_client_that_has_shut_its_sending_side_gets_everything() {
    let site = Site::start();
    write_pattern(&site, "large", 4 << 20);
    let mut client = site.connect();
    client.send_get("/large");
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert!(pattern(0, 4 << 20).eq(client.response("GET").body));
    assert!(client.is_closed());
}

#[test]
fn a_reset_in_the_middle_hurts_nobody_else() {
    let site = Site::start();
    write_large(&site, "large", LARGE_BYTES);
    for _ in 0..50 {
        let mut client = site.connect();
        client.send_get("/large");
        client.head();
        // Closing with unread bytes in the buffer sends a reset.
    }
    assert_eq!(site.get("/missing", "").status, 404);
}

#[test]
fn a_client_that_takes_nothing_is_given_up() {
    let mut site = Site::start_with(
        "[log]\naccess = 'FOLDER/log'\n[limits]\nstall_seconds = 1\ngrace_seconds = 1000",
    );
    write_large(&site, "large", LARGE_BYTES);
    let mut client = site.connect();
    client.send_get("/large");
    client.head();
    let lines = site.log_lines();
    assert_eq!(lines[0]["completed"], false);
}

#[test]
fn a_file_that_shrinks_ends_the_connection() {
    let site = Site::start();
    write_large(&site, "large", LARGE_BYTES);
    let mut client = site.connect();
    client.send_get("/large");
    assert_eq!(client.head().status, 200);
    std::fs::File::options()
        .write(true)
        .open(site.path("large"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    // Cut off, by an end or by a reset, but never filled up.
    assert!(client.rest().map_or(0, |rest| rest.len()) < LARGE_BYTES);
}

#[test]
fn a_file_that_vanishes_is_sent_to_its_end() {
    let site = Site::start();
    write_large(&site, "large", LARGE_BYTES);
    let mut client = site.connect();
    client.send_get("/large");
    assert_eq!(client.head().status, 200);
    std::fs::remove_file(site.path("large")).unwrap();
    let mut received = 0;
    let mut buffer = vec![0; 1 << 20];
    while received < LARGE_BYTES {
        let count = client.read(&mut buffer).unwrap();
        assert!(count > 0);
        received += count;
    }
}

#[test]
fn a_changed_file_has_a_new_tag_and_a_removed_one_is_gone() {
    let site = Site::start();
    site.write("a", "old");
    let old = site.get("/a", "");
    site.write("new", "new");
    // As publishing by rename does: even with the date of the old one.
    let date = std::fs::metadata(site.path("a"))
        .unwrap()
        .modified()
        .unwrap();
    std::fs::File::options()
        .write(true)
        .open(site.path("new"))
        .unwrap()
        .set_modified(date)
        .unwrap();
    std::fs::rename(site.path("new"), site.path("a")).unwrap();
    let new = soon(&site, |response| response.text() == "new");
    assert_ne!(old.header("etag"), new.header("etag"));
    std::fs::remove_file(site.path("a")).unwrap();
    soon(&site, |response| response.status == 404);
}

/// The answer about `/a` as soon as it is one that is `expected`.
fn soon(site: &Site, expected: impl Fn(&Response) -> bool) -> Response {
    for _ in 0..400 {
        let response = site.get("/a", "");
        if expected(&response) {
            return response;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the change is never seen");
}

#[test]
fn idle_connections_cost_little_and_end_by_themselves() {
    let site = Site::start_with("[limits]\nhead_seconds = 1\nidle_seconds = 1");
    site.write("a", "a");
    let mut idle: Vec<Client> = (0..300).map(|_| site.connect()).collect();
    for client in idle.iter_mut().step_by(2) {
        client.send_get("/a");
        assert_eq!(client.response("GET").text(), "a");
    }
    assert_eq!(site.get("/a", "").text(), "a");
    // Those that never asked get nothing or a 408; all are closed.
    for client in &mut idle {
        client.rest().unwrap();
    }
}

#[test]
fn the_stop_lets_responses_finish_and_closes_the_idle() {
    let mut site = Site::start();
    write_large(&site, "large", LARGE_BYTES);
    let (mut silent, mut idle, mut busy) = (site.connect(), site.connect(), site.connect());
    idle.send_get("/missing");
    idle.response("GET");
    busy.send_get("/large");
    assert_eq!(busy.head().status, 200);
    site.ask_to_stop();
    assert!(idle.is_closed());
    silent.rest().unwrap();
    assert!(!site.has_stopped());
    assert_eq!(busy.rest().unwrap().len(), LARGE_BYTES);
    site.stop();
    assert!(std::net::TcpStream::connect(site.address).is_err());
}

#[test]
fn the_grace_is_limited() {
    let mut site = Site::start_with("[log]\naccess = 'FOLDER/log'\n[limits]\ngrace_seconds = 1");
    write_large(&site, "large", LARGE_BYTES);
    let mut busy = site.connect();
    busy.send_get("/large");
    assert_eq!(busy.head().status, 200);
    let lines = site.log_lines();
    assert_eq!(lines[0]["completed"], false);
    assert!(busy.rest().map_or(0, |rest| rest.len()) < LARGE_BYTES);
}

fn start_with_log() -> Site {
    // Several would write in no order.
    Site::start_with("workers = 1\n[log]\naccess = 'FOLDER/log'")
}

#[test]
fn the_log_has_a_line_a_response() {
    let mut site = start_with_log();
    site.write("a.txt", "0123456789");
    site.get(
        "/a.txt?%22q",
        "user-agent: \"me\" \\ \u{fc}\r\nreferer: r\r\n",
    );
    site.get("/a.txt", "range: bytes=0-3\r\n");
    site.request("HEAD", "/a.txt", "");
    site.request("POST", "/a.txt", "");
    site.get("/missing", "");
    site.get("/a.txt", "if-none-match: *\r\n");
    site.get("/a b", "");
    let lines = site.log_lines();
    let got: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["method"].as_str().unwrap_or("?"),
                line["status"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        got,
        [
            ("GET", 200),
            ("GET", 206),
            ("HEAD", 200),
            ("POST", 405),
            ("GET", 404),
            ("GET", 304),
            ("?", 400)
        ]
    );
    let sizes: Vec<_> = lines
        .iter()
        .map(|line| line["size_bytes"].as_u64().unwrap())
        .collect();
    assert_eq!((sizes[0], sizes[1], sizes[2], sizes[5]), (10, 4, 0, 0));
    assert_eq!(lines[0]["user_agent"], "\"me\" \\ \u{fc}");
    assert_eq!(lines[0]["target"], "/a.txt?%22q");
    assert!(
        lines.iter().all(|line| line["completed"] == true),
        "{lines:?}"
    );
}

#[test]
fn responses_that_end_the_connection_are_completed_too() {
    let mut site = start_with_log();
    site.write("a.txt", "0123456789");
    for request in [
        "GET /a.txt HTTP/1.0\r\n\r\n",
        "GET /a.txt HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nhost: x\r\nconnection: keep-alive\r\n\r\n",
    ] {
        let mut client = site.connect();
        client.send(request);
        assert_eq!(client.response("GET").text(), "0123456789");
    }
    for line in site.log_lines() {
        assert_eq!(
            (&line["size_bytes"], &line["completed"]),
            (&10.into(), &true.into())
        );
    }
}

#[test]
fn the_log_tells_what_was_not_completed() {
    let mut site = start_with_log();
    write_large(&site, "large", LARGE_BYTES);
    for _ in 0..2 {
        let mut client = site.connect();
        client.send_get("/large");
        client.head();
    }
    let mut shrunk = site.connect();
    shrunk.send_get("/large");
    shrunk.head();
    std::fs::File::options()
        .write(true)
        .open(site.path("large"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    let _ = shrunk.rest();
    let lines = site.log_lines();
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!(line["completed"], false);
        assert!(line["size_bytes"].as_u64().unwrap() < LARGE_BYTES as u64);
    }
}

/// nginx's `$body_bytes_sent` has the frames of a body in chunks; what arrived is without them.
#[test]
fn a_body_in_chunks_is_as_long_as_what_arrives() {
    let backend = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", backend.local_addr().unwrap());
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let answer = format!("{head}{}0\r\n\r\n", chunk.repeat(50));
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = backend.accept().unwrap();
        let _ = std::io::Read::read(&mut stream, &mut [0; 4096]).unwrap();
        std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
    });
    let mut site = Site::start_with(&format!(
        "[log]\naccess = 'FOLDER/log'\n[[upstream]]\nname = 'app'\nservers = ['{url}']\n\
         [[route]]\npath = '/'\nupstream = 'app'\n"
    ));
    let mut client = site.connect();
    client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    while !text.ends_with(b"\r\n0\r\n\r\n") {
        let read = client.read(&mut piece).unwrap();
        text.extend_from_slice(&piece[..read]);
    }
    answering.join().unwrap();
    let lines = site.log_lines();
    let outcome = (&lines[0]["size_bytes"], &lines[0]["completed"]);
    assert_eq!(outcome, (&50_000.into(), &true.into()), "{lines:?}");
}
