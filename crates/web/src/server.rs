//! A server from its configuration: start, reload, graceful stop.

use crate::acceptor::{Acceptor, Transport};
use crate::access_log::Closer;
use crate::active_config::{ActiveConfig, Means};
use crate::admin::{Admin, Sources, UplinkReading};
use crate::config::{Config, Misconfigured};
use crate::grace_end::{StopGuard, telling_time};
use crate::handshakes;
use crate::limits::Connections;
use crate::metrics::Metrics;
use crate::service::Service;
use crate::tls::{self, Prepared, Tls};
use sooner_operate::{ListenError, PassedListeners, listen, polled_when_woken};
use sooner_uplink::{FairShadow, Uplink};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::timeout;

type Stop<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

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
}

/// What the parts of a running server have in common.
struct ServerState {
    service: Rc<Service>,
    connections: Connections,
    tls: Option<Rc<Tls>>,
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
        let active_config = ActiveConfig::new(config, means, &metrics, None)?;
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
        let listeners = self.listeners()?;
        let admin = self.config.admin.bind()?;
        let (log, log_closer) = self.config.log.open()?;
        let connections = Connections::new(&self.active_config.limits, self.means.descriptors);
        let service = Service::new(
            self.active_config,
            log,
            self.metrics.clone(),
            Instant::now(),
        );
        let Means {
            chunk_bytes,
            record_bytes,
            ..
        } = self.means;
        Ok(Listening {
            listeners,
            state: Rc::new(ServerState {
                service: Rc::new(service),
                connections,
                tls: self
                    .tls
                    .map(|prepared| Rc::new(Tls::new(prepared, chunk_bytes, record_bytes))),
                means: self.means,
                metrics: self.metrics,
                passed,
                reloaded: Notify::new(),
            }),
            admin,
            log_closer,
            warnings,
        })
    }

    fn listeners(&self) -> Result<Vec<(TcpListener, Transport)>, Misconfigured> {
        let stall_time = self.config.limits.stall_time();
        let mut listeners = Vec::new();
        if !self.passed.is_empty() {
            for (passed, transport) in [
                (&self.passed.clear, Transport::Clear),
                (&self.passed.tls, Transport::Tls),
            ] {
                for listener in passed {
                    listeners.push((adopt(listener)?, transport));
                }
            }
            return Ok(listeners);
        }
        if self.config.listen.is_empty() {
            for address in self.config.clear_addresses() {
                let listener = open(address, stall_time)
                    .map_err(|error| Misconfigured::without_place("listen", error))?;
                listeners.push((listener, Transport::Clear));
            }
        }
        for (key, addresses, transport) in [
            ("listen", &self.config.listen, Transport::Clear),
            ("listen_tls", &self.config.listen_tls, Transport::Tls),
        ] {
            for address in addresses {
                let listener = open(address.get_ref().0, stall_time)
                    .map_err(|error| Misconfigured::at(address, key, error))?;
                listeners.push((listener, transport));
            }
        }
        Ok(listeners)
    }
}

fn open(address: SocketAddr, stall_time: Duration) -> Result<TcpListener, ListenError> {
    let listener = listen(address, Some(stall_time))?;
    TcpListener::from_std(listener).map_err(|error| ListenError::Other { address, error })
}

