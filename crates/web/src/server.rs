//! A server from its configuration: start, reload, graceful stop.

use crate::acceptor::Transport;
use crate::access_log::Closer;
use crate::active_config::{ActiveConfig, Means};
use crate::admin::{Admin, Sources, UplinkReading};
use crate::config::{Config, Misconfigured};
use crate::grace_end::StopGuard;
use crate::handshakes;
use crate::limits::Connections;
use crate::metrics::Metrics;
use crate::service::Service;
use crate::tls::{self, Prepared};
use crate::worker::Worker;
use crate::workers::{Orders, Seed, Workers};
use sooner_operate::{ListenError, PassedListeners, listen_together, polled_when_woken};
use sooner_uplink::{FairShadow, Uplink};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

type Stop<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;
/// The accept queues of one worker.
type Queues = Vec<(std::net::TcpListener, Transport)>;

/// What to serve, and with what means: looked at, nothing opened yet but files to read.
pub struct Server<'a> {
    config: &'a Config,
    means: Means,
    active_config: ActiveConfig,
    tls: Option<Prepared>,
    metrics: Arc<Metrics>,
    passed: PassedListeners,
}

/// A server that listens and does not serve yet.
pub struct Listening {
    listeners: Vec<(TcpListener, Transport)>,
    state: Rc<ServerState>,
    admin: Option<Admin>,
    log_closer: Option<Closer>,
    warnings: Vec<Misconfigured>,
    /// Workers that are not there yet.
    seeds: Vec<Seed>,
    workers: Option<Workers>,
    /// Of the workers that are there, this thread's first.
    all_metrics: Vec<Arc<Metrics>>,
    /// What the responses of each leave through, this thread's first.
    uplinks: Vec<Uplink>,
    /// The listeners of the others, to be marked.
    other_sockets: Vec<OwnedFd>,
}

/// What the parts of a running server have in common.
struct ServerState {
    /// That of this thread.
    worker: Worker,
    /// What tells the others.
    orders: RefCell<Orders>,
    means: Means,
    metrics: Arc<Metrics>,
    passed: Passed,
    /// Notified when a reload has replaced the configuration in force.
    reloaded: Notify,
}

/// Which listeners a service manager opened, whatever the configuration says.
#[derive(Clone, Copy)]
struct Passed {
    any: bool,
    tls: bool,
}

/// Changes a server that runs; clones act on the same one.
#[derive(Clone)]
pub struct Control(Rc<ServerState>);

impl<'a> Server<'a> {
    /// A server as `config` says, after a look at everything that it names.
    pub fn from_config(config: &'a Config, means: Means) -> Result<Self, Misconfigured> {
        let metrics = Arc::new(Metrics::new(SystemTime::now()));
        let active_config = ActiveConfig::new(config, means, &metrics, None, None)?;
        let tls = if config.tls.is_empty() {
            None
        } else {
            Some(tls::prepare(&config.tls, SystemTime::now())?)
        };
        Ok(Self {
            config,
            means,
            active_config,
            tls,
            metrics,
            passed: PassedListeners::default(),
        })
    }

    /// The same, accepting from listeners that a service manager opened; with any, the
    /// configuration's addresses are not opened.
    pub fn with_passed(mut self, passed: PassedListeners) -> Self {
        self.passed = passed;
        self
    }

    /// Looks at everything `config` names; gives warnings.
    pub fn check(config: &Config, means: Means) -> Result<Vec<Misconfigured>, Misconfigured> {
        let server = Server::from_config(config, means)?;
        Ok(server.tls.map_or_else(Vec::new, |tls| tls.warnings))
    }

