//! Parts of files: one, several, of files in memory, on disk, and larger than memory.

use super::*;

/// Bytes that tell where in the file they belong.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|position| (position % 251) as u8).collect()
}

/// The parts of a multipart body: `Content-Type`, `Content-Range`, bytes.
fn parts(got: &Got) -> Vec<(String, String, Vec<u8>)> {
    let boundary = got.header("content-type");
    let boundary = boundary
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let body = got
        .body
        .strip_suffix(format!("\r\n--{boundary}--\r\n").as_bytes());
    let mut rest = body.unwrap();
    let mut parts = Vec::new();
    loop {
        let opening = format!("\r\n--{boundary}\r\n");
        rest = rest.strip_prefix(opening.as_bytes()).unwrap();
        let end = rest
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        let header = |name: &str| {
            let mut lines = head.split("\r\n");
            let value = lines.find_map(|line| line.strip_prefix(name)).unwrap();
            value.to_owned()
        };
        let (kind, range) = (header("content-type: "), header("content-range: "));
        let (span, _) = range
            .strip_prefix("bytes ")
            .unwrap()
            .split_once('/')
            .unwrap();
        let (first, last) = span.split_once('-').unwrap();
        let len = last.parse::<usize>().unwrap() - first.parse::<usize>().unwrap() + 1;
        rest = &rest[end + 4..];
        parts.push((kind, range, rest[..len].to_vec()));
        rest = &rest[len..];
        if rest.is_empty() {
            return parts;
        }
    }
}

#[test]
fn several_ranges_in_the_order_of_the_request() {
    let fixture = Fixture::plain();
    // One is kept in memory, the other is not.
    for len in [900, 5000] {
        let content = pattern(len);
        fixture.write("a.txt", &content);
        let got = fixture.get("/a.txt", &[("range", "bytes=-2, 100-109, 0-0")]);
        assert_eq!(got.status, 206);
        assert_eq!(got.header("content-range"), "");
        let kind = "text/plain; charset=utf-8".to_owned();
        let part = |range: std::ops::Range<usize>| {
            let span = format!("bytes {}-{}/{len}", range.start, range.end - 1);
            (kind.clone(), span, content[range].to_vec())
        };
        let expected = [part(len - 2..len), part(100..110), part(0..1)];
        assert_eq!(parts(&got), expected);
    }
}

#[test]
fn touching_ranges_are_one() {
    let fixture = Fixture::plain();
    fixture.write("a.txt", pattern(5000));
    let got = fixture.get("/a.txt", &[("range", "bytes=10-19,20-29,15-17")]);
    assert_eq!((got.status, got.body.len()), (206, 20));
    assert_eq!(got.header("content-range"), "bytes 10-29/5000");
    assert_eq!(got.header("content-type"), "text/plain; charset=utf-8");
}

#[test]
fn parts_longer_than_the_file_are_parts_and_too_many_are_the_file() {
    let fixture = Fixture::plain();
    fixture.write("a.txt", "0123456789");
    let got = fixture.get("/a.txt", &[("range", "bytes=0-1,4-5")]);
    let part = |span: &str, bytes: &[u8]| {
        let kind = "text/plain; charset=utf-8".to_owned();
        (kind, format!("bytes {span}/10"), bytes.to_vec())
    };
    assert_eq!(got.status, 206);
    assert_eq!(parts(&got), [part("0-1", b"01"), part("4-5", b"45")]);
    fixture.write("b.txt", pattern(5000));
    let too_many: Vec<_> = (0..257).map(|n| format!("{0}-{0}", 2 * n)).collect();
    let too_many = format!("bytes={}", too_many.join(","));
    let got = fixture.get("/b.txt", &[("range", &too_many)]);
    assert_eq!((got.status, got.body.len()), (200, 5000));
}

#[test]
fn ranges_behind_the_end() {
    let fixture = Fixture::new("headers = { x-a = 'b' }\nerrors = { 416 = '/416.html' }");
    fixture.write("a.txt", "0123456789");
    let range = [("range", "bytes=10-,20-30")];
    let got = fixture.get("/a.txt", &range);
    assert_eq!(
        (got.status, got.header("content-range")),
        (416, "bytes */10")
    );
    assert!(got.text().starts_with("416 Range Not Satisfiable"));
    fixture.write("416.html", "no such bytes");
    let got = fixture.get("/a.txt", &range);
    assert_eq!((got.status, got.text()), (416, "no such bytes"));
    assert_eq!(got.header("content-range"), "bytes */10");
    assert_eq!(got.header("x-a"), "b");
}

#[test]
fn several_ranges_of_another_version_are_the_whole() {
    let fixture = Fixture::plain();
    fixture.write("a.txt", pattern(5000));
    let etag = fixture.get("/a.txt", &[]).header("etag").to_owned();
    let range = ("range", "bytes=0-1,10-11");
    let same = fixture.get("/a.txt", &[range, ("if-range", &etag)]);
    assert_eq!(parts(&same).len(), 2);
    let other = fixture.get("/a.txt", &[range, ("if-range", "\"other\"")]);
    assert_eq!((other.status, other.body.len()), (200, 5000));
    let head = fixture.ask_once(Method::HEAD, "/a.txt", &[range]);
    assert_eq!((head.status, head.header("content-length")), (200, "5000"));
    let twice = fixture.get("/a.txt", &[range, range]);
    assert_eq!(twice.status, 200);
}

#[test]
fn a_file_larger_than_memory() {
    const LEN: u64 = 6 << 30;
    let fixture = Fixture::plain();
    fixture.write("huge.bin", "begin");
    let file = std::fs::File::options()
        .write(true)
        .open(fixture.path("huge.bin"))
        .unwrap();
    file.set_len(LEN).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"end", LEN - 3).unwrap();
    let request = Request::builder().uri("/huge.bin").body(()).unwrap();
    let response = fixture.site.response(&request, Moment::now());
    assert_eq!(response.source.len(), Some(LEN));
    let got = fixture.get("/huge.bin", &[("range", "bytes=-3")]);
    assert_eq!((got.status, got.text()), (206, "end"));
    let span = format!("bytes {}-{}/{LEN}", LEN - 3, LEN - 1);
    assert_eq!(got.header("content-range"), span);
    let got = fixture.get(
        "/huge.bin",
        &[("range", "bytes=-3,4294967296-4294967297,0-4")],
    );
    let parts = parts(&got);
    let bytes: Vec<_> = parts.iter().map(|(_, _, bytes)| bytes.as_slice()).collect();
    assert_eq!(bytes, [&b"end"[..], b"\0\0", b"begin"]);
}
