//! What arrives at the upstream, and what comes back, when all is well.

use super::support::*;
use crate::body::Source;
use crate::request_body::RequestBody;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::header::HeaderValue;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::task::spawn_local;

#[test]
fn a_request_goes_out_and_its_answer_comes_back() {
    run(async {
        let (url, seen) = scripted(|_, _| {
            text("HTTP/1.1 201 Created\r\ncontent-length: 2\r\npriority: u=1\r\nkeep-alive: x\r\n\r\nhi")
        })
        .await;
        let proxy = to(&[&url], "");
        let whole = ask(&proxy, get("/a?b=%20")).await;
        assert_eq!((whole.status, whole.text()), (201, "hi"));
        assert_eq!(whole.headers["content-length"], "2");
        assert_eq!(whole.headers["priority"], "u=1");
        assert_eq!(whole.headers["via"], "1.1 sooner");
        assert!(!whole.headers.contains_key("keep-alive"));
        assert_eq!(
            seen.lines(0),
            ["GET /a?b=%20 HTTP/1.1", "host: example.org"]
        );
        let request = seen.request(0);
        assert!(request.contains("x-forwarded-for: 192.0.2.7\r\n"));
        assert!(request.contains("via: 1.1 sooner\r\n"));
        assert_eq!(whole.report.tries, 1);
        assert!(whole.report.failure.is_none() && whole.report.response_ns.is_some());
    });
}

#[test]
fn a_connection_is_used_again() {
    run(async {
        let (url, seen) = scripted(|number, _| match number % 3 {
            0 => ok("x"),
            1 => text("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
            _ => text("HTTP/1.1 404 Not Found\r\ncontent-length: 1\r\n\r\nx"),
        })
        .await;
        let proxy = to(&[&url], "");
        for _ in 0..5 {
            assert_eq!(ask(&proxy, get("/")).await.text(), "x");
            // The engine needs a turn to see the end of the response.
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!((seen.count(), seen.connections.get()), (5, 1));
    });
}

#[test]
fn a_connection_the_server_will_close_is_not_used_again() {
    run(async {
        let (url, seen) = scripted(|_, _| {
            text("HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n")
        })
        .await;
        let proxy = to(&[&url], "");
        for _ in 0..3 {
            ask(&proxy, get("/")).await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(seen.connections.get(), 3);
    });
}

#[test]
fn the_host_and_the_prefix_are_what_the_operator_says() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let config = format!(
            "[[upstream]]\nname='own'\nservers=['{url}']\nhost='upstream'\n\
             [[upstream]]\nname='fixed'\nservers=['{url}']\nhost='app.internal'\n\
             [[upstream]]\nname='name'\nservers=['{url}']\nhost='$host'\n\
             [[route]]\npath='/own'\nupstream='own'\n\
             [[route]]\npath='/name'\nupstream='name'\n\
             [[route]]\npath='/fixed/'\nupstream='fixed'\nstrip_prefix=true\n"
        );
        let proxy = proxy(&config);
        ask(&proxy, get("/own/x")).await;
        ask(&proxy, get("/fixed/x?y")).await;
        let authority = url.strip_prefix("http://").unwrap();
        assert_eq!(
            seen.lines(0),
            ["GET /own/x HTTP/1.1".into(), format!("host: {authority}")]
        );
        assert_eq!(seen.lines(1), ["GET /x?y HTTP/1.1", "host: app.internal"]);
        assert!(seen.request(1).contains("x-forwarded-prefix: /fixed/\r\n"));
        assert!(
            seen.request(1)
                .contains("x-forwarded-host: example.org\r\n")
        );
        for (said, told) in [
            ("EXAMPLE.org.:8080", "example.org"),
            ("[::1]:80", "[::1]"),
            ("a.org", "a.org"),
        ] {
            let mut request = get("/name");
            let said = hyper::header::HeaderValue::from_static(said);
            request.headers_mut().insert("host", said);
            ask(&proxy, request).await;
            let last = seen.lines(seen.count() - 1);
            assert_eq!(last[1], format!("host: {told}"));
        }
    });
}

