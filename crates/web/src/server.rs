//! A server from its configuration: start, reload, graceful stop.

use crate::access_log::Closer;
use crate::acceptor::{Acceptor, Speech};
use crate::activation::{PassedError, PassedListeners};
use crate::admin::{Admin, Sources, UplinkReading};
use crate::config::{Config, Misconfigured};
use crate::generation::{Generation, Means};
use crate::limits::Connections;
use crate::listen::{ListenError, listen};
use crate::metrics::Metrics;
use crate::service::Service;
use crate::tls::{self, Tls};
use sooner_uplink::Uplink;
use sooner_uplink::shadow::FairShadow;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{LocalSet, spawn_local};

/// What to serve, and with what means.
pub struct Server {
    /// The configuration.
    pub config: Config,
    /// What the process has to share out.
    pub means: Means,
    /// Listeners that a service manager opened; with any, the configuration's addresses are not opened.
    pub passed: PassedListeners,
}

/// Why a server does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The configuration cannot work.
    #[error("{0}")]
    Misconfigured(#[from] Misconfigured),
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A socket that was passed is of no use.
    #[error(transparent)]
    Passed(#[from] PassedError),
}

/// A server that listens and does not serve yet.
pub struct Listening {
    listeners: Vec<(TcpListener, Speech)>,
    shared: Rc<Shared>,
    admin: Option<TcpListener>,
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
}

/// Changes a server that runs; clones act on the same one.
#[derive(Clone)]
pub struct Control(Rc<Shared>);

impl Server {
    /// A server as `config` says.
    pub fn from_config(config: Config, means: Means) -> Self {
        Self {
            config,
            means,
            passed: PassedListeners::default(),
        }
    }

    /// Looks at everything the configuration names, and opens nothing but files to read; gives warnings.
    pub fn check(&self) -> Result<Vec<Misconfigured>, Misconfigured> {
        let metrics = Metrics::new(SystemTime::now());
        Generation::new(&self.config, self.means, &metrics)?;
        let mut warnings = self.config.remarks();
        if !self.config.tls.is_empty() {
            warnings.extend(tls::prepare(&self.config.tls, SystemTime::now())?.warnings);
        }
        Ok(warnings)
    }

    /// Opens roots, certificates, the log and all listeners. Needs a tokio runtime around it; nothing is served before
    /// [`Listening::run`], but clients can connect.
    pub fn start(self) -> Result<Listening, StartError> {
        let metrics = Arc::new(Metrics::new(SystemTime::now()));
        let generation = Generation::new(&self.config, self.means, &metrics)?;
        let mut warnings = self.config.remarks();
        let tls = self.tls(&mut warnings)?;
        let listeners = self.listeners()?;
        let admin = match self.config.admin.address() {
            Some(address) => Some(open(address, self.config.limits.stall_time())?),
            None => None,
        };
        let (log, log_closer) = self.config.log.open()?;
        let connections = Connections::new(&generation.limits, self.means.descriptors);
        let service = Service::new(generation, log, metrics.clone(), Instant::now());
        metrics.reloaded(self.config.hash, SystemTime::now());
        Ok(Listening {
            listeners,
            shared: Rc::new(Shared {
                service: Rc::new(service),
                connections,
                tls,
                means: self.means,
                metrics,
            }),
            admin,
            log_closer,
            warnings,
        })
    }

    fn tls(&self, warnings: &mut Vec<Misconfigured>) -> Result<Option<Rc<Tls>>, Misconfigured> {
        if self.config.tls.is_empty() {
            return Ok(None);
        }
        let mut prepared = tls::prepare(&self.config.tls, SystemTime::now())?;
        warnings.append(&mut prepared.warnings);
        Ok(Some(Rc::new(Tls::new(prepared, self.means.chunk_bytes))))
    }

    fn listeners(&self) -> Result<Vec<(TcpListener, Speech)>, StartError> {
        let stall_time = self.config.limits.stall_time();
        let mut listeners = Vec::new();
        if self.passed.is_empty() {
            for address in self.config.clear_addresses() {
                listeners.push((open(address, stall_time)?, Speech::Clear));
            }
            for address in self.config.tls_addresses() {
                listeners.push((open(address, stall_time)?, Speech::Tls));
            }
            return Ok(listeners);
        }
        for (passed, speech) in [(&self.passed.clear, Speech::Clear), (&self.passed.tls, Speech::Tls)] {
            for listener in passed {
                listeners.push((adopt(listener)?, speech));
            }
        }
        Ok(listeners)
    }
}

fn open(address: SocketAddr, stall_time: Duration) -> Result<TcpListener, ListenError> {
    let listener = listen(address, stall_time)?;
    TcpListener::from_std(listener).map_err(|error| ListenError::Other { address, error })
}

fn adopt(listener: &std::net::TcpListener) -> Result<TcpListener, PassedError> {
    let other = |error: io::Error| PassedError::Other {
        name: "to listen on".into(),
        error,
    };
    TcpListener::from_std(listener.try_clone().map_err(other)?).map_err(other)
}

impl Listening {
    /// The addresses it listens on, with the ports the system chose, and what is spoken there.
    pub fn addresses(&self) -> Vec<(SocketAddr, Speech)> {
        self.listeners
            .iter()
            .filter_map(|(listener, speech)| Some((listener.local_addr().ok()?, *speech)))
            .collect()
    }

    /// The address of metrics and live page, if there is one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref()?.local_addr().ok()
    }

    /// What works and is worth a word.
    pub fn warnings(&self) -> &[Misconfigured] {
        &self.warnings
    }

    /// What changes the server while it runs.
    pub fn control(&self) -> Control {
        Control(self.shared.clone())
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
        let (stopping, is_stopping) = watch::channel(());
        let (alive, mut all_gone) = mpsc::channel::<()>(1);
        let watching = spawn_local(self.shared.connections.clone().watch());
        let admin = self.start_admin(&uplink);
        let accepting: Vec<_> = self
            .listeners
            .into_iter()
            .map(|(listener, speech)| {
                if let Err(error) = uplink.mark_listener(&listener) {
                    eprintln!("sooner: handshakes are not put first: {error}");
                }
                let acceptor = Acceptor {
                    service: self.shared.service.clone(),
                    connections: self.shared.connections.clone(),
                    tls: self.shared.tls.clone().filter(|_| speech == Speech::Tls),
                    uplink: uplink.clone(),
                    is_stopping: is_stopping.clone(),
                    alive: alive.clone(),
                };
                spawn_local(acceptor.accept_all(listener))
            })
            .collect();
        drop(alive);
        stop.await;
        self.shared.metrics.stops();
        for task in accepting {
            task.abort();
        }
        stopping.send_replace(());
        // All have ended when nobody holds the sending side any more.
        let grace = self.shared.service.generation().limits.grace_time();
        let _ = tokio::time::timeout(grace, all_gone.recv()).await;
        watching.abort();
        drop(admin);
    }

    /// Serves the admin address, if there is one.
    fn start_admin(&mut self, uplink: &Uplink) -> Option<tokio::task::JoinHandle<()>> {
        let listener = self.admin.take()?;
        let shadow = uplink.rate_bits_per_sec().map(|rate| {
            let metrics = self.shared.metrics.clone();
            let shadow = Arc::new(FairShadow::new(rate, move |compared| metrics.compared(&compared)));
            uplink.observe(shadow.clone());
            shadow
        });
        let (uplink, service) = (uplink.clone(), self.shared.service.clone());
        let sources = Sources {
            metrics: self.shared.metrics.clone(),
            log: service.log().clone(),
            shadow,
            uplink: Box::new(move || UplinkReading::of(&uplink)),
            upstreams: Box::new(move || service.generation().proxy.states()),
        };
        Some(spawn_local(Admin::new(sources).serve(listener)))
    }
}

impl Control {
    /// Answers requests as `config` says from now on; after a mistake nothing has changed. Gives warnings.
    pub fn reload(&self, config: &Config) -> Result<Vec<Misconfigured>, Misconfigured> {
        let result = self.try_reload(config);
        match &result {
            Ok(_) => self.0.metrics.reloaded(config.hash, SystemTime::now()),
            Err(_) => self.0.metrics.reload_failed(),
        }
        result
    }

    fn try_reload(&self, config: &Config) -> Result<Vec<Misconfigured>, Misconfigured> {
        let generation = Generation::new(config, self.0.means, &self.0.metrics)?;
        let mut warnings = config.remarks();
        if let Some(tls) = &self.0.tls {
            warnings.extend(tls.reload(&config.tls, SystemTime::now())?);
        }
        self.0
            .connections
            .set_limits(&generation.limits, self.0.means.descriptors);
        self.0.service.replace(generation);
        Ok(warnings)
    }

    /// Has the access log opened anew, after somebody moved it away.
    pub fn reopen_logs(&self) {
        self.0.service.log().reopen();
    }
}
