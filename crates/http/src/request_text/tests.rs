//! Requests as they come in and as the engine reads them.

use super::*;
use proptest::prelude::*;

fn whole(bytes: &[u8]) -> Vec<u8> {
    Rewriter::default().rewrite(bytes).into_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(whole(bytes)).unwrap()
}

#[test]
fn what_a_target_may_not_hold_is_escaped() {
    let request = b"GET /a\"<`\xff>?b=\"<>\xc3\xa9` HTTP/1.1\r\nhost: <\"\xff\r\n\r\n";
    let expected = b"GET /a\"%3C%60%FF%3E?b=%22%3C%3E%C3%A9` HTTP/1.1\r\nhost: <\"\xff\r\n\r\n";
    assert_eq!(whole(request), expected);
    assert_eq!(whole(&request.repeat(3)), expected.repeat(3));
}

#[test]
fn bodies_stay_as_they_are_and_the_next_request_is_found() {
    let next = "GET /< HTTP/1.1\r\n\r\n";
    let expected = "GET /%3C HTTP/1.1\r\n\r\n";
    for head in [
        "POST / HTTP/1.1\r\nContent-Length:  18 \r\n\r\nGET /< HTTP/1.1\r\n\n",
        "POST / HTTP/1.0\r\ncontent-length: 18\n\nGET /< HTTP/1.1\r\n\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n12;a=<\r\nGET /< HTTP/1.1\r\n\n\r\n0\r\n\r\n",
        "\r\nHEAD / HTTP/1.1\r\na:\r\n\r\n",
    ] {
        assert_eq!(
            text(format!("{head}{next}").as_bytes()),
            format!("{head}{expected}")
        );
    }
}

#[test]
fn trailers_get_the_line_ends_that_they_lack() {
    let head = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n";
    let next = "GET / HTTP/1.1\r\n\r\n";
    for trailers in ["\n", "\r\n", "a: b\n\n", "a: b\r\nc: d\n\r\n", "a: b\r\n\n"] {
        let expected = trailers.replace("\r\n", "\n").replace('\n', "\r\n");
        let request = format!("{head}{trailers}{next}");
        assert_eq!(
            text(request.as_bytes()),
            format!("{head}{expected}{next}"),
            "{trailers:?}"
        );
    }
}

#[test]
fn after_anything_unclear_nothing_is_changed() {
    for head in [
        "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx",
        "POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\nx",
        "GET / HTTP/1.1\r\nupgrade: websocket\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\na: b\r\n c\r\n\r\n",
        "GET /\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n11111111111111111\r\n",
    ] {
        let request = format!("{head}GET /< HTTP/1.1\r\n\r\n");
        assert_eq!(text(request.as_bytes()), request);
    }
}

#[test]
fn behind_a_request_to_switch_requests_are_followed_once_http_goes_on() {
    let next = "GET /< HTTP/1.1\r\n\r\n";
    for asking in [
        "GET / HTTP/1.1\r\nconnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        "POST / HTTP/1.1\r\nupgrade: x\r\ncontent-length: 3\r\n\r\n/<>",
        "POST / HTTP/1.1\r\nupgrade: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n<\r\n0\r\n\r\n",
    ] {
        let mut rewriter = Rewriter::default();
        assert_eq!(&*rewriter.rewrite(asking.as_bytes()), asking.as_bytes());
        rewriter.stays_with_http();
        for _ in 0..2 {
            let changed = rewriter.rewrite(next.as_bytes());
            assert_eq!(&*changed, b"GET /%3C HTTP/1.1\r\n\r\n", "{asking}");
        }
        // What comes before that is known may be of the other protocol.
        let mut rewriter = Rewriter::default();
        rewriter.rewrite(asking.as_bytes());
        assert_eq!(&*rewriter.rewrite(next.as_bytes()), next.as_bytes());
        rewriter.stays_with_http();
        assert_eq!(&*rewriter.rewrite(next.as_bytes()), next.as_bytes());
    }
}

#[test]
fn only_connect_is_connect() {
    let next = "GET /< HTTP/1.1\r\n\r\n";
    for method in ["C", "COPY", "CHECKIN", "CONNEC", "CONNECTS", "connect"] {
        let head = format!("{method} / HTTP/1.1\r\n\r\n");
        let expected = format!("{head}GET /%3C HTTP/1.1\r\n\r\n");
        assert_eq!(text(format!("{head}{next}").as_bytes()), expected);
    }
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let line = "(GET|POST|COPY|CONNECT) /[a<\"?\u{e9}`]{0,5} HTTP/1\\.[01]\r?\n";
    let field =
        "(content-length: [0-9]{1,2}|transfer-encoding: chunked|upgrade: x|a: b|[ -~]{0,9})\r?\n";
    let body = "(\r?\n|[0-9a]\r\n|x{0,9}|0\r?\n\r?\n|a: b\n)";
    let piece = prop_oneof![line, field, body].prop_map(String::into_bytes);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn cuts_change_nothing_and_what_is_right_stays(bytes in requests(), cuts in prop::collection::vec(0usize..200, 0..6)) {
        let expected = whole(&bytes);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut rewriter = Rewriter::default();
        let pieces = cuts.windows(2).map(|cut| rewriter.rewrite(&bytes[cut[0]..cut[1]]).into_owned());
        prop_assert_eq!(pieces.collect::<Vec<_>>().concat(), expected.clone());
        prop_assert_eq!(whole(&expected), expected);
    }
}
