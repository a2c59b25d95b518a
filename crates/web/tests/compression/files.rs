//! Files, as curl gets them in every coding.

use super::support::*;
use std::time::{Duration, SystemTime};

const ON: &str = "compress = true";

#[test]
fn curl_unpacks_every_coding_over_every_version() {
    if !has_curl() {
        return;
    }
    let site = Site::start_with(ON);
    let (small, page, large) = (text(500), text(50_000), text(5_000_000));
    site.write("small.html", &small);
    site.write("page.html", &page);
    site.write("large.json", &large);
    site.write("photo.jpg", &page);
    for version in ["--http1.0", "--http1.1", "--http2-prior-knowledge"] {
        for coding in ["gzip", "br", "zstd"] {
            for (path, content) in [("/page.html", &page), ("/large.json", &large)] {
                let got = unpacked(site.address, path, coding, &[version]);
                assert_eq!(got.exit, Some(0), "{path} {coding} {version}");
                assert!(got.body == *content, "{path} {coding} {version}");
                assert_eq!(
                    got.header("content-encoding"),
                    Some(coding),
                    "{path} {version}"
                );
                assert!(got.varies());
                let tag = got.header("etag").unwrap();
                assert!(tag.starts_with("W/\""), "{tag}");
            }
            for (path, content) in [("/small.html", &small), ("/photo.jpg", &page)] {
                let got = unpacked(site.address, path, coding, &[version]);
                assert!(got.body == *content, "{path} {coding} {version}");
                assert_eq!(got.header("content-encoding"), None, "{path}");
                assert!(!got.varies(), "{path}");
                assert!(got.header("etag").unwrap().starts_with('"'), "{path}");
            }
        }
    }
}

#[test]
fn weights_decide_then_the_order() {
    if !has_curl() {
        return;
    }
    let site = Site::start_with("compress = true\n[compression]\ncodings = ['br', 'zstd', 'gzip']");
    site.write("a.html", text(10_000));
    site.write("tiny.html", text(100));
    for (accept, coding) in [
        ("gzip, deflate, br, zstd", Some("br")),
        ("zstd;q=1, br;q=0.9", Some("zstd")),
        ("*", Some("br")),
        ("br;q=0, *", Some("zstd")),
        ("identity;q=0, gzip;q=0.1", Some("gzip")),
        ("identity", None),
        ("gzip;q=0.5, identity", None),
        ("deflate", None),
        ("", None),
        ("gzip;q=0", None),
    ] {
        let header = format!("accept-encoding: {accept}");
        let got = curl(site.address, "/a.html", &["-H", &header]);
        assert_eq!(got.header("content-encoding"), coding, "{accept}");
        assert!(got.varies(), "{accept}");
    }
    // Who refuses the file as it is gets the shortest one compressed.
    let got = unpacked(site.address, "/tiny.html", "gzip, identity;q=0", &[]);
    assert_eq!(got.header("content-encoding"), Some("gzip"));
    assert!(got.body == text(100));
}

#[test]
fn head_says_what_get_says() {
    if !has_curl() {
        return;
    }
    let site = Site::start_with(ON);
    site.write("a.html", text(10_000));
    site.write("large.html", text(3_000_000));
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        for path in ["/a.html", "/large.html"] {
            let gzip = ["-H", "accept-encoding: gzip", version];
            // Before the first GET, too.
            let head = curl(site.address, path, &[&gzip[..], &["--head"]].concat());
            let get = curl(site.address, path, &gzip);
            let said = |got: &Got| {
                let headers = got.headers.iter().cloned();
                let depends = ["date", "transfer-encoding"];
                let kept = headers.filter(|(name, _)| !depends.contains(&name.as_str()));
                kept.collect::<Vec<_>>()
            };
            assert_eq!(said(&head), said(&get), "{path} {version}");
            assert_eq!(head.header("content-encoding"), Some("gzip"));
            assert_eq!(head.header("accept-ranges"), None);
        }
    }
}

#[test]
fn who_has_it_already_is_told_so() {
    if !has_curl() {
        return;
    }
    let site = Site::start_with(ON);
    site.write("a.html", text(10_000));
    let gzip = ["-H", "accept-encoding: gzip"];
    let tag = curl(site.address, "/a.html", &gzip)
        .header("etag")
        .unwrap()
        .to_owned();
    let condition = format!("if-none-match: {tag}");
    let same = curl(
        site.address,
        "/a.html",
        &[&gzip[..], &["-H", &condition]].concat(),
    );
    assert_eq!(
        (same.status, same.header("etag")),
        (304, Some(tag.as_str()))
    );
    assert!(same.varies() && same.header("content-encoding").is_none());
    // The tag of the file as it is stands for the same, and so does its date.
    let plain = curl(site.address, "/a.html", &[]);
    let condition = format!("if-none-match: {}", plain.header("etag").unwrap());
    let same = curl(
        site.address,
        "/a.html",
        &[&gzip[..], &["-H", &condition]].concat(),
    );
    assert_eq!(same.status, 304);
    let condition = format!(
        "if-modified-since: {}",
        plain.header("last-modified").unwrap()
    );
    let same = curl(
        site.address,
        "/a.html",
        &[&gzip[..], &["-H", &condition]].concat(),
    );
    assert_eq!((same.status, same.varies()), (304, true));
    site.write("a.html", text(10_001));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let condition = format!("if-none-match: {tag}");
    let changed = curl(
        site.address,
        "/a.html",
        &[&gzip[..], &["-H", &condition]].concat(),
    );
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
}

