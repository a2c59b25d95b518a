//! Several sites behind one server, told apart by the host a request names.

use super::build::SharedFiles;
use super::config::StaticConfig;
use super::{StaticReply, StaticSite};
use crate::body::Source;
use crate::clock::Moment;
use crate::config::Misconfigured;
use crate::files::CacheLimits;
use crate::response::plain;
use hyper::{Method, Request, StatusCode};
use sooner_http::host::{self, HostError, HostMap};

/// The sites of a server; the first one answers to hosts that no site names.
#[derive(Debug)]
pub struct Sites {
    first: StaticSite,
    others: Vec<StaticSite>,
    /// Places in [`Sites::all`].
    by_host: HostMap<usize>,
}

impl Sites {
    /// The sites of `configs`; one without files if there are none. All files together stay within
    /// `limits`; a body from disk is read `chunk_bytes` at a time.
    pub fn new(
        configs: &[StaticConfig],
        limits: CacheLimits,
        chunk_bytes: usize,
    ) -> Result<Self, Misconfigured> {
        let shared = SharedFiles::new(limits, chunk_bytes);
        let mut by_host = HostMap::default();
        let mut sites = Vec::with_capacity(configs.len());
        for (index, config) in configs.iter().enumerate() {
            register(config, index, &mut by_host)?;
            sites.push(StaticSite::sharing(config, &shared)?);
        }
        let mut sites = sites.into_iter();
        let first = match sites.next() {
            Some(first) => first,
            None => StaticSite::sharing(&StaticConfig::default(), &shared)?,
        };
        Ok(Self {
            first,
            others: sites.collect(),
            by_host,
        })
    }

    /// The site of a host as [`host::of`] gives it: named exactly, else by its longest suffix, else
    /// the first.
    pub fn site(&self, host: &str) -> &StaticSite {
        self.at(self.index(host))
    }

    /// Its place in [`Sites::all`].
    pub fn index(&self, host: &str) -> usize {
        self.by_host.get(host).copied().unwrap_or(0)
    }

    /// The site at a place that [`Sites::index`] gave.
    pub fn at(&self, index: usize) -> &StaticSite {
        match index.checked_sub(1) {
            Some(index) => &self.others[index],
            None => &self.first,
        }
    }

    /// The site a request is for.
    pub fn site_of<B>(&self, request: &Request<B>) -> Result<&StaticSite, HostError> {
        host::of(request).map(|host| self.site(host))
    }

    /// Answers a request by the site it is for.
    pub fn respond<B>(&self, request: &Request<B>, now: Moment) -> StaticReply {
        match self.site_of(request) {
            Ok(site) => site.respond(request, now),
            Err(error) => {
                let mut response = plain(StatusCode::BAD_REQUEST, &error.to_string());
                if request.method() == Method::HEAD {
                    response.source = Source::Empty;
                }
                StaticReply::Now(response)
            }
        }
    }

    /// All of them, the first one first.
    pub fn all(&self) -> impl Iterator<Item = &StaticSite> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

fn register(
    config: &StaticConfig,
    index: usize,
    by_host: &mut HostMap<usize>,
) -> Result<(), Misconfigured> {
    for host in &config.hosts {
        let before = by_host
            .insert(host.get_ref(), index)
            .map_err(|error| Misconfigured::at(host, "site.hosts", error))?;
        if before.is_some() {
            let message = format!(
                "{:?} is named before: one site answers to a host",
                host.get_ref()
            );
            return Err(Misconfigured::at(host, "site.hosts", message));
        }
    }
    if config.hosts.is_empty() && index > 0 {
        let message = "a site after the first needs hosts: without them nothing leads to it";
        return Err(match &config.root {
            Some(root) => Misconfigured::at(root, "site.hosts", message),
            None => Misconfigured::without_place("site.hosts", message),
        });
    }
    Ok(())
}
