//! Connections on real sockets: order, accounts and clients that leave.

use sooner_link::{JobReport, ResponseStart};
use sooner_policy::PolicyName;
use sooner_uplink::{Flow, GatedStream, Mechanism, Uplink, UplinkConfig};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Slow enough that every body takes many grants, fast enough that a test takes well under a
/// second.
pub(crate) const RATE_BITS_PER_SEC: u64 = 40_000_000;

/// Reports in the order in which responses ended, by the index of their connection.
type Ends = Arc<Mutex<Vec<(usize, JobReport)>>>;

pub(crate) fn in_order_of(policy: PolicyName) -> Uplink {
    let mut config = UplinkConfig::new(RATE_BITS_PER_SEC, policy);
    config.mechanism = Mechanism::UserSpace;
    Uplink::start(&config).expect("user space needs nothing")
}

/// A connected pair: the client's end, the gated server's end and its flow.
pub(crate) async fn connect(uplink: &Uplink) -> (TcpStream, GatedStream, Flow) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let accepted = accepted.expect("accepted").0;
    accepted.set_nodelay(true).expect("as servers do");
    let (stream, flow) = uplink.wrap(accepted);
    (client.expect("connected"), stream, flow)
}

/// Writes one response as hyper would: announce, write, say that the body is done, flush.
async fn respond(mut stream: GatedStream, flow: Flow, bytes: usize, index: usize, ends: Ends) {
    let start = ResponseStart {
        body_bytes: Some(bytes as u64),
        ..ResponseStart::default()
    };
    flow.start(start, move |report| {
        ends.lock().expect("no panic").push((index, report));
    });
    if stream.write_all(&vec![b'x'; bytes]).await.is_ok() {
        flow.body_done();
        let _ = stream.flush().await;
    }
}