    /// Opens the log and all listeners. Needs a tokio runtime around it; nothing is served before
    /// [`Listening::run`], but clients can connect.
    pub fn start(mut self) -> Result<Listening, Misconfigured> {
        let passed = Passed {
            any: !self.passed.is_empty(),
            tls: !self.passed.tls.is_empty(),
        };
        let mut warnings = self.config.remarks_of_server(passed.tls);
        warnings.extend(self.config.admin.remark());
        if let Some(tls) = &mut self.tls {
            warnings.append(&mut tls.warnings);
        }
        if !self.passed.tls.is_empty() && self.tls.is_none() {
            let message = "the service manager passed a socket for TLS; add [[tls]] with certificate = \"chain.pem\" and key = \"key.pem\"";
            return Err(Misconfigured::without_place("tls", message));
        }
        let mut queues = self.queues()?.into_iter();
        let own_queues = queues.next().unwrap_or_default();
        let mut listeners = Vec::with_capacity(own_queues.len());
        for (listener, transport) in own_queues {
            listeners.push((
                TcpListener::from_std(listener).map_err(unusable)?,
                transport,
            ));
        }
        let admin = self.config.admin.bind()?;
        let (log, log_closer) = self.config.log.open()?;
        let connections = Connections::new(&self.active_config.limits, self.means.descriptors);
        let service = Service::new(
            self.active_config,
            log,
            self.metrics.clone(),
            Instant::now(),
        );
        let tls = self.tls.map(|prepared| prepared.config);
        let config = Arc::new(self.config.clone());
        let proxy = service.active_config().proxy.share();
        let seeds = queues.map(|listeners| Seed {
            config: config.clone(),
            proxy: proxy.clone(),
            means: self.means,
            listeners,
            tls: tls.clone(),
            log: service.log().clone(),
            connections: connections.clone(),
            metrics: Arc::new(Metrics::new(SystemTime::now())),
        });
        let seeds = seeds.collect();
        Ok(Listening {
            listeners,
            all_metrics: vec![self.metrics.clone()],
            state: Rc::new(ServerState {
                worker: Worker {
                    service: Rc::new(service),
                    connections,
                    tls: tls.map(|config| Rc::new(self.means.tls(config))),
                },
                orders: RefCell::default(),
                means: self.means,
                metrics: self.metrics,
                passed,
                reloaded: Notify::new(),
            }),
            admin,
            log_closer,
            warnings,
            seeds,
            workers: None,
            uplinks: Vec::new(),
            other_sockets: Vec::new(),
        })
    }

    /// The accept queues, by worker.
    fn queues(&self) -> Result<Vec<Queues>, Misconfigured> {
        let workers = self.means.workers;
        let mut queues: Vec<Queues> = (0..workers).map(|_| Vec::new()).collect();
        if !self.passed.is_empty() {
            for (passed, transport) in [
                (&self.passed.clear, Transport::Clear),
                (&self.passed.tls, Transport::Tls),
            ] {
                for listener in passed {
                    // One queue that all take from: its owner opened it.
                    for queue in &mut queues {
                        queue.push((listener.try_clone().map_err(unusable)?, transport));
                    }
                }
            }
            return Ok(queues);
        }
        let stall_time = self.config.limits.stall_time();
        let mut open = |address, transport| {
            let listeners = listen_together(address, Some(stall_time), workers)?;
            for (queue, listener) in queues.iter_mut().zip(listeners) {
                queue.push((listener, transport));
            }
            Ok(())
        };
        if self.config.listen.is_empty() {
            for address in self.config.clear_addresses() {
                open(address, Transport::Clear)
                    .map_err(|error: ListenError| Misconfigured::without_place("listen", error))?;
            }
        }
        for (key, addresses, transport) in [
            ("listen", &self.config.listen, Transport::Clear),
            ("listen_tls", &self.config.listen_tls, Transport::Tls),
        ] {
            for address in addresses {
                open(address.get_ref().0, transport)
                    .map_err(|error| Misconfigured::at(address, key, error))?;
            }
        }
        Ok(queues)
    }
}

fn unusable(error: std::io::Error) -> Misconfigured {
    Misconfigured::without_place("listen", format!("a socket cannot be used: {error}"))
}

