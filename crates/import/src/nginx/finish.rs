//! Routes are of the whole server and not of one site: here they are kept from taking requests of
//! other sites, and written.

use super::action::NOT_CARRIED;
use super::default_sites::{SCHEMES, first_sites, refuse_mixed};
use super::site::{Body, Place, Route, Site, key, table};
use super::upstreams::Upstream;
use crate::document::{Document, Group, quoted};

/// What decides which site and which route a request takes.
struct Standing {
    hosts: Vec<String>,
    scheme: Option<&'static str>,
    /// Whether hosts that no site names get it, so that its routes are for all hosts.
    is_first: bool,
    routes: Vec<Route>,
}

/// Makes every site answer what is its own.
pub fn separate(sites: &mut Vec<Site>) {
    refuse_mixed(sites);
    let firsts = first_sites(sites);
    let standing = |(at, own): (usize, &Site)| Standing {
        hosts: own.hosts.clone(),
        scheme: own.scheme,
        is_first: firsts.contains(&Some(at)),
        routes: own.routes.clone(),
    };
    let all: Vec<Standing> = sites.iter().enumerate().map(standing).collect();
    for (at, site) in sites.iter_mut().enumerate() {
        let mut foreign: Vec<(Route, bool)> = Vec::new();
        for (other, own) in all.iter().enumerate() {
            if other != at && is_seen(at, other, &all) {
                let goes_first = goes_first(at, other, &all);
                foreign.extend(own.routes.iter().map(|route| (route.clone(), goes_first)));
            }
        }
        keep_apart(site, &foreign);
    }
}

/// Whether requests of a site may take routes of another.
fn is_seen(site: usize, other: usize, all: &[Standing]) -> bool {
    let (one, two) = (&all[site], &all[other]);
    let may_be_led = |host: &String| one.is_first && !is_named(site, host, all);
    two.is_first || overlap(&one.hosts, &two.hosts) || two.hosts.iter().any(may_be_led)
}

/// Whether a route of another site is taken before one of this site with the same path.
fn goes_first(site: usize, other: usize, all: &[Standing]) -> bool {
    let (one, two) = (&all[site], &all[other]);
    if two.is_first && one.is_first || two.hosts.is_empty() {
        return one.is_first;
    }
    two.hosts.iter().any(|host| {
        let may_be_led = one.is_first || overlap(&one.hosts, std::slice::from_ref(host));
        one.hosts.contains(host) || (may_be_led && !is_named(site, host, all))
    })
}

/// Whether other sites name a host in each scheme of a site. Of one host the site of its scheme is
/// asked, and of several the one that names it.
fn is_named(site: usize, host: &String, all: &[Standing]) -> bool {
    let is_named_in = |scheme: &str| {
        let others = all.iter().enumerate().filter(|(at, _)| *at != site);
        let mut of_scheme = others.filter(|(_, own)| own.scheme.is_none_or(|it| it == scheme));
        of_scheme.any(|(_, own)| own.hosts.contains(host))
    };
    let own = all[site].scheme;
    let mut schemes = SCHEMES
        .into_iter()
        .filter(|it| own.is_none_or(|own| own == *it));
    schemes.all(is_named_in)
}

fn keep_apart(site: &mut Site, foreign: &[(Route, bool)]) {
    let mut must_close = false;
    for (other, goes_first) in foreign {
        match route_of(&site.routes, &other.path).cloned() {
            None => must_close = true,
            Some(own) if leads_alike(&own, other) => {}
            Some(own) if own.path == other.path && !goes_first => {}
            Some(own) if *goes_first || own.strips => {
                let why =
                    "a host has one upstream for a path, whatever the scheme; requests get 501";
                let setting = format!("what goes to {} at {}", own.upstream.name, other.path);
                site.left_out.push((setting, why.to_owned()));
                site.routes.retain(|own| own.path != other.path);
                site.places.insert(
                    0,
                    Place {
                        paths: vec![format!("{}*", other.path)],
                        ignores_case: false,
                        body: Body {
                            answer: Some((NOT_CARRIED, None)),
                            ..Body::default()
                        },
                    },
                );
            }
            Some(own) => site.routes.push(Route {
                path: other.path.clone(),
                ..own
            }),
        }
    }
    let ends = site
        .places
        .iter()
        .any(|own| own.paths.iter().any(|path| path == "/*"));
    let leads_all_away = site.body.redirects.iter().any(|own| own.from == "/*");
    if must_close && !ends && !leads_all_away {
        close(site);
    }
}

