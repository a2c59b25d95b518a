//! Several sites behind one server, told apart by the host a request names.

use super::build::{self, SharedFiles};
use super::config::{Scheme, StaticConfig};
use super::{Asked, Led, StaticReply, StaticSite};
use crate::auth::Guard;
use crate::body::Source;
use crate::clock::Moment;
use crate::config::Misconfigured;
use crate::files::CacheLimits;
use crate::response::plain;
use hyper::{Method, Request, StatusCode};
use sooner_http::host::{self, HostMap};
use sooner_http::path_pattern::{self, PathPattern};
use std::rc::Rc;

/// The sites of a server; the first one answers to hosts that no site names.
#[derive(Debug)]
pub struct Sites {
    /// Those of the configuration in its order, then those behind their locations.
    all: Vec<StaticSite>,
    count: usize,
    /// Where no site answers.
    nothing: StaticSite,
    /// By [`Scheme`].
    by_scheme: [SchemeMap; 2],
    /// Of each site of the configuration.
    locations: Vec<Vec<Location>>,
}

/// Which site answers to requests of a scheme.
#[derive(Debug, Default)]
struct SchemeMap {
    first: Option<usize>,
    by_host: HostMap<usize>,
}

/// Paths of a site, and the place in `all` of what is behind them.
#[derive(Debug)]
struct Location {
    patterns: Vec<PathPattern>,
    index: usize,
}

/// Who answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The site as it is counted, its place in the configuration.
    pub site: usize,
    /// The site or the location of it that answers.
    answering: usize,
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
        let mut by_scheme = <[SchemeMap; 2]>::default();
        let mut all = Vec::with_capacity(configs.len());
        for (index, config) in configs.iter().enumerate() {
            register(config, index, &mut by_scheme)?;
            all.push(StaticSite::sharing(config, &shared)?);
        }
        let mut locations = Vec::with_capacity(configs.len());
        for config in configs {
            let mut own = Vec::with_capacity(config.location.len());
            for location in &config.location {
                let (patterns, mut site) = location.build(config, &shared)?;
                site.looks_up_again = true;
                let index = all.len();
                own.push(Location { patterns, index });
                all.push(site);
            }
            locations.push(own);
        }
        Ok(Self {
            all,
            count: configs.len(),
            nothing: StaticSite::sharing(&StaticConfig::default(), &shared)?,
            by_scheme,
            locations,
        })
    }

    /// Whether sites of `configs` could be, but for what lies in their directories.
    pub fn check(configs: &[StaticConfig]) -> Result<(), Misconfigured> {
        let mut by_scheme = <[SchemeMap; 2]>::default();
        for (index, config) in configs.iter().enumerate() {
            register(config, index, &mut by_scheme)?;
            build::check(config)?;
            for location in &config.location {
                location.check(config)?;
            }
        }
        Ok(())
    }

    /// Who answers a request for `path` (as in the request) at a host as [`host::of`] gives it: the
    /// site that names it exactly, else by its longest suffix, else the first.
    pub fn choose(&self, scheme: Scheme, host: &str, path: &str) -> Chosen {
        let sites = &self.by_scheme[scheme as usize];
        let named = sites.by_host.get(host).copied().or(sites.first);
        let site = named.unwrap_or(usize::MAX);
        let answering = self.location(site, path).unwrap_or(site);
        Chosen { site, answering }
    }

    /// Who answers for what a request led to that `chosen` was to answer: the first location of the
    /// same site for that path, else who was chosen before.
    pub fn choose_for(&self, chosen: Chosen, led: &Led) -> Chosen {
        let takes_routes = |at: usize| self.all.get(at).is_none_or(StaticSite::takes_routes);
        let own = self.location(chosen.site, &led.path);
        let own = own.filter(|at| !led.is_last_resort || takes_routes(*at));
        let refusing = led
            .in_small_letters()
            .filter(|_| !led.is_last_resort)
            .and_then(|path| self.location(chosen.site, &path))
            .filter(|at| !takes_routes(*at));
        Chosen {
            answering: refusing.or(own).unwrap_or(chosen.answering),
            ..chosen
        }
    }

    /// The place of the first location of a site for `path`.
    fn location(&self, site: usize, path: &str) -> Option<usize> {
        let locations = self.locations.get(site).filter(|all| !all.is_empty())?;
        let path = path_pattern::plain(path);
        let fits = |location: &&Location| location.patterns.iter().any(|own| own.fits(&path));
        locations.iter().find(fits).map(|location| location.index)
    }

    /// What protects `path`, as it would stand in a request, of the site that was chosen: its
    /// locations have no passwords of their own.
    pub fn guard(&self, chosen: Chosen, path: &str) -> Option<&Rc<Guard>> {
        self.all.get(chosen.site)?.guard(path)
    }

    /// The site or the location that was chosen.
    pub fn at(&self, chosen: Chosen) -> &StaticSite {
        self.all.get(chosen.answering).unwrap_or(&self.nothing)
    }

    /// Answers a request by the site it is for, without a look at passwords.
    pub fn respond<B>(&self, request: &Request<B>, scheme: Scheme, now: Moment) -> StaticReply {
        match host::of(request) {
            Ok(host) => {
                let chosen = self.choose(scheme, host, request.uri().path());
                let answer = self.at(chosen).answer(request, Asked::default(), now);
                answer.unwrap_or_else(|led| {
                    let site = self.at(self.choose_for(chosen, &led));
                    site.respond_to(request, &led, now)
                })
            }
            Err(error) => {
                let mut response = plain(StatusCode::BAD_REQUEST, &error.to_string());
                if request.method() == Method::HEAD {
                    response.source = Source::Empty;
                }
                StaticReply::Now(response)
            }
        }
    }

    /// From now on no site shows a script as a file.
    pub fn hide_scripts(&mut self) {
        self.all.iter_mut().for_each(StaticSite::hide_scripts);
    }

    /// All that the configuration has, the first one first.
    pub fn all(&self) -> impl Iterator<Item = &StaticSite> {
        self.all.iter().take(self.count)
    }
}

fn register(
    config: &StaticConfig,
    index: usize,
    by_scheme: &mut [SchemeMap; 2],
) -> Result<(), Misconfigured> {
    let mut is_first = false;
    for scheme in Scheme::ALL {
        if config.scheme.is_some_and(|own| own != scheme) {
            continue;
        }
        let sites = &mut by_scheme[scheme as usize];
        is_first |= sites.first.is_none();
        sites.first.get_or_insert(index);
        for host in &config.hosts {
            let before = sites
                .by_host
                .insert(host.get_ref(), index)
                .map_err(|error| Misconfigured::at(host, "site.hosts", error))?;
            if before.is_some() {
                let message = format!(
                    "{:?} is named before; a host belongs to one site",
                    host.get_ref()
                );
                return Err(Misconfigured::at(host, "site.hosts", message));
            }
        }
    }
    if config.hosts.is_empty() && !is_first {
        let message = "a site after the first needs hosts: without them nothing leads to it";
        return Err(match &config.root {
            Some(root) => Misconfigured::at(root, "site.hosts", message),
            None => Misconfigured::without_place("site.hosts", message),
        });
    }
    Ok(())
}
