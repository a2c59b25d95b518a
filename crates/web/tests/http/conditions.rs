//! Conditional requests and ranges.

use super::support::Site;

#[test]
fn what_the_client_has_is_not_sent_again() {
    let site = Site::start();
    site.write("a.txt", "0123456789");
    let first = site.get("/a.txt", "");
    let (etag, date) = (
        first.header("etag").unwrap(),
        first.header("last-modified").unwrap(),
    );
    for headers in [
        format!("if-none-match: {etag}\r\n"),
        format!("if-none-match: W/{etag}\r\n"),
        format!("if-none-match: \"other\", {etag}\r\n"),
        "if-none-match: *\r\n".into(),
        format!("if-modified-since: {date}\r\n"),
    ] {
        let response = site.get("/a.txt", &headers);
        assert_eq!(
            (response.status, response.header("etag")),
            (304, Some(etag)),
            "{headers}"
        );
        assert_eq!(response.header("content-type"), None);
    }
    for headers in [
        "if-none-match: \"other\"\r\n",
        "if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "if-modified-since: nonsense\r\n",
    ] {
        assert_eq!(site.get("/a.txt", headers).status, 200, "{headers}");
    }
    assert_eq!(site.get("/a.txt", "if-match: \"other\"\r\n").status, 412);
}

#[test]
fn a_304_leaves_the_connection_usable() {
    let site = Site::start();
    site.write("a.txt", "0123456789");
    let mut client = site.connect();
    client.send("GET /a.txt HTTP/1.1\r\nhost: x\r\nif-none-match: *\r\n\r\n");
    assert_eq!(client.response("GET").status, 304);
    client.send_get("/a.txt");
    assert_eq!(client.response("GET").text(), "0123456789");
}

#[test]
fn single_ranges_from_memory_and_from_disk() {
    for config in ["", "[limits]\nfile_memory_bytes = 0"] {
        let site = Site::start_with_chunks(config, 3);
        site.write("a.txt", "0123456789");
        for (range, content_range, body) in [
            ("bytes=2-5", "bytes 2-5/10", "2345"),
            ("bytes=7-", "bytes 7-9/10", "789"),
            ("bytes=-4", "bytes 6-9/10", "6789"),
            ("bytes=0-99", "bytes 0-9/10", "0123456789"),
            ("bytes=9-9", "bytes 9-9/10", "9"),
        ] {
            let response = site.get("/a.txt", &format!("range: {range}\r\n"));
            assert_eq!((response.status, response.text()), (206, body), "{range}");
            assert_eq!(response.header("content-range"), Some(content_range));
        }
        for range in ["bytes=10-", "bytes=-0"] {
            let response = site.get("/a.txt", &format!("range: {range}\r\n"));
            assert_eq!(
                (response.status, response.header("content-range")),
                (416, Some("bytes */10")),
                "{range}"
            );
        }
        for range in ["bytes=5-2", "lines=1-2", "bytes=x"] {
            let response = site.get("/a.txt", &format!("range: {range}\r\n"));
            assert_eq!(
                (response.status, response.text()),
                (200, "0123456789"),
                "{range}"
            );
        }
    }
}

#[test]
fn a_range_of_another_version_is_the_whole() {
    let site = Site::start();
    site.write("a.txt", "0123456789");
    let etag = site.get("/a.txt", "").header("etag").unwrap().to_owned();
    let same = site.get(
        "/a.txt",
        &format!("range: bytes=0-1\r\nif-range: {etag}\r\n"),
    );
    assert_eq!((same.status, same.text()), (206, "01"));
    for if_range in [
        "\"other\"",
        &format!("W/{etag}"),
        "Sun, 06 Nov 1994 08:49:37 GMT",
    ] {
        let other = site.get(
            "/a.txt",
            &format!("range: bytes=0-1\r\nif-range: {if_range}\r\n"),
        );
        assert_eq!(
            (other.status, other.text()),
            (200, "0123456789"),
            "{if_range}"
        );
    }
}
