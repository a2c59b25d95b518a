//! Servers that end connections of HTTP/2 after some requests: nginx with GOAWAY, as it does after
//! a thousand, and one that goes without a word.

use super::nginx::Nginx;
use super::replay::block_on;
use bytes::Bytes;
use http::Method;
use sooner_load::closed::{self, ClosedOptions};
use sooner_load::message::Question;
use sooner_load::pool::Reuse;
use sooner_load::questions::Questions;
use sooner_load::rate::report::RateRun;
use sooner_load::rate::{self, Arrival, RateOptions};
use sooner_load::socket::SocketOptions;
use sooner_load::tls::TlsOptions;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Requests on a connection of nginx, fewer than it has by itself.
const REQUESTS: u64 = 100;
const STREAMS: Option<NonZeroU32> = NonZeroU32::new(50);
/// Beside those that may be: they answer their last requests, and close.
const RUN_OUT_MAX: u64 = 3;

/// Runs what `serve` makes of connections to its own address, in a thread that ends with the tests.
fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
    });
    address
}

/// Connections through a relay: those open now, the most at a time, and all.
#[derive(Default)]
struct Connections {
    open: AtomicU64,
    most: AtomicU64,
    all: AtomicU64,
}

/// Relays to nginx and counts.
fn relay(nginx: SocketAddr) -> (SocketAddr, Arc<Connections>) {
    let connections = Arc::new(Connections::default());
    let counted = connections.clone();
    let address = listen(move |mut stream| {
        let counted = counted.clone();
        async move {
            counted.all.fetch_add(1, Ordering::Relaxed);
            let open = counted.open.fetch_add(1, Ordering::Relaxed) + 1;
            counted.most.fetch_max(open, Ordering::Relaxed);
            if let Ok(mut upstream) = TcpStream::connect(nginx).await {
                // A client that has gone ends its own connection only.
                let copied = tokio::io::copy_bidirectional(&mut stream, &mut upstream);
                copied.await.ok();
            }
            counted.open.fetch_sub(1, Ordering::Relaxed);
        }
    });
    (address, connections)
}

fn nginx() -> Option<(Nginx, tempfile::TempDir)> {
    let root = tempfile::tempdir().unwrap();
    let nginx = Nginx::start_with(root.path(), &format!("keepalive_requests {REQUESTS};"))?;
    Some((nginx, root))
}

fn questions(url: &str, method: &Method) -> Questions {
    let tls = TlsOptions {
        http2: true,
        ..TlsOptions::default()
    };
    let mut questions = Questions::new(tls, NonZeroU32::MAX);
    let question = Question {
        method: method.clone(),
        body: (*method == Method::POST).then(|| Bytes::from_static(b"a=1")),
        ..Question::get("/")
    };
    questions.add(url, &question, 1.0).unwrap();
    questions
}

/// A run of so many requests, each due at its time.
fn run(url: &str, method: &Method, connections: u32, due_ns: impl Iterator<Item = u64>) -> RateRun {
    let questions = questions(url, method);
    let options = RateOptions {
        servers: questions.servers().to_vec(),
        requests: questions.requests().to_vec(),
        duration: Duration::from_secs(1),
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(20),
        connections,
        reuse: Reuse {
            requests_per_connection: NonZeroU32::MAX,
            http2_streams: STREAMS,
        },
        arrivals: "constant",
        stages: None,
        expectations: Vec::new(),
        socket: SocketOptions::default(),
    };
    let mut arrivals = due_ns.map(|at_ns| Arrival {
        at_ns,
        request: 0,
        failed_before: false,
    });
    block_on(rate::run(&options, &mut arrivals, &mut |_| ()))
        .unwrap()
        .run
}

