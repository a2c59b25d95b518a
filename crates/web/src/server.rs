//! A server from its configuration: start, reload, graceful stop.

use crate::acceptor::{Acceptor, Speech};
use crate::access_log::Closer;
use crate::admin::{Admin, Sources, UplinkReading};
use crate::config::{Config, Misconfigured};
use crate::generation::{Generation, Means};
use crate::handshakes;
use crate::limits::Connections;
use crate::metrics::Metrics;
use crate::service::Service;
use crate::tls::{self, Prepared, Tls};
use sooner_operate::{ListenError, PassedListeners, listen};
use sooner_uplink::{FairShadow, Uplink};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

/// What to serve, and with what means: looked at, nothing opened yet but files to read.
pub struct Server<'a> {
    config: &'a Config,
    means: Means,
    generation: Generation,
    tls: Option<Prepared>,
    metrics: Arc<Metrics>,
    passed: PassedListeners,
}

/// A server that listens and does not serve yet.
pub struct Listening {
    listeners: Vec<(TcpListener, Speech)>,
    shared: Rc<Shared>,
    admin: Option<Admin>,
    log_closer: Option<Closer>,
    warnings: Vec<Misconfigured>,
}

/// What the parts of a running server have in common.
struct Shared {
    service: Rc<Service>,
    connections: Connections,
    tls: Option<Rc<Tls>>,
    means: Means,
    metrics: Arc<Metrics>,
    /// Told when a reload has replaced the generation.
    reloaded: Notify,
}

/// Changes a server that runs; clones act on the same one.
#[derive(Clone)]
pub struct Control(Rc<Shared>);

impl<'a> Server<'a> {
    /// A server as `config` says, after a look at everything that it names.
    pub fn from_config(config: &'a Config, means: Means) -> Result<Self, Misconfigured> {
        let metrics = Arc::new(Metrics::new(SystemTime::now()));
        let generation = Generation::new(config, means, &metrics, None)?;
        let tls = match config.tls.is_empty() {
            true => None,
            false => Some(tls::prepare(&config.tls, SystemTime::now())?),
        };
        Ok(Self {
            config,
            means,
            generation,
            tls,
            metrics,
            passed: PassedListeners::default(),
        })
    }

    /// The same, accepting from listeners that a service manager opened; with any, the configuration's addresses are
    /// not opened.
    pub fn with_passed(mut self, passed: PassedListeners) -> Self {
        self.passed = passed;
        self
    }

    /// Looks at everything `config` names; gives warnings.
    pub fn check(config: &Config, means: Means) -> Result<Vec<Misconfigured>, Misconfigured> {
        let server = Server::from_config(config, means)?;
        Ok(server.tls.map_or_else(Vec::new, |tls| tls.warnings))
    }

    /// Opens the log and all listeners. Needs a tokio runtime around it; nothing is served before [`Listening::run`],
    /// but clients can connect.
    pub fn start(mut self) -> Result<Listening, Misconfigured> {
        let mut warnings: Vec<_> = self.config.remarks();
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
        let connections = Connections::new(&self.generation.limits, self.means.descriptors);
        let service = Service::new(self.generation, log, self.metrics.clone(), Instant::now());
        let Means {
            chunk_bytes,
            record_bytes,
            ..
        } = self.means;
        Ok(Listening {
            listeners,
            shared: Rc::new(Shared {
                service: Rc::new(service),
                connections,
                tls: self
                    .tls
                    .map(|prepared| Rc::new(Tls::new(prepared, chunk_bytes, record_bytes))),
                means: self.means,
                metrics: self.metrics,
                reloaded: Notify::new(),
            }),
            admin,
            log_closer,
            warnings,
        })
    }

