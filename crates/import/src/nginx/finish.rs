//! Routes are of the whole server and not of one site: here they are kept from taking requests of
//! other sites, and written.

use super::action::NOT_CARRIED;
use super::site::{Body, Place, Route, Site};
use super::upstreams::Upstream;
use crate::document::{Document, Group, quoted};

/// What decides which site and which route a request takes.
struct Standing {
    hosts: Vec<String>,
    scheme: Option<&'static str>,
    routes: Vec<Route>,
}

/// Makes every site answer what is its own.
pub fn separate(sites: &mut [Site]) {
    let standing = |own: &Site| Standing {
        hosts: own.hosts.clone(),
        scheme: own.scheme,
        routes: own.routes.clone(),
    };
    let all: Vec<Standing> = sites.iter().map(standing).collect();
    for (at, site) in sites.iter_mut().enumerate() {
        let mut foreign: Vec<(Route, bool)> = Vec::new();
        for (other, own) in all.iter().enumerate() {
            if other != at && overlap(&site.hosts, &own.hosts) {
                let goes_first = goes_first(at, other, &all);
                foreign.extend(own.routes.iter().map(|route| (route.clone(), goes_first)));
            }
        }
        keep_apart(site, &foreign);
    }
}

/// Whether a route of another site is taken before one of this site with the same path.
fn goes_first(site: usize, other: usize, all: &[Standing]) -> bool {
    let (one, two) = (&all[site], &all[other]);
    if two.hosts.is_empty() {
        return one.hosts.is_empty();
    }
    two.hosts.iter().any(|host| {
        // Of one host the site of its scheme is asked, and of several the one that names it.
        let is_named = |scheme: &str| {
            let others = all.iter().enumerate().filter(|(at, _)| *at != site);
            let mut of_scheme = others.filter(|(_, own)| own.scheme.is_none_or(|it| it == scheme));
            of_scheme.any(|(_, own)| own.hosts.contains(host))
        };
        let schemes = ["http", "https"].into_iter();
        let mut own = schemes.filter(|scheme| one.scheme.is_none_or(|it| it == *scheme));
        one.hosts.contains(host)
            || (overlap(&one.hosts, std::slice::from_ref(host)) && !own.all(is_named))
    })
}

fn keep_apart(site: &mut Site, foreign: &[(Route, bool)]) {
    let mut must_close = false;
    for (other, goes_first) in foreign {
        let own = site
            .routes
            .iter()
            .filter(|own| covers(&own.path, &other.path))
            .max_by_key(|own| own.path.len())
            .cloned();
        match own {
            None => must_close = true,
            Some(own) if own == *other => {}
            Some(own) if own.path == other.path && !goes_first => {}
            Some(own) if own.path == other.path || own.strips => {
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

/// Whether a route of this path takes requests for that one.
fn covers(path: &str, other: &str) -> bool {
    other
        .strip_prefix(path)
        .is_some_and(|rest| path.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
}

fn overlap(one: &[String], other: &[String]) -> bool {
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
    let mut written: Vec<(Vec<String>, String)> = Vec::new();
    let with_routes = sites.iter().filter(|own| !own.routes.is_empty()).count();
    for site in sites {
        let is_alone = sites.len() == 1 || (with_routes == 1 && site.hosts.is_empty());
        for route in &site.routes {
            let hosts = if is_alone {
                Vec::new()
            } else {
                site.hosts.clone()
            };
            let key = (hosts.clone(), route.path.clone());
            if written.contains(&key) {
                continue;
            }
            written.push(key);
            let name = named(&mut upstreams, &route.upstream);
            document.gap(Group::Route);
            document.table(Group::Route, "[[route]]");
            document.text(Group::Route, "path", &route.path);
            if !hosts.is_empty() {
                document.list(Group::Route, "hosts", &hosts);
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
    }
    for (name, upstream) in &upstreams {
        write_upstream(name, upstream, document);
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