#[test]
fn a_trusted_proxy_is_believed() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let config = format!(
            "[proxy]\ntrusted=['192.0.2.0/24']\n[[upstream]]\nname='app'\nservers=['{url}']\n\
             [[route]]\npath='/'\nupstream='app'\n"
        );
        let mut request = get("/");
        let said = hyper::header::HeaderValue::from_static("198.51.100.1");
        request.headers_mut().insert("x-forwarded-for", said);
        ask(&proxy(&config), request).await;
        assert!(
            seen.request(0)
                .contains("x-forwarded-for: 198.51.100.1, 192.0.2.7\r\n")
        );
    });
}

#[test]
fn a_unix_socket_is_an_upstream_too() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let seen = ScriptedRequests::default();
        let watching = seen.clone();
        spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            play(stream, watching, Rc::new(|_, _: &str| ok("unix"))).await;
        });
        let proxy = to(&[&format!("unix:{}", path.display())], "host='upstream'");
        assert_eq!(ask(&proxy, get("/")).await.text(), "unix");
        assert_eq!(seen.lines(0), ["GET / HTTP/1.1", "host: localhost"]);
    });
}

/// An upstream that sends back what it gets, over HTTP/2 in clear text, with trailers.
async fn echo_http2() -> String {
    use http_body_util::{Full, combinators::WithTrailers};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async {
        let uri = request.uri().to_string();
        let takes_trailers = request.headers().contains_key("te");
        let body = request.into_body().collect().await?.to_bytes();
        let text = format!("{uri} {takes_trailers} {}", body.len());
        let trailers = async {
            let mut trailers = hyper::HeaderMap::new();
            trailers.insert("grpc-status", hyper::header::HeaderValue::from_static("0"));
            Some(Ok(trailers))
        };
        let body: WithTrailers<Full<bytes::Bytes>, _> =
            Full::from(text).with_trailers(Box::pin(trailers));
        Ok::<_, hyper::Error>(hyper::Response::new(body))
    });
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let io = hyper_util::rt::TokioIo::new(stream);
            let connection =
                hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new())
                    .serve_connection(io, service);
            spawn_local(async move { drop(connection.await) });
        }
    });
    format!("h2c://{address}")
}

#[test]
fn http2_carries_trailers_and_many_requests_at_once() {
    run(async {
        let proxy = to(&[&echo_http2().await], "");
        let mut request = get("/a?b");
        let te = hyper::header::HeaderValue::from_static("trailers");
        request.headers_mut().insert("te", te);
        let whole = ask(&proxy, request).await;
        assert_eq!(whole.text(), "http://example.org/a?b true 0");
        assert_eq!(whole.trailers.unwrap()["grpc-status"], "0");
        let many: Vec<_> = (0..20)
            .map(|_| {
                let proxy = proxy.clone();
                spawn_local(async move { ask(&proxy, get("/")).await.status })
            })
            .collect();
        for one in many {
            assert_eq!(one.await.unwrap(), 200);
        }
    });
}

#[test]
fn a_large_body_goes_both_ways_in_bounded_memory() {
    const BODY_BYTES: usize = 8 << 20;
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // Sends back what it gets while it gets it.
        spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let service =
                hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async {
                    Ok::<_, hyper::Error>(hyper::Response::new(request.into_body()))
                });
            let io = hyper_util::rt::TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(io, service)
                .await;
        });
        let proxy = to(&[&url], "");
        let (address, _) = front(&proxy).await;
        let head = format!(
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: {BODY_BYTES}\r\nconnection: close\r\n\r\n"
        );
        let stream = client(address, &head).await;
        let (mut read, mut write) = stream.into_split();
        let writing = spawn_local(async move {
            let piece = vec![b'x'; 64 << 10];
            for _ in 0..BODY_BYTES / piece.len() {
                write.write_all(&piece).await.unwrap();
            }
            write
        });
        let mut got = 0;
        let mut most = 0;
        let mut buffer = vec![0; 16 << 10];
        loop {
            let read = read.read(&mut buffer).await.unwrap();
            if read == 0 {
                break;
            }
            got += read;
            most = most.max(proxy.buffered_bytes());
        }
        drop(writing.await.unwrap());
        assert!(got > BODY_BYTES, "{got} bytes came back");
        assert!(most <= 512 << 10, "{most} bytes were held");
        assert_eq!(proxy.buffered_bytes(), 0);
    });
}

