//! An upstream from its table.

use super::{HealthCheck, Heard, HostRule, Settings, SharedUpstream, Times, Upstream};
use crate::config::Misconfigured;
use crate::proxy::classes::Classes;
use crate::proxy::config::{UpstreamTable, at_least_one, duration, some_duration};
use crate::proxy::connect::Connector;
use crate::proxy::endpoint::{Endpoint, EndpointProtocol};
use crate::proxy::fastcgi::FastCgi;
use crate::proxy::health::{CheckLimits, HealthLimits};
use crate::proxy::orders;
use crate::proxy::request_headers::RequestHeaders;
use crate::proxy::server::Server;
use crate::proxy::server_limit::ServerLimit;
use crate::proxy::share_by::ShareBy;
use crate::proxy::subject::Kind;
use crate::proxy::tell_wait::TellWait;
use crate::proxy::waiting_stream::PERIOD;
use hyper::header::HeaderValue;
use sooner_admission::{AdmissionSettings, KIND_MEMORY, Order};
use sooner_config::classes::OrderName;
use sooner_config::{Limit, THROUGHPUT_LOSS, check_throughput_loss};
use sooner_limiter::{Limiter, bounds};
use sooner_tls::Authorities;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// The most that are tried where a limit is found, unless said otherwise.
const LIMIT_MAX: usize = 256;
/// Failures in a row that put a server out, unless said otherwise.
const FAILS: u32 = 3;
/// Bad answers to regular questions in a row that do.
const CHECK_FAILS: u32 = 2;
/// Good ones in a row that take it back in.
const CHECK_PASSES: u32 = 1;

impl SharedUpstream {
    /// An upstream of which this is said, for requests of these classes. Nothing is connected.
    pub fn build(settings: Arc<Settings>, classes: &Classes) -> Arc<Self> {
        let limiter = Limiter::new(AdmissionSettings {
            limit: 0,
            order: Order::default(),
            waiting_max: None,
            kind_memory: KIND_MEMORY,
        });
        limiter.remember(orders::PLAYED);
        let upstream = Self::new(settings, limiter);
        upstream.begin(&mut upstream.lock(), classes);
        upstream
    }
}

impl Upstream {
    /// What one worker has of an upstream; the first one also does what is done once for all.
    pub fn new(shared: Arc<SharedUpstream>, is_first: bool) -> Rc<Self> {
        Rc::new(Self {
            heard: RefCell::new(Heard::of(&shared)),
            shared,
            pools: RefCell::default(),
            overtimes: Rc::default(),
            comment_period: Cell::new(PERIOD),
            is_first,
            runs_by: Cell::new(None),
            tasks: RefCell::default(),
        })
    }
}

impl Settings {
    /// What `table` says, for so many workers; its servers are trusted by `authorities`. Those
    /// `known` that are reached in the same way are taken over with their state.
    pub fn build(
        table: &UpstreamTable,
        authorities: Option<Authorities>,
        known: &[Arc<Server>],
        workers: usize,
    ) -> Result<Self, Misconfigured> {
        let (check, health) = health(table)?;
        let limit = server_limit(table)?;
        check_followed(table)?;
        let tell_wait = TellWait::parse(&table.tell_wait)?;
        let new = |connector| Server::new(connector, health, limit, workers);
        Ok(Self {
            table: table.clone(),
            servers: servers(table, new, authorities.as_ref(), known)?,
            authorities,
            limit,
            health,
            check,
            times: times(table)?,
            retries: table.retries.unwrap_or(1),
            host: host_rule(table)?,
            kind: Kind::build(table)?,
            headers: Arc::new(RequestHeaders::build(table, &tell_wait)?),
            tell_wait,
            share_by: table.share_by.as_ref().map(ShareBy::parse).transpose()?,
            keep: duration(&table.keep_seconds, "upstream.keep_seconds", 60.0)?,
            // The directory behind a name may be another one by now.
            fastcgi: table.fastcgi.as_ref().map(FastCgi::build).transpose()?,
        })
    }
}

fn servers(
    table: &UpstreamTable,
    new: impl Fn(Connector) -> Server,
    authorities: Option<&Authorities>,
    known: &[Arc<Server>],
) -> Result<Vec<Arc<Server>>, Misconfigured> {
    if table.servers.is_empty() {
        return Err(Misconfigured::at(
            &table.name,
            "upstream.servers",
            "an upstream needs a server: servers = [\"http://127.0.0.1:3000\"]",
        ));
    }
    let mut servers: Vec<Arc<Server>> = Vec::with_capacity(table.servers.len());
    for text in &table.servers {
        let wrong =
            |what: &dyn std::fmt::Display| Misconfigured::at(text, "upstream.servers", what);
        let endpoint = Endpoint::parse(text.get_ref()).map_err(|error| wrong(&error))?;
        let connector = Connector::new(endpoint, authorities).map_err(|error| {
            if error.span.is_none() {
                wrong(&error.message)
            } else {
                error
            }
        })?;
        let server = new(connector);
        if servers.iter().any(|other| other.name == server.name) {
            return Err(wrong(&"the same server twice; each may be named once"));
        }
        let known = known.iter().find(|known| known.is_reached_like(&server));
        servers.push(known.cloned().unwrap_or_else(|| Arc::new(server)));
    }
    let speaks_tls =
        |server: &Arc<Server>| server.connector.endpoint().protocol == EndpointProtocol::Tls;
    check_scripts(table, &servers)?;
    match &table.ca {
        Some(ca) if !servers.iter().any(speaks_tls) => Err(Misconfigured::at(
            ca,
            "upstream.ca",
            "no server of this upstream speaks TLS; write https:// or leave it out",
        )),
        _ => Ok(servers),
    }
}

