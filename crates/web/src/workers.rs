//! The other workers of a server: threads, each with an event loop, accept queues, files and
//! connections of its own. What there is one of they share: the order of the uplink, the queues
//! before upstreams, the bounds of connections, the log; and of a new configuration all take it or
//! none.

use crate::acceptor::Transport;
use crate::access_log::AccessLog;
use crate::active_config::{ActiveConfig, Means};
use crate::config::{Config, Misconfigured};
use crate::grace_end::StopGuard;
use crate::limits::Connections;
use crate::metrics::Metrics;
use crate::proxy::ProxyShare;
use crate::service::Service;
use crate::worker::Worker;
use rustls::ServerConfig;
use sooner_operate::say;
use sooner_uplink::Uplink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::abort;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

/// Reads that wait for a disk at once, in all workers; more would only queue at the disk.
const READING_THREADS_MAX: usize = 32;
/// Reads of one worker at least.
const READING_THREADS_MIN: usize = 4;

/// Threads of one of `workers` for reads that wait for a disk.
pub fn reading_threads_max(workers: usize) -> usize {
    (READING_THREADS_MAX / workers.max(1)).max(READING_THREADS_MIN)
}

/// What another worker is made of; goes to its thread.
pub struct Seed {
    /// What to serve.
    pub config: Arc<Config>,
    /// What all have in common of upstreams.
    pub proxy: ProxyShare,
    /// With what means.
    pub means: Means,
    /// Its accept queues.
    pub listeners: Vec<(std::net::TcpListener, Transport)>,
    /// The server's certificates.
    pub tls: Option<Arc<ServerConfig>>,
    /// The server's log.
    pub log: AccessLog,
    /// The server's connections.
    pub connections: Connections,
    /// Its own counters.
    pub metrics: Arc<Metrics>,
}

/// What a worker is told.
enum Order {
    /// Build this configuration, and answer whether it can be had.
    Prepare(Prepare),
    /// Serve by what was built last, with these certificates.
    Adopt(Option<Arc<ServerConfig>>),
    /// Let what goes on end, and end.
    Stop,
    /// End at once.
    End,
}

/// What the next configuration is built of.
struct Prepare {
    config: Arc<Config>,
    proxy: ProxyShare,
    answer: oneshot::Sender<Result<(), Misconfigured>>,
}

/// Tells the other workers of a server; clones tell the same.
#[derive(Clone, Default)]
pub struct Orders(Vec<UnboundedSender<Order>>);

/// The threads of the other workers. Dropping it ends them at once.
pub struct Workers {
    orders: Orders,
    /// Closed when the last thread is over.
    ended: mpsc::Receiver<()>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts a thread for each seed, with an uplink for each; when this returns they serve.
    pub fn start(seeds: Vec<(Seed, Uplink)>) -> Result<Self, Misconfigured> {
        let (alive, ended) = mpsc::channel(1);
        let mut workers = Self {
            orders: Orders::default(),
            ended,
            threads: Vec::new(),
        };
        let (built, results) = sync_channel(seeds.len());
        let count = seeds.len();
        for (number, (seed, uplink)) in (2..).zip(seeds) {
            let (orders, told) = unbounded_channel();
            let (alive, built) = (alive.clone(), built.clone());
            let thread = thread::Builder::new().name(format!("worker-{number}"));
            let work = move || {
                let _alive = alive;
                let work = AssertUnwindSafe(|| run(seed, uplink, told, &built));
                if catch_unwind(work).is_err() {
                    // Its clients would wait in a queue that nothing empties.
                    say(format_args!("worker {number} has failed; the server ends"));
                    abort();
                }
            };
            let thread = thread.spawn(work).map_err(cannot_start)?;
            workers.threads.push(thread);
            workers.orders.0.push(orders);
        }
        drop(built);
        for _ in 0..count {
            // A worker that fails otherwise ends the process.
            results.recv().map_err(cannot_start)??;
        }
        Ok(workers)
    }

    /// What tells them.
    pub fn orders(&self) -> Orders {
        self.orders.clone()
    }

    /// Has them end as a server does that stops.
    pub fn stop(&self) {
        self.orders.tell_all(|| Order::Stop);
    }

