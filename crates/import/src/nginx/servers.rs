//! `server` blocks: which of them become sites, and of which names and scheme.

use super::conditions::Condition;
use super::facts::UNKNOWN;
use super::globals::deep;
use super::listen::{self, Listen};
use super::returns::{Place, Return, read_return};
use super::scope::Scope;
use super::tree::Directive;
use super::values::unbraced;
use crate::ini::ImportError;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A `server` block.
#[derive(Debug)]
pub struct Server<'a> {
    /// Where it stands.
    pub directive: &'a Directive,
    /// What holds there.
    pub scope: Scope<'a>,
    /// Where it listens.
    pub listens: Vec<Listen>,
    /// `$server_name`, where it is a host.
    pub name: Option<String>,
    /// Its names.
    pub hosts: Vec<String>,
    /// Whether it is the default for clear text, and for TLS.
    pub is_default: [bool; 2],
    /// What is left out, and why.
    pub left_out: Vec<(String, String)>,
    /// Whether a name was left out.
    has_other_names: bool,
    /// Whether its clients have certificates of other authorities than those of the first.
    has_other_authorities: bool,
}

/// What becomes one site.
#[derive(Debug)]
pub struct Plan<'s, 'a> {
    /// The block.
    pub server: &'s Server<'a>,
    /// Its names.
    pub hosts: Vec<String>,
    /// The requests that it is for.
    pub scheme: Option<&'static str>,
    /// Whether hosts that no site names get it, in clear text and over TLS.
    pub is_default: [bool; 2],
    /// The answer to everything that nothing before it has answered.
    pub always: Option<Result<Return, (&'a Directive, String)>>,
    /// What stands in the server before the directive that says so.
    pub before: &'a [Directive],
}

const NO_HANDSHAKE: &str =
    "no handshake is refused; requests over TLS get 403, with the certificate of another name";
const REVOKED: &str =
    "Sooner does not find out which certificates of clients are revoked; requests over TLS get 403";
const NO_AUTHORITIES: &str =
    "no ssl_client_certificate says who signs clients' certificates; requests over TLS get 403";
const OTHER_AUTHORITIES: &str = "an earlier server has others sign clients' certificates, \
    and Sooner asks all names alike; requests over TLS get 403";
const SCHEMES: [&str; 2] = ["http", "https"];

impl<'a> Server<'a> {
    /// Reads a block.
    pub fn of(directive: &'a Directive, http: &Scope<'a>) -> Result<Self, ImportError> {
        let scope = http.within(directive.inside());
        let mut server = Self {
            directive,
            listens: Vec::new(),
            name: listen::first_name(&scope).filter(|name| !name.contains(['*', '_'])),
            hosts: Vec::new(),
            is_default: [false; 2],
            left_out: Vec::new(),
            has_other_names: false,
            has_other_authorities: false,
            scope,
        };
        let is_all_tls = server
            .scope
            .one("ssl")
            .is_some_and(|own| own.first() == "on");
        let own = directive.inside();
        for own in own.iter().filter(|own| own.name == "listen") {
            match Listen::of(own)? {
                Ok(mut listen) => {
                    listen.is_tls |= is_all_tls;
                    server.listens.push(listen);
                    server.listens.extend(listen.over_ipv4(own));
                }
                Err(why) => server.leave_out(own, why),
            }
        }
        if !own.iter().any(|own| own.name == "listen") {
            server.listens.push(Listen::DEFAULT);
        }
        for own in own.iter().filter(|own| own.name == "server_name") {
            for name in &own.args {
                match listen::hosts(name) {
                    Ok(hosts) => {
                        for host in hosts {
                            if !server.hosts.contains(&host) {
                                server.hosts.push(host);
                            }
                        }
                    }
                    Err(why) => {
                        server.has_other_names = true;
                        let text = format!("server_name {name}");
                        server
                            .left_out
                            .push((text, format!("{why} ({})", place(own))));
                    }
                }
            }
        }
        Ok(server)
    }

    fn leave_out(&mut self, directive: &Directive, why: &str) {
        let why = format!("{why} ({})", place(directive));
        self.left_out.push((directive.text(), why));
    }

    /// Whether it listens in clear text, and with TLS.
    pub fn listens_by_scheme(&self) -> [bool; 2] {
        [false, true].map(|is_tls| self.listens.iter().any(|own| own.is_tls == is_tls))
    }

    /// What becomes of it, the narrowest first.
    pub fn plans(&self) -> Vec<Plan<'_, 'a>> {
        let listens = self.listens_by_scheme();
        let own: Vec<usize> = (0..2).filter(|scheme| listens[*scheme]).collect();
        let conditions = self.conditions();
        let needs_split = own.len() == 2
            && (conditions
                .iter()
                .any(|(condition, _)| condition.by_scheme().is_some())
                || self.shut_over_tls().is_some()
                || depends_on_scheme(self.directive.inside()));
        if own.len() == 2 && !needs_split {
            return self.plans_of(None, &conditions);
        }
        let plans = own
            .iter()
            .map(|scheme| self.plans_of(Some(*scheme), &conditions));
        plans.flatten().collect()
    }

