//! Proxies in front: `set_real_ip_from`, `real_ip_header`, and `listen` with `proxy_protocol`.
//!
//! nginx takes the PROXY header from everyone who comes to such an address, Sooner only from the
//! networks that are named.

use super::globals::deep;
use super::scope::Scope;
use super::servers::{Server, place};
use super::tree::Directive;
use crate::document::{Document, Group};
use crate::ini::ImportError;
use std::collections::BTreeSet;
use std::net::SocketAddr;

const UNTRUSTED: &str = "X-Forwarded-* of clients is dropped; name a proxy in front in \
    proxy.trusted, and what it says is believed.";
const UNNAMED: &str = "no set_real_ip_from names the proxies; name them in proxy_protocol.from and \
    add the address, without it their connections fail";
const NO_NETWORK: &str = "a proxy in front is an address or a network";
const OTHER_HEADER: &str = "proxies name the client in X-Forwarded-For or Forwarded";
const BY_DEFAULT: &str = "without real_ip_header nginx has the client from X-Real-IP; proxies name \
    it in X-Forwarded-For or Forwarded";
const BY_PROTOCOL: &str = "without real_ip_header nginx has the client from X-Real-IP, and Sooner \
    from the PROXY header";

/// Takes away the addresses to which proxies come with a PROXY header, where none is named.
pub fn leave_out_unnamed(
    servers: &mut Vec<Server<'_>>,
    http: &Scope<'_>,
    document: &mut Document,
) -> Result<(), ImportError> {
    let listens = servers.iter().flat_map(|own| &own.listens);
    let proxied = listens.filter(|own| own.has_proxy_header);
    // What one server says of an address holds for all that have it.
    let addresses: BTreeSet<SocketAddr> = proxied.map(|own| own.address).collect();
    if addresses.is_empty() || !named(servers, http).0.is_empty() {
        return Ok(());
    }
    let mut first = None;
    for server in &mut *servers {
        server
            .listens
            .retain(|own| !addresses.contains(&own.address));
        for own in server
            .directive
            .inside()
            .iter()
            .filter(|own| is_proxied(own))
        {
            first.get_or_insert(own);
            leave_out(document, Group::Head, own, UNNAMED);
        }
    }
    if let Some(own) = first.filter(|_| servers.iter().all(|own| own.listens.is_empty())) {
        let what = format!(
            "{}: no set_real_ip_from names the proxies that come here; write \
             set_real_ip_from ADDRESS; beside it",
            own.text()
        );
        return Err(own.at.wrong(what));
    }
    let is_left = |own: &Server<'_>| !own.listens.is_empty();
    for server in servers.iter().filter(|own| !is_left(own)) {
        let why = format!("it listens nowhere else ({})", place(server.directive));
        let names = server.hosts.join(" ");
        document.leave_out(Group::Site, &format!("server {names}"), &why);
    }
    servers.retain(is_left);
    Ok(())
}

fn is_proxied(own: &Directive) -> bool {
    own.name == "listen" && own.args.iter().any(|arg| arg == "proxy_protocol")
}

fn leave_out(document: &mut Document, group: Group, directive: &Directive, why: &str) {
    let why = format!("{why} ({})", place(directive));
    document.leave_out(group, &directive.text(), &why);
}

/// The networks of proxies, and what names none.
fn named<'a>(servers: &[Server<'a>], http: &Scope<'a>) -> (Vec<String>, Vec<&'a Directive>) {
    let mut all: Vec<&Directive> = Vec::new();
    let scopes = servers.iter().map(|own| &own.scope);
    for scope in scopes.chain([http]) {
        let said = scope.own().iter();
        for own in said.filter(|own| own.name == "set_real_ip_from") {
            if !all.contains(&own) {
                all.push(own);
            }
        }
    }
    let is_network = |own: &&Directive| own.first().parse::<sooner_config::Network>().is_ok();
    let (networks, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_network);
    let mut texts: Vec<String> = Vec::new();
    for own in networks {
        if !texts.iter().any(|text| text == own.first()) {
            texts.push(own.first().to_owned());
        }
    }
    (texts, others)
}

/// Writes which proxies are believed.
pub fn write(document: &mut Document, servers: &[Server<'_>], http: &Scope<'_>) {
    let (networks, others) = named(servers, http);
    for own in others {
        leave_out(document, Group::Log, own, NO_NETWORK);
    }
    if networks.is_empty() {
        return remark_on_untrusted(document, http);
    }
    let has_header = servers.iter().any(|server| {
        let header = server.scope.one("real_ip_header");
        header.is_some_and(|own| own.first() == "proxy_protocol")
            || server.listens.iter().any(|own| own.has_proxy_header)
    });
    document.gap(Group::Log);
    let (table, key) = if has_header {
        ("[proxy_protocol]", "from")
    } else {
        ("[proxy]", "trusted")
    };
    document.table(Group::Log, table);
    document.list(Group::Log, key, &networks);
    let said = servers
        .iter()
        .find_map(|own| own.scope.one("real_ip_header"));
    let is_known = |own: &&Directive| {
        own.first().eq_ignore_ascii_case("x-forwarded-for") || own.first() == "proxy_protocol"
    };
    if let Some(own) = said.filter(|own| !is_known(own)) {
        leave_out(document, Group::Log, own, OTHER_HEADER);
    }
    let mut silent = servers
        .iter()
        .filter(|own| own.scope.one("real_ip_header").is_none());
    if let Some(own) = silent.find_map(|own| own.scope.one("set_real_ip_from")) {
        let why = if has_header { BY_PROTOCOL } else { BY_DEFAULT };
        leave_out(document, Group::Log, own, why);
    }
}

/// Where upstreams are told what a proxy in front says, without a word on which proxies.
fn remark_on_untrusted(document: &mut Document, http: &Scope<'_>) {
    let mut is_told = false;
    for name in ["proxy_set_header", "grpc_set_header"] {
        deep(http.own(), name, &mut |own| {
            let value = own.args.get(1).map_or("", String::as_str);
            is_told |=
                value == "$proxy_add_x_forwarded_for" || value.starts_with("$http_x_forwarded_");
        });
    }
    if is_told {
        document.comment(Group::Log, UNTRUSTED);
    }
}
