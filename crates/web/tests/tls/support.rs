//! A server in a thread that says whom it talks to, and clients that see every byte.

use super::certificates::{Authority, Pair};
use rustls::client::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use sooner_link::ResponseStart;
use sooner_policy::PolicyName;
use sooner_uplink::{Flow, Mechanism, UplinkConfig};
use sooner_web::Uplink;
use sooner_web::proxy_protocol::{self, Senders};
use sooner_web::tls::{Prepared, Tls, TlsConfig, prepare};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::{LocalSet, spawn_local};

/// No test waits longer for a byte.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What a record of the server carries at most.
pub const RECORD_BYTES: u64 = 4096;

type Reloaded = Result<(), String>;

/// What the server's thread is asked to do.
enum Order {
    Reload(Vec<TlsConfig>, Sender<Reloaded>),
}

/// How the server differs from one that speaks TLS.
pub struct Setup {
    pub tables: Option<Vec<TlsConfig>>,
    pub proxies: Senders,
    pub handshake_timeout: Duration,
    /// What the link carries; none: no limit.
    pub rate_bits_per_sec: Option<u64>,
}

/// A server that answers everything with a description of its client, `/long` and `/longest` with
/// long ones; stops when dropped.
pub struct Server {
    pub address: SocketAddr,
    /// Why connections came to nothing.
    pub complaints: Receiver<String>,
    orders: Option<tokio::sync::mpsc::UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn tls(tables: &[TlsConfig]) -> Self {
        Self::start(Setup {
            tables: Some(tables.to_vec()),
            proxies: Senders::default(),
            handshake_timeout: PATIENCE,
            rate_bits_per_sec: None,
        })
    }

    pub fn start(setup: Setup) -> Self {
        let (say_address, address) = channel();
        let (complain, complaints) = channel();
        let (orders, to_do) = tokio::sync::mpsc::unbounded_channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let serving = serve(setup, say_address, complain, to_do);
            LocalSet::new().block_on(&runtime, serving);
        });
        Self {
            address: address.recv_timeout(PATIENCE).unwrap(),
            complaints,
            orders: Some(orders),
            thread: Some(thread),
        }
    }

    pub fn reload(&self, tables: &[TlsConfig]) -> Reloaded {
        let (say, heard) = channel();
        let orders = self.orders.as_ref().unwrap();
        assert!(orders.send(Order::Reload(tables.to_vec(), say)).is_ok());
        heard.recv_timeout(PATIENCE).unwrap()
    }

    pub fn complaint(&self) -> String {
        self.complaints.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.orders.take());
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

struct Shared {
    tls: Option<Tls>,
    proxies: Senders,
    handshake_timeout: Duration,
    complain: Sender<String>,
}

async fn serve(
    setup: Setup,
    say_address: Sender<SocketAddr>,
    complain: Sender<String>,
    mut to_do: tokio::sync::mpsc::UnboundedReceiver<Order>,
) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    say_address.send(listener.local_addr().unwrap()).unwrap();
    let tls = setup.tables.map(|tables| {
        let prepared: Prepared = prepare(&tables, SystemTime::now()).unwrap();
        Tls::new(prepared.config, 16 << 10, RECORD_BYTES)
    });
    let shared = Rc::new(Shared {
        tls,
        proxies: setup.proxies,
        handshake_timeout: setup.handshake_timeout,
        complain,
    });
    let uplink = match setup.rate_bits_per_sec {
        None => Uplink::unlimited(),
        Some(rate) => {
            let mut config = UplinkConfig::new(rate, PolicyName::Srpt);
            config.mechanism = Mechanism::UserSpace;
            Uplink::start(&config).unwrap()
        }
    };
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, remote) = accepted.unwrap();
                let (shared, uplink) = (shared.clone(), uplink.clone());
                spawn_local(async move {
                    if let Err(complaint) = shared.talk(stream, remote, &uplink).await {
                        // The test may have ended.
                        let _ = shared.complain.send(complaint);
                    }
                });
            }
            order = to_do.recv() => match order {
                Some(Order::Reload(tables, say)) => {
                    let prepared = prepare(&tables, SystemTime::now());
                    let tls = shared.tls.as_ref().unwrap();
                    let reloaded = prepared.map(|prepared| tls.replace(prepared.config));
                    let _ = say.send(reloaded.map_err(|mistake| mistake.to_string()));
                }
                None => return,
            },
        }
    }
}

