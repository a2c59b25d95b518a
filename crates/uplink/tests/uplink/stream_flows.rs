//! Streams on real sockets: order, accounts, clients that do not read and clients that leave.

use crate::engine::{Driver, Ends, Engine, frames, respond, start};
use sooner_link::{JobReport, ResponseStart, StreamOrder, StreamRule};
use sooner_policy::{PolicyName, Time};
use sooner_uplink::{Flow, GatedStream, Mechanism, Observer, Uplink, UplinkConfig};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Slow enough that every body takes many grants, fast enough that a test takes well under a
/// second.
const RATE_BITS_PER_SEC: u64 = 40_000_000;
/// Grants are half a millisecond.
const QUANTUM_BYTES: u64 = RATE_BITS_PER_SEC / 16_000;

fn config(policy: PolicyName) -> UplinkConfig {
    let mut config = UplinkConfig::new(RATE_BITS_PER_SEC, policy);
    config.mechanism = Mechanism::UserSpace;
    config
}

fn in_order_of(policy: PolicyName) -> Uplink {
    Uplink::start(&config(policy)).expect("user space needs nothing")
}

/// A client with a small window, so that what it does not read stays with the server.
async fn connect(uplink: &Uplink) -> (TcpStream, GatedStream, Flow) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(16_384).expect("a small buffer");
    let (client, accepted) = tokio::join!(socket.connect(address), listener.accept());
    let accepted = accepted.expect("accepted").0;
    accepted.set_nodelay(true).expect("as servers do");
    let (stream, flow) = uplink.wrap(accepted);
    (client.expect("connected"), stream, flow)
}

async fn read_to_end(mut client: TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    client
        .read_to_end(&mut received)
        .await
        .expect("a clean end");
    received
}

/// Serves streams of the given sizes and orders on one connection; returns the reports in the order
/// of their ends.
pub(crate) async fn serve(uplink: &Uplink, streams: &[(u64, StreamOrder)]) -> Vec<(u8, JobReport)> {
    let (client, stream, flow) = connect(uplink).await;
    let (engine, ends) = (Arc::<Engine>::default(), Ends::default());
    let mut responses = JoinSet::new();
    for (&(bytes, order), index) in streams.iter().zip(0..) {
        let mut flow = flow.open_stream();
        flow.set_urgency(3, order);
        start(&flow, index, bytes, 3, &ends);
        responses.spawn(respond(flow, engine.clone(), index, bytes));
    }
    let driver = tokio::spawn(Driver::new(stream, engine.clone()));
    let received = tokio::spawn(read_to_end(client));
    while let Some(done) = responses.join_next().await {
        done.expect("no panic");
    }
    engine.close();
    driver.await.expect("no panic");
    let frames = frames(&received.await.expect("no panic"));
    for (&(bytes, _), index) in streams.iter().zip(0_u8..) {
        let of_stream = frames.iter().filter(|(stream, _)| *stream == index);
        assert_eq!(of_stream.map(|(_, bytes)| bytes).sum::<u64>(), bytes);
    }
    Arc::try_unwrap(ends)
        .expect("all responses are over")
        .into_inner()
        .expect("no panic")
}

fn order_of(ends: &[(u8, JobReport)]) -> Vec<u8> {
    ends.iter().map(|(index, _)| *index).collect()
}

#[tokio::test]
async fn the_shortest_stream_ends_first_and_its_account_adds_up() {
    let sizes = [300_000, 30_000, 100_000];
    let streams = sizes.map(|bytes| (bytes, StreamOrder::BySize));
    let ends = serve(&in_order_of(PolicyName::Srpt), &streams).await;
    assert_eq!(order_of(&ends), [1, 2, 0]);
    for (index, report) in &ends {
        assert!(report.completed);
        assert_eq!(report.sent_bytes, sizes[usize::from(*index)]);
        assert_eq!(report.policy, "srpt");
    }
    let large = ends[2].1;
    assert!(
        large.wait_ns > 0 && large.bytes_of_others_meanwhile >= 100_000,
        "{large:?}"
    );
}