fn adopt(listener: &std::net::TcpListener) -> Result<TcpListener, Misconfigured> {
    let listener = listener.try_clone().and_then(TcpListener::from_std);
    listener.map_err(|error| {
        let message = format!("a socket of the service manager cannot be used: {error}");
        Misconfigured::without_place("listen", message)
    })
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
        let log_closer = self.log_closer.take();
        let connections = LocalSet::new();
        // Dropped before the connections, which say why they end.
        let stop_guard = StopGuard(self.state.service.grace_end().clone());
        let local = polled_when_woken(self.run_local(uplink, stop));
        connections.run_until(local).await;
        drop(stop_guard);
        // What the grace cut off is logged as well.
        drop(connections);
        drop(log_closer);
    }

    async fn run_local(mut self, uplink: Uplink, stop: Stop<'_>) {
        let (alive, mut all_gone) = mpsc::channel::<()>(1);
        let maintaining = spawn_local(self.state.clone().maintain_upstreams());
        let sweeping = spawn_local(self.state.connections.clone().sweep());
        let watching = spawn_local(self.state.connections.clone().watch_departures());
        if uplink.snapshot().rate_bits_per_sec.is_none() {
            self.state.service.set_unordered();
        }
        self.start_shadow(&uplink);
        let admin = self.start_admin(&uplink);
        handshakes::put_first(&uplink, self.listeners.iter().map(|(listener, _)| listener));
        let guarded = self.listeners.iter();
        let guarded =
            guarded.filter_map(|(listener, _)| listener.as_fd().try_clone_to_owned().ok());
        let guarding = spawn_local(handshakes::watch(uplink.clone(), guarded.collect()));
        let accepting: Vec<_> = self
            .listeners
            .into_iter()
            .map(|(listener, transport)| {
                let acceptor = Acceptor {
                    service: self.state.service.clone(),
                    connections: self.state.connections.clone(),
                    tls: self
                        .state
                        .tls
                        .clone()
                        .filter(|_| transport == Transport::Tls),
                    uplink: uplink.clone(),
                    alive: alive.clone(),
                };
                spawn_local(acceptor.accept_all(listener))
            })
            .collect();
        drop(alive);
        stop.await;
        guarding.abort();
        self.state.metrics.stops();
        for task in accepting {
            task.abort();
        }
        self.state.connections.drain();
        // All have ended when the last sending side is dropped.
        let grace = self.state.service.active_config().limits.grace_time();
        let telling = telling_time(grace);
        let ended = timeout(grace - telling, all_gone.recv()).await;
        if ended.is_err() {
            self.state.service.grace_end().declare();
            let _ = timeout(telling, all_gone.recv()).await;
        }
        sweeping.abort();
        watching.abort();
        maintaining.abort();
        drop(admin);
    }

    /// Plays what FAIR would have given beside the uplink, where the admin server or the log shows
    /// it.
    fn start_shadow(&self, uplink: &Uplink) {
        let is_seen = self.admin.is_some() || self.state.service.log().is_on();
        let Some(rate) = uplink.snapshot().rate_bits_per_sec.filter(|_| is_seen) else {
            return;
        };
        let shadow = Arc::new(FairShadow::new(rate));
        uplink.observe(shadow.clone());
        self.state.metrics.compare_with(shadow);
    }

    /// Serves the admin address, if there is one.
    fn start_admin(&mut self, uplink: &Uplink) -> Option<JoinHandle<()>> {
        let admin = self.admin.take()?;
        let service = self.state.service.clone();
        let uplink = uplink.clone();
        let sources = Sources {
            metrics: self.state.metrics.clone(),
            log: service.log().clone(),
            uplink: Box::new(move || UplinkReading::of(&uplink)),
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
            self.service.active_config().proxy.start();
            self.reloaded.notified().await;
        }
    }
}

impl Control {
    /// Answers requests by `config`, with the hash of its text, from now on; after a mistake
    /// nothing has changed. Gives warnings.
    pub fn reload(&self, config: &Config, hash: u64) -> Result<Vec<Misconfigured>, Misconfigured> {
        let before = self.0.service.active_config();
        let active_config =
            ActiveConfig::new(config, self.0.means, &self.0.metrics, Some(&before))?;
        // Whether TLS is spoken at all is decided at the start; certificates are looked at all the
        // same.
        let warnings = match &self.0.tls {
            Some(_) if config.tls.is_empty() => vec![Misconfigured::without_place(
                "tls",
                "removed; the old certificates stay until the next start",
            )],
            None if config.tls.is_empty() => Vec::new(),
            Some(tls) => tls.reload(&config.tls, SystemTime::now())?,
            None => tls::prepare(&config.tls, SystemTime::now())?.warnings,
        };
        self.0
            .connections
            .set_limits(&active_config.limits, self.0.means.descriptors);
        active_config.proxy.take_over();
        self.0.service.replace(active_config);
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
        self.0.service.log().reopen();
    }
}