/// Servers over FastCGI need to know where their scripts are, and no others do.
fn check_scripts(table: &UpstreamTable, servers: &[Arc<Server>]) -> Result<(), Misconfigured> {
    let runs_scripts =
        |server: &Arc<Server>| server.connector.endpoint().protocol == EndpointProtocol::FastCgi;
    let mut pairs = table.servers.iter().zip(servers);
    let has_root = table.fastcgi.is_some();
    match pairs.find(|(_, server)| runs_scripts(server) != has_root) {
        None => Ok(()),
        Some((text, _)) => Err(Misconfigured::at(
            text,
            "upstream.servers",
            match has_root {
                true => {
                    "runs no scripts: with `fastcgi` all servers are fastcgi:// or fastcgi+unix:"
                }
                false => "needs to know where its scripts are: fastcgi = { root = \"/srv/www\" }",
            },
        )),
    }
}

/// An order that follows what is played needs places to play in.
fn check_followed(table: &UpstreamTable) -> Result<(), Misconfigured> {
    let order = table.order.as_ref();
    let followed = order.filter(|order| *order.get_ref() == OrderName::Auto);
    match (followed, &table.limit) {
        (Some(order), None) => Err(Misconfigured::at(
            order,
            "upstream.order",
            "order = \"auto\" compares orders before a limit, and there is none: write limit = \"auto\" or a number as well, or another order",
        )),
        _ => Ok(()),
    }
}

/// How many jobs each server gets at once.
fn server_limit(table: &UpstreamTable) -> Result<ServerLimit, Misconfigured> {
    let limit = table.limit.as_ref().map(|limit| *limit.get_ref());
    let loss = table.throughput_loss.as_ref();
    if let Some(loss) = loss {
        check_throughput_loss(loss, "upstream.throughput_loss")?;
    }
    if limit != Some(Limit::Auto) {
        let words =
            "has an effect only with limit = \"auto\"; write that as well, or leave this out";
        let loss = loss.map(|loss| Misconfigured::at(loss, "upstream.throughput_loss", words));
        let max = table.limit_max.as_ref();
        let max = max.map(|max| Misconfigured::at(max, "upstream.limit_max", words));
        if let Some(mistake) = loss.or(max) {
            return Err(mistake);
        }
    }
    Ok(match limit {
        Some(Limit::Fixed(limit)) => ServerLimit::Fixed(limit.get()),
        Some(Limit::Auto) => {
            let max = table.limit_max.as_ref().map(|max| max.get_ref().get());
            let loss = loss.map_or(THROUGHPUT_LOSS, |loss| *loss.get_ref());
            ServerLimit::Found(bounds(max.unwrap_or(LIMIT_MAX), loss))
        }
        None => ServerLimit::Fixed(usize::MAX),
    })
}

fn times(table: &UpstreamTable) -> Result<Times, Misconfigured> {
    Ok(Times {
        queue: some_duration(&table.queue_seconds, "upstream.queue_seconds")?,
        connect: duration(&table.connect_seconds, "upstream.connect_seconds", 5.0)?,
        response: duration(&table.response_seconds, "upstream.response_seconds", 60.0)?,
        idle: duration(&table.idle_seconds, "upstream.idle_seconds", 60.0)?,
    })
}

fn host_rule(table: &UpstreamTable) -> Result<HostRule, Misconfigured> {
    let Some(host) = &table.host else {
        return Ok(HostRule::Client);
    };
    let text = host.get_ref();
    if text == "upstream" {
        return Ok(HostRule::Server);
    }
    if text == "$host" {
        return Ok(HostRule::Name);
    }
    let is_host =
        hyper::http::uri::Authority::try_from(text.as_str()).is_ok() && !text.contains('@');
    HeaderValue::from_str(text)
        .ok()
        .filter(|_| is_host)
        .map(HostRule::Fixed)
        .ok_or_else(|| {
            Misconfigured::at(
                host,
                "upstream.host",
                format!("`{text}` is not a host; write \"upstream\" or a name"),
            )
        })
}

fn health(table: &UpstreamTable) -> Result<(Option<HealthCheck>, HealthLimits), Misconfigured> {
    let fails = at_least_one(&table.fails, "upstream.fails", FAILS)?;
    let Some(health) = &table.health else {
        let limits = HealthLimits {
            fails,
            checks: None,
        };
        return Ok((None, limits));
    };
    let path = health.path.get_ref();
    let is_path =
        path.starts_with('/') && hyper::http::uri::PathAndQuery::try_from(path.as_str()).is_ok();
    if !is_path {
        return Err(Misconfigured::at(
            &health.path,
            "upstream.health.path",
            format!("`{path}` is not a path; write for example /health"),
        ));
    }
    let check = HealthCheck {
        path: path.clone(),
        interval: duration(&health.seconds, "upstream.health.seconds", 5.0)?,
    };
    let checks = CheckLimits {
        fails: at_least_one(&health.fails, "upstream.health.fails", CHECK_FAILS)?,
        passes: at_least_one(&health.passes, "upstream.health.passes", CHECK_PASSES)?,
    };
    let limits = HealthLimits {
        fails,
        checks: Some(checks),
    };
    Ok((Some(check), limits))
}
