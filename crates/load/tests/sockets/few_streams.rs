//! A server of HTTP/2 that allows fewer streams on a connection than the generator would use.

use bytes::Bytes;
use sooner_load::message::Question;
use sooner_load::pool::Reuse;
use sooner_load::questions::Questions;
use sooner_load::rate::arrivals::Stages;
use sooner_load::rate::report::RateRun;
use sooner_load::rate::{self, Arrival, RateOptions};
use sooner_load::socket::SocketOptions;
use sooner_load::tls::TlsOptions;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

const STREAMS_ALLOWED: u32 = 2;
const ANSWER_AFTER: Duration = Duration::from_millis(20);

/// Its address, and how many connections it has had with a request on them.
fn server() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let used = Arc::new(AtomicU64::new(0));
    let counted = used.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, counted.clone()));
            }
        });
    });
    (address, used)
}

async fn serve(stream: tokio::net::TcpStream, used: Arc<AtomicU64>) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(STREAMS_ALLOWED);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else {
        return;
    };
    let mut is_first = true;
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        used.fetch_add(u64::from(std::mem::take(&mut is_first)), Ordering::Relaxed);
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_AFTER).await;
            let mut body = respond
                .send_response(http::Response::new(()), false)
                .unwrap();
            body.send_data(Bytes::from_static(b"hello"), true).unwrap();
        });
    }
}

fn run(address: SocketAddr, arrivals: &mut dyn Iterator<Item = Arrival>) -> RateRun {
    let tls = TlsOptions {
        http2: true,
        ..TlsOptions::default()
    };
    let mut questions = Questions::new(tls, NonZeroU32::MAX);
    questions
        .add(&format!("http://{address}/"), &Question::get("/"), 1.0)
        .unwrap();
    let options = RateOptions {
        servers: questions.servers().to_vec(),
        requests: questions.requests().to_vec(),
        duration: Duration::from_secs(1),
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(20),
        connections: 2,
        reuse: Reuse {
            requests_per_connection: NonZeroU32::MAX,
            http2_streams: NonZeroU32::new(20),
        },
        arrivals: "constant",
        stages: None,
        expectations: Vec::new(),
        socket: SocketOptions::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ran = runtime.block_on(rate::run(&options, arrivals, &mut |_| ()));
    ran.unwrap().run
}

#[test]
fn no_more_connections_than_may_be_are_opened() {
    let (address, used) = server();
    // Two connections with two streams carry 200 a second.
    let stages = Stages::one("400".parse().unwrap(), 1.0).unwrap();
    let times = stages.times(true, 1);
    let mut arrivals = times.map(|at_ns| Arrival {
        at_ns,
        request: 0,
        failed_before: false,
    });
    let run = run(address, &mut arrivals);
    assert_eq!((run.answered, run.errors), (400, 0), "{:?}", run.failures);
    assert_eq!(used.load(Ordering::Relaxed), 2);
    assert_eq!(run.connections_opened, 2);
    assert!(run.connection_wait.n > 100, "{:?}", run.connection_wait);
    assert!(
        run.verdict_reason.contains("all 2 connections were busy"),
        "{}",
        run.verdict_reason
    );
}

/// They are on their way before the server has said how many it takes, and it refuses some.
#[test]
fn what_a_server_refuses_at_first_waits_on_its_connection() {
    let (address, used) = server();
    let mut burst = std::iter::repeat_n(
        Arrival {
            at_ns: 0,
            request: 0,
            failed_before: false,
        },
        60,
    );
    let run = run(address, &mut burst);
    assert_eq!((run.answered, run.errors), (60, 0), "{:?}", run.failures);
    assert_eq!(
        (used.load(Ordering::Relaxed), run.connections_opened),
        (2, 2)
    );
}