    fn listeners(&self) -> Result<Vec<(TcpListener, Speech)>, Misconfigured> {
        let stall_time = self.config.limits.stall_time();
        let mut listeners = Vec::new();
        if !self.passed.is_empty() {
            for (passed, speech) in [
                (&self.passed.clear, Speech::Clear),
                (&self.passed.tls, Speech::Tls),
            ] {
                for listener in passed {
                    listeners.push((adopt(listener)?, speech));
                }
            }
            return Ok(listeners);
        }
        if self.config.listen.is_empty() {
            for address in self.config.clear_addresses() {
                let listener = open(address, stall_time)
                    .map_err(|error| Misconfigured::without_place("listen", error))?;
                listeners.push((listener, Speech::Clear));
            }
        }
        for (key, addresses, speech) in [
            ("listen", &self.config.listen, Speech::Clear),
            ("listen_tls", &self.config.listen_tls, Speech::Tls),
        ] {
            for address in addresses {
                let listener = open(address.get_ref().0, stall_time)
                    .map_err(|error| Misconfigured::at(address, key, error))?;
                listeners.push((listener, speech));
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
        self.addresses_of(Speech::Clear)
    }

    /// Those where TLS is spoken.
    pub fn tls_addresses(&self) -> Vec<SocketAddr> {
        self.addresses_of(Speech::Tls)
    }

    fn addresses_of(&self, speech: Speech) -> Vec<SocketAddr> {
        self.listeners
            .iter()
            .filter(|(_, spoken)| *spoken == speech)
            .filter_map(|(listener, _)| listener.local_addr().ok())
            .collect()
    }

    /// The address of metrics and live page, if there is one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref()?.address().ok()
    }

    /// What works and is worth a word.
    pub fn warnings(&self) -> &[Misconfigured] {
        &self.warnings
    }

    /// What changes the server while it runs.
    pub fn control(&self) -> Control {
        Control(self.shared.clone())
    }

    /// The configuration in force is the one with this hash.
    pub fn note_config(&self, hash: u64) {
        self.shared.metrics.reloaded(hash, SystemTime::now());
    }

    /// Serves through `uplink` until `stop` is ready; then ends idle connections, and waits for responses in flight
    /// as long as the grace allows.
    pub async fn run(mut self, uplink: Uplink, stop: impl Future<Output = ()>) {
        let log_closer = self.log_closer.take();
        let connections = LocalSet::new();
        connections.run_until(self.run_local(uplink, stop)).await;
        // What the grace cut off is logged as well.
        drop(connections);
        drop(log_closer);
    }

    async fn run_local(mut self, uplink: Uplink, stop: impl Future<Output = ()>) {
        let (alive, mut all_gone) = mpsc::channel::<()>(1);
        let caring = spawn_local(self.shared.clone().care_for_upstreams());
        let watching = spawn_local(self.shared.connections.clone().watch());
        if uplink.snapshot().rate_bits_per_sec.is_none() {
            self.shared.service.set_unordered();
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
            .map(|(listener, speech)| {
                let acceptor = Acceptor {
                    service: self.shared.service.clone(),
                    connections: self.shared.connections.clone(),
                    tls: self.shared.tls.clone().filter(|_| speech == Speech::Tls),
                    uplink: uplink.clone(),
                    alive: alive.clone(),
                };
                spawn_local(acceptor.accept_all(listener))
            })
            .collect();
        drop(alive);
        stop.await;
        guarding.abort();
        self.shared.metrics.stops();
        for task in accepting {
            task.abort();
        }
        self.shared.connections.evict_all();
        // All have ended when nobody holds the sending side any more.
        let grace = self.shared.service.generation().limits.grace_time();
        let _ = tokio::time::timeout(grace, all_gone.recv()).await;
        watching.abort();
        caring.abort();
        drop(admin);
    }

    /// Plays what FAIR would have given beside the uplink, where somebody can see it.
    fn start_shadow(&self, uplink: &Uplink) {
        let is_seen = self.admin.is_some() || self.shared.service.log().is_on();
        let Some(rate) = uplink.snapshot().rate_bits_per_sec.filter(|_| is_seen) else {
            return;
        };
        let shadow = Arc::new(FairShadow::new(rate));
        uplink.observe(shadow.clone());
        self.shared.metrics.compare_with(shadow);
    }

    /// Serves the admin address, if there is one.
    fn start_admin(&mut self, uplink: &Uplink) -> Option<JoinHandle<()>> {
        let admin = self.admin.take()?;
        let service = self.shared.service.clone();
        let uplink = uplink.clone();
        let sources = Sources {
            metrics: self.shared.metrics.clone(),
            log: service.log().clone(),
            uplink: Box::new(move || UplinkReading::of(&uplink)),
            upstreams: Box::new(move || service.generation().proxy.states()),
        };
        Some(spawn_local(admin.serve(sources)))
    }
}

impl Shared {
    /// Starts what upstreams need beside requests, at first and after each reload. A task of its own, because signals are
    /// obeyed outside the `LocalSet` that the connections live on.
    async fn care_for_upstreams(self: Rc<Self>) {
        loop {
            self.service.generation().proxy.start();
            self.reloaded.notified().await;
        }
    }
}

impl Control {
    /// Answers requests as `config`, whose text has `hash`, says from now on; after a mistake nothing has changed. Gives
    /// warnings.
    pub fn reload(&self, config: &Config, hash: u64) -> Result<Vec<Misconfigured>, Misconfigured> {
        let before = self.0.service.generation();
        let generation = Generation::new(config, self.0.means, &self.0.metrics, Some(&before))?;
        // Whether TLS is spoken at all is decided at the start; certificates are looked at all the same.
        let warnings = match &self.0.tls {
            _ if config.tls.is_empty() => Vec::new(),
            Some(tls) => tls.reload(&config.tls, SystemTime::now())?,
            None => tls::prepare(&config.tls, SystemTime::now())?.warnings,
        };
        self.0
            .connections
            .set_limits(&generation.limits, self.0.means.descriptors);
        self.0.service.replace(generation);
        self.0.reloaded.notify_one();
        self.0.metrics.reloaded(hash, SystemTime::now());
        Ok(warnings)
    }

    /// A configuration was not taken, for whatever reason.
    pub fn reload_failed(&self) {
        self.0.metrics.reload_failed();
    }

    /// Has the access log opened anew, after somebody moved it away.
    pub fn reopen_logs(&self) {
        self.0.service.log().reopen();
    }
}
