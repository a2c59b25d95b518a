//! The admin address: metrics, status and a live page, for the operator of the server only.
//!
//! A second, tiny HTTP service beside the real one, by default on loopback. It has nothing to do
//! with the order on the uplink: its answers are small and go straight to their socket. What it
//! shows comes from [`crate::metrics`], and from [`Sources`], which are asked when a client reads,
//! and once a second for what is shown over time.
//!
//! | path | what |
//! |---|---|
//! | `/` | a live page; without JavaScript a plain one that comes anew every five seconds |
//! | `/status.json` | the same as data |
//! | `/metrics` | OpenMetrics text, for Prometheus |
//! | `/healthz` | `ok`, or 503 and `stopping` |

pub mod client;
mod config;
mod exposition;
mod history;
mod page;
mod prediction;
mod routes;
mod sources;
mod status;

pub use config::AdminConfig;
pub use sources::{
    ClassLoad, ClassReading, Sources, TargetReading, UplinkReading, UpstreamReading,
};

use routes::Desk;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::TcpListener;

/// An admin address that is bound.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    hosts: Vec<String>,
}

impl Admin {
    /// Binds `address`, which clients may reach under the names `hosts` too. Needs a tokio runtime
    /// around it.
    pub fn bind(address: SocketAddr, hosts: Vec<String>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { listener, hosts })
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers each client that connects until it is dropped. Needs a `LocalSet` around it.
    pub async fn serve(self, sources: Sources) {
        let Self { listener, hosts } = self;
        let desk = Rc::new(Desk::new(sources, hosts));
        sooner_operate::admin::serve(listener, desk).await;
    }
}