#[test]
fn the_backend_is_free_before_the_client_has_read_anything() {
    run(async {
        let body = "x".repeat(200 << 10);
        let (url, _) = scripted(move |_, _| ok(&body)).await;
        let proxy = to(&[&url], "limit = 1");
        let mut answers = Vec::new();
        for _ in 0..3 {
            // No client takes a byte of these bodies, and each needs the only slot.
            answers.push(forward(&proxy, get("/")).await.response);
        }
        until(|| proxy.states()[0].inside == 0).await;
        assert!(proxy.buffered_bytes() >= 600 << 10);
        assert!(proxy.states()[0].mean_service_ms.is_some());
        drop(answers);
        assert_eq!(proxy.buffered_bytes(), 0);
    });
}

#[test]
fn a_preliminary_response_is_skipped() {
    run(async {
        let (url, _) = scripted(|_, _| {
            text("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx")
        })
        .await;
        let whole = ask(&to(&[&url], ""), get("/")).await;
        assert_eq!((whole.status, whole.text()), (200, "x"));
        assert!(!whole.headers.contains_key("link"));
    });
}

#[test]
fn a_client_that_expects_100_continue_sends_only_what_the_upstream_wants() {
    run(async {
        // A scripted upstream reads whole requests: this one answers to the head alone.
        let seen = ScriptedRequests::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let picky = format!("http://{}", listener.local_addr().unwrap());
        let heard = seen.clone();
        spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            heard
                .requests
                .borrow_mut()
                .push(String::from_utf8(head).unwrap());
            stream
                .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
            let mut more = Vec::new();
            let _ = stream.read_to_end(&mut more).await;
            heard
                .requests
                .borrow_mut()
                .push(format!("{} bytes more", more.len()));
        });
        let (address, _) = front(&to(&[&picky], "")).await;
        let head = "PUT / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n";
        let mut stream = client(address, head).await;
        let answer = read_message(&mut stream).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(seen.request(0).contains("expect: 100-continue\r\n"));
        until(|| seen.count() == 2).await;
        assert_eq!(seen.request(1), "0 bytes more");
    });
}

#[test]
fn an_upstream_that_says_continue_gets_the_body() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await
                .unwrap();
            let mut body = [0; 5];
            stream.read_exact(&mut body).await.unwrap();
            let body = String::from_utf8_lossy(&body);
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let (address, _) = front(&to(&[&url], "")).await;
        let head = "PUT / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n";
        let mut stream = client(address, head).await;
        let go = read_message(&mut stream).await.unwrap();
        assert_eq!(go, "HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"hello").await.unwrap();
        assert!(rest(stream).await.ends_with("\r\n\r\nhello"));
    });
}

#[test]
fn an_empty_answer_has_no_source() {
    run(async {
        let (url, _) = scripted(|_, _| text("HTTP/1.1 204 No Content\r\n\r\n")).await;
        let answer = forward(&to(&[&url], ""), get("/")).await.response;
        assert!(matches!(answer.source, Source::Empty));
    });
}

/// A request with these headers beside its host.
fn with(headers: &[(&'static str, &'static str)]) -> Request<RequestBody> {
    let mut request = get("/a?b=c");
    for (name, value) in headers {
        let value = HeaderValue::from_static(value);
        request.headers_mut().append(*name, value);
    }
    request
}

