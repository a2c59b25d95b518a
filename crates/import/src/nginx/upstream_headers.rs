//! `proxy_set_header`: what upstreams are told of a request where Sooner would tell them something
//! else, and what cannot be carried over.

use super::action::Actions;
use super::facts::Facts;
use super::identity;
use super::scope::{Scope, replaced};
use super::tree::Directive;
use super::values::unbraced;
use sooner_web::files::ExtraHeaderError;
use sooner_web::proxy::{RequestHeaderError, RequestHeaders};
use std::collections::BTreeMap;

const SCHEME: &str =
    "upstreams get the scheme of the request, or what a proxy in proxy.trusted says";
const HOST: &str = "upstreams get the Host of the request, or what a proxy in proxy.trusted says";
const CLIENT: &str = "upstreams get the address that the request came from; of a proxy in \
    proxy.trusted also what its X-Forwarded-For says";
const REAL_IP: &str =
    "of a proxy in proxy.trusted its own X-Real-IP is passed on; X-Forwarded-For has the client";
const FORWARDED: &str = "Sooner always writes this header itself";
const NONE: &str = "upstreams get no such header, unless a proxy in proxy.trusted sends it";
const OF_CONNECTION: &str = "Sooner writes what belongs to the connection itself";
const TWICE: &str = "a header is written once";

/// Headers that an upstream gets in place of what Sooner would send.
#[derive(Default)]
pub struct Headers {
    /// What they are.
    pub values: BTreeMap<String, String>,
    checked: RequestHeaders,
}

/// What is known where a header is set.
pub struct About<'f> {
    /// Of the requests.
    pub facts: &'f Facts,
    /// The first name of the server.
    pub server_name: Option<String>,
    /// Whether proxies in front are named.
    pub has_proxies: bool,
}

impl<'a> Actions<'_, 'a> {
    /// The headers that upstreams get in place of what Sooner would send; says which they get
    /// otherwise. What Sooner sets alike needs no word.
    pub fn headers_to_upstream(&mut self, scope: &Scope<'a>) -> BTreeMap<String, String> {
        let mut headers = Headers::default();
        for own in scope.all(&["proxy_set_header", "grpc_set_header"]) {
            self.put_header(scope, own, own.first(), &mut headers);
        }
        for name in ["proxy_pass_request_headers", "grpc_pass_request_headers"] {
            if let Some(own) = scope.one(name).filter(|own| own.first() == "off") {
                self.leave_out(own, "the client's own headers are passed on");
            }
        }
        headers.values
    }

    /// Puts the header of this name that a directive sets among `headers`, or says why not.
    pub fn put_header(
        &mut self,
        scope: &Scope<'a>,
        own: &'a Directive,
        name: &str,
        headers: &mut Headers,
    ) {
        let value = own.args.get(1).map_or("", String::as_str);
        let Some(why) = self.remark_on_header(scope, name, value) else {
            return;
        };
        let value = self.value(scope, value);
        match headers.checked.push(name, &value) {
            Ok(()) => drop(headers.values.insert(name.to_owned(), value)),
            Err(RequestHeaderError::Header(error)) => match error {
                ExtraHeaderError::Twice(_) => self.leave_out(own, TWICE),
                ExtraHeaderError::Ours(_) => self.leave_out(own, OF_CONNECTION),
                other => self.leave_out(own, &other.to_string()),
            },
            Err(_) => self.leave_out(own, why),
        }
    }

    /// A value without the variables that are the same in all requests of the site.
    fn value(&self, scope: &Scope<'a>, value: &str) -> String {
        let mut value = unbraced(&scope.expanded(value));
        if let Some(name) = super::listen::first_name(scope) {
            value = replaced(&value, "$server_name", &name);
        }
        if let Some(scheme) = self.facts.scheme {
            let https = if scheme == "https" { "on" } else { "" };
            value = replaced(&value, "$https", https);
        }
        value
    }

    /// Why Sooner alone would not send a header of this name with this value, where that is so.
    fn remark_on_header(&self, scope: &Scope<'a>, name: &str, value: &str) -> Option<&'static str> {
        let header = scope.one("real_ip_header").map_or("", |own| own.first());
        let about = About {
            facts: &self.facts,
            server_name: super::listen::first_name(scope),
            has_proxies: scope.one("set_real_ip_from").is_some() && header != "proxy_protocol",
        };
        let value = unbraced(&scope.expanded(value));
        remark(&name.to_ascii_lowercase(), &value, &about)
    }
}

fn remark(name: &str, value: &str, about: &About<'_>) -> Option<&'static str> {
    let is_scheme = value == "$scheme" || about.facts.scheme == Some(value);
    let unless = |is_same: bool, why: &'static str| (!is_same).then_some(why);
    match name {
        // Said where the upstream is read.
        "host" => None,
        "upgrade" | "connection" | "te" => None,
        "x-forwarded-proto" => {
            let is_proxys = about.has_proxies && value == "$http_x_forwarded_proto";
            unless(is_scheme || is_proxys, SCHEME)
        }
        "x-forwarded-host" => {
            let is_proxys = about.has_proxies && value == "$http_x_forwarded_host";
            unless(is_host(value, about) || is_proxys, HOST)
        }
        "x-real-ip" if about.has_proxies && value == "$remote_addr" => Some(REAL_IP),
        "x-real-ip" => unless(value == "$remote_addr", CLIENT),
        "x-forwarded-for" => {
            let is_same = matches!(value, "$proxy_add_x_forwarded_for" | "$remote_addr");
            unless(is_same, CLIENT)
        }
        "forwarded" => unless(value == "$proxy_add_forwarded", FORWARDED),
        // Never passed on.
        "proxy" | "keep-alive" | "proxy-connection" if value.is_empty() => None,
        name if identity::is_of_proxies(name) => Some(NONE),
        _ => Some(identity::CLIENTS_OWN),
    }
}

/// Whether a value is the host of all requests, as they name it.
fn is_host(value: &str, about: &About<'_>) -> bool {
    let own = match value {
        "$host" | "$http_host" | "$host:$server_port" => return true,
        "$server_name" => about.server_name.as_deref(),
        value => Some(value),
    };
    let [host] = about.facts.hosts.as_slice() else {
        return false;
    };
    own == Some(host) && !about.facts.is_default
}
