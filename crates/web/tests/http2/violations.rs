//! Clients that break the rules, or use them against the server.

use super::frames::*;
use super::support::Site;

const OLD_PRIORITIES_OFF: (u16, u32) = (9, 1);

#[test]
fn the_first_settings_say_that_old_priorities_are_not_used() {
    let site = Site::start();
    let client = RawClient::connect(site.address, &[]);
    assert!(client.server_settings.contains(&OLD_PRIORITIES_OFF));
    assert!(client.server_settings.contains(&(3, 128)));
}

#[test]
fn priority_updates_that_are_wrong_end_the_connection() {
    let site = Site::start();
    for (stream, payload, error) in [
        (1, &b"\0\0\0\x01u=1"[..], PROTOCOL_ERROR),
        (0, b"\0\0\0", FRAME_SIZE_ERROR),
        (0, b"\0\0\0\0u=1", PROTOCOL_ERROR),
        (0, b"\0\0\0\x02u=1", PROTOCOL_ERROR),
    ] {
        let mut client = RawClient::connect(site.address, &[]);
        client.send(PRIORITY_UPDATE, 0, stream, payload);
        assert_eq!(client.read_end(), error, "{payload:?}");
    }
}

#[test]
fn priorities_of_requests_that_never_come_are_bounded() {
    let site = Site::start();
    let mut client = RawClient::connect(site.address, &[]);
    for stream in (1..2000).step_by(2) {
        let update = frame(
            PRIORITY_UPDATE,
            0,
            0,
            &[&u32::to_be_bytes(stream)[..], b"u=1"].concat(),
        );
        if !client.try_write(&update) {
            break;
        }
    }
    assert_eq!(client.read_end(), PROTOCOL_ERROR);
}

/// Heads that are malformed (RFC 9113, 8.1.1), each with its reason.
fn malformed_heads() -> Vec<Vec<u8>> {
    let pseudo = |lines: &[(&str, &str)]| block(lines);
    let mut heads = vec![
        request_block("GET", "a", &[]),
        request_block("GET", "*", &[]),
        request_block("GET", "", &[]),
        request_block("GET", "/a b", &[]),
        request_block("G T", "/a", &[]),
        request_block("", "/a", &[]),
        request_block("GET", "/a", &[("x", " a")]),
        request_block("GET", "/a", &[("x", "a\0b")]),
        request_block("GET", "/a", &[("x", "a\r\nb: c")]),
        request_block("GET", "/a", &[("x", "a\x7f")]),
        request_block("GET", "/a", &[("", "x")]),
        request_block("GET", "/a", &[("Upper", "case")]),
        request_block("GET", "/a", &[("with blank", "x")]),
        request_block("GET", "/a", &[("connection", "close")]),
        request_block("GET", "/a", &[("keep-alive", "x")]),
        request_block("GET", "/a", &[("proxy-connection", "x")]),
        request_block("GET", "/a", &[("upgrade", "x")]),
        request_block("GET", "/a", &[("transfer-encoding", "chunked")]),
        request_block("GET", "/a", &[("te", "gzip")]),
        request_block("GET", "/a", &[("content-length", "5")]),
        request_block("GET", "/a", &[("content-length", "x")]),
        request_block("GET", "/a", &[(":path", "/b")]),
        request_block("GET", "/a", &[("x", "y"), (":authority", "b")]),
        request_block("GET", "/a", &[(":unknown", "x")]),
        request_block("GET", "/a", &[(":status", "200")]),
        request_block("GET", "/a", &[(":status", "x")]),
        request_block("GET", "/a", &[(":protocol", "websocket")]),
        request_block("CONNECT", "/a", &[]),
        pseudo(&[(":method", "GET"), (":scheme", "http"), (":path", "")]),
        pseudo(&[(":method", "GET"), (":path", "/a")]),
        pseudo(&[(":method", "GET"), (":scheme", "http")]),
        pseudo(&[(":scheme", "http"), (":path", "/a")]),
        pseudo(&[("x", "y")]),
        Vec::new(),
    ];
    // Octets that are no text.
    for name in [":path", ":authority", ":scheme", ":method"] {
        for octet in [0xe9, 0x80, 0xff, 0x00, 0x0a] {
            let mut head = request_block("GET", "/a", &[]);
            let at = head
                .windows(name.len())
                .position(|it| it == name.as_bytes());
            // The first octet of the value, behind its length.
            head[at.unwrap() + name.len() + 1] = octet;
            heads.push(head);
        }
    }
    // The same, put into the table.
    let indexed = heads.clone().into_iter().filter(|head| !head.is_empty());
    heads.extend(indexed.map(|mut head| {
        head[0] = 0x40;
        head
    }));
    heads
}