#[test]
fn headers_of_an_upstream_are_what_the_operator_says() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let keys = "headers = { X-Forwarded-Proto = 'https', Accept-Encoding = '', X-Key = 'a $$', \
                    X-From = '${scheme} $remote_addr:$server_port $host $http_host $request_uri', \
                    X-Copy = '$http_x_id', X_Under = '1', Authorization = '' }";
        let proxy = to(&[&url], keys);
        let sent = [
            ("accept-encoding", "gzip"),
            ("accept_encoding", "gzip"),
            ("authorization", "Basic eA=="),
            ("x-forwarded-proto", "gopher"),
            ("x-key", "forged"),
            ("x_key", "forged"),
            ("x-under", "forged"),
            ("x-copy", "forged"),
            ("x-id", "7"),
            ("x-id", "8"),
            ("x-other", "stays"),
        ];
        let mut request = with(&sent);
        let host = HeaderValue::from_static("EXAMPLE.org:8080");
        request.headers_mut().insert("host", host);
        ask(&proxy, request).await;
        let mut lines = seen.lines(0);
        lines.sort();
        assert_eq!(
            lines,
            [
                "GET /a?b=c HTTP/1.1",
                "host: EXAMPLE.org:8080",
                "x-copy: 7, 8",
                "x-from: http 192.0.2.7:80 example.org EXAMPLE.org:8080 /a?b=c",
                "x-id: 7",
                "x-id: 8",
                "x-key: a $",
                "x-other: stays",
                "x_under: 1",
            ]
        );
        let request = seen.request(0);
        assert!(
            request.contains("x-forwarded-proto: https\r\n"),
            "{request}"
        );
        // A value that comes out empty is no header.
        ask(&proxy, with(&[("x-copy", "forged")])).await;
        assert!(!seen.request(1).contains("x-copy"), "{}", seen.request(1));
    });
}

#[test]
fn trailers_do_not_say_what_a_header_of_the_upstream_does() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let proxy = to(&[&url], "headers = { X-Key = 'a', X-Gone = '' }");
        let (address, _) = front(&proxy).await;
        let asked = "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\nte: trailers\r\n\
                     trailer: x-key\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\
                     x-key: evil\r\nx_key: evil\r\nx-gone: evil\r\nx-sum: 7\r\n\r\n";
        rest(client(address, asked).await).await;
        let request = seen.request(0);
        assert!(request.contains("x-key: a\r\n"), "{request}");
        assert!(!request.contains("evil"), "{request}");
    });
}

#[test]
fn a_health_check_has_the_headers_that_all_requests_have() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let keys = "health = { path = '/health', seconds = 0.02 }\n\
                    headers = { X-Key = 'a', X-From = '$remote_addr', User-Agent = '' }";
        let _proxy = to(&[&url], keys);
        until(|| seen.count() > 0).await;
        let mut lines = seen.lines(0);
        lines.retain(|line| !line.starts_with("host: "));
        let expected = ["GET /health HTTP/1.1", "x-key: a", "connection: close"];
        assert_eq!(lines, expected);
    });
}

#[test]
fn a_class_sees_the_headers_that_the_client_sent() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let config = format!(
            "[[class]]\nname='gold'\nheader={{ x-key=['client'] }}\n[[class]]\nname='rest'\n\
             [[upstream]]\nname='app'\nservers=['{url}']\ntell_wait=['server']\nlimit=1\n\
             headers={{ X-Key='ours' }}\n[[route]]\npath='/'\nupstream='app'\n"
        );
        ask(&proxy(&config), with(&[("x-key", "client")])).await;
        let request = seen.request(0);
        assert!(request.contains("x-key: ours\r\n"), "{request}");
        assert!(request.contains("x-queue-class: gold\r\n"), "{request}");
    });
}

#[test]
fn a_reload_changes_the_headers_of_an_upstream() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("")).await;
        let config = |value: &str| {
            format!(
                "[[upstream]]\nname='app'\nservers=['{url}']\nheaders={{ X-Key='{value}' }}\n\
                 [[route]]\npath='/'\nupstream='app'\n"
            )
        };
        let before = proxy(&config("one"));
        let after = proxy_after(&config("two"), Some(&before));
        after.take_over();
        ask(&after, get("/")).await;
        assert!(seen.request(0).contains("x-key: two\r\n"));
    });
}
