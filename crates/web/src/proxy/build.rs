//! A proxy from its tables: everything a configuration can get wrong about it is found here, with
//! its place.

use super::buffer_budget::BufferBudget;
use super::classes::{ClassTable, Classes};
use super::config::{ProxyTable, RouteTable, UpstreamTable, duration, some_duration};
use super::connect;
use super::effects::{check_classes, check_fields, check_host, check_tunnels, check_waiting};
use super::look::Look;
use super::upstream::{Settings, Times, Upstream};
use super::{Proxy, Route};
use crate::config::Misconfigured;
use sooner_config::classes::LateName;
use sooner_config::{Network, NetworkError};
use sooner_http::forwarding::routes::{self, HostPattern, Routes};
use std::cell::RefCell;
use std::rc::Rc;
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
    /// The proxy of a configuration. Nothing is connected, but certificates are read. Upstreams of
    /// `previous` with the same names are taken over with their queue and their estimates, and
    /// their servers that are reached as before with their requests, health and connections. They
    /// are as they were until [`Proxy::take_over`].
    pub fn build(tables: ProxyTables<'_>, previous: Option<&Self>) -> Result<Self, Misconfigured> {
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
            built.push(Built::new(table, &classes, previous)?);
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
        let proxy = tables.proxy;
        Ok(Self {
            routes,
            upstreams,
            next: RefCell::new(next),
            runs_scripts,
            classes,
            trusted,
            budget: BufferBudget::new(proxy.buffer_bytes, proxy.response_buffer_bytes),
            look: Look {
                bytes_max: proxy.look_bytes,
                // One of their own: uploads that trickle would take that of responses.
                budget: BufferBudget::new(proxy.buffer_bytes, proxy.look_bytes),
            },
        })
    }
}

/// An upstream, and what this configuration says of it.
struct Built {
    upstream: Rc<Upstream>,
    settings: Rc<Settings>,
}

impl Built {
    fn new(
        table: &UpstreamTable,
        classes: &Classes,
        previous: Option<&Proxy>,
    ) -> Result<Self, Misconfigured> {
        let name = table.name.get_ref();
        let mut known = previous.iter().flat_map(|previous| &previous.upstreams);
        let known = known.find(|upstream| upstream.name.as_ref() == name);
        // Files may have changed behind an unchanged table.
        let authorities = connect::authorities(table)?;
        let before = known.map(|upstream| upstream.settings());
        let settings = Settings::build(table, authorities, before.as_deref())?;
        Ok(match known {
            Some(upstream) => Self {
                upstream: upstream.clone(),
                settings: Rc::new(settings),
            },
            None => {
                let upstream = Upstream::new(settings, classes);
                let settings = upstream.settings();
                Self { upstream, settings }
            }
        })
    }

