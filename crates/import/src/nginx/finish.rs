//! Routes are of the whole server and not of one site: here they are kept from taking requests of
//! other sites, and written.

use super::action::NOT_CARRIED;
use super::site::{Body, Place, Route, Site};
use super::upstreams::Upstream;
use crate::document::{Document, Group};

/// Makes every site answer what is its own.
pub fn separate(sites: &mut [Site]) {
    let all: Vec<(Vec<String>, Vec<Route>)> = sites
        .iter()
        .map(|own| (own.hosts.clone(), own.routes.clone()))
        .collect();
    for (at, site) in sites.iter_mut().enumerate() {
        let others = all.iter().enumerate().filter(|(other, _)| *other != at);
        let mut foreign: Vec<Route> = Vec::new();
        for (_, (hosts, routes)) in others {
            if overlap(&site.hosts, hosts) {
                foreign.extend(routes.iter().cloned());
            }
        }
        keep_apart(site, &foreign);
    }
}

fn keep_apart(site: &mut Site, foreign: &[Route]) {
    let mut must_close = false;
    for other in foreign {
        let own = site
            .routes
            .iter()
            .filter(|own| covers(&own.path, &other.path))
            .max_by_key(|own| own.path.len())
            .cloned();
        match own {
            None => must_close = true,
            Some(own) if own == *other => {}
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
            if let Some(seconds) = route.seconds {
                for key in ["response_seconds", "idle_seconds", "tunnel_seconds"] {
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
}

fn seconds_text(seconds: f64) -> String {
    // TOML tells whole numbers from others, and both are read.
    if seconds.fract() == 0.0 {
        format!("{seconds:.0}")
    } else {
        format!("{seconds:?}")
    }
}
