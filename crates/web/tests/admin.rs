//! The admin address over real sockets.

use serde_json::{Value, json};
use sooner_testbed::chromium::{self, Look};
use sooner_uplink::Uplink;
use sooner_web::access_log::AccessLog;
use sooner_web::admin::{Admin, Sources, UplinkReading};
use sooner_web::metrics::Metrics;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_blocking, spawn_local};

/// As many connections as are answered at once.
const CONNECTIONS_MAX: usize = 64;

/// Runs `client` beside an admin address.
async fn with_admin<F: Future<Output = ()>>(client: impl FnOnce(SocketAddr, Arc<Metrics>) -> F) {
    let hosts = vec!["metrics.example.org".into()];
    let admin = Admin::bind("127.0.0.1:0".parse().unwrap(), hosts).unwrap();
    let address = admin.address().unwrap();
    let metrics = Arc::new(Metrics::new(SystemTime::now()));
    let sources = Sources {
        metrics: vec![metrics.clone()],
        log: AccessLog::off(),
        uplink: Box::new(|| UplinkReading::of(&Uplink::unlimited())),
        upstreams: Box::new(Vec::new),
        upstream_classes: Box::new(Vec::new),
        upstream_predictions: Box::new(Vec::new),
        rehearsals: Box::new(Vec::new),
    };
    LocalSet::new()
        .run_until(async move {
            spawn_local(admin.serve(sources));
            client(address, metrics).await;
        })
        .await;
}

/// Head and body of the answer, read by its length.
async fn ask(stream: &mut TcpStream, request_line: &str, host: &str) -> (String, String) {
    let request = format!("{request_line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![
        0;
        if request_line.starts_with("HEAD") {
            0
        } else {
            length
        }
    ];
    stream.read_exact(&mut body).await.unwrap();
    (head, String::from_utf8(body).unwrap())
}

#[tokio::test]
async fn one_connection_asks_for_everything() {
    with_admin(|address, metrics| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let (head, body) = ask(&mut stream, "GET /healthz", "localhost").await;
        assert!(head.starts_with("http/1.1 200") && body == "ok\n");
        let (head, body) = ask(&mut stream, "HEAD /metrics", "127.0.0.1").await;
        assert!(head.contains("application/openmetrics-text") && body.is_empty());
        let (_, body) = ask(&mut stream, "GET /metrics", "metrics.example.org:9090").await;
        assert!(body.ends_with("# EOF\n"));
        let (_, body) = ask(&mut stream, "GET /status.json", "[::1]:1").await;
        let status: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert!(status["uplink"]["rate_bits_per_sec"].is_null());
        let (head, body) = ask(&mut stream, "GET /", "localhost").await;
        assert!(head.contains("content-security-policy: default-src 'none'"));
        assert!(body.starts_with("<!doctype html>") && body.contains("Responses are not ordered"));
        let (head, _) = ask(&mut stream, "GET /", "evil.example").await;
        assert!(head.starts_with("http/1.1 403"));
        let (head, _) = ask(&mut stream, "DELETE /", "localhost").await;
        assert!(head.starts_with("http/1.1 405") && head.contains("allow: get, head"));
        metrics.stops();
        let (head, _) = ask(&mut stream, "GET /healthz", "localhost").await;
        assert!(head.starts_with("http/1.1 503"));
    })
    .await;
}

#[tokio::test]
async fn for_one_too_many_the_first_ends() {
    with_admin(|address, _| async move {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            let mut stream = TcpStream::connect(address).await.unwrap();
            ask(&mut stream, "GET /healthz", "localhost").await;
            streams.push(stream);
        }
        let mut late = TcpStream::connect(address).await.unwrap();
        ask(&mut late, "GET /healthz", "localhost").await;
        let mut first = streams.remove(0);
        assert_eq!(first.read(&mut [0]).await.unwrap_or(0), 0, "it has ended");
        for stream in &mut streams {
            ask(stream, "GET /healthz", "localhost").await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_no_request_ends_its_connection_alone() {
    with_admin(|address, _| async move {
        let mut broken = TcpStream::connect(address).await.unwrap();
        broken
            .write_all(b"\x16\x03\x01 nonsense\r\n\r\n")
            .await
            .unwrap();
        let mut rest = Vec::new();
        broken.read_to_end(&mut rest).await.unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        ask(&mut stream, "GET /healthz", "localhost").await;
    })
    .await;
}

#[tokio::test]
async fn a_browser_shows_it_at_both_widths_without_a_complaint() {
    if chromium::is_missing("serve::a_browser_shows_it_at_both_widths") {
        return;
    }
    with_admin(|address, _| async move {
        let looks = spawn_blocking(move || {
            let url = format!("http://{address}/");
            let live = "document.getElementById('state').textContent.startsWith('Live')";
            for width in [1280, 375] {
                let seen = Look::at(&url, width, live).take(Duration::from_secs(60));
                let seen: Value = serde_json::from_str(&seen).unwrap();
                assert_eq!((&seen["errors"], &seen["failed"]), (&json!([]), &json!([])));
                let content = seen["content_pixels"].as_u64().unwrap();
                assert!(content <= width.into(), "{seen}");
                let text = seen["text"].as_str().unwrap();
                for part in [
                    "Responses are not ordered",
                    "Response time by size",
                    "up 0 min",
                ] {
                    assert!(text.contains(part), "{part} is not in {text}");
                }
            }
        });
        looks.await.unwrap();
    })
    .await;
}
