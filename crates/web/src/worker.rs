//! One worker of a server: what it serves with, the connections that it accepts, and their end.

use crate::acceptor::{Acceptor, Transport};
use crate::grace_end::telling_time;
use crate::limits::Connections;
use crate::service::Service;
use crate::tls::Tls;
use sooner_uplink::Uplink;
use std::rc::Rc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

/// What one worker serves with.
pub struct Worker {
    /// What answers requests.
    pub service: Rc<Service>,
    /// All connections of the server, of all its workers.
    pub connections: Connections,
    /// Certificates, where any address speaks TLS.
    pub tls: Option<Rc<Tls>>,
}

/// A worker that takes connections.
pub struct Accepting {
    tasks: Vec<JoinHandle<()>>,
    /// Closed when the last connection is over.
    all_gone: mpsc::Receiver<()>,
}

impl Worker {
    /// Takes connections from all `listeners`, and lets their responses leave through `uplink`.
    /// Needs a `LocalSet` around it.
    pub fn accept(&self, listeners: Vec<(TcpListener, Transport)>, uplink: &Uplink) -> Accepting {
        if uplink.snapshot().rate_bits_per_sec.is_none() {
            self.service.set_unordered();
        }
        let (alive, all_gone) = mpsc::channel::<()>(1);
        let tasks = listeners.into_iter().map(|(listener, transport)| {
            let acceptor = Acceptor {
                service: self.service.clone(),
                connections: self.connections.clone(),
                tls: self.tls.clone().filter(|_| transport == Transport::Tls),
                uplink: uplink.clone(),
                alive: alive.clone(),
            };
            spawn_local(acceptor.accept_all(listener))
        });
        Accepting {
            tasks: tasks.collect(),
            all_gone,
        }
    }
}

impl Accepting {
    /// Takes no more connections; ends idle ones, and waits for responses in flight as long as the
    /// grace allows.
    pub async fn drain(mut self, worker: &Worker) {
        for task in self.tasks {
            task.abort();
        }
        worker.connections.drain();
        // All have ended when the last sending side is dropped.
        let grace = worker.service.active_config().limits.grace_time();
        let telling = telling_time(grace);
        let ended = timeout(grace - telling, self.all_gone.recv()).await;
        if ended.is_err() {
            worker.service.grace_end().declare();
            let _ = timeout(telling, self.all_gone.recv()).await;
        }
    }
}