#[test]
fn a_malformed_request_costs_its_stream_only() {
    let site = Site::start();
    site.write("a", "hello");
    site.write("large", vec![b'x'; 40_000]);
    let mut client = RawClient::connect(site.address, &[(4, 1000)]);
    // A response that is in the middle all the while.
    client.get(1, "/large", &[]);
    client.read_until(DATA);
    let malformed = malformed_heads();
    for (block, stream) in malformed.iter().zip((3..).step_by(2)) {
        client.send(HEADERS, END_STREAM | END_HEADERS, stream, block);
        let answer = client.read().unwrap();
        assert_eq!(
            (answer.kind, answer.stream),
            (RST_STREAM, stream),
            "{}",
            String::from_utf8_lossy(block)
        );
        assert_eq!(answer.error(), PROTOCOL_ERROR);
    }
    client.get(1001, "/a", &[]);
    assert_eq!(client.read_responses(1), [(1001, 5)]);
    client.open_window(1, 100_000);
    assert_eq!(client.read_responses(1), [(1, 39_000)], "the rest of it");
}

#[test]
fn malformed_trailers_cost_their_stream_only() {
    let site = Site::start();
    site.write("a", "hello");
    let mut client = RawClient::connect(site.address, &[]);
    for (block, stream) in [
        block(&[(":path", "/")]),
        block(&[("Upper", "case")]),
        block(&[("x", "a\0b")]),
    ]
    .iter()
    .zip((1..).step_by(2))
    {
        let head = request_block("POST", "/a", &[]);
        client.send(HEADERS, END_HEADERS, stream, &head);
        client.send(DATA, 0, stream, b"data");
        client.send(HEADERS, END_STREAM | END_HEADERS, stream, block);
        // The answer, or what it has become of it, and no end of the connection.
        assert_eq!(client.read_until(RST_STREAM).stream, stream);
    }
    client.get(101, "/a", &[]);
    assert_eq!(client.read_until(HEADERS).stream, 101);
}

#[test]
fn a_head_that_is_no_hpack_ends_the_connection() {
    let site = Site::start();
    let mut client = RawClient::connect(site.address, &[]);
    client.send(HEADERS, END_STREAM | END_HEADERS, 1, b"\xff\xff\xff\xff");
    assert_eq!(client.read_end(), PROTOCOL_ERROR);
}

/// Sends `frame` until the server has enough; the error code of the end.
fn flood(site: &Site, frame: &[u8]) -> u32 {
    let mut client = RawClient::connect(site.address, &[]);
    client.get(1, "/a", &[]);
    client.read_responses(1);
    // No more than the server reads on after the end, so that the client gets GOAWAY.
    for _ in 0..(1_500_000 / frame.len()).min(3_000) {
        if !client.try_write(frame) {
            break;
        }
    }
    client.read_end()
}