/// Has everything that no route of its own takes answered by its own files.
fn close(site: &mut Site) {
    let mut routes: Vec<String> = site.routes.iter().map(|own| own.path.clone()).collect();
    routes.sort_by_key(|path| std::cmp::Reverse(path.len()));
    for path in routes {
        let below = if path.ends_with('/') {
            format!("{path}*")
        } else {
            format!("{path}/*")
        };
        site.places.push(Place {
            paths: if path.ends_with('/') {
                vec![below]
            } else {
                vec![path, below]
            },
            ignores_case: false,
            body: Body {
                root: None,
                strip: None,
                fallback: None,
                redirects: Vec::new(),
                ..site.body.clone()
            },
        });
    }
    let has_root = site.body.root.is_some();
    site.places.push(Place {
        paths: vec!["/*".into()],
        ignores_case: false,
        body: Body {
            answer: (!has_root).then_some((404, None)),
            ..site.body.clone()
        },
    });
}

/// The route of a site for what is at a path and below it.
pub fn route_of<'r>(routes: &'r [Route], path: &str) -> Option<&'r Route> {
    let fitting = routes.iter().filter(|own| covers(&own.path, path));
    fitting.max_by_key(|own| own.path.len())
}

/// Whether requests for the path of another route come to the same by either.
pub fn leads_alike(own: &Route, other: &Route) -> bool {
    let moved = Route {
        path: other.path.clone(),
        ..own.clone()
    };
    moved == *other && (own.path == other.path || !own.strips)
}

