//! `proxy_set_header`: what upstreams are told of a request, and where Sooner tells them something
//! else.

use super::action::Actions;
use super::facts::Facts;
use super::identity;
use super::scope::Scope;
use super::values::unbraced;

const SCHEME: &str =
    "upstreams get the scheme of the request, or what a proxy in proxy.trusted says";
const HOST: &str = "upstreams get the Host of the request, or what a proxy in proxy.trusted says";
const CLIENT: &str = "upstreams get the address that the request came from; of a proxy in \
    proxy.trusted also what its X-Forwarded-For says";
const REAL_IP: &str =
    "of a proxy in proxy.trusted its own X-Real-IP is passed on; X-Forwarded-For has the client";
const FORWARDED: &str = "Sooner always writes this header itself";
const SAID: &str = "X-Forwarded-Proto and X-Forwarded-Host say it";
const SAID_BESIDE: &str =
    "X-Forwarded-Proto and X-Forwarded-Host say it; the client's own of this name is passed on";
const NONE: &str = "upstreams get no such header, unless a proxy in proxy.trusted sends it";
const ENCODING: &str = "what the client accepts is passed on";

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
    /// Says which headers upstreams get otherwise. What Sooner sets alike needs no word.
    pub fn headers_to_upstream(&mut self, scope: &Scope<'a>) {
        for own in scope.all(&["proxy_set_header", "grpc_set_header"]) {
            let value = own.args.get(1).map_or("", String::as_str);
            if let Some(why) = self.remark_on_header(scope, own.first(), value) {
                self.leave_out(own, why);
            }
        }
        for name in ["proxy_pass_request_headers", "grpc_pass_request_headers"] {
            if let Some(own) = scope.one(name).filter(|own| own.first() == "off") {
                self.leave_out(own, "the client's own headers are passed on");
            }
        }
    }

    /// Why a header of this name is not sent with this value, where that is so.
    pub fn remark_on_header(
        &self,
        scope: &Scope<'a>,
        name: &str,
        value: &str,
    ) -> Option<&'static str> {
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
    let is_tls = about.facts.scheme == Some("https");
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
        "x-forwarded-port" => {
            let usual = if is_tls { "443" } else { "80" };
            let is_said =
                value == "$server_port" || (value == usual && about.facts.scheme.is_some());
            Some(if is_said { SAID } else { NONE })
        }
        "x-forwarded-ssl" => {
            let is_said = value == "$https" || (value == "on" && is_tls);
            Some(if is_said { SAID } else { NONE })
        }
        "x-forwarded-scheme" | "x-forwarded-protocol" => Some(if is_scheme { SAID } else { NONE }),
        "x-scheme" | "x-url-scheme" if is_scheme => Some(SAID_BESIDE),
        "accept-encoding" if value.is_empty() => Some(ENCODING),
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
