//! A proxy from its tables: everything a configuration can get wrong about it is found here, with
//! its place.

use super::buffer_budget::BufferBudget;
use super::classes::{ClassTable, Classes};
use super::config::{ProxyTable, RouteTable, UpstreamTable, duration, some_duration};
use super::connect;
use super::effects::{check_classes, check_fields, check_host, check_tunnels, check_waiting};
use super::look::Look;
use super::share::{ShareOfUpstream, WorkerPart};
use super::upstream::{Settings, SharedUpstream, Times, Upstream};
use super::{Proxy, Route};
use crate::config::Misconfigured;
use sooner_config::classes::LateName;
use sooner_config::{Network, NetworkError};
use sooner_http::forwarding::routes::{self, HostPattern, Routes};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use toml::Spanned;

/// What a configuration says of a proxy.
#[derive(Clone, Copy)]
pub struct ProxyTables<'a> {
    /// What holds for all upstreams.
    pub proxy: &'a ProxyTable,
    /// Which requests go first.
    pub classes: &'a [ClassTable],
    /// Who is late where not all can be in time, if that is said.
    pub late: Option<&'a Spanned<LateName>>,
    /// The upstreams.
    pub upstreams: &'a [UpstreamTable],
    /// Which requests go to which of them.
    pub routes: &'a [RouteTable],
}

/// The last class.
const CLASS_MAX: u8 = 7;
/// How long a switched connection may be silent unless said otherwise, s.
const TUNNEL_SECONDS: f64 = 3600.0;

impl Proxy {
    /// The proxy of a configuration for the only worker, see [`Proxy::of_worker`].
    pub fn build(tables: ProxyTables<'_>, previous: Option<&Self>) -> Result<Self, Misconfigured> {
        Self::of_worker(tables, WorkerPart::First(1), previous)
    }

    /// The proxy of a configuration for one worker. Nothing is connected, but certificates are
    /// read. Upstreams of `previous` with the same names are taken over with their queue and their
    /// estimates, and their servers that are reached as before with their requests, health and
    /// connections. They are as they were until [`Proxy::take_over`].
    pub fn of_worker(
        tables: ProxyTables<'_>,
        part: WorkerPart<'_>,
        previous: Option<&Self>,
    ) -> Result<Self, Misconfigured> {
        let names = tables.upstreams.iter();
        let names: Vec<&str> = names.map(|table| table.name.get_ref().as_str()).collect();
        let classes = Classes::build(tables.classes, tables.late, &names)?;
        check_classes(tables.classes, tables.proxy)?;
        let mut built: Vec<Built> = Vec::with_capacity(tables.upstreams.len());
        for table in tables.upstreams {
            classes.check_order(table.name.get_ref(), table.order.as_ref())?;
            classes.check_share_by(table.name.get_ref(), table.share_by.as_ref())?;
            check_waiting(table, &classes)?;
            check_fields(table, tables.proxy)?;
            check_host(table)?;
            let name = table.name.get_ref();
            if name.trim().is_empty() {
                let words = "it is blank; write one, by which routes name it, as \"app\"";
                return Err(Misconfigured::at(&table.name, "upstream.name", words));
            }
            if built
                .iter()
                .any(|other| other.upstream.name.as_ref() == name)
            {
                return Err(Misconfigured::at(
                    &table.name,
                    "upstream.name",
                    format!("`{name}` is the name of another upstream; each needs its own"),
                ));
            }
            built.push(Built::new(table, &classes, part, previous)?);
        }
        let limits = built.iter();
        let limits = limits.map(|one| (one.upstream.name.as_ref(), one.settings.most()));
        classes.check_bounds(&limits.collect::<Vec<_>>())?;
        let mut routes = Routes::default();
        for route in tables.routes {
            add_route(&mut routes, route, &built)?;
        }
        let trusted = networks(&tables.proxy.trusted)?;
        let runs_scripts = built.iter().any(|one| one.settings.fastcgi.is_some());
        let (upstreams, next) = built.into_iter().map(Built::into_parts).unzip();
        let (budget, look_budget) = budgets(tables.proxy, part);
        Ok(Self {
            routes,
            upstreams,
            next: RefCell::new(next),
            runs_scripts,
            classes,
            trusted,
            budget,
            look: Look {
                bytes_max: tables.proxy.look_bytes,
                budget: look_budget,
            },
        })
    }
}

/// The memory for bodies of responses and for those of requests.
fn budgets(proxy: &ProxyTable, part: WorkerPart<'_>) -> (Arc<BufferBudget>, Arc<BufferBudget>) {
    match part {
        WorkerPart::First(_) => (
            BufferBudget::new(proxy.buffer_bytes, proxy.response_buffer_bytes),
            // One of their own: uploads that trickle would take that of responses.
            BufferBudget::new(proxy.buffer_bytes, proxy.look_bytes),
        ),
        WorkerPart::Beside(share) => (share.budget.clone(), share.look_budget.clone()),
    }
}

/// An upstream, and what this configuration says of it.
struct Built {
    upstream: Rc<Upstream>,
    settings: Arc<Settings>,
}