impl Listening {
    /// All addresses it listens on, with the ports the system chose.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let (mut clear, tls) = (self.clear_addresses(), self.tls_addresses());
        clear.extend(tls);
        clear
    }

    /// Those where clear text is spoken.
    pub fn clear_addresses(&self) -> Vec<SocketAddr> {
        self.addresses_of(Transport::Clear)
    }

    /// Those where TLS is spoken.
    pub fn tls_addresses(&self) -> Vec<SocketAddr> {
        self.addresses_of(Transport::Tls)
    }

    fn addresses_of(&self, transport: Transport) -> Vec<SocketAddr> {
        self.listeners
            .iter()
            .filter(|(_, spoken)| *spoken == transport)
            .filter_map(|(listener, _)| listener.local_addr().ok())
            .collect()
    }

    /// The address of metrics and live page, if there is one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref()?.address().ok()
    }

    /// Warnings: what works and deserves attention.
    pub fn warnings(&self) -> &[Misconfigured] {
        &self.warnings
    }

    /// What changes the server while it runs.
    pub fn control(&self) -> Control {
        Control(self.state.clone())
    }

    /// The configuration in force is the one with this hash.
    pub fn note_config(&self, hash: u64) {
        self.state.metrics.reloaded(hash, SystemTime::now());
    }

    /// Starts the workers beside this thread, to serve through `uplink`, or each by itself where
    /// nothing is ordered. They take connections at once. To be called once, before
    /// [`Listening::run`], by a process that is the user that it is to be.
    pub fn start_workers(&mut self, uplink: &Uplink) -> Result<(), Misconfigured> {
        let is_ordered = uplink.snapshot().rate_bits_per_sec.is_some();
        let mut seeds = Vec::with_capacity(self.seeds.len());
        for seed in self.seeds.drain(..) {
            let uplink = if is_ordered {
                uplink.clone()
            } else {
                let own = Uplink::unlimited();
                self.uplinks.push(own.clone());
                own
            };
            handshakes::put_first(&uplink, seed.listeners.iter().map(|(it, _)| it));
            let sockets = seed.listeners.iter();
            let sockets = sockets.filter_map(|(it, _)| it.as_fd().try_clone_to_owned().ok());
            self.other_sockets.extend(sockets);
            self.all_metrics.push(seed.metrics.clone());
            seeds.push((seed, uplink));
        }
        if !seeds.is_empty() {
            let workers = Workers::start(seeds)?;
            *self.state.orders.borrow_mut() = workers.orders();
            self.workers = Some(workers);
        }
        Ok(())
    }

    /// Serves through `uplink` until `stop` is ready; then ends idle connections, and waits for
    /// responses in flight as long as the grace allows.
    pub fn run<'a>(
        self,
        uplink: Uplink,
        stop: impl Future<Output = ()> + 'a,
    ) -> impl Future<Output = ()> + 'a {
        self.run_until(uplink, Box::pin(stop))
    }

    /// In boxes, so that the server is compiled with this crate and not with each that waits for
    /// it.
    fn run_until(self, uplink: Uplink, stop: Stop<'_>) -> Stop<'_> {
        Box::pin(self.serve(uplink, stop))
    }

    async fn serve(mut self, uplink: Uplink, stop: Stop<'_>) {
        assert!(self.seeds.is_empty(), "the workers are started before");
        let log_closer = self.log_closer.take();
        let connections = LocalSet::new();
        // Dropped before the connections, which say why they end.
        let stop_guard = StopGuard(self.state.worker.service.grace_end().clone());
        let local = polled_when_woken(self.run_local(uplink, stop));
        connections.run_until(local).await;
        drop(stop_guard);
        // What the grace cut off is logged as well.
        drop(connections);
        drop(log_closer);
    }

    async fn run_local(mut self, uplink: Uplink, stop: Stop<'_>) {
        let worker = &self.state.worker;
        let maintaining = spawn_local(self.state.clone().maintain_upstreams());
        let sweeping = spawn_local(worker.connections.clone().sweep());
        let watching = spawn_local(worker.connections.clone().watch_departures());
        self.start_shadow(&uplink);
        let admin = self.start_admin(&uplink);
        handshakes::put_first(&uplink, self.listeners.iter().map(|(listener, _)| listener));
        let mut guarded = std::mem::take(&mut self.other_sockets);
        let own = self.listeners.iter();
        guarded.extend(own.filter_map(|(it, _)| it.as_fd().try_clone_to_owned().ok()));
        let guarding = spawn_local(handshakes::watch(uplink.clone(), guarded));
        let worker = &self.state.worker;
        let accepting = worker.accept(std::mem::take(&mut self.listeners), &uplink);
        stop.await;
        guarding.abort();
        self.state.metrics.stops();
        if let Some(workers) = &self.workers {
            workers.stop();
        }
        accepting.drain(worker).await;
        if let Some(workers) = &mut self.workers {
            workers.ended().await;
        }
        sweeping.abort();
        watching.abort();
        maintaining.abort();
        drop(admin);
    }

    /// Plays what FAIR would have given beside the uplink, where the admin server or the log shows
    /// it.
    fn start_shadow(&self, uplink: &Uplink) {
        let is_seen = self.admin.is_some() || self.state.worker.service.log().is_on();
        let Some(rate) = uplink.snapshot().rate_bits_per_sec.filter(|_| is_seen) else {
            return;
        };
        let shadow = Arc::new(FairShadow::new(rate));
        uplink.observe(shadow.clone());
        for metrics in &self.all_metrics {
            metrics.compare_with(shadow.clone());
        }
    }

    /// Serves the admin address, if there is one.
    fn start_admin(&mut self, uplink: &Uplink) -> Option<JoinHandle<()>> {
        let admin = self.admin.take()?;
        let service = self.state.worker.service.clone();
        let mut uplinks = vec![uplink.clone()];
        uplinks.append(&mut self.uplinks);
        let sources = Sources {
            metrics: self.all_metrics.clone(),
            log: service.log().clone(),
            uplink: Box::new(move || UplinkReading::of_all(&uplinks)),
            upstreams: Box::new({
                let service = service.clone();
                move || service.active_config().proxy.states()
            }),
            upstream_classes: Box::new({
                let service = service.clone();
                move || service.active_config().proxy.class_states()
            }),
            upstream_predictions: Box::new({
                let service = service.clone();
                move || service.active_config().proxy.prediction_states()
            }),
            rehearsals: Box::new({
                let service = service.clone();
                move || service.active_config().proxy.rehearsals()
            }),
        };
        Some(spawn_local(admin.serve(sources)))
    }
}