impl Shared {
    async fn talk(
        &self,
        stream: tokio::net::TcpStream,
        mut remote: SocketAddr,
        uplink: &Uplink,
    ) -> Result<(), String> {
        let (mut stream, flow) = uplink.wrap(stream);
        if self.proxies.contains(remote.ip()) {
            let said = proxy_protocol::read(&mut stream, self.handshake_timeout)
                .await
                .map_err(|error| error.to_string())?;
            remote = said.map_or(remote, |addresses| addresses.source);
        }
        let Some(tls) = &self.tls else {
            return answer_all(stream, &flow, &remote.to_string()).await;
        };
        let (stream, peer, alpn) = tls
            .accept(stream, self.handshake_timeout)
            .await
            .map_err(|error| error.to_string())?;
        let name = peer.server_name.as_deref().unwrap_or("-");
        let subject = peer.client_subject.as_deref().unwrap_or("-");
        let from = if remote.ip().is_loopback() {
            "here".to_owned()
        } else {
            remote.to_string()
        };
        let description = format!("{name} {} {alpn:?} {subject} {from}", peer.version);
        answer_all(stream, &flow, &description).await
    }
}

async fn answer_all(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    flow: &Flow,
    description: &str,
) -> Result<(), String> {
    let answer = |text: &str| {
        let length = text.len();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{text}")
    };
    let mut question = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut question).await {
        let answer = if question.starts_with(b"GET /long ") {
            answer(&description.repeat(1000))
        } else if question.starts_with(b"GET /longest ") {
            answer(&description.repeat(5000))
        } else {
            answer(description)
        };
        flow.start(ResponseStart::default(), |_| {});
        let written = stream.write_all(answer.as_bytes()).await;
        written.map_err(|error| error.to_string())?;
        flow.body_done();
        stream.flush().await.map_err(|error| error.to_string())?;
        if String::from_utf8_lossy(&question[..count]).contains("connection: close") {
            return stream.shutdown().await.map_err(|error| error.to_string());
        }
    }
    Ok(())
}

/// What a client is like.
#[derive(Default)]
pub struct Client<'a> {
    pub pair: Option<&'a Pair>,
    pub alpn: &'a [&'a str],
    pub versions: Option<&'a [&'static SupportedProtocolVersion]>,
}

impl Client<'_> {
    /// Trusting `authority`.
    pub fn config(&self, authority: &Authority) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(self.versions.unwrap_or(rustls::ALL_VERSIONS))
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match self.pair {
            Some(pair) => builder
                .with_client_auth_cert(vec![pair.certificate.clone()], pair.key())
                .unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = self
            .alpn
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        Arc::new(config)
    }
}

pub type TlsClient = StreamOwned<ClientConnection, TcpStream>;

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A connection that asks for `name`; the handshake comes with the first question.
pub fn connect_tls(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> TlsClient {
    over(connect(address), config, name)
}

/// TLS on a connection that is there.
pub fn over<Io: Read + Write>(
    stream: Io,
    config: &Arc<ClientConfig>,
    name: &str,
) -> StreamOwned<ClientConnection, Io> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    StreamOwned::new(ClientConnection::new(config.clone(), name).unwrap(), stream)
}

/// Sends a question and gives the body of the answer.
pub fn ask(stream: &mut (impl Read + Write)) -> io::Result<String> {
    ask_for("/", stream)
}

/// The same for a path.
pub fn ask_for(path: &str, stream: &mut (impl Read + Write)) -> io::Result<String> {
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n")?;
    stream.flush()?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body)?;
    Ok(String::from_utf8(body).unwrap())
}