#[tokio::test]
async fn requests_without_increments_are_answered_in_order_unless_size_is_the_rule() {
    let streams = [200_000, 20_000].map(|bytes| (bytes, StreamOrder::InSequence));
    let standard = serve(&in_order_of(PolicyName::Srpt), &streams).await;
    assert_eq!(order_of(&standard), [0, 1]);
    let mut config = config(PolicyName::Srpt);
    config.streams = StreamRule::Size;
    let uplink = Uplink::start(&config).expect("user space needs nothing");
    assert_eq!(order_of(&serve(&uplink, &streams).await), [1, 0]);
}

#[tokio::test]
async fn the_shortest_goes_first_across_connections() {
    let uplink = in_order_of(PolicyName::Srpt);
    let by_size = |bytes| (bytes, StreamOrder::InSequence);
    let large = [by_size(400_000), by_size(100_000)];
    let small = [by_size(50_000), by_size(60_000)];
    let (large, small) = tokio::join!(serve(&uplink, &large), serve(&uplink, &small));
    let others = |ends: &[(u8, JobReport)]| ends[0].1.bytes_of_others_meanwhile;
    assert!(others(&small) < 40_000, "{small:?}");
    assert!(others(&large) >= 100_000, "{large:?}");
}

/// A connection to a client that does not read until `others` are done.
async fn stalls_while(uplink: &Uplink, bytes: u64, others: impl Future<Output = ()>) -> u64 {
    let (client, stream, flow) = connect(uplink).await;
    let (engine, ends) = (Arc::<Engine>::default(), Ends::default());
    let driver = tokio::spawn(Driver::new(stream, engine.clone()));
    let mut responses = JoinSet::new();
    for index in 0..3 {
        let flow = flow.open_stream();
        // First in rank whatever it has handed over.
        start(&flow, index, 1, 0, &ends);
        responses.spawn(respond(flow, engine.clone(), index, bytes));
    }
    others.await;
    assert!(ends.lock().expect("no panic").is_empty());
    let received = tokio::spawn(read_to_end(client));
    while let Some(done) = responses.join_next().await {
        done.expect("no panic");
    }
    engine.close();
    driver.await.expect("no panic");
    let received = frames(&received.await.expect("no panic"));
    assert_eq!(
        received.iter().map(|(_, bytes)| bytes).sum::<u64>(),
        3 * bytes
    );
    let ends = ends.lock().expect("no panic");
    assert!(ends.len() == 3 && ends.iter().all(|(_, report)| report.completed));
    engine.bytes_max()
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_no_other_and_little_and_is_served_when_it_reads() {
    let uplink = in_order_of(PolicyName::Srpt);
    let others = async {
        let streams = [90_000, 90_000].map(|bytes| (bytes, StreamOrder::InSequence));
        let ends = serve(&uplink, &streams).await;
        assert!(ends.iter().all(|(_, report)| report.completed));
    };
    let bytes_max = stalls_while(&uplink, 1_000_000, others).await;
    assert!(bytes_max <= 3 * QUANTUM_BYTES, "{bytes_max}");
}

#[tokio::test]
async fn without_a_limit_a_client_that_does_not_read_is_bounded_too() {
    let uplink = Uplink::unlimited();
    let others = async {
        let streams = [3_000_000, 1_000].map(|bytes| (bytes, StreamOrder::Shared));
        let ends = serve(&uplink, &streams).await;
        assert!(ends.iter().all(|(_, report)| report.completed));
    };
    let bytes_max = stalls_while(&uplink, 8_000_000, others).await;
    assert!(bytes_max <= 66_000, "{bytes_max}");
}

#[tokio::test]
async fn without_a_limit_the_order_of_one_connection_holds() {
    let sizes = [5_000_000, 5_000_000, 5_000_000];
    let streams = sizes.map(|bytes| (bytes, StreamOrder::InSequence));
    let ends = serve(&Uplink::unlimited(), &streams).await;
    assert_eq!(order_of(&ends), [0, 1, 2]);
}

#[tokio::test]
async fn a_connection_that_ends_ends_its_streams() {
    let uplink = in_order_of(PolicyName::Srpt);
    let (client, stream, flow) = connect(&uplink).await;
    let (engine, ends) = (Arc::<Engine>::default(), Ends::default());
    let driver = tokio::spawn(Driver::new(stream, engine.clone()));
    let mut responses = JoinSet::new();
    for index in 0..3 {
        let flow = flow.open_stream();
        start(&flow, index, 2_000_000, 0, &ends);
        responses.spawn(respond(flow, engine.clone(), index, 2_000_000));
    }
    tokio::task::yield_now().await;
    drop(client);
    driver.await.expect("no panic");
    while let Some(done) = responses.join_next().await {
        done.expect("no panic");
    }
    let ends = ends.lock().expect("no panic");
    assert!(ends.len() == 3 && ends.iter().all(|(_, report)| !report.completed));
    let snapshot = uplink.snapshot();
    assert_eq!((snapshot.connections, snapshot.streams), (0, 0));
}

#[tokio::test]
async fn a_stream_that_is_given_up_lets_its_siblings_go() {
    let uplink = in_order_of(PolicyName::Srpt);
    let (client, stream, flow) = connect(&uplink).await;
    let (engine, ends) = (Arc::<Engine>::default(), Ends::default());
    let driver = tokio::spawn(Driver::new(stream, engine.clone()));
    let received = tokio::spawn(read_to_end(client));
    let [given_up, kept] = [0, 1].map(|index| {
        let mut flow = flow.open_stream();
        flow.set_urgency(3, StreamOrder::InSequence);
        start(&flow, index, 100_000, 3, &ends);
        tokio::spawn(respond(flow, engine.clone(), index, 100_000))
    });
    tokio::task::yield_now().await;
    given_up.abort();
    assert!(given_up.await.is_err());
    kept.await.expect("no panic");
    engine.close();
    driver.await.expect("no panic");
    received.await.expect("no panic");
    let ends = ends.lock().expect("no panic");
    let completed = ends
        .iter()
        .map(|(index, report)| (*index, report.completed));
    assert_eq!(completed.collect::<Vec<_>>(), [(0, false), (1, true)]);
}

#[tokio::test]
async fn bytes_of_no_response_do_not_wait() {
    let uplink = in_order_of(PolicyName::Srpt);
    let (mut upgraded, mut stream, _flow) = connect(&uplink).await;
    let before = uplink.snapshot().wire_bytes.expect("metered");
    let streams = [(1_000_000, StreamOrder::BySize)];
    let large = serve(&uplink, &streams);
    let other = async {
        while uplink.snapshot().streams == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..20 {
            stream.write_all(&[7; 1_000]).await.expect("written");
            stream.flush().await.expect("flushed");
            upgraded
                .read_exact(&mut [0; 1_000])
                .await
                .expect("received");
        }
        uplink.snapshot()
    };
    let (large, snapshot) = tokio::join!(large, other);
    assert!(large[0].1.completed);
    assert_eq!(snapshot.streams, 1, "the large response is still there");
    let charged_bytes = snapshot.wire_bytes.expect("metered") - before;
    assert!(charged_bytes >= 20 * 1_066, "{charged_bytes}");
}

#[derive(Default)]
struct Heard {
    started: Mutex<Vec<(u64, Option<u64>)>>,
    ended: Mutex<Vec<u64>>,
    sent_bytes: AtomicU64,
}

impl Observer for Heard {
    fn started(&self, job: u64, wire_bytes: Option<u64>, _now: Time) {
        self.started
            .lock()
            .expect("no panic")
            .push((job, wire_bytes));
    }

    fn ended(&self, job: u64, _now: Time, report: &JobReport) {
        self.ended.lock().expect("no panic").push(job);
        self.sent_bytes
            .fetch_add(report.sent_bytes, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn an_observer_hears_of_every_response() {
    let uplink = in_order_of(PolicyName::Srpt);
    let heard = Arc::<Heard>::default();
    uplink.observe(heard.clone());
    uplink.observe(Arc::<Heard>::default());
    let streams = [(20_000, StreamOrder::BySize), (10, StreamOrder::BySize)];
    serve(&uplink, &streams).await;
    let (mut client, mut stream, flow) = connect(&uplink).await;
    let response = ResponseStart {
        body_bytes: Some(900),
        head_bytes: 80,
        overhead_bytes: 20,
        ..ResponseStart::default()
    };
    flow.start(response, |_| {});
    stream.write_all(&[1; 1_000]).await.expect("written");
    flow.body_done();
    stream.flush().await.expect("flushed");
    client.read_exact(&mut [0; 1_000]).await.expect("received");
    let started = heard.started.lock().expect("no panic").clone();
    // 14 segments; one; one and the four packets of its connection.
    let sizes = [20_000 + 14 * 66, 10 + 66, 1_000 + 5 * 66].map(Some);
    assert_eq!(started, [(1, sizes[0]), (2, sizes[1]), (3, sizes[2])]);
    let mut ended = heard.ended.lock().expect("no panic").clone();
    ended.sort_unstable();
    assert_eq!(ended, [1, 2, 3]);
    assert_eq!(heard.sent_bytes.load(Ordering::Relaxed), 21_010);
}

#[tokio::test]
async fn a_snapshot_says_who_waits() {
    let uplink = in_order_of(PolicyName::Srpt);
    let (_client, stream, flow) = connect(&uplink).await;
    let (engine, ends) = (Arc::<Engine>::default(), Ends::default());
    let driver = tokio::spawn(Driver::new(stream, engine.clone()));
    let mut responses = JoinSet::new();
    for (bytes, index) in [(50_000, 0), (500_000, 1)] {
        let flow = flow.open_stream();
        start(&flow, index, bytes, 0, &ends);
        responses.spawn(respond(flow, engine.clone(), index, bytes));
    }
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
    let snapshot = uplink.snapshot();
    assert_eq!((snapshot.connections, snapshot.streams), (1, 2));
    assert_eq!(
        (snapshot.policy, snapshot.rate_bits_per_sec),
        ("srpt", Some(RATE_BITS_PER_SEC))
    );
    assert_eq!(snapshot.waiting[3].jobs, 1, "{snapshot:?}");
    assert!(snapshot.waiting[3].remaining_bytes >= 490_000);
    assert!(snapshot.busy_share.is_some_and(|share| share > 0.0));
    responses.shutdown().await;
    driver.abort();
}

#[tokio::test]
async fn after_an_upgrade_bytes_pass_at_once() {
    let uplink = in_order_of(PolicyName::Srpt);
    let (mut client, mut stream, flow) = connect(&uplink).await;
    let ended = Arc::<Mutex<Option<JobReport>>>::default();
    let on_end = ended.clone();
    let head = ResponseStart {
        body_bytes: Some(0),
        head_bytes: 100,
        ..ResponseStart::default()
    };
    flow.start(head, move |report| {
        *on_end.lock().expect("no panic") = Some(report);
    });
    stream.write_all(&[1; 100]).await.expect("written");
    flow.body_done();
    stream.flush().await.expect("flushed");
    assert!(
        ended
            .lock()
            .expect("no panic")
            .is_some_and(|report| report.completed)
    );
    // More than the link carries in a moment, in one piece and without a pause.
    let written = tokio::time::timeout(std::time::Duration::ZERO, stream.write(&[2; 10_000]));
    assert_eq!(written.await.expect("at once").expect("written"), 10_000);
    client.read_exact(&mut [0; 10_100]).await.expect("received");
}