    /// Conditions about host or scheme that lead elsewhere.
    fn conditions(&self) -> Vec<(Condition, &'a Directive)> {
        let own = self.scope.own().iter();
        // nginx does not get to what stands behind.
        let reached = own.take_while(|own| own.name != "return");
        let blocks = reached.filter(|own| own.name == "if");
        let with_return = blocks.filter_map(|own| {
            let condition = Condition::of(own);
            let returned = own.inside().iter().find(|own| own.name == "return")?;
            let is_known = condition.host("x").is_some() || condition.by_scheme().is_some();
            is_known.then_some((condition, returned))
        });
        with_return.collect()
    }

    fn plans_of(
        &self,
        scheme: Option<usize>,
        conditions: &[(Condition, &'a Directive)],
    ) -> Vec<Plan<'_, 'a>> {
        let mut rest = self.hosts.clone();
        let mut plans = Vec::new();
        let name = scheme.map(|scheme| SCHEMES[scheme]);
        let mut is_default =
            [0, 1].map(|own| self.is_default[own] && scheme.is_none_or(|it| it == own));
        let mut always = None;
        for (condition, returned) in conditions {
            if let Some(is_clear_text) = condition.by_scheme() {
                if name.is_some_and(|name| (name == "http") == is_clear_text) {
                    always = Some(*returned);
                    break;
                }
                continue;
            }
            let (fitting, others): (Vec<_>, Vec<_>) = rest
                .into_iter()
                .partition(|host| condition.host(host) == Some(true));
            rest = others;
            let is_of_unknown = is_default.contains(&true) && condition.host(UNKNOWN) == Some(true);
            if !fitting.is_empty() || is_of_unknown {
                plans.push(Plan {
                    server: self,
                    always: Some(self.returned(returned, name)),
                    before: self.before(returned),
                    hosts: fitting,
                    scheme: name,
                    is_default: if is_of_unknown {
                        std::mem::take(&mut is_default)
                    } else {
                        [false; 2]
                    },
                });
            }
        }
        let always = always.or(self.scope.own_one("return"));
        for (hosts, is_default) in self.by_conditions_within(rest, is_default) {
            plans.push(Plan {
                server: self,
                always: always.map(|own| self.returned(own, name)),
                before: always.map(|own| self.before(own)).unwrap_or_default(),
                hosts,
                scheme: name,
                is_default,
            });
        }
        plans
    }

    /// Hosts that the conditions of its locations do not tell apart, and whether those that no site
    /// names are among them.
    fn by_conditions_within(
        &self,
        hosts: Vec<String>,
        is_default: [bool; 2],
    ) -> Vec<(Vec<String>, [bool; 2])> {
        let mut conditions = Vec::new();
        for own in self.directive.inside() {
            if own.name == "location" {
                deep(own.inside(), "if", &mut |own| {
                    conditions.push(Condition::of(own))
                });
            }
        }
        let fulfilled = |host: &str| -> Vec<Option<bool>> {
            conditions.iter().map(|own| own.host(host)).collect()
        };
        let mut groups: Vec<Vec<Option<bool>>> = Vec::new();
        let mut all: Vec<(Vec<String>, [bool; 2])> = Vec::new();
        if is_default.contains(&true) {
            groups.push(fulfilled(UNKNOWN));
            all.push((Vec::new(), is_default));
        }
        for host in hosts {
            let own = fulfilled(&host);
            match groups.iter().position(|other| *other == own) {
                Some(at) => all[at].0.push(host),
                None => {
                    groups.push(own);
                    all.push((vec![host], [false; 2]));
                }
            }
        }
        all
    }

    /// Why all requests over TLS are refused, if they are.
    pub fn shut_over_tls(&self) -> Option<(&'a Directive, &'static str)> {
        let is_on = |name: &str| self.scope.one(name).filter(|own| own.first() != "off");
        if !self.listens_by_scheme()[1] {
            return None;
        }
        if let Some(own) = is_on("ssl_reject_handshake") {
            return Some((own, NO_HANDSHAKE));
        }
        let verify = is_on("ssl_verify_client")?;
        for name in ["ssl_crl", "ssl_ocsp"] {
            if let Some(own) = is_on(name) {
                return Some((own, REVOKED));
            }
        }
        let is_unsaid =
            verify.first() == "on" && self.scope.one("ssl_client_certificate").is_none();
        match (is_unsaid, self.has_other_authorities) {
            (true, _) => Some((verify, NO_AUTHORITIES)),
            (_, true) => Some((verify, OTHER_AUTHORITIES)),
            _ => None,
        }
    }

    /// What stands before a `return`, or before the `if` that it is in.
    fn before(&self, returned: &Directive) -> &'a [Directive] {
        let own = self.scope.own();
        let is_it = |own: &Directive| {
            let mut all = own.inside().iter().chain([own]);
            all.any(|own| std::ptr::eq(own, returned))
        };
        let at = own.iter().position(is_it);
        &own[..at.unwrap_or_default()]
    }

    fn returned(
        &self,
        directive: &'a Directive,
        scheme: Option<&str>,
    ) -> Result<Return, (&'a Directive, String)> {
        let place = Place {
            scheme,
            name: self.name.as_deref(),
            paths: &["/*".to_owned()],
            expression: None,
        };
        read_return(directive, place).map_err(|why| (directive, why))
    }

    /// Whether only names that cannot be said lead to it.
    pub fn is_unreachable(&self) -> bool {
        self.hosts.is_empty() && !self.is_default.contains(&true)
    }

    /// Whether a name of it is not carried over.
    pub fn has_other_names(&self) -> bool {
        self.has_other_names
    }
}

fn depends_on_scheme(level: &[Directive]) -> bool {
    level.iter().any(|own| {
        let is_redirect = matches!(own.name.as_str(), "return" | "rewrite");
        let is_by_scheme = own.args.iter().any(|arg| {
            let arg = unbraced(arg);
            arg.contains("$scheme")
                || arg.starts_with("https://$host")
                || arg.starts_with("https://$http_host")
        });
        let is_condition = own.name == "if" && Condition::of(own).by_scheme().is_some();
        is_condition || (is_redirect && is_by_scheme) || depends_on_scheme(own.inside())
    })
}

/// `file:line`
pub fn place(directive: &Directive) -> String {
    format!("{}:{}", directive.at.file, directive.at.line)
}

type Key = BTreeSet<(Option<IpAddr>, u16)>;

/// The servers that may be sites of one Sooner, and those that may not: its sites are all reached
/// by every address, so a server that listens elsewhere would be open to more clients.
pub fn together(servers: Vec<Server<'_>>) -> (Vec<Server<'_>>, Vec<Server<'_>>) {
    let keys = |own: &Server<'_>| -> [Key; 2] {
        [false, true].map(|is_tls| {
            let listens = own.listens.iter().filter(|own| own.is_tls == is_tls);
            listens.map(Listen::key).collect()
        })
    };
    let mut counts: [BTreeMap<Key, usize>; 2] = Default::default();
    for server in &servers {
        for (scheme, key) in keys(server).into_iter().enumerate() {
            if !key.is_empty() {
                *counts[scheme].entry(key).or_default() += 1;
            }
        }
    }
    // Where as many have one as another, the usual ports count.
    let usual = counts.map(|own| {
        own.into_iter()
            .max_by_key(|(key, count)| {
                let is_usual = key.iter().any(|(_, port)| matches!(port, 80 | 443));
                (*count, is_usual, std::cmp::Reverse(key.clone()))
            })
            .map(|(key, _)| key)
    });
    servers.into_iter().partition(|server| {
        let own = keys(server);
        let is_usual =
            |scheme: usize| own[scheme].is_empty() || Some(&own[scheme]) == usual[scheme].as_ref();
        (0..2).all(is_usual) && own.iter().any(|key| !key.is_empty())
    })
}

/// Says which servers ask for certificates of other authorities than Sooner will.
fn compare_authorities(servers: &mut [Server<'_>]) {
    let asked = |own: &Server<'_>| {
        let verify = own.scope.one("ssl_verify_client")?;
        let is_asked = matches!(verify.first(), "on" | "optional");
        let ca = own.scope.one("ssl_client_certificate")?;
        (is_asked && own.listens_by_scheme()[1]).then(|| ca.first().to_owned())
    };
    let Some(first) = servers.iter().find_map(asked) else {
        return;
    };
    for server in servers {
        server.has_other_authorities = asked(server).is_some_and(|own| own != first);
    }
}

/// Says which are the defaults: the first, unless one says that it is; and which ask for
/// certificates of other authorities than the first.
pub fn choose_defaults(servers: &mut [Server<'_>]) {
    for (scheme, is_tls) in [false, true].into_iter().enumerate() {
        let listens = |own: &Server<'_>| own.listens.iter().any(|own| own.is_tls == is_tls);
        let says_so = |own: &Server<'_>| {
            let mut listens = own.listens.iter();
            listens.any(|own| own.is_tls == is_tls && own.is_default)
        };
        let default = servers
            .iter()
            .position(says_so)
            .or_else(|| servers.iter().position(listens));
        if let Some(default) = default {
            servers[default].is_default[scheme] = true;
        }
    }
    compare_authorities(servers);
}
