//! What one configuration makes of a server: everything that a reload replaces.

use crate::config::{Config, Misconfigured};
use crate::connection::{Engine, EngineLimits};
use crate::files::CacheLimits;
use crate::http2::Bounds;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::proxy::Proxy;
use crate::proxy_protocol::Senders;
use crate::static_site::Sites;
use crate::urgency::Rules;
use std::cell::RefCell;
use std::rc::Rc;

/// What a process has to share out, whatever the configuration says.
#[derive(Debug, Clone, Copy)]
pub struct Means {
    /// Bytes read from a file at once; about the uplink's quantum when responses are ordered.
    pub chunk_bytes: usize,
    /// Descriptors the process may have open.
    pub descriptors: u64,
}

/// How requests are answered since the last reload.
pub struct Generation {
    /// The sites, with the files they have at hand.
    pub sites: RefCell<Sites>,
    /// What goes to servers behind this one.
    pub proxy: Rc<Proxy>,
    /// What makes a response urgent.
    pub rules: Rules,
    /// The HTTP/1 engine.
    pub engine: Engine,
    /// What bounds an HTTP/2 connection.
    pub http2: Bounds,
    /// Who may say on whose behalf it connects.
    pub proxy_protocol: Senders,
    /// What clients may hold.
    pub limits: Limits,
}

impl Generation {
    /// Looks at everything `config` names but its certificates; an error has changed nothing.
    pub fn new(config: &Config, means: Means, metrics: &Metrics) -> Result<Self, Misconfigured> {
        config.limits.check()?;
        let sites = Sites::new(config, cache_limits(&config.limits, means), means.chunk_bytes, metrics)?;
        Ok(Self {
            sites: RefCell::new(sites),
            proxy: Rc::new(Proxy::new(&config.proxy, &config.upstream, &config.route)?),
            rules: Rules {
                trust_priority: config.uplink.trust_priority,
                ..Rules::default()
            },
            engine: Engine::new(EngineLimits {
                head_bytes_max: *config.limits.head_bytes.get_ref() as usize,
                chunk_bytes: means.chunk_bytes,
            }),
            http2: Bounds::new(&config.limits),
            proxy_protocol: Senders::new(&config.proxy_protocol)?,
            limits: config.limits.clone(),
        })
    }
}

/// Connections need descriptors more than files do.
fn cache_limits(limits: &Limits, means: Means) -> CacheLimits {
    let defaults = CacheLimits::default();
    let affordable = usize::try_from(means.descriptors / 4).unwrap_or(usize::MAX);
    CacheLimits {
        files_max: defaults.files_max.min(affordable),
        memory_bytes_max: limits.file_memory_bytes,
        ..defaults
    }
}