impl ServerState {
    /// Starts what upstreams need beside requests, at first and after each reload. A task of its
    /// own, because signals are obeyed outside the `LocalSet` that the connections live on.
    async fn maintain_upstreams(self: Rc<Self>) {
        loop {
            self.worker.service.active_config().proxy.start();
            self.reloaded.notified().await;
        }
    }
}

impl Control {
    /// Answers requests by `config`, with the hash of its text, from now on, in all workers; after
    /// a mistake nothing has changed. Gives warnings.
    pub async fn reload(
        &self,
        config: &Config,
        hash: u64,
    ) -> Result<Vec<Misconfigured>, Misconfigured> {
        let worker = &self.0.worker;
        let before = worker.service.active_config();
        let active_config =
            ActiveConfig::new(config, self.0.means, &self.0.metrics, None, Some(&before))?;
        let mut prepared = match config.tls.is_empty() {
            true => None,
            false => Some(tls::prepare(&config.tls, SystemTime::now())?),
        };
        let mut warnings = Vec::new();
        if let Some(prepared) = &mut prepared {
            warnings.append(&mut prepared.warnings);
        } else if worker.tls.is_some() {
            // Whether TLS is spoken at all is decided at the start.
            warnings.push(Misconfigured::without_place(
                "tls",
                "removed; the old certificates stay until the next start",
            ));
        }
        let orders = self.0.orders.borrow().clone();
        let share = active_config.proxy.share();
        orders.prepare(&Arc::new(config.clone()), &share).await?;
        // Before any worker looks after requests and connections by it.
        active_config.proxy.take_over();
        let tls = prepared.map(|prepared| prepared.config);
        orders.adopt(tls.as_ref());
        if let Some((own, config)) = worker.tls.as_ref().zip(tls) {
            own.replace(config);
        }
        worker
            .connections
            .set_limits(&active_config.limits, self.0.means.descriptors);
        worker.service.replace(active_config);
        self.0.reloaded.notify_one();
        self.0.metrics.reloaded(hash, SystemTime::now());
        Ok(warnings)
    }

    /// What works in `config` and is hardly meant, for this server.
    pub fn remarks(&self, config: &Config) -> Vec<Misconfigured> {
        config.remarks_of_server(self.0.passed.tls)
    }

    /// Whether a service manager opened the listeners, so that the addresses of a configuration
    /// take no effect.
    pub fn has_passed_listeners(&self) -> bool {
        self.0.passed.any
    }

    /// A configuration was not taken, for whatever reason.
    pub fn reload_failed(&self) {
        self.0.metrics.reload_failed();
    }

    /// Opens the access log anew, after log rotation has moved it.
    pub fn reopen_logs(&self) {
        self.0.worker.service.log().reopen();
    }
}