/// Whether a route of this path takes requests for that one.
fn covers(path: &str, other: &str) -> bool {
    other
        .strip_prefix(path)
        .is_some_and(|rest| path.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
}

/// Whether a host may be in both lists; an empty one is about all.
pub fn overlap(one: &[String], other: &[String]) -> bool {
    if one.is_empty() || other.is_empty() {
        return true;
    }
    let is_within = |host: &str, pattern: &str| {
        host == pattern
            || pattern
                .strip_prefix('*')
                .is_some_and(|end| host.ends_with(end))
    };
    one.iter().any(|own| {
        let mut others = other.iter();
        others.any(|other| is_within(own, other) || is_within(other, own))
    })
}

/// Writes upstreams and routes.
pub fn write(sites: &[Site], document: &mut Document) {
    let mut upstreams: Vec<(String, Upstream)> = Vec::new();
    let mut written: Vec<(Option<String>, String)> = Vec::new();
    let firsts = first_sites(sites);
    for (at, site) in sites.iter().enumerate() {
        let is_first = firsts.contains(&Some(at)) || site.hosts.is_empty();
        for route in &site.routes {
            let mut is_new = |host: Option<&String>| {
                let key = (host.cloned(), route.path.clone());
                let is_new = !written.contains(&key);
                written.extend(is_new.then_some(key));
                is_new
            };
            let mut tables: Vec<Vec<String>> = Vec::new();
            if !is_first || has_rival(at, sites) {
                let own = site.hosts.iter().filter(|host| is_new(Some(host)));
                tables.extend(Some(own.cloned().collect()).filter(|own: &Vec<_>| !own.is_empty()));
            }
            if is_first && is_new(None) {
                tables.push(Vec::new());
            }
            for hosts in tables {
                write_route(route, &hosts, &mut upstreams, document);
            }
        }
    }
    for (name, upstream) in &upstreams {
        write_upstream(name, upstream, document);
    }
}

/// Whether a route of another site may be for names of this one, so that its own must name them.
fn has_rival(at: usize, sites: &[Site]) -> bool {
    let own = &sites[at];
    let mut others = sites.iter().enumerate().filter(|(other, _)| *other != at);
    others.any(|(_, other)| {
        let are_named = !own.hosts.is_empty() && !other.hosts.is_empty();
        are_named && !other.routes.is_empty() && overlap(&own.hosts, &other.hosts)
    })
}

fn write_route(
    route: &Route,
    hosts: &[String],
    upstreams: &mut Vec<(String, Upstream)>,
    document: &mut Document,
) {
    let name = named(upstreams, &route.upstream);
    document.gap(Group::Route);
    document.table(Group::Route, "[[route]]");
    document.text(Group::Route, "path", &route.path);
    if !hosts.is_empty() {
        document.list(Group::Route, "hosts", hosts);
    }
    document.text(Group::Route, "upstream", &name);
    if route.strips {
        document.value(Group::Route, "strip_prefix", true);
    }
    if route.files_first {
        document.value(Group::Route, "files_first", true);
    }
    if let Some(is_on) = route.compress {
        document.value(Group::Route, "compress", is_on);
    }
    if let Some(seconds) = route.seconds {
        let keys = ["response_seconds", "idle_seconds", "tunnel_seconds"];
        let has_tunnels = route.upstream.scripts.is_none();
        for key in &keys[..if has_tunnels { 3 } else { 2 }] {
            document.value(Group::Route, key, seconds_text(seconds));
        }
    }
}

/// The name under which it is written; another one where that is taken.
fn named(upstreams: &mut Vec<(String, Upstream)>, wanted: &Upstream) -> String {
    if let Some((name, _)) = upstreams.iter().find(|(_, own)| own == wanted) {
        return name.clone();
    }
    let mut name = wanted.name.clone();
    let mut number = 1;
    while upstreams.iter().any(|(own, _)| *own == name) {
        number += 1;
        name = format!("{}-{number}", wanted.name);
    }
    upstreams.push((name.clone(), wanted.clone()));
    name
}

fn write_upstream(name: &str, upstream: &Upstream, document: &mut Document) {
    let group = Group::Upstream;
    document.gap(group);
    document.table(group, "[[upstream]]");
    document.text(group, "name", name);
    document.list(group, "servers", &upstream.servers);
    if let Some(host) = &upstream.host {
        document.text(group, "host", host);
    }
    if !upstream.headers.is_empty() {
        let pairs = upstream.headers.iter();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{} = {}", key(name), quoted(value)))
            .collect();
        document.value(group, "headers", table(&pairs));
    }
    if let Some(limit) = upstream.limit {
        document.value(group, "limit", limit);
    } else if upstream.scripts.is_some() {
        let words = "limit = as many as pm.max_children of the pool, which nginx does not know.";
        document.comment(group, words);
    }
    if let Some(fails) = upstream.fails {
        document.value(group, "fails", fails);
    }
    if let Some(seconds) = upstream.connect_seconds {
        document.value(group, "connect_seconds", seconds_text(seconds));
    }
    if let Some(ca) = &upstream.ca {
        document.text(group, "ca", ca);
    }
    if let Some(scripts) = &upstream.scripts {
        let mut pairs = vec![
            format!("root = {}", quoted(&scripts.root)),
            format!("index = {}", quoted(&scripts.index)),
        ];
        let fallback = scripts.fallback.as_ref();
        pairs.extend(fallback.map(|own| format!("fallback = {}", quoted(own))));
        document.value(group, "fastcgi", format!("{{ {} }}", pairs.join(", ")));
    }
}

fn seconds_text(seconds: f64) -> String {
    // TOML tells whole numbers from others, and both are read.
    if seconds.fract() == 0.0 {
        format!("{seconds:.0}")
    } else {
        format!("{seconds:?}")
    }
}
