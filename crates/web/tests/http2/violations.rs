//! Clients that break the rules, or use them against the server.

use crate::frames::*;
use crate::support::Site;

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

#[test]
fn a_malformed_request_costs_its_stream_only() {
    let site = Site::start();
    site.write("a", "hello");
    let mut client = RawClient::connect(site.address, &[]);
    let malformed = [
        request_block("GET", "a", &[]),
        request_block("GET", "*", &[]),
        request_block("GET", "/a", &[("x", " a")]),
        request_block("GET", "/a", &[("connection", "close")]),
        request_block("GET", "/a", &[("transfer-encoding", "chunked")]),
        request_block("GET", "/a", &[("te", "gzip")]),
        request_block("GET", "/a", &[("content-length", "5")]),
        block(&[(":method", "GET"), (":scheme", "http"), (":path", "")]),
        block(&[(":method", "GET"), (":path", "/a")]),
    ];
    for (block, stream) in malformed.iter().zip((1..).step_by(2)) {
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
    client.get(101, "/a", &[]);
    assert_eq!(client.read_responses(1), [(101, 5)]);
}

#[test]
fn a_head_that_cannot_be_decoded_ends_the_connection() {
    let site = Site::start();
    let mut client = RawClient::connect(site.address, &[]);
    client.get(1, "/a", &[("Upper", "case")]);
    assert_eq!(client.read_end(), PROTOCOL_ERROR);
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
fn pings_are_answered_and_a_flood_of_them_hurts_nobody_else() {
    let site = Site::start();
    site.write("a", "hello");
    let mut flooding = RawClient::connect(site.address, &[]);
    let pings = frame(PING, 0, 0, b"12345678").repeat(1000);
    for _ in 0..20 {
        flooding.write(&pings);
    }
    let mut client = RawClient::connect(site.address, &[]);
    client.get(1, "/a", &[]);
    assert_eq!(client.read_responses(1), [(1, 5)]);
    for _ in 0..20_000 {
        let pong = flooding.read().unwrap();
        assert_eq!((pong.kind, pong.flags), (PING, ACK));
        assert_eq!(pong.payload, b"12345678");
    }
}