    /// Waits until all have ended.
    pub async fn ended(&mut self) {
        // Nothing is ever sent: the channel is closed by the last of them.
        self.ended.recv().await;
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.orders.tell_all(|| Order::End);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Orders {
    fn tell_all(&self, order: impl Fn() -> Order) {
        for worker in &self.0 {
            // One that has ended needs no orders.
            let _ = worker.send(order());
        }
    }

    /// Has all build `config`, with `proxy` of the first; after a mistake of any none takes it.
    pub async fn prepare(
        &self,
        config: &Arc<Config>,
        proxy: &ProxyShare,
    ) -> Result<(), Misconfigured> {
        let mut answers = Vec::with_capacity(self.0.len());
        for worker in &self.0 {
            let (answer, answered) = oneshot::channel();
            let prepare = Prepare {
                config: config.clone(),
                proxy: proxy.clone(),
                answer,
            };
            let _ = worker.send(Order::Prepare(prepare));
            answers.push(answered);
        }
        for answered in answers {
            // One that has ended serves nothing by any configuration.
            answered.await.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// Has all serve by what they have built, with these certificates.
    pub fn adopt(&self, tls: Option<&Arc<ServerConfig>>) {
        self.tell_all(|| Order::Adopt(tls.cloned()));
    }
}

fn cannot_start(error: impl std::fmt::Display) -> Misconfigured {
    let message = format!(
        "cannot start a worker: {error}; write fewer, or raise the limit of descriptors or threads (ulimit -n, ulimit -u)"
    );
    Misconfigured::without_place("workers", message)
}

/// Serves until it is told to stop.
fn run(
    seed: Seed,
    uplink: Uplink,
    orders: UnboundedReceiver<Order>,
    built: &SyncSender<Result<(), Misconfigured>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(reading_threads_max(seed.means.workers))
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = built.send(Err(cannot_start(error)));
            return;
        }
    };
    let connections = LocalSet::new();
    let seed = {
        let _inside = runtime.enter();
        Grown::from_seed(seed)
    };
    match seed {
        Ok(grown) => {
            let _ = built.send(Ok(()));
            // Dropped before the connections, which say why they end.
            let stop_guard = StopGuard(grown.worker.service.grace_end().clone());
            connections.block_on(&runtime, grown.serve(uplink, orders));
            drop(stop_guard);
            let _inside = runtime.enter();
            drop(connections);
        }
        Err(mistake) => {
            let _ = built.send(Err(mistake));
        }
    }
    // A read that hangs on its disk must not keep the process.
    runtime.shutdown_background();
}

/// Waits for the order to end at once.
async fn end(orders: &mut UnboundedReceiver<Order>) {
    while !matches!(orders.recv().await, None | Some(Order::End)) {}
}

/// A worker in its own thread.
struct Grown {
    worker: Worker,
    listeners: Vec<(TcpListener, Transport)>,
    means: Means,
    metrics: Arc<Metrics>,
}

impl Grown {
    fn from_seed(seed: Seed) -> Result<Self, Misconfigured> {
        let (config, metrics) = (&seed.config, &seed.metrics);
        let active_config =
            ActiveConfig::new(config, seed.means, metrics, Some(&seed.proxy), None)?;
        let metrics = seed.metrics;
        let service = Service::new(active_config, seed.log, metrics.clone(), Instant::now());
        let mut listeners = Vec::with_capacity(seed.listeners.len());
        for (listener, transport) in seed.listeners {
            let listener = TcpListener::from_std(listener).map_err(cannot_start)?;
            listeners.push((listener, transport));
        }
        Ok(Self {
            worker: Worker {
                service: Rc::new(service),
                connections: seed.connections,
                tls: seed.tls.map(|config| Rc::new(seed.means.tls(config))),
            },
            listeners,
            means: seed.means,
            metrics,
        })
    }

    async fn serve(mut self, uplink: Uplink, mut orders: UnboundedReceiver<Order>) {
        let listeners = std::mem::take(&mut self.listeners);
        let accepting = self.worker.accept(listeners, &uplink);
        self.worker.service.active_config().proxy.start();
        let mut next = None;
        while let Some(order) = orders.recv().await {
            match order {
                Order::Prepare(prepare) => {
                    let built = self.build(&prepare);
                    let (config, result) = match built {
                        Ok(config) => (Some(config), Ok(())),
                        Err(mistake) => (None, Err(mistake)),
                    };
                    next = config;
                    let _ = prepare.answer.send(result);
                }
                Order::Adopt(tls) => {
                    if let Some(config) = next.take() {
                        self.worker.service.replace(config);
                        self.worker.service.active_config().proxy.start();
                    }
                    if let Some((own, config)) = self.worker.tls.as_ref().zip(tls) {
                        own.replace(config);
                    }
                }
                Order::Stop => {
                    tokio::select! {
                        () = accepting.drain(&self.worker) => {}
                        () = end(&mut orders) => {}
                    }
                    return;
                }
                Order::End => return,
            }
        }
    }

    fn build(&self, prepare: &Prepare) -> Result<ActiveConfig, Misconfigured> {
        let before = self.worker.service.active_config();
        let (config, share) = (&prepare.config, Some(&prepare.proxy));
        ActiveConfig::new(config, self.means, &self.metrics, share, Some(&before))
    }
}
