//! What is expected of requests of one kind, once it was seen what tells them apart.

use super::support::*;
use crate::proxy::Proxy;
use sooner_admission::Quality;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

/// An upstream that takes as long as `takes` says of a request, and longer while it is held.
async fn taking(takes: fn(&str) -> Duration) -> (String, ScriptedRequests, Rc<Cell<bool>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = ScriptedRequests::default();
    let is_held = Rc::new(Cell::new(false));
    let (watching, held) = (seen.clone(), is_held.clone());
    spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (seen, held) = (watching.clone(), held.clone());
            spawn_local(async move {
                while let Some(request) = read_message(&mut stream).await {
                    let time = takes(&request);
                    seen.requests.borrow_mut().push(request);
                    tokio::time::sleep(time).await;
                    until(|| !held.get()).await;
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(answer).await.unwrap();
                }
            });
        }
    });
    (url, seen, is_held)
}

fn quality(proxy: &Rc<Proxy>) -> Quality {
    proxy.prediction_states()[0].quality.clone()
}

fn waiting(proxy: &Rc<Proxy>) -> usize {
    proxy.states()[0].waiting
}

fn body_bytes(request: &str) -> usize {
    request
        .split_once("\r\n\r\n")
        .map_or(0, |(_, body)| body.len())
}

/// A client that has sent a body of this length.
async fn post(address: std::net::SocketAddr, bytes: usize) -> TcpStream {
    let body = "x".repeat(bytes);
    let head = "POST /work HTTP/1.1\r\nhost: h\r\nconnection: close\r\n";
    client(
        address,
        &format!("{head}content-length: {bytes}\r\n\r\n{body}"),
    )
    .await
}

#[test]
fn short_bodies_go_first_where_the_time_grows_with_the_length() {
    run(async {
        // 100 us a byte: 2, 8 and 32 ms.
        let (url, seen, is_held) =
            taking(|request| Duration::from_micros(100) * body_bytes(request) as u32).await;
        let proxy = to(&[&url], "limit = 1");
        let (address, _) = front(&proxy).await;
        for bytes in [320, 20, 80].repeat(8) {
            rest(post(address, bytes).await).await;
        }
        let learned = quality(&proxy);
        assert!(learned.ranked_rightly > learned.ranked_rightly_by_kind);
        let taught = seen.count();
        is_held.set(true);
        let inside = post(address, 320).await;
        until(|| seen.count() == taught + 1).await;
        let mut later = Vec::new();
        for bytes in [320, 81, 160, 20, 321, 19] {
            later.push(post(address, bytes).await);
            until(|| waiting(&proxy) == later.len()).await;
        }
        is_held.set(false);
        for stream in later.into_iter().chain([inside]) {
            rest(stream).await;
        }
        let order: Vec<String> = (taught + 1..seen.count())
            .map(|index| body_bytes(&seen.request(index)).to_string())
            .collect();
        assert_eq!(order.join(" "), "19 20 81 160 320 321");
    });
}

#[test]
fn clients_of_short_requests_go_first() {
    run(async {
        // What a trusted proxy says of its clients; those of 10.1.0.9 take long.
        let slow = |request: &str| request.contains("10.1.0.9");
        let (url, seen, is_held) = taking(|request| {
            Duration::from_millis(if request.contains("10.1.0.9") { 20 } else { 1 })
        })
        .await;
        let proxy = proxy(&format!(
            "[proxy]\ntrusted=['192.0.2.0/24']\n\
             [[upstream]]\nname='app'\nservers=['{url}']\nlimit=1\n\
             [[route]]\npath='/'\nupstream='app'\n"
        ));
        let of = |client: &str| {
            let mut request = get("/report");
            let fields = request.headers_mut();
            fields.insert("x-forwarded-for", client.parse().unwrap());
            request
        };
        for client in ["10.1.0.9", "10.2.0.1", "10.1.0.1"].repeat(10) {
            ask(&proxy, of(client)).await;
        }
        let taught = seen.count();
        let spawn = |client: &str| {
            let (proxy, request) = (proxy.clone(), of(client));
            spawn_local(async move { ask(&proxy, request).await })
        };
        is_held.set(true);
        let inside = spawn("10.1.0.9");
        until(|| seen.count() == taught + 1).await;
        let later = ["10.1.0.9", "10.1.0.1", "10.1.0.9", "10.2.0.1"].map(spawn);
        until(|| waiting(&proxy) == 4).await;
        is_held.set(false);
        for one in later.into_iter().chain([inside]) {
            one.await.unwrap();
        }
        let order = (taught + 1..seen.count()).map(|index| slow(&seen.request(index)));
        assert_eq!(order.collect::<Vec<_>>(), [false, false, true, true]);
    });
}
