//! The admin address over real sockets and in a browser, before an attachment of figures.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sooner_testbed::chromium::{self, Look};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};

use super::*;
use crate::web::snapshot::{BandView, DecisionView, SizeView, UplinkView};

/// A name that would be a picture if it were not text.
const HOSTILE: &str = "<img src=x>";

/// Sends 125 kB a second, and ends when told.
struct Figures {
    sent_bytes: Cell<u64>,
    is_over: Rc<Cell<bool>>,
}

impl Source for Figures {
    fn snapshot(&self) -> io::Result<Snapshot> {
        if self.is_over.get() {
            return Err(ended());
        }
        Ok(Snapshot {
            device: HOSTILE.into(),
            ports: vec![80, 443],
            rate_bits_per_sec: Some(10_000_000),
            responses: 120,
            sized_responses: 100,
            uplink: Some(UplinkView {
                state: "hold".into(),
                decisions: vec![DecisionView {
                    why: "clients wait for 80 ms beyond this host, all of them alike".into(),
                    ..DecisionView::default()
                }],
                ..UplinkView::default()
            }),
            bands: vec![
                BandView {
                    up_to_bytes: Some(2047),
                    backlog_bytes: 3000,
                    ..BandView::default()
                },
                BandView::default(),
            ],
            sizes: vec![
                SizeView {
                    up_to_bytes: Some(1000),
                    responses: 50,
                    mean_response_ms: Some(2.0),
                    compared_responses: 40,
                    compared_mean_response_ms: Some(2.0),
                    fair_mean_response_ms: Some(9.0),
                },
                SizeView::default(),
            ],
            ..Snapshot::default()
        })
    }

    fn load(&self) -> io::Result<(u64, u64)> {
        self.sent_bytes.set(self.sent_bytes.get() + 125_000);
        Ok((self.sent_bytes.get(), 3000))
    }
}

/// Runs `client` beside an admin address; the last figures are those when it is over.
fn with_admin<F: Future<Output = ()>>(client: impl FnOnce(SocketAddr, Rc<Cell<bool>>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async move {
        let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Rc::new(Cell::new(false));
        let figures = Figures {
            sent_bytes: Cell::default(),
            is_over: is_over.clone(),
        };
        let desk = Rc::new(Desk::new(figures));
        desk.second_passed();
        spawn_local(sooner_operate::admin::serve(listener, desk));
        client(address, is_over).await;
    });
}

async fn get(address: SocketAddr, path: &str, host: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

#[test]
fn each_path_answers_its_own_operator() {
    with_admin(|address, is_over| async move {
        let (head, body) = get(address, "/status.json", "localhost").await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let status: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status["rate_bits_per_sec"], 10_000_000);
        assert_eq!(status["bands"][0]["backlog_bytes"], 3000);
        assert_eq!(status["per_second"]["sent_bytes"][0], 125_000);
        let headline = "Responses come 4.5 times sooner than on a link shared equally";
        assert_eq!(status["headline"], headline);
        let (_, body) = get(address, "/metrics", "127.0.0.1").await;
        assert!(body.contains("sooner_attach_responses_total") && body.ends_with("# EOF\n"));
        let (_, body) = get(address, "/", "localhost").await;
        assert!(body.contains(headline) && !body.contains(HOSTILE), "{body}");
        for path in ["/", "/status.json", "/metrics"] {
            let (head, _) = get(address, path, "evil.example").await;
            assert!(head.starts_with("http/1.1 403"), "{path}: {head}");
        }
        let (head, _) = get(address, "/nothing", "localhost").await;
        assert!(head.starts_with("http/1.1 404"), "{head}");
        is_over.set(true);
        // What was read before stands until the second is over.
        loop {
            let (head, _) = get(address, "/", "localhost").await;
            if head.starts_with("http/1.1 503") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn a_browser_shows_it_at_both_widths_without_a_complaint() {
    if chromium::is_missing("attach::a_browser_shows_it_at_both_widths") {
        return;
    }
    with_admin(|address, _| async move {
        let looks = thread::spawn(move || {
            let url = format!("http://{address}/");
            let live = "document.getElementById('state').textContent.startsWith('Live')";
            for width in [1280, 375] {
                let seen = Look::at(&url, width, live).take(Duration::from_secs(60));
                let seen: Value = serde_json::from_str(&seen).unwrap();
                assert_eq!((&seen["errors"], &seen["failed"]), (&json!([]), &json!([])));
                let content = seen["content_pixels"].as_u64().unwrap();
                assert!(content <= width.into(), "{seen}");
                assert_eq!((&seen["scripts"], &seen["images"]), (&json!(1), &json!(0)));
                let text = seen["text"].as_str().unwrap();
                for part in [
                    HOSTILE,
                    "4.5 times sooner",
                    "2.05\u{a0}KB",
                    "beyond this host",
                ] {
                    assert!(text.contains(part), "{part} is not in {text}");
                }
            }
        });
        let ended = tokio::task::spawn_blocking(move || looks.join());
        ended.await.unwrap().unwrap();
    });
}

#[test]
fn a_port_alone_is_of_this_machine() {
    assert_eq!(address("9191"), Ok("127.0.0.1:9191".parse().unwrap()));
    assert_eq!(address("[::1]:9191"), Ok("[::1]:9191".parse().unwrap()));
    for wrong in ["", "99999", "localhost", "127.0.0.1", "eth0:80"] {
        assert!(address(wrong).is_err(), "{wrong}");
    }
}
