//! TLS between a server and its gated socket: what belongs to no response passes, and a response
//! ends when its records are written.

use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use sooner_link::{JobReport, ResponseStart, wire};
use sooner_policy::PolicyName;
use sooner_uplink::{Flow, GatedStream, Mechanism, Uplink, UplinkConfig};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const BODY_BYTES: usize = 100_000;

fn slow_uplink() -> Uplink {
    let mut config = UplinkConfig::new(20_000_000, PolicyName::Srpt);
    config.mechanism = Mechanism::UserSpace;
    Uplink::start(&config).expect("user space needs nothing")
}

async fn connect(uplink: &Uplink) -> (TcpStream, GatedStream, Flow) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let accepted = accepted.expect("accepted").0;
    accepted.set_nodelay(true).expect("as servers do");
    let (stream, flow) = uplink.wrap(accepted);
    (client.expect("connected"), stream, flow)
}

fn both_ends() -> (TlsAcceptor, TlsConnector) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .expect("they belong together");
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server).into(), Arc::new(client).into())
}

/// A response of 1 MB in clear text that has the link for itself: first come, or first in rank, it
/// is there for 0.4 s.
async fn keep_busy(uplink: &Uplink) -> tokio::task::JoinHandle<()> {
    let (mut client, mut stream, flow) = connect(uplink).await;
    let start = ResponseStart {
        body_bytes: Some(1_000_000),
        ..ResponseStart::default()
    };
    flow.start(start, |_| {});
    tokio::spawn(async move {
        let write = async move { stream.write_all(&vec![b'x'; 1_000_000]).await };
        let mut received = Vec::new();
        let (_, _) = tokio::join!(write, client.read_to_end(&mut received));
    })
}

#[tokio::test]
async fn a_response_over_tls_ends_when_all_its_records_are_written() {
    let uplink = slow_uplink();
    let busy = keep_busy(&uplink).await;
    let (client, stream, flow) = connect(&uplink).await;
    let (acceptor, connector) = both_ends();
    let name = ServerName::try_from("localhost").expect("a name");
    let (server, client) = tokio::join!(acceptor.accept(stream), connector.connect(name, client));
    let (mut server, mut client) = (server.expect("accepted"), client.expect("connected"));
    assert!(!busy.is_finished(), "the handshake did not wait");
    let reports = Arc::<Mutex<Vec<JobReport>>>::default();
    let start = ResponseStart {
        body_bytes: Some(BODY_BYTES as u64),
        overhead_bytes: wire::tls_overhead_bytes(BODY_BYTES as u64),
        ..ResponseStart::default()
    };
    let on_end = reports.clone();
    flow.start(start, move |report| {
        on_end.lock().expect("no panic").push(report)
    });
    let respond = async {
        server
            .write_all(&[b'x'; BODY_BYTES])
            .await
            .expect("written");
        assert!(reports.lock().expect("no panic").is_empty());
        flow.body_done();
        server.flush().await.expect("flushed");
    };
    let mut received = vec![0; BODY_BYTES];
    let (_, read) = tokio::join!(respond, client.read_exact(&mut received));
    read.expect("all of it");
    let reports = reports.lock().expect("no panic");
    let [report] = reports[..] else {
        panic!("one response: {reports:?}");
    };
    let least_bytes = BODY_BYTES as u64 + wire::tls_overhead_bytes(BODY_BYTES as u64);
    assert!(
        report.completed && (least_bytes..least_bytes + 500).contains(&report.sent_bytes),
        "{report:?}"
    );
    assert!(report.wait_ns > 0);
    assert!(!busy.is_finished(), "the shorter response went first");
    busy.abort();
}
