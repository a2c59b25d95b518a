//! What a server that runs says of its classes and upstreams, read from its admin address.

use super::sources::{ClassReading, TargetReading};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// A status is far shorter.
const STATUS_BYTES_MAX: usize = 64 << 20;

/// Why there is no answer.
type Unanswered = Box<dyn Error + Send + Sync>;

/// A part of `/status.json`: what goes on before upstreams.
#[derive(Clone, Debug, Deserialize)]
pub struct Look {
    /// Rows of servers.
    pub upstreams: Vec<ServerLook>,
    /// Rows of classes.
    pub upstream_classes: Vec<ClassReading>,
    /// Rows of classes before upstreams that only observe.
    #[serde(default)]
    pub upstream_rehearsals: Vec<RehearsalLook>,
}

/// A server of an upstream, as far as it matters here.
#[derive(Clone, Debug, Deserialize)]
pub struct ServerLook {
    /// The upstream's name.
    pub upstream: String,
    /// In which order requests that wait for it go in, in a word.
    pub order: String,
}

/// A class before an upstream that only observes.
#[derive(Clone, Debug, Deserialize)]
pub struct RehearsalLook {
    /// The upstream's name.
    pub upstream: String,
}

/// Asks the server that has this admin address; the error is what is wrong, in words.
pub async fn look(address: SocketAddr) -> Result<Look, String> {
    let status = timeout(PATIENCE, get(address)).await;
    let status = status.map_err(|_| format!("no answer in {} s", PATIENCE.as_secs()))?;
    let text = status.map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| {
        format!("its status.json is not that of this version of sooner serve: {error}")
    })
}

async fn get(address: SocketAddr) -> Result<Bytes, Unanswered> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::select! {
        body = ask(sender, address) => body,
        // Where the connection ends first, the question fails as well, and says why.
        Err(error) = connection => Err(error.into()),
    }
}

async fn ask(
    mut sender: SendRequest<Empty<Bytes>>,
    address: SocketAddr,
) -> Result<Bytes, Unanswered> {
    let request = Request::get("/status.json").header(HOST, address.to_string());
    let response = sender.send_request(request.body(Empty::new())?).await?;
    match response.status() {
        StatusCode::OK => {
            let body = Limited::new(response, STATUS_BYTES_MAX).collect();
            Ok(body.await?.to_bytes())
        }
        status => Err(format!("status {status} for /status.json").into()),
    }
}

/// The percentiles among a class's targets: shares, and what they were, s.
pub fn percentiles(targets: &[TargetReading]) -> impl Iterator<Item = (f64, f64)> {
    targets.iter().filter_map(|target| {
        let percent: f64 = target.target.strip_prefix('p')?.parse().ok()?;
        Some((percent / 100.0, target.achieved_seconds?))
    })
}