    fn into_parts(self) -> (Rc<Upstream>, Option<Rc<Settings>>) {
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
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Tables {
        #[serde(default)]
        proxy: ProxyTable,
        late: Option<Spanned<LateName>>,
        #[serde(default)]
        class: Vec<ClassTable>,
        upstream: Vec<UpstreamTable>,
        route: Vec<RouteTable>,
    }

    fn build_after(text: &str, previous: Option<&Proxy>) -> Result<Proxy, Misconfigured> {
        let tables: Tables = toml::from_str(text).unwrap();
        let tables = ProxyTables {
            proxy: &tables.proxy,
            classes: &tables.class,
            late: tables.late.as_ref(),
            upstreams: &tables.upstream,
            routes: &tables.route,
        };
        Proxy::build(tables, previous)
    }

    fn build(text: &str) -> Result<Proxy, Misconfigured> {
        build_after(text, None)
    }

    const APP: &str = "[[upstream]]\nname = 'app'\nservers = ['http://127.0.0.1:3000']\n";

    /// The key and the text a mistake points at.
    fn mistake(more: &str) -> (String, String) {
        let text = format!("{APP}{more}");
        let Err(error) = build(&text) else {
            panic!("no mistake in {more}");
        };
        let span = error.span.clone().expect("it has a place");
        (error.key, text[span].to_owned())
    }

    fn of(key: &str, text: &str) -> (String, String) {
        (key.to_owned(), text.to_owned())
    }

    fn upstream(keys: &str) -> (String, String) {
        mistake(&format!(
            "[[upstream]]\nname = 'b'\n{keys}\n[[route]]\npath='/'\nupstream='b'"
        ))
    }

    #[test]
    fn every_mistake_has_its_place() {
        let route = |keys: &str| mistake(&format!("[[route]]\n{keys}\n"));
        assert_eq!(
            route("path='/'\nupstream='ap'"),
            of("route.upstream", "'ap'")
        );
        assert_eq!(route("path='x'\nupstream='app'"), of("route.path", "'x'"));
        assert_eq!(
            route("path='/'\nupstream='app'\nclass=8"),
            of("route.class", "8")
        );
        assert_eq!(
            route("path='/'\nupstream='app'\nhosts=['a b']"),
            of("route.hosts", "'a b'")
        );
        assert_eq!(
            route("path='/'\nupstream='app'\nupgrade=['h2c']"),
            of("route.upgrade", "'h2c'")
        );
        assert_eq!(
            route("path='/x'\nupstream='app'\n[[route]]\npath=\"/%78\"\nupstream='app'"),
            of("route.path", "\"/%78\"")
        );
        assert_eq!(
            mistake(
                "[[upstream]]\nname='app'\nservers=['http://b']\n[[route]]\npath='/'\nupstream='app'"
            ),
            of("upstream.name", "'app'")
        );
        assert_eq!(
            mistake("[[route]]\npath='/'\nupstream='app'\n[proxy]\ntrusted=['10/8']"),
            of("proxy.trusted", "'10/8'")
        );
    }

    #[test]
    fn so_has_every_mistake_of_an_upstream() {
        assert_eq!(
            upstream("servers=['app:80']"),
            of("upstream.servers", "'app:80'")
        );
        assert_eq!(
            upstream("servers=['http://a', 'http://a/']"),
            of("upstream.servers", "'http://a/'")
        );
        assert_eq!(upstream("servers=[]"), of("upstream.servers", "'b'"));
        assert_eq!(
            upstream("servers=['http://a']\norder='fifo'\n[[class]]\nname='a'\nweight=2"),
            of("upstream.order", "'fifo'")
        );
        assert_eq!(
            upstream("servers=['http://a']\n[[class]]\nname='a'\nupstream=['c']"),
            of("class.upstream", "'c'")
        );
        assert_eq!(
            upstream("servers=['http://a']\nlimit='auto'\nthroughput_loss=5"),
            of("upstream.throughput_loss", "5")
        );
        assert_eq!(
            upstream("servers=['http://a']\nlimit=8\nthroughput_loss=0.1"),
            of("upstream.throughput_loss", "0.1")
        );
        assert_eq!(
            upstream("servers=['http://a']\nlimit_max=9"),
            of("upstream.limit_max", "9")
        );
        assert_eq!(
            upstream("servers=['http://a']\nshare_by='cookie:a b'"),
            of("upstream.share_by", "'cookie:a b'")
        );
        assert_eq!(
            upstream("servers=['http://a']\n[[class]]\nname=' '"),
            of("class.name", "' '")
        );
        assert_eq!(
            upstream("servers=['http://a']\nkind=['path', 'verb']"),
            of("upstream.kind", "'verb'")
        );
        assert_eq!(
            upstream("servers=['http://a']\nkind=['header:a b']"),
            of("upstream.kind", "'header:a b'")
        );
        assert_eq!(
            upstream("servers=['http://a']\nkind=['header:x', 'path', 'header:X']"),
            of("upstream.kind", "'header:X'")
        );
        assert_eq!(
            upstream("servers=['http://a']\nhealth={path='x'}"),
            of("upstream.health.path", "'x'")
        );
        assert_eq!(
            upstream("servers=['https://a']\nca='/nowhere.pem'"),
            of("upstream.ca", "'/nowhere.pem'")
        );
    }

    #[test]
    fn a_route_knows_its_upstream() {
        let proxy = build(&format!(
            "{APP}[[route]]\npath='/api'\nupstream='app'\nclass=1\nhosts=['a', '*.b']"
        ))
        .unwrap();
        let route = proxy.route(Some("x.b"), "/api/y").unwrap();
        assert_eq!((route.upstream(), route.class()), ("app", Some(1)));
        assert!(proxy.route(Some("c"), "/api").is_none());
        assert!(proxy.route(Some("a"), "/").is_none());
    }

    /// Whether the server of the one upstream is the same in both once the later one is in force.
    fn has_the_same_server(before: &Proxy, after: &Proxy) -> bool {
        assert!(Rc::ptr_eq(&before.upstreams[0], &after.upstreams[0]));
        let server = before.upstreams[0].settings().servers[0].clone();
        after.take_over();
        Rc::ptr_eq(&server, &after.upstreams[0].settings().servers[0])
    }

    #[test]
    fn an_upstream_outlives_a_reload_and_so_does_a_server_that_is_still_named() {
        let text = format!("{APP}[[route]]\npath='/'\nupstream='app'");
        let before = build(&text).unwrap();
        for (changed, is_same) in [
            (format!("# moved\n{text}"), true),
            (text.replace("servers", "limit = 3\nservers"), true),
            (text.replace("3000", "3001"), false),
        ] {
            let after = build_after(&changed, Some(&before)).unwrap();
            assert_eq!(has_the_same_server(&before, &after), is_same, "{changed}");
        }
    }

    #[test]
    fn a_server_with_tls_does_too_unless_its_certificates_have_changed() {
        let certificate = || {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            made.cert.pem()
        };
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, certificate()).unwrap();
        let text = format!(
            "[[upstream]]\nname = 'app'\nservers = ['https://localhost:3000']\nca = '{}'\n[[route]]\npath='/'\nupstream='app'",
            ca.display()
        );
        let again = |before: &Proxy| build_after(&text, Some(before));
        let before = build(&text).unwrap();
        let same = again(&before).unwrap();
        assert!(has_the_same_server(&before, &same));
        std::fs::write(&ca, certificate()).unwrap();
        let changed = again(&same).unwrap();
        assert!(!has_the_same_server(&same, &changed));
        std::fs::write(&ca, "").unwrap();
        assert!(again(&changed).is_err());
    }
}
