//! Windows that are shut, small, or shared.

use super::frames::*;
use super::support::Site;

/// SETTINGS_INITIAL_WINDOW_SIZE.
const INITIAL_WINDOW: u16 = 4;

#[test]
fn a_shut_window_holds_up_its_stream_and_no_other() {
    let site = Site::start();
    site.write("a", vec![b'a'; 3000]);
    let mut client = RawClient::connect(site.address, &[(INITIAL_WINDOW, 0)]);
    client.get(1, "/a", &[]);
    client.get(3, "/a", &[]);
    assert_eq!(client.read().unwrap().kind, HEADERS);
    assert_eq!(client.read().unwrap().kind, HEADERS);
    assert!(client.is_silent());
    client.open_window(3, 10_000);
    assert_eq!(client.read_responses(1), [(3, 3000)]);
    client.open_window(1, 1000);
    let part = client.read().unwrap();
    assert_eq!(
        (part.kind, part.stream, part.payload.len()),
        (DATA, 1, 1000)
    );
    assert!(client.is_silent());
    client.open_window(1, 2000);
    assert_eq!(client.read_responses(1), [(1, 2000)]);
}

#[test]
fn a_window_of_one_byte_is_used() {
    let site = Site::start();
    site.write("a", "abc");
    let mut client = RawClient::connect(site.address, &[(INITIAL_WINDOW, 1)]);
    client.get(1, "/a", &[]);
    assert_eq!(client.read().unwrap().kind, HEADERS);
    for letter in ["a", "b", "c"] {
        assert_eq!(client.read().unwrap().payload, letter.as_bytes());
        client.open_window(1, 1);
    }
}

#[test]
fn settings_that_shrink_the_window_are_obeyed() {
    let site = Site::start();
    site.write("a", vec![b'a'; 100_000]);
    let mut client = RawClient::connect(site.address, &[(INITIAL_WINDOW, 50_000)]);
    client.get(1, "/a", &[]);
    let mut got = 0;
    while got < 50_000 {
        got += client.read_until(DATA).payload.len();
    }
    client.send(SETTINGS, 0, 0, b"\0\x04\0\0\0\0");
    client.open_window(1, 30_000);
    assert!(client.is_silent());
    client.send(SETTINGS, 0, 0, b"\0\x04\0\x01\0\0");
    client.open_window(0, 100_000);
    while got < 95_536 {
        got += client.read_until(DATA).payload.len();
    }
    assert_eq!(got, 95_536, "65536 + 30000");
    assert!(client.is_silent());
}

/// The window of the connection is what is scarce: who opens it decides when, the order of the
/// server decides who.
#[test]
fn a_small_response_gets_the_connections_window_before_large_ones() {
    let site = Site::start_ordered();
    site.write("large", vec![b'a'; 500_000]);
    site.write("small", vec![b'b'; 10_000]);
    let mut client = RawClient::connect(site.address, &[(INITIAL_WINDOW, 1 << 20)]);
    for stream in [1, 3, 5, 7] {
        client.get(stream, "/large", &[]);
    }
    let mut got = 0;
    while got < 65_535 {
        got += client.read_until(DATA).payload.len();
    }
    client.get(9, "/small", &[]);
    assert_eq!(client.read().unwrap().kind, HEADERS);
    assert!(client.is_silent());
    client.open_window(0, 12_000);
    assert_eq!(client.read_responses(1), [(9, 10_000)]);
    client.open_window(0, 1 << 24);
    assert_eq!(client.read_responses(4).len(), 4);
}

#[test]
fn a_window_that_stays_shut_is_given_up() {
    let site = Site::start_with("[limits]\nstall_seconds = 1\n");
    site.write("a", vec![b'a'; 3000]);
    let mut client = RawClient::connect(site.address, &[(INITIAL_WINDOW, 0)]);
    client.get(1, "/a", &[]);
    let end = client.read_until(RST_STREAM);
    assert_eq!((end.stream, end.error()), (1, CANCEL));
    client.open_window(0, 1);
    client.get(3, "/none", &[]);
    assert_eq!(client.read().unwrap().stream, 3, "the connection goes on");
}

#[test]
fn what_a_client_does_not_read_is_not_made() {
    let site = Site::start();
    site.write("large", vec![b'a'; 64 << 20]);
    let mut client = RawClient::connect(site.address, &[(INITIAL_WINDOW, u32::MAX >> 1)]);
    client.open_window(0, (u32::MAX >> 1) - 65_535);
    for stream in (1..200).step_by(2) {
        client.get(stream, "/large", &[]);
    }
    // The heads go, the bodies fill the socket, and there it ends.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident_kib: usize = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap();
    assert!(resident_kib < 300 << 10, "{resident_kib} KiB");
}
