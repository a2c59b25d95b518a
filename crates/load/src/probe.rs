//! Asks for one object before a run: finds a wrong URL or root at once, and measures what requests
//! cost on the wire beside their bodies.
//!
//! A head of HTTP/1.1 is read and its length known. What else a new connection brings (TLS
//! handshake, tickets, settings) and what HTTP/2 makes of a head is counted in bytes on the socket:
//! the first response brings everything, the second one on the same connection only itself. The
//! probe requests the smallest object, so that a server's way of cutting bodies into frames does
//! not count as head.

use crate::client::Client;
use crate::failure::Failure;
use crate::pool::{Pool, Reuse};
use crate::socket::SocketOptions;
use crate::target::Target;
use sooner_workload::wire::WireModel;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::LocalSet;

/// How long a response may take before the run is given up.
const WAIT: Duration = Duration::from_secs(10);

/// What responses of a server cost beside their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Length of a response head, in bytes.
    pub head_bytes: u64,
    /// What is spoken.
    pub wire: WireModel,
}

/// Asks `target` for `path`, a body of `body_bytes`, over HTTP/1.1 or HTTP/2.
pub async fn probe(
    target: &Target,
    path: &str,
    body_bytes: u64,
    http2: bool,
    options: &SocketOptions,
) -> Result<Costs, Failure> {
    let resumes = target
        .endpoint
        .tls
        .as_ref()
        .is_some_and(|tls| tls.resumes());
    let prober = Prober {
        client: Rc::new(Client::new(options.clone())),
        target,
        path,
        body_bytes,
        http2,
        segment_bytes: options.segment_bytes(),
    };
    let probing = async {
        if resumes {
            // The run's connections resume a session: so must the one that is measured.
            prober.measure().await?;
        }
        prober.measure().await
    };
    let tasks = LocalSet::new();
    let probing = tokio::time::timeout(WAIT, tasks.run_until(probing));
    probing.await.unwrap_or(Err(Failure::TimedOut))
}

struct Prober<'run> {
    client: Rc<Client>,
    target: &'run Target,
    path: &'run str,
    body_bytes: u64,
    http2: bool,
    segment_bytes: u64,
}

impl Prober<'_> {
    async fn measure(&self) -> Result<Costs, Failure> {
        let wire = WireModel {
            segment_bytes: self.segment_bytes,
            tls: self.target.endpoint.tls.is_some(),
            http2: self.http2,
            opening_bytes: 0,
        };
        if self.http2 {
            self.measure_http2(wire).await
        } else {
            self.measure_http1(wire).await
        }
    }

    async fn measure_http1(&self, wire: WireModel) -> Result<Costs, Failure> {
        let pool = self.pool(NonZeroU32::MIN);
        let before = self.client.received_bytes();
        let mut carrier = pool.connect().1?;
        let body_bytes = Some(self.body_bytes);
        let served = pool
            .request(&mut carrier, self.target, self.path, true, body_bytes)
            .await?;
        let received = self.client.received_bytes() - before;
        pool.put_back(carrier).await;
        let head_bytes = served.answer.head_bytes.map_or(0, u64::from);
        let response_bytes = wire.payload_bytes(self.body_bytes, head_bytes);
        let opening_bytes = if wire.tls {
            received.saturating_sub(response_bytes)
        } else {
            0
        };
        Ok(Costs {
            head_bytes,
            wire: WireModel {
                opening_bytes,
                ..wire
            },
        })
    }

    async fn measure_http2(&self, wire: WireModel) -> Result<Costs, Failure> {
        let pool = self.pool(NonZeroU32::MAX);
        let mut received = [self.client.received_bytes(), 0, 0];
        for count in received.iter_mut().skip(1) {
            let mut carrier = match pool.take() {
                Some(carrier) => carrier,
                None => pool.connect().1?,
            };
            let body_bytes = Some(self.body_bytes);
            pool.request(&mut carrier, self.target, self.path, false, body_bytes)
                .await?;
            *count = self.client.received_bytes();
        }
        let [before, first, second] = received;
        let response_bytes = second - first;
        let opening_bytes = (first - before).saturating_sub(response_bytes);
        Ok(Costs {
            head_bytes: response_bytes.saturating_sub(wire.payload_bytes(self.body_bytes, 0)),
            wire: WireModel {
                opening_bytes,
                ..wire
            },
        })
    }

    fn pool(&self, requests_per_connection: NonZeroU32) -> Pool {
        let reuse = Reuse {
            requests_per_connection,
            http2_streams: self.http2.then_some(NonZeroU32::MIN),
        };
        Pool::new(self.client.clone(), self.target.endpoint.clone(), reuse)
    }
}