#[test]
fn ranges_are_of_the_file_as_it_is() {
    if !has_curl() {
        return;
    }
    let site = Site::start_with(ON);
    let page = text(10_000);
    site.write("a.html", &page);
    let ask = |more: &[&str]| {
        let gzip = ["-H", "accept-encoding: gzip", "-H", "range: bytes=10-19"];
        curl(site.address, "/a.html", &[&gzip[..], more].concat())
    };
    let part = ask(&[]);
    assert_eq!((part.status, part.header("content-encoding")), (206, None));
    assert_eq!(part.header("content-range"), Some("bytes 10-19/10000"));
    assert!(part.body == page[10..20] && part.varies());
    let tag = part.header("etag").unwrap();
    assert!(tag.starts_with('"'), "{tag}");
    assert_eq!(ask(&["-H", &format!("if-range: {tag}")]).status, 206);
    // Who goes on with the compressed form must not get bytes of the other one.
    let date = part.header("last-modified").unwrap();
    for of in [&format!("W/{tag}")[..], date] {
        let whole = ask(&["-H", &format!("if-range: {of}")]);
        let coding = whole.header("content-encoding");
        assert_eq!((whole.status, coding), (200, Some("gzip")), "{of}");
    }
}

/// What is sent decides whether it is compressed, whatever the path that led to it.
#[test]
fn a_date_does_not_tell_the_forms_of_a_file_from_each_other() {
    if !has_curl() {
        return;
    }
    let site = Site::start_site("compress = true\nfallback = '/a.html'");
    let day = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
    for name in ["a.html", "index.html", "a.css/picture"] {
        site.write(name, text(10_000));
        let file = std::fs::File::options().write(true).open(site.path(name));
        file.unwrap().set_modified(day).unwrap();
    }
    let date = "if-range: Fri, 02 Jan 1970 00:00:00 GMT";
    for (path, part, behind_the_end) in [
        ("/a.html", 200, 200),
        ("/", 200, 200),
        ("/users/7", 200, 200),
        ("/a.htm%6c", 200, 200),
        ("/a.css/picture", 206, 416),
    ] {
        for (range, status) in [("10-19", part), ("20000-", behind_the_end)] {
            let range = format!("range: bytes={range}");
            let more = ["-H", "accept-encoding: gzip", "-H", &range, "-H", date];
            let got = curl(site.address, path, &more);
            assert_eq!(got.status, status, "{path} {range}");
            let coding = got.header("content-encoding");
            assert_eq!(coding.is_some(), status == 200, "{path} {range}");
        }
    }
}

#[test]
fn files_that_were_compressed_before_go_first() {
    if !has_curl() {
        return;
    }
    let site = Site::start_site("precompressed = ['br']\ncompress = true");
    site.write("a.html", text(10_000));
    site.write("a.html.br", "made before");
    let coding = |accept: &str| {
        let accept = format!("accept-encoding: {accept}");
        curl(site.address, "/a.html", &["-H", &accept])
    };
    assert_eq!(coding("gzip, br").body, b"made before");
    let got = coding("gzip");
    assert_eq!(got.header("content-encoding"), Some("gzip"));
    assert!(got.varies() && got.body.len() < 5_000);
}

#[test]
fn a_site_says_it_for_itself() {
    if !has_curl() {
        return;
    }
    let site = Site::start_site("compress = false");
    site.write("a.html", text(10_000));
    let got = curl(site.address, "/a.html", &["-H", "accept-encoding: gzip"]);
    assert_eq!(got.header("content-encoding"), None);
    assert!(!got.varies());
}

#[test]
fn listings_and_error_pages_are_text_too() {
    if !has_curl() {
        return;
    }
    let site =
        Site::start_site("compress = true\nlisting = 'html'\nerrors = { 404 = '/404.html' }");
    site.write("404.html", text(5_000));
    for number in 0..200 {
        site.write(&format!("d/file-{number}"), "");
    }
    let listing = unpacked(site.address, "/d/", "br", &[]);
    assert_eq!(listing.header("content-encoding"), Some("br"));
    assert!(
        String::from_utf8(listing.body)
            .unwrap()
            .contains("file-199</a>")
    );
    let missing = unpacked(site.address, "/none.txt", "zstd", &[]);
    assert_eq!(
        (missing.status, missing.header("content-encoding")),
        (404, Some("zstd"))
    );
    assert!(missing.body == text(5_000));
}

#[test]
fn the_log_says_what_was_sent() {
    if !has_curl() {
        return;
    }
    let config = "compress = true\n[log]\naccess = 'FOLDER/log'";
    let mut site = Site::start_with(config);
    site.write("a.html", text(100_000));
    let got = curl(site.address, "/a.html", &["-H", "accept-encoding: gzip"]);
    let lines = site.log_lines();
    assert_eq!(lines[0]["size_bytes"], got.body.len(), "{lines:?}");
}
