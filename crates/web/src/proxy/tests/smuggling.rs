//! Requests made to be read in two ways: every one is refused, or reaches the upstream in one
//! reading.

use super::support::*;

/// What the upstream got, and what the client was told, for `bytes` on one connection.
async fn attack(bytes: &str) -> (Vec<String>, String) {
    let (url, seen) = scripted(|_, _| ok("ok")).await;
    let (address, _) = front(&to(&[&url], "")).await;
    let stream = client(address, bytes).await;
    let told = tokio::time::timeout(std::time::Duration::from_millis(300), rest(stream)).await;
    let got = (0..seen.count())
        .map(|index| seen.lines(index).join("|"))
        .collect();
    (got, told.unwrap_or_default())
}

#[test]
fn what_has_two_meanings_does_not_reach_the_upstream() {
    run(async {
        for bytes in [
            // Conflicting lengths.
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5, 6\r\n\r\nhello!",
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: +5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0x5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 99999999999999999999\r\n\r\n",
            // Codings that are not undone, or disguised.
            "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.0\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            // Lines that go on, or end early.
            "GET / HTTP/1.1\r\nhost: h\r\nx: a\r\n b\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: h\r\n content-length: 5\r\n\r\nhello",
            "GET / HTTP/1.1\r\n host: h\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: h\r\nx: a\rcontent-length: 5\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: h\r\nx\0: a\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: h\r\nx: a\0b\r\n\r\n",
            // Hosts.
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a, b\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a@b\r\n\r\n",
            "GET / HTTP/1.1\r\nhost : a\r\n\r\n",
            // Request lines.
            "GET /a b HTTP/1.1\r\nhost: h\r\n\r\n",
            "GET /../etc/passwd HTTP/1.1\r\nhost: h\r\n\r\n",
            "GET /a/%2e%2e/b HTTP/1.1\r\nhost: h\r\n\r\n",
            "GET /a/..%2fb HTTP/1.1\r\nhost: h\r\n\r\n",
            "CONNECT h:80 HTTP/1.1\r\nhost: h\r\n\r\n",
            "TRACE / HTTP/1.1\r\nhost: h\r\n\r\n",
            "GET / HTTP/1.1 \r\nhost: h\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            let (got, told) = attack(bytes).await;
            assert!(got.is_empty(), "{bytes:?} arrived as {got:?}");
            let refused = [
                "HTTP/1.1 400",
                "HTTP/1.1 404",
                "HTTP/1.1 405",
                "HTTP/1.1 501",
            ];
            let is_refused =
                told.is_empty() || refused.iter().any(|status| told.starts_with(status));
            assert!(is_refused, "{bytes:?} was told {told:?}");
        }
    });
}

#[test]
fn chunks_that_are_none_never_make_a_whole_request() {
    run(async {
        for body in [
            "5\nhello\n0\n\n",
            "5\r\nhello0\r\n\r\n",
            "-5\r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n",
            "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
            "5 5\r\nhello\r\n0\r\n\r\n",
            "5;a=\nb\r\nhello\r\n0\r\n\r\n",
            "5;a\r\rhello\r\n0\r\n\r\n",
        ] {
            let head = "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n";
            let (got, told) = attack(&format!("{head}{body}")).await;
            assert!(got.is_empty(), "{body:?} arrived as {got:?}");
            assert!(
                !told.starts_with("HTTP/1.1 200"),
                "{body:?} was told {told:?}"
            );
        }
    });
}

#[test]
fn what_has_one_meaning_arrives_with_that_one_alone() {
    run(async {
        let once = |method: &str, more: &str| format!("{method} / HTTP/1.1|host: h|{more}");
        let smuggled = "GET /smuggled HTTP/1.1\r\nhost: h\r\n\r\n";
        for (bytes, arrives) in [
            // Both framings: the chunks count (RFC 9112, 6.3), the length is not passed on, and the
            // connection ends, so that what comes after it is no request.
            (
                format!("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"),
                once("POST", "transfer-encoding: chunked|0\r\n\r\n"),
            ),
            (
                format!("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n{smuggled}"),
                once("POST", "transfer-encoding: chunked|0\r\n\r\n"),
            ),
            // Extensions of chunks go; the chunks are cut anew.
            (
                "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5;x=\"0\"\r\nhello\r\n0\r\n\r\n".into(),
                once("POST", "transfer-encoding: chunked|5\r\nhello\r\n0\r\n\r\n"),
            ),
            // The same length twice is one.
            (
                "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello".into(),
                once("POST", "content-length: 5|hello"),
            ),
            // A line that ends without CR is a line (RFC 9112, 2.2), and is written with one.
            (
                "GET / HTTP/1.1\nhost: h\nconnection: close\n\n".into(),
                "GET / HTTP/1.1|host: h".into(),
            ),
            // Nothing of the absolute form, and its host.
            (
                "GET http://h/ HTTP/1.1\r\nhost: other\r\nconnection: close\r\n\r\n".into(),
                "GET / HTTP/1.1|host: h".into(),
            ),
            // `Connection` takes away what it names, and nothing of ours.
            (
                "GET / HTTP/1.1\r\nhost: h\r\nconnection: close, host, x-forwarded-for, x-mine\r\nx-mine: 1\r\n\r\n".into(),
                "GET / HTTP/1.1|host: h".into(),
            ),
        ] {
            let (got, told) = attack(&bytes).await;
            assert_eq!(got, [arrives], "{bytes:?}");
            assert!(told.starts_with("HTTP/1.1 200"), "{bytes:?} was told {told:?}");
            assert_eq!(told.matches("HTTP/1.1 ").count(), 1, "{bytes:?} was told {told:?}");
        }
    });
}
