//! Files that change, shrink, grow or vanish while they are sent, and files larger than memory.

use super::support::{Client, Site};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

/// Larger than all socket buffers of a connection together.
const LARGE_BYTES: u64 = 64 << 20;

/// A file of zeros that takes no room on the disk, dated so far back that any change shows.
fn write_zeros(site: &Site, name: &str, bytes: u64) -> File {
    let file = File::create(site.path(name)).unwrap();
    file.set_len(bytes).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    file
}

/// What is still received, byte after byte, up to the end or the reset of the connection.
fn received(client: &mut Client) -> (u64, bool) {
    let (mut count, mut is_zeros) = (0, true);
    let mut buffer = vec![0; 1 << 20];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        count += read as u64;
        is_zeros &= buffer[..read].iter().all(|&byte| byte == 0);
    }
    (count, is_zeros)
}

#[test]
fn bytes_of_two_versions_are_never_mixed() {
    let changes: [fn(&File); 4] = [
        |file| file.write_all_at(b"xyz", LARGE_BYTES - 3).unwrap(),
        |file| file.write_all_at(b"xyz", LARGE_BYTES).unwrap(),
        |file| file.set_len(1 << 20).unwrap(),
        |file| {
            file.set_len(0).unwrap();
            file.write_all_at(&vec![b'x'; 1 << 20], 0).unwrap();
            file.set_len(LARGE_BYTES).unwrap();
        },
    ];
    let site = Site::start();
    for change in changes {
        let file = write_zeros(&site, "large", LARGE_BYTES);
        let mut client = site.connect();
        client.send_get("/large");
        let head = client.head();
        assert_eq!(head.header("content-length"), Some("67108864"));
        change(&file);
        let (count, is_zeros) = received(&mut client);
        assert!(count < LARGE_BYTES, "all of it came");
        assert!(is_zeros, "something of the new version came");
    }
}

#[test]
fn a_file_that_is_replaced_is_sent_to_its_end() {
    let site = Site::start();
    write_zeros(&site, "large", LARGE_BYTES);
    let mut client = site.connect();
    client.send("GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_eq!(client.head().status, 200);
    site.write("new", vec![b'x'; 1 << 20]);
    std::fs::rename(site.path("new"), site.path("large")).unwrap();
    assert_eq!(received(&mut client), (LARGE_BYTES, true));
}

#[test]
fn a_file_that_was_changed_before_the_request_is_sent_as_it_is_now() {
    let site = Site::start();
    let file = write_zeros(&site, "log", 1 << 20);
    for number in 0..5 {
        file.write_all_at(b"x", (1 << 20) + number).unwrap();
        let response = site.get("/log", "");
        assert_eq!(response.body.len() as u64, (1 << 20) + number + 1);
    }
}

#[test]
fn parts_of_a_file_larger_than_memory() {
    const LEN: u64 = 6 << 30;
    let site = Site::start();
    let file = write_zeros(&site, "huge", LEN);
    file.write_all_at(b"0123456789", LEN - 10).unwrap();
    let head = site.request("HEAD", "/huge", "");
    assert_eq!(head.header("content-length"), Some("6442450944"));
    let last = site.get("/huge", "range: bytes=-10\r\n");
    assert_eq!((last.status, last.text()), (206, "0123456789"));
    let several = site.get("/huge", "range: bytes=-5,5000000000-5000000001\r\n");
    assert_eq!(several.status, 206);
    let kind = several.header("content-type").unwrap();
    let boundary = kind.split_once("boundary=").unwrap().1;
    let part = |range: &str, bytes: &str| {
        let head = "content-type: application/octet-stream\r\ncontent-range: bytes ";
        format!("\r\n--{boundary}\r\n{head}{range}/{LEN}\r\n\r\n{bytes}")
    };
    let expected = [
        part("6442450939-6442450943", "56789"),
        part("5000000000-5000000001", "\0\0"),
        format!("\r\n--{boundary}--\r\n"),
    ];
    assert_eq!(several.text(), expected.concat());
}