#[test]
fn floods_of_frames_that_ask_for_nothing_end_the_connection() {
    let site = Site::start();
    site.write("a", "hello");
    for (kind, stream, payload) in [
        (PING, 0, &b"12345678"[..]),
        (SETTINGS, 0, b""),
        (SETTINGS, 0, b"\0\x04\0\x01\0\0"),
        (WINDOW_UPDATE, 0, b"\0\0\0\x01"),
        (WINDOW_UPDATE, 1, b"\0\0\0\x01"),
        (RST_STREAM, 1, b"\0\0\0\x08"),
        (2, 5, b"\0\0\0\x01\x10"),
        (PRIORITY_UPDATE, 0, b"\0\0\0\x01u=1"),
        (0xfa, 0, b""),
        (0xfa, 77, &[0; 16_384]),
    ] {
        let end = flood(&site, &frame(kind, 0, stream, payload));
        assert_eq!(end, ENHANCE_YOUR_CALM, "type {kind}");
    }
    let acknowledgements = flood(&site, &frame(PING, ACK, 0, b"12345678"));
    assert_eq!(acknowledgements, ENHANCE_YOUR_CALM);
}

#[test]
fn a_client_that_opens_its_windows_by_little_is_no_flood() {
    let site = Site::start();
    let bytes = 4_000_000;
    site.write("large", vec![b'x'; bytes]);
    let mut client = RawClient::connect(site.address, &[]);
    client.get(1, "/large", &[]);
    let mut got = 0;
    while got < bytes {
        let frame = client.read().expect("the connection ended");
        assert_eq!(frame.stream, 1, "no GOAWAY");
        got += frame.payload.len() * usize::from(frame.kind == DATA);
        for piece in frame.payload.chunks(2_000).filter(|_| frame.kind == DATA) {
            client.open_window(0, piece.len() as u32);
            client.open_window(1, piece.len() as u32);
        }
    }
}

#[test]
fn hosts_that_can_be_read_in_two_ways_are_refused() {
    let site = Site::start();
    site.write("a", "hello");
    let mut client = RawClient::connect(site.address, &[]);
    client.get(1, "/a", &[("host", "elsewhere")]);
    client.get(3, "/a", &[("host", "localhost"), ("host", "localhost")]);
    for _ in 0..2 {
        let head = client.read_until(HEADERS);
        assert_eq!(head.payload[0], STATUS_400);
    }
    client.get(5, "/a", &[("host", "localhost")]);
    assert_eq!(client.read_until(HEADERS).payload[0], STATUS_200);
    let with_ports = |authority, host| {
        block(&[
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", authority),
            (":path", "/a"),
            ("host", host),
        ])
    };
    for (authority, host, status, stream) in [
        ("localhost:8443", "localhost", STATUS_400, 7),
        ("localhost", "localhost:8443", STATUS_400, 9),
        ("localhost:8443", "localhost:8443", STATUS_200, 11),
        ("localhost:80", "LOCALHOST", STATUS_200, 13),
    ] {
        let head = with_ports(authority, host);
        client.send(HEADERS, END_STREAM | END_HEADERS, stream, &head);
        let answer = client.read_until(HEADERS);
        assert_eq!((answer.stream, answer.payload[0]), (stream, status));
    }
}

#[test]
fn more_requests_than_allowed_are_refused() {
    let site = Site::start();
    site.write("a", "hello");
    let mut client = RawClient::connect(site.address, &[(4, 0)]);
    for stream in (1..=257).step_by(2) {
        client.get(stream, "/a", &[]);
    }
    let refused = client.read_until(RST_STREAM);
    assert_eq!((refused.stream, refused.error()), (257, REFUSED_STREAM));
}

