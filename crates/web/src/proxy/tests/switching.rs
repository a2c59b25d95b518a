//! WebSocket and other protocols through the proxy.

use super::support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::spawn_local;

const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nhost: h\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n";

/// An upstream that switches to a protocol in which everything is said back; the heads it gets.
async fn echo() -> (String, ScriptedRequests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = ScriptedRequests::default();
    let watching = seen.clone();
    spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let seen = watching.clone();
            spawn_local(async move {
                let Some(head) = read_message(&mut stream).await else {
                    return;
                };
                seen.requests.borrow_mut().push(head);
                seen.open.set(seen.open.get() + 1);
                let switch = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                               sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nwelcome";
                stream.write_all(switch).await.unwrap();
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                seen.open.set(seen.open.get() - 1);
            });
        }
    });
    (url, seen)
}

#[test]
fn a_websocket_goes_through_and_holds_no_place() {
    run(async {
        let (url, seen) = echo().await;
        let proxy = to(&[&url], "limit = 1");
        let (address, _) = front(&proxy).await;
        let mut sockets = Vec::new();
        for _ in 0..3 {
            let mut stream = client(address, HANDSHAKE).await;
            let head = read_message(&mut stream).await.unwrap();
            assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
            assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
            assert!(head.contains("upgrade: websocket\r\n"));
            sockets.push(stream);
        }
        let said = seen.lines(0);
        assert!(said.contains(&"connection: upgrade".to_owned()));
        assert!(said.contains(&"sec-websocket-version: 13".to_owned()));
        for stream in &mut sockets {
            let mut welcome = [0; 7];
            stream.read_exact(&mut welcome).await.unwrap();
            assert_eq!(&welcome, b"welcome");
            stream.write_all(b"ping").await.unwrap();
            let mut echo = [0; 4];
            stream.read_exact(&mut echo).await.unwrap();
            assert_eq!(&echo, b"ping");
        }
        assert_eq!(proxy.states()[0].inside, 0);
        drop(sockets);
        until(|| seen.open.get() == 0).await;
    });
}

#[test]
fn a_switch_the_route_does_not_allow_is_an_ordinary_request() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("plain")).await;
        let (address, _) = front(&to(&[&url], "")).await;
        let request = "GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade, http2-settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n";
        let answer = rest(client(address, request).await).await;
        assert!(answer.ends_with("plain"), "{answer}");
        assert_eq!(seen.lines(0), ["GET / HTTP/1.1", "host: h"]);
    });
}

#[test]
fn a_server_that_does_not_switch_answers_as_usual() {
    run(async {
        let (url, _) =
            scripted(|_, _| text("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno")).await;
        let (address, _) = front(&to(&[&url], "")).await;
        let mut stream = client(address, HANDSHAKE).await;
        let answer = read_message(&mut stream).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.ends_with("no"),
            "{answer}"
        );
    });
}

/// RFC 9110, 15.5.22; nginx passes it on too.
#[test]
fn a_client_that_must_switch_is_told_to_what() {
    run(async {
        let (url, _) = scripted(|_, _| {
            text("HTTP/1.1 426 Upgrade Required\r\nconnection: upgrade\r\nupgrade: h2c, websocket\r\ncontent-length: 2\r\n\r\nno")
        })
        .await;
        let (address, _) = front(&to(&[&url], "")).await;
        let mut stream = client(address, "GET /chat HTTP/1.1\r\nhost: h\r\n\r\n").await;
        let answer = read_message(&mut stream).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
        for line in ["upgrade: websocket\r\n", "connection: upgrade\r\n"] {
            assert!(answer.contains(line), "{answer}");
        }
    });
}

#[test]
fn a_server_that_switches_to_something_else_is_not_believed() {
    run(async {
        let (url, _) = scripted(|_, _| {
            Reply::Last(
                b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"
                    .to_vec(),
            )
        })
        .await;
        let (address, reports) = front(&to(&[&url], "")).await;
        let mut stream = client(address, HANDSHAKE).await;
        let answer = read_message(&mut stream).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(reports.borrow()[0].lock().failure.is_some());
    });
}

#[test]
fn silence_ends_a_switched_connection() {
    run(async {
        let (url, seen) = echo().await;
        let proxy = proxy(&format!(
            "[[upstream]]\nname='app'\nservers=['{url}']\n[[route]]\npath='/'\nupstream='app'\ntunnel_seconds=0.05\n"
        ));
        let (address, _) = front(&proxy).await;
        let stream = client(address, HANDSHAKE).await;
        assert!(rest(stream).await.ends_with("welcome"));
        until(|| seen.open.get() == 0).await;
    });
}