#[test]
fn what_nginx_turns_away_shares_the_next_connection() {
    const ALL: usize = 4000;
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    let address = nginx.clear_http2().replace("http://", "").parse().unwrap();
    for (method, connections) in [(Method::GET, 1), (Method::GET, 3), (Method::POST, 1)] {
        let (relay, counted) = relay(address);
        let url = format!("http://{relay}/any");
        let run = run(&url, &method, connections, std::iter::repeat_n(0, ALL));
        // What it turns away it has not read: that is no error, and does it no work twice.
        assert_eq!(
            (run.answered, run.errors),
            (ALL as u64, 0),
            "{:?}",
            run.failures
        );
        let least = ALL as u64 / REQUESTS;
        let all = run.connections_opened;
        let most = counted.most.load(Ordering::Relaxed);
        assert!(
            (least..least + 2 * u64::from(connections)).contains(&all),
            "{all} connections for {ALL} requests, {most} at a time"
        );
        assert!(
            most <= u64::from(connections) + RUN_OUT_MAX,
            "{most} at a time"
        );
    }
}

#[test]
fn a_closed_loop_keeps_to_its_connections() {
    let Some((nginx, _root)) = nginx() else {
        return;
    };
    let address = nginx.clear_http2().replace("http://", "").parse().unwrap();
    let (relay, counted) = relay(address);
    let url = format!("http://{relay}/any");
    let options = ClosedOptions {
        asked: questions(&url, &Method::GET).by_connection(2),
        connections: 2,
        sources: Vec::new(),
        http2_streams: STREAMS,
        duration: Duration::from_secs(1),
        timeout: None,
        expectations: Vec::new(),
        socket: SocketOptions::default(),
    };
    let run = block_on(closed::run(&options, &mut |_| ())).unwrap().run;
    assert_eq!(run.all.errors, 0, "{:?}", run.failures);
    assert!(run.all.completed > 10 * REQUESTS, "{}", run.all.completed);
    let most = counted.most.load(Ordering::Relaxed);
    assert!(most <= 2 + RUN_OUT_MAX, "{most} at a time");
}

/// Answers the first request of a connection, reads the second and goes; counts those it has read.
fn leaving() -> (SocketAddr, Arc<AtomicU64>) {
    let read = Arc::new(AtomicU64::new(0));
    let counted = read.clone();
    let address = listen(move |stream| {
        let counted = counted.clone();
        async move {
            let mut builder = h2::server::Builder::new();
            builder.max_concurrent_streams(1);
            let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else {
                return;
            };
            let mut is_first = true;
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                if !std::mem::take(&mut is_first) {
                    return;
                }
                let head = http::Response::new(());
                let mut body = respond.send_response(head, false).unwrap();
                body.send_data(Bytes::from_static(b"hello"), true).unwrap();
            }
        }
    });
    (address, read)
}

#[test]
fn a_request_that_was_read_goes_out_again_only_where_that_changes_nothing() {
    // So far apart that each has its end before the next.
    let due_ns = || (0..10_u64).map(|nth| nth * 100_000_000);
    let (address, read) = leaving();
    let run_of = |method| run(&format!("http://{address}/"), &method, 1, due_ns());
    let posts = run_of(Method::POST);
    assert_eq!(
        (posts.answered, posts.errors, posts.resent),
        (5, 5, 0),
        "{:?}",
        posts.failures
    );
    assert_eq!(read.swap(0, Ordering::Relaxed), 10);
    let gets = run_of(Method::GET);
    assert_eq!(
        (gets.answered, gets.errors, gets.resent),
        (10, 0, 9),
        "{:?}",
        gets.failures
    );
    assert_eq!(read.load(Ordering::Relaxed), gets.sent + gets.resent);
}

/// Takes no request: each connection ends one, and nothing goes on without an end.
#[test]
fn a_server_that_takes_no_request_ends_the_run() {
    let address = listen(|stream| async move {
        if let Ok(mut connection) = h2::server::handshake(stream).await {
            connection.abrupt_shutdown(h2::Reason::NO_ERROR);
            while let Some(Ok(_)) = connection.accept().await {}
        }
    });
    let url = format!("http://{address}/");
    let run = run(&url, &Method::GET, 2, std::iter::repeat_n(0, 40));
    assert_eq!((run.answered, run.errors), (0, 40), "{:?}", run.failures);
    assert!(
        run.connections_opened <= 41,
        "{} connections",
        run.connections_opened
    );
}