#[test]
fn rapid_resets_end_the_connection() {
    let site = Site::start();
    site.write("a", "hello");
    let mut client = RawClient::connect(site.address, &[]);
    let block = request_block("GET", "/a", &[]);
    for stream in (1..200_000).step_by(2) {
        let mut pair = frame(HEADERS, END_STREAM | END_HEADERS, stream, &block);
        pair.extend(frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
        if !client.try_write(&pair) {
            break;
        }
    }
    assert_eq!(client.read_end(), ENHANCE_YOUR_CALM);
}

#[test]
fn resets_that_are_not_rapid_are_counted_too() {
    let site = Site::start();
    site.write("a", "hello");
    // The window is shut, so that no response is over before its request is taken back.
    let mut client = RawClient::connect(site.address, &[(4, 0)]);
    let block = request_block("GET", "/a", &[]);
    for stream in (1..10_000).step_by(2) {
        let request = frame(HEADERS, END_STREAM | END_HEADERS, stream, &block);
        // The end may also be noticed by a write.
        let answer = client.try_write(&request).then(|| client.read()).flatten();
        match answer {
            Some(head) if head.kind == HEADERS => {}
            Some(end) => {
                assert_eq!((end.kind, end.error()), (GOAWAY, ENHANCE_YOUR_CALM));
                return;
            }
            None => return,
        }
        client.try_write(&frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
    }
    panic!("thousands of requests were taken back");
}

#[test]
fn heads_without_an_end_end_the_connection() {
    let site = Site::start();
    let mut client = RawClient::connect(site.address, &[]);
    client.send(HEADERS, END_STREAM, 1, &request_block("GET", "/", &[]));
    let field = block(&[("x", "y")]);
    while client.try_write(&frame(CONTINUATION, 0, 1, &field)) {}
    // What was written after the end may have reset the connection before GOAWAY was read.
    while let Some(end) = client.read() {
        assert_eq!((end.kind, end.error()), (GOAWAY, ENHANCE_YOUR_CALM));
    }
}

#[test]
fn a_long_head_is_refused_and_an_absurd_one_ends_the_connection() {
    let site = Site::start();
    let long = "x".repeat(5_000);
    let fields = [("a", &long[..]), ("b", &long), ("c", &long), ("d", &long)];
    let mut client = RawClient::connect(site.address, &[]);
    let block = request_block("GET", "/", &fields);
    let (first, rest) = block.split_at(16_000);
    client.send(HEADERS, END_STREAM, 1, first);
    client.send(CONTINUATION, END_HEADERS, 1, rest);
    let answer = client.read().unwrap();
    assert_eq!((answer.kind, answer.stream), (HEADERS, 1));
    assert_ne!(answer.payload[0], STATUS_200);

    let mut client = RawClient::connect(site.address, &[]);
    // Fields that the table makes short: 4 KiB a byte.
    let value = "x".repeat(4_000);
    let mut bomb = request_block("GET", "/", &[]);
    bomb.extend([0x40, 1, b'x', 127, 0xa1, 0x1e]);
    bomb.extend(value.as_bytes());
    bomb.extend([0xbe; 2_000]);
    client.send(HEADERS, END_STREAM | END_HEADERS, 1, &bomb);
    assert_eq!(client.read_end(), ENHANCE_YOUR_CALM);
}

#[test]
fn empty_frames_do_not_go_on_for_ever() {
    let site = Site::start();
    let mut client = RawClient::connect(site.address, &[]);
    client.send(HEADERS, END_HEADERS, 1, &request_block("POST", "/", &[]));
    while client.try_write(&frame(DATA, 0, 1, b"")) {}
    while let Some(end) = client.read() {
        if end.kind == GOAWAY {
            assert_eq!(end.error(), ENHANCE_YOUR_CALM);
        }
    }
}

#[test]
fn many_pings_are_answered_and_hold_up_no_other_connection() {
    let site = Site::start();
    site.write("a", "hello");
    let mut flooding = RawClient::connect(site.address, &[]);
    let pings = frame(PING, 0, 0, b"12345678").repeat(900);
    flooding.write(&pings);
    let mut client = RawClient::connect(site.address, &[]);
    client.get(1, "/a", &[]);
    assert_eq!(client.read_responses(1), [(1, 5)]);
    for _ in 0..900 {
        let pong = flooding.read().unwrap();
        assert_eq!((pong.kind, pong.flags), (PING, ACK));
        assert_eq!(pong.payload, b"12345678");
    }
}
