//! The configuration in force, built: everything that a reload replaces.

use crate::compress::Compression;
use crate::config::{Config, Misconfigured};
use crate::files::CacheLimits;
use crate::http1::{Http1, Http1Limits};
use crate::http2::Bounds;
use crate::limits::Limits;
use crate::metrics::{Metrics, SiteId};
use crate::proxy::{Proxy, ProxyShare, ProxyTables, WorkerPart};
use crate::proxy_protocol::Senders;
use crate::static_site::{Sites, StaticConfig};
use crate::tls::Tls;
use rustls::ServerConfig;
use sooner_http::priority::Rules;
use std::borrow::Cow;
use std::sync::Arc;

/// What a process has to share out.
#[derive(Debug, Clone, Copy)]
pub struct Means {
    /// Bytes read from a file at once; about the uplink's quantum when responses are ordered.
    pub chunk_bytes: usize,
    /// Bytes that a TLS record carries at most; a client reads nothing of one before it has all of
    /// it.
    pub record_bytes: u64,
    /// Descriptors the process may have open.
    pub descriptors: u64,
    /// Threads that serve, which share files kept in memory and what compresses.
    pub workers: usize,
}

impl Means {
    /// Those of a small machine, for one worker.
    #[cfg(test)]
    pub(crate) fn of_test() -> Self {
        Self {
            chunk_bytes: 1 << 16,
            record_bytes: 1 << 14,
            descriptors: 1024,
            workers: 1,
        }
    }

    /// The TLS of one worker, by `config`.
    pub(crate) fn tls(&self, config: Arc<ServerConfig>) -> Tls {
        Tls::new(config, self.chunk_bytes, self.record_bytes)
    }
}

/// The configuration in force since the last reload.
pub struct ActiveConfig {
    /// The sites, with the files they have at hand.
    pub sites: Sites,
    /// What they are counted as, in the same order.
    pub site_ids: Vec<SiteId>,
    /// What goes to servers behind this one.
    pub proxy: Proxy,
    /// What is compressed.
    pub compression: Compression,
    /// What makes a response urgent.
    pub rules: Rules,
    /// The HTTP/1 engine.
    pub http1: Http1,
    /// What bounds an HTTP/2 connection.
    pub http2: Bounds,
    /// The proxies that may name the client of a connection.
    pub proxy_protocol: Senders,
    /// What clients may hold.
    pub limits: Limits,
}

impl ActiveConfig {
    /// Looks at everything `config` names but its certificates; an error has changed nothing.
    ///
    /// Backends that `previous` knows and that are configured as before keep their queues and
    /// connections. For another worker than the first, `share` is of the first one's.
    pub fn new(
        config: &Config,
        means: Means,
        metrics: &Metrics,
        share: Option<&ProxyShare>,
        previous: Option<&Self>,
    ) -> Result<Self, Misconfigured> {
        config.limits.check()?;
        let configs = site_configs(config);
        let compression = Compression::new(
            &config.compression.clone().unwrap_or_default(),
            config.compress,
            configs.iter().map(|site| site.compress),
            means,
            &metrics.compression,
        )?;
        let names = configs.iter().map(|site| metrics.site(site_name(site)));
        let limits = cache_limits(&config.limits, means);
        let mut sites = Sites::new(&configs, limits, means.chunk_bytes)?;
        let part = share.map_or(WorkerPart::First(means.workers), WorkerPart::Beside);
        let proxy = Proxy::of_worker(
            ProxyTables {
                proxy: &config.proxy,
                classes: &config.class,
                late: config.late.as_ref(),
                upstreams: &config.upstream,
                routes: &config.route,
            },
            part,
            previous.map(|previous| &previous.proxy),
        )?;
        if proxy.runs_scripts() {
            sites.hide_scripts();
        }
        Ok(Self {
            site_ids: names.collect(),
            sites,
            proxy,
            compression,
            rules: Rules {
                trust_priority: config.uplink.trust_priority,
            },
            http1: Http1::new(Http1Limits {
                head_bytes_max: *config.limits.head_bytes.get_ref() as usize,
                chunk_bytes: means.chunk_bytes,
            }),
            http2: Bounds::new(&config.limits),
            proxy_protocol: Senders::new(&config.proxy_protocol)?,
            limits: config.limits.clone(),
        })
    }
}

/// The sites of a configuration; `root` alone stands for one.
fn site_configs(config: &Config) -> Cow<'_, [StaticConfig]> {
    match &config.root {
        Some(root) => Cow::Owned(vec![StaticConfig {
            root: Some(root.clone()),
            ..StaticConfig::default()
        }]),
        None => Cow::Borrowed(&config.site),
    }
}

/// What a site is called in metrics: its first host.
fn site_name(site: &StaticConfig) -> &str {
    site.hosts.first().map_or("default", |host| host.get_ref())
}

/// Connections need descriptors more than files do.
fn cache_limits(limits: &Limits, means: Means) -> CacheLimits {
    let defaults = CacheLimits::default();
    let affordable = usize::try_from(means.descriptors / 4).unwrap_or(usize::MAX);
    // Each worker has its own.
    CacheLimits {
        files_max: defaults.files_max.min(affordable) / means.workers,
        memory_bytes_max: limits.file_memory_bytes / means.workers as u64,
        ..defaults
    }
}