/// Serves bodies of the given sizes at the same time; returns the reports in the order of their
/// ends.
pub(crate) async fn serve(uplink: &Uplink, sizes: &[usize]) -> Vec<(usize, JobReport)> {
    let ends = Ends::default();
    let mut tasks = tokio::task::JoinSet::new();
    // All are there before the first begins, however slow this machine is at connecting.
    let mut connections = Vec::new();
    for _ in sizes {
        connections.push(connect(uplink).await);
    }
    for (index, (mut client, stream, flow)) in connections.into_iter().enumerate() {
        let bytes = sizes[index];
        tasks.spawn(respond(stream, flow, bytes, index, ends.clone()));
        tasks.spawn(async move {
            let mut received = Vec::new();
            client
                .read_to_end(&mut received)
                .await
                .expect("a clean end");
            assert_eq!(received.len(), bytes);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic");
    }
    Arc::try_unwrap(ends)
        .expect("all tasks are done")
        .into_inner()
        .expect("no panic")
}

#[tokio::test]
async fn the_shortest_response_ends_first() {
    let ends = serve(&in_order_of(PolicyName::Srpt), &[300_000, 30_000, 100_000]).await;
    assert_eq!(
        ends.iter().map(|(index, _)| *index).collect::<Vec<_>>(),
        [1, 2, 0]
    );
}

#[tokio::test]
async fn clients_of_one_network_are_served_by_size_under_policies_that_ask_for_it() {
    for policy in [PolicyName::Swift, PolicyName::Fcf] {
        let ends = serve(&in_order_of(policy), &[300_000, 30_000, 100_000]).await;
        let order: Vec<usize> = ends.iter().map(|(index, _)| *index).collect();
        assert_eq!(order, [1, 2, 0], "{policy}");
        assert!(
            ends.iter()
                .all(|(_, report)| report.policy == policy.as_str())
        );
    }
}

#[tokio::test]
async fn with_room_ahead_everything_arrives() {
    let mut config = UplinkConfig::new(RATE_BITS_PER_SEC, PolicyName::Srpt);
    config.mechanism = Mechanism::UserSpace;
    config.ahead = Some("60".parse().expect("packets"));
    let uplink = Uplink::start(&config).expect("user space needs nothing");
    let ends = serve(&uplink, &[300_000, 30_000, 100_000]).await;
    assert!(ends.iter().all(|(_, report)| report.completed));
}

#[tokio::test]
async fn the_longest_first_is_told_apart() {
    let ends = serve(&in_order_of(PolicyName::Ljf), &[30_000, 300_000, 100_000]).await;
    assert_eq!(ends.first().map(|(index, _)| *index), Some(1));
}

#[tokio::test]
async fn sharing_ends_equal_responses_together() {
    let ends = serve(&in_order_of(PolicyName::Fair), &[200_000; 3]).await;
    // Served one after the other, the first would have waited for at most a tenth of what the last
    // did.
    let others: Vec<u64> = ends
        .iter()
        .map(|(_, report)| report.bytes_of_others_meanwhile)
        .collect();
    assert!(
        others
            .iter()
            .all(|bytes| (350_000..=400_000).contains(bytes)),
        "{others:?}"
    );
}

#[tokio::test]
async fn the_account_of_a_response_adds_up() {
    let sizes = [50_000, 150_000];
    let ends = serve(&in_order_of(PolicyName::Srpt), &sizes).await;
    for (index, report) in &ends {
        assert!(report.completed);
        assert_eq!(
            (report.sent_bytes, report.policy),
            (sizes[*index] as u64, "srpt")
        );
        let wire_bytes = sooner_link::wire::payload_cost_bytes(sizes[*index] as u64);
        assert_eq!(report.rank_at_start, wire_bytes);
    }
    let large = ends[1].1;
    assert!(
        large.wait_ns > 0 && large.bytes_of_others_meanwhile >= 30_000,
        "{large:?}"
    );
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_response_and_lets_others_go() {
    let uplink = in_order_of(PolicyName::Srpt);
    let ends = Ends::default();
    let (client, stream, flow) = connect(&uplink).await;
    drop(client);
    let gone = tokio::spawn(respond(stream, flow, 5_000_000, 7, ends.clone()));
    let others = serve(&uplink, &[60_000, 60_000]).await;
    assert!(others.iter().all(|(_, report)| report.completed));
    gone.await.expect("no panic");
    let ends = ends.lock().expect("no panic");
    assert_eq!(
        ends.iter()
            .map(|(index, report)| (*index, report.completed))
            .collect::<Vec<_>>(),
        [(7, false)]
    );
}

#[tokio::test]
async fn a_client_that_does_not_read_keeps_no_other_waiting() {
    let uplink = in_order_of(PolicyName::Fcfs);
    let ends = Ends::default();
    // First in rank whatever it has written, until its window closes.
    let (client, stream, flow) = connect(&uplink).await;
    let stalled = respond(stream, flow, 50_000_000, 7, ends.clone());
    let stalled = tokio::spawn(stalled);
    let others = serve(&uplink, &[90_000, 90_000]).await;
    assert!(others.iter().all(|(_, report)| report.completed));
    drop(client);
    stalled.await.expect("no panic");
}

#[tokio::test]
async fn without_a_limit_everything_passes_and_is_accounted_for() {
    let ends = serve(&Uplink::unlimited(), &[3_000_000, 1_000]).await;
    assert_eq!(ends.len(), 2);
    assert!(
        ends.iter()
            .all(|(_, report)| report.completed && report.wait_ns == 0)
    );
}

#[tokio::test]
async fn without_a_limit_what_is_written_is_counted_before_the_end() {
    let uplink = Uplink::unlimited();
    let (client, stream, flow) = connect(&uplink).await;
    // More than the sockets hold of what the client does not read.
    let response = tokio::spawn(respond(stream, flow, 50_000_000, 0, Ends::default()));
    let counted = async {
        while uplink.snapshot().socket_bytes == 0 {
            tokio::task::yield_now().await;
        }
    };
    let counted = tokio::time::timeout(Duration::from_secs(20), counted).await;
    assert!(counted.is_ok() && !response.is_finished());
    drop(client);
    response.await.expect("no panic");
}

#[tokio::test]
async fn a_tunnel_that_has_sent_much_is_a_newcomer_at_each_burst() {
    let uplink = in_order_of(PolicyName::Las);
    let (mut far, mut tunnel, flow) = connect(&uplink).await;
    let switch = ResponseStart {
        head_bytes: 100,
        is_tunnel: true,
        ..ResponseStart::default()
    };
    flow.start(switch, |_| {});
    let reading = tokio::spawn(async move { far.read_to_end(&mut Vec::new()).await });
    tunnel.write_all(&[1; 300_000]).await.expect("written");
    tunnel.flush().await.expect("flushed");
    let (mut client, stream, flow) = connect(&uplink).await;
    let receiving = tokio::spawn(async move { client.read_to_end(&mut Vec::new()).await });
    let ends = Ends::default();
    let response = respond(stream, flow, 200_000, 0, ends.clone());
    let burst = async {
        tunnel.write_all(&[2; 20_000]).await.expect("written");
        tunnel.flush().await.expect("flushed");
        assert!(ends.lock().expect("no panic").is_empty(), "it went last");
        drop(tunnel);
    };
    tokio::join!(response, burst);
    let received = [reading, receiving].map(|reading| async { reading.await.expect("no panic") });
    for (received, bytes) in received.into_iter().zip([320_000, 200_000]) {
        assert_eq!(received.await.expect("a clean end"), bytes);
    }
}

#[tokio::test]
async fn acknowledgements_of_an_upload_are_charged_while_it_lasts() {
    const UPLOAD_BYTES: usize = 4_000_000;
    let uplink = in_order_of(PolicyName::Srpt);
    let (mut client, mut stream, _flow) = connect(&uplink).await;
    let opening = uplink.snapshot().wire_bytes.expect("a paced uplink meters");
    let upload = async move {
        client
            .write_all(&vec![b'x'; UPLOAD_BYTES])
            .await
            .expect("it is read");
        client
    };
    let mut read = vec![0; UPLOAD_BYTES];
    let (_client, read) = tokio::join!(upload, stream.read_exact(&mut read));
    read.expect("all of it came");
    let charged = uplink.snapshot().wire_bytes.expect("a paced uplink meters") - opening;
    let info = sooner_kernel::socket::tcp_info(stream.get_ref()).expect("a TCP socket");
    // The opening has one of them.
    let sent = 66 * (u64::from(info.segments_sent) - 1);
    assert!(charged > 0 && charged <= sent, "{charged} of {sent}");
    assert!(charged >= sent / 2, "{charged} of {sent}");
}
