//! Hosts that no site names: the first site of their scheme answers them, so its routes are for all
//! hosts. Routes know no scheme, so hosts of which two schemes lead elsewhere get a site that
//! refuses them.

use super::action::NOT_CARRIED;
use super::finish::{leads_alike, overlap, route_of};
use super::site::{Body, Site, refusing};

/// Both schemes, as sites have them.
pub const SCHEMES: [&str; 2] = ["http", "https"];
const WHY: &str = "a route is for a host whatever the scheme, and the other one leads elsewhere; \
    these requests get 501";

impl Site {
    /// Whether it is for requests of this scheme.
    pub fn is_of(&self, scheme: &str) -> bool {
        self.scheme.is_none_or(|own| own == scheme)
    }
}

/// The sites that answer hosts which no site names, by scheme.
pub fn first_sites(sites: &[Site]) -> [Option<usize>; 2] {
    SCHEMES.map(|scheme| sites.iter().position(|own| own.is_of(scheme)))
}

/// Refuses hosts that would be passed on to where the other scheme leads.
pub fn refuse_mixed(sites: &mut Vec<Site>) {
    refuse_one_of_two(sites);
    refuse_named_for_the_other(sites);
}

/// Both schemes have a default, and they lead elsewhere: one goes on for its names alone.
fn refuse_one_of_two(sites: &mut Vec<Site>) {
    let [Some(clear), Some(tls)] = first_sites(sites) else {
        return;
    };
    let is_mixed =
        leads_elsewhere(&sites[clear], &sites[tls]) || leads_elsewhere(&sites[tls], &sites[clear]);
    if clear == tls || !is_mixed {
        return;
    }
    let at = if sites[clear].hosts.is_empty() {
        tls
    } else {
        clear
    };
    if sites[at].hosts.is_empty() {
        return;
    }
    let scheme = SCHEMES[usize::from(at == tls)];
    let said = format!("what goes to hosts without a server of their own over {scheme}");
    let refused = refused(&sites[at], Vec::new(), scheme, said);
    sites.insert(0, refused);
}

/// Hosts that only the other scheme names get the default here, but their own routes.
fn refuse_named_for_the_other(sites: &mut Vec<Site>) {
    let firsts = first_sites(sites);
    for (scheme, first) in SCHEMES.into_iter().zip(firsts) {
        let Some(first) = first.map(|at| sites[at].clone()) else {
            continue;
        };
        let here: Vec<&Site> = sites.iter().filter(|own| own.is_of(scheme)).collect();
        let is_named = |host: &String| {
            let mut named = here.iter().filter(|own| !own.hosts.is_empty());
            named.any(|own| overlap(&own.hosts, std::slice::from_ref(host)))
        };
        let mut hosts: Vec<String> = Vec::new();
        let others = sites.iter().filter(|own| !own.is_of(scheme));
        for other in others.filter(|own| leads_elsewhere(&first, own)) {
            let unnamed = other.hosts.iter().filter(|host| !is_named(host));
            hosts.extend(unnamed.cloned());
        }
        hosts.dedup();
        if !hosts.is_empty() {
            let said = format!("what goes to {} over {scheme}", hosts.join(", "));
            sites.push(refused(&first, hosts, scheme, said));
        }
    }
}

/// Whether a site has a route that leads elsewhere for a path of the other.
fn leads_elsewhere(own: &Site, other: &Site) -> bool {
    other.routes.iter().any(|route| {
        let mine = route_of(&own.routes, &route.path);
        mine.is_some_and(|mine| !leads_alike(mine, route))
    })
}

/// A site that refuses hosts in the place of another.
fn refused(like: &Site, hosts: Vec<String>, scheme: &'static str, said: String) -> Site {
    Site {
        origin: like.origin.clone(),
        hosts,
        scheme: Some(scheme),
        body: Body {
            index: vec!["index.html".into()],
            ..Body::default()
        },
        places: vec![refusing(vec!["/*".into()], false, NOT_CARRIED)],
        left_out: vec![(said, WHY.to_owned())],
        ..Site::default()
    }
}