impl Built {
    fn new(
        table: &UpstreamTable,
        classes: &Classes,
        part: WorkerPart<'_>,
        previous: Option<&Proxy>,
    ) -> Result<Self, Misconfigured> {
        let name = table.name.get_ref();
        let mut known = previous.iter().flat_map(|previous| &previous.upstreams);
        let known = known.find(|upstream| upstream.name.as_ref() == name);
        let workers = match part {
            WorkerPart::First(workers) => workers,
            WorkerPart::Beside(share) => {
                let mut shares = share.upstreams.iter();
                let share = shares.find(|share| share.upstream.name.as_ref() == name);
                let none = || Misconfigured::at(&table.name, "upstream.name", "none has it so far");
                return Ok(Self::beside(share.ok_or_else(none)?, known));
            }
        };
        // Files may have changed behind an unchanged table.
        let authorities = connect::authorities(table)?;
        let servers = known.map(|upstream| upstream.known_servers());
        let servers = servers.unwrap_or_default();
        let settings = Arc::new(Settings::build(table, authorities, &servers, workers)?);
        let upstream = known.cloned();
        let upstream = upstream.unwrap_or_else(|| {
            let shared = SharedUpstream::build(settings.clone(), classes);
            Upstream::new(shared, true)
        });
        Ok(Self { upstream, settings })
    }

    /// For another worker than the first, which may have it since before.
    fn beside(share: &ShareOfUpstream, known: Option<&Rc<Upstream>>) -> Self {
        let known = known.filter(|known| Arc::ptr_eq(known.shared(), &share.upstream));
        let upstream = known.cloned();
        Self {
            upstream: upstream.unwrap_or_else(|| Upstream::new(share.upstream.clone(), false)),
            settings: share.settings.clone(),
        }
    }

    fn into_parts(self) -> (Rc<Upstream>, Option<Arc<Settings>>) {
        (self.upstream, Some(self.settings))
    }
}

fn networks(texts: &[Spanned<String>]) -> Result<Vec<Network>, Misconfigured> {
    texts
        .iter()
        .map(|text| {
            text.get_ref()
                .parse()
                .map_err(|error: NetworkError| Misconfigured::at(text, "proxy.trusted", error))
        })
        .collect()
}

fn add_route(
    routes: &mut Routes<Rc<Route>>,
    table: &RouteTable,
    upstreams: &[Built],
) -> Result<(), Misconfigured> {
    let path = table.path.get_ref();
    routes::check_path(path).map_err(|error| {
        Misconfigured::at(&table.path, "route.path", format!("`{path}`: {error}"))
    })?;
    let route = Rc::new(route(table, upstreams)?);
    if table.hosts.is_empty() {
        return routes
            .add(HostPattern::Any, path, route)
            .map_err(|_| overlap(&table.path, path, "every host"));
    }
    for host in &table.hosts {
        let pattern = HostPattern::parse(host.get_ref())
            .map_err(|error| Misconfigured::at(host, "route.hosts", error))?;
        routes
            .add(pattern, path, route.clone())
            .map_err(|_| overlap(host, path, host.get_ref()))?;
    }
    Ok(())
}

fn overlap<T>(place: &Spanned<T>, path: &str, host: &str) -> Misconfigured {
    Misconfigured::at(
        place,
        "route.path",
        format!("`{path}` at {host} has a route already; a request can take only one"),
    )
}

fn route(table: &RouteTable, upstreams: &[Built]) -> Result<Route, Misconfigured> {
    let name = table.upstream.get_ref();
    let Built { upstream, settings } = upstreams
        .iter()
        .find(|one| one.upstream.name.as_ref() == name)
        .ok_or_else(|| {
            let names: Vec<&str> = upstreams
                .iter()
                .map(|one| one.upstream.name.as_ref())
                .collect();
            let known = if names.is_empty() {
                "there is no [[upstream]]".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            };
            Misconfigured::at(
                &table.upstream,
                "route.upstream",
                format!("no upstream is called `{name}`; {known}"),
            )
        })?;
    let class = match &table.class {
        Some(class) if *class.get_ref() > CLASS_MAX => {
            return Err(Misconfigured::at(
                class,
                "route.class",
                format!(
                    "{} is not a class; write 0 (first) to {CLASS_MAX}",
                    class.get_ref()
                ),
            ));
        }
        class => class.as_ref().map(|class| *class.get_ref()),
    };
    if table.strip_prefix && settings.fastcgi.is_some() {
        return Err(Misconfigured::at(
            &table.path,
            "route.strip_prefix",
            "scripts are found by the whole path; leave strip_prefix out, and put them into a folder of this name",
        ));
    }
    check_tunnels(table, settings.fastcgi.is_some())?;
    let default = settings.times;
    let or =
        |value, key, default| Ok::<_, Misconfigured>(some_duration(value, key)?.unwrap_or(default));
    Ok(Route {
        path: table.path.get_ref().clone(),
        upstream: upstream.clone(),
        class,
        times: Times {
            queue: some_duration(&table.queue_seconds, "route.queue_seconds")?.or(default.queue),
            connect: default.connect,
            response: or(
                &table.response_seconds,
                "route.response_seconds",
                default.response,
            )?,
            idle: or(&table.idle_seconds, "route.idle_seconds", default.idle)?,
        },
        strips_prefix: table.strip_prefix,
        files_first: table.files_first,
        compress: table.compress,
        upgrades: upgrades(&table.upgrade)?,
        tunnel_silence: duration(
            &table.tunnel_seconds,
            "route.tunnel_seconds",
            TUNNEL_SECONDS,
        )?,
    })
}

fn upgrades(names: &[Spanned<String>]) -> Result<Vec<String>, Misconfigured> {
    names
        .iter()
        .map(|name| {
            let protocol = name.get_ref().to_ascii_lowercase();
            let is_token = !protocol.is_empty()
                && protocol.bytes().all(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~/".contains(&byte)
                });
            if !is_token || protocol == "h2c" {
                return Err(Misconfigured::at(
                    name,
                    "route.upgrade",
                    format!("`{protocol}` cannot be switched to; write for example \"websocket\""),
                ));
            }
            Ok(protocol)
        })
        .collect()
}

#[cfg(test)]
mod tests;
