//! Addresses, and what stands behind them: `listen`, servers of upstreams, networks, names.

use super::super::tree::Directive;
use super::rewriting::expression;
use super::values;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is wrong with a directive that names addresses.
pub fn check(own: &Directive, is_upstream: bool) -> Result<(), String> {
    let first = own.first();
    let others = own.args.get(1..).unwrap_or_default();
    match own.name.as_str() {
        "listen" => {
            listened(first)?;
            others.iter().try_for_each(|own| listen_parameter(own))
        }
        "server" if is_upstream => {
            upstream(first)?;
            others.iter().try_for_each(|own| server_parameter(own))
        }
        "server_name" => own.args.iter().try_for_each(|own| server_name(own)),
        "allow" | "deny" => network(first),
        "set_real_ip_from" if first.contains('/') => network(first),
        "proxy_pass" => proxied(first, &["http://", "https://"]),
        "grpc_pass" if first.contains("://") => proxied(first, &["grpc://", "grpcs://"]),
        "uwsgi_pass" if first.contains("://") => proxied(first, &["uwsgi://", "suwsgi://"]),
        "fastcgi_pass" | "grpc_pass" | "uwsgi_pass" | "scgi_pass" | "memcached_pass" => {
            if first.parse::<Ipv4Addr>().is_ok() {
                return Err(format!("{first:?} has no port; write {first}:9000"));
            }
            unless_variable(first)
        }
        _ => Ok(()),
    }
}

fn unless_variable(text: &str) -> Result<(), String> {
    if text.contains('$') {
        Ok(())
    } else {
        upstream(text)
    }
}

/// A URL of requests that are passed on.
fn proxied(text: &str, schemes: &[&str]) -> Result<(), String> {
    if text.starts_with('$') {
        return Ok(());
    }
    let rest = schemes.iter().find_map(|scheme| {
        let begin = text.get(..scheme.len())?;
        begin
            .eq_ignore_ascii_case(scheme)
            .then(|| &text[scheme.len()..])
    });
    let Some(rest) = rest else {
        let first = schemes.first().copied().unwrap_or_default();
        return Err(format!("{text:?} is not a URL; write {first}HOST"));
    };
    if rest.contains('$') {
        return Ok(());
    }
    upstream(rest.get(..authority_bytes(rest)).unwrap_or(rest))
}

/// How much of what follows `//` is a host and a port, or the name of a socket.
pub fn authority_bytes(rest: &str) -> usize {
    match rest.strip_prefix("unix:") {
        Some(path) => 5 + path.find(':').unwrap_or(path.len()),
        None => rest.find(['/', '?']).unwrap_or(rest.len()),
    }
}

/// `HOST`, `HOST:PORT` or `unix:PATH`.
fn upstream(text: &str) -> Result<(), String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err(format!("{text:?} names no socket; write unix:/PATH")),
            _ => Ok(()),
        };
    }
    let (host, port) = parts(text)?;
    if host.is_empty() {
        return Err(format!("{text:?} names no host; write HOST or HOST:PORT"));
    }
    if host.contains(['/', '?']) {
        return Err(format!("{text:?} is not a host; write HOST or HOST:PORT"));
    }
    port.map_or(Ok(()), |port| check_port(text, port))
}

/// A host, and a port behind a colon.
fn parts(text: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(rest) = text.strip_prefix('[') {
        let is_address = |own: &&(&str, &str)| own.0.parse::<Ipv6Addr>().is_ok();
        let split = rest.split_once(']');
        return match split.as_ref().filter(is_address) {
            Some((host, "")) => Ok((host, None)),
            Some((host, port)) if port.starts_with(':') => Ok((host, Some(&port[1..]))),
            _ => Err(format!("{text:?} is not an address; write [ADDRESS]:PORT")),
        };
    }
    Ok(match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    })
}

fn check_port(text: &str, port: &str) -> Result<(), String> {
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    if is_port && port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(());
    }
    Err(format!("{text:?} has no valid port; write 1 to 65535"))
}

/// An address of a server: a port alone, and ports from one to another, may be one.
fn listened(text: &str) -> Result<(), String> {
    if text.starts_with("unix:") {
        return upstream(text);
    }
    let is_port = |own: &str| {
        own.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    let (host, ports) = match parts(text)? {
        (port, None) if is_port(port) => ("*", Some(port)),
        both => both,
    };
    if host.is_empty() || host.contains('/') {
        return Err(format!(
            "{text:?} is not an address; write PORT or ADDRESS:PORT"
        ));
    }
    let Some(ports) = ports else { return Ok(()) };
    let mut each = ports.splitn(2, '-');
    each.try_for_each(|port| check_port(text, port))
}

/// What may follow an address in `listen`.
fn listen_parameter(text: &str) -> Result<(), String> {
    const ALONE: [&str; 11] = [
        "default_server",
        "default",
        "ssl",
        "http2",
        "spdy",
        "quic",
        "proxy_protocol",
        "reuseport",
        "deferred",
        "bind",
        "multipath",
    ];
    let is_right = match text.split_once('=') {
        None => ALONE.contains(&text),
        Some(("backlog" | "fastopen" | "setfib", value)) => values::number(value).is_ok(),
        Some(("rcvbuf" | "sndbuf", value)) => values::size(value).is_ok(),
        Some(("ipv6only", value)) => matches!(value, "on" | "off"),
        Some(("so_keepalive", value)) => matches!(value, "on" | "off") || value.contains(':'),
        Some((name, _)) => name == "accept_filter",
    };
    if is_right {
        return Ok(());
    }
    let name = text.split('=').next().unwrap_or_default();
    Err(match name {
        "backlog" | "fastopen" | "setfib" => format!("{text:?}: write a number"),
        "rcvbuf" | "sndbuf" => format!("{text:?}: write a size, as in {name}=64k"),
        "ipv6only" | "so_keepalive" => format!("{text:?}: write {name}=on or {name}=off"),
        _ => format!(
            "{text:?} is not a parameter of it; write default_server, ssl or another, and ; at its end"
        ),
    })
}

/// What may follow an address in `server` of an upstream.
fn server_parameter(text: &str) -> Result<(), String> {
    let is_right = match text.split_once('=') {
        None => matches!(text, "backup" | "down" | "resolve" | "drain"),
        Some(("weight", value)) => {
            values::number(value).is_ok() && value.contains(|own| own != '0')
        }
        Some(("max_conns" | "max_fails", value)) => values::number(value).is_ok(),
        Some(("fail_timeout" | "slow_start", value)) => values::is_time(value, true),
        Some((name, _)) => matches!(name, "route" | "service"),
    };
    match is_right {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is not a parameter of it; write weight=, max_conns=, max_fails= (numbers), \
             fail_timeout= (a time), backup or down"
        )),
    }
}

/// A name with a star at its beginning or its end, or an expression.
fn server_name(text: &str) -> Result<(), String> {
    if let Some(own) = text.strip_prefix('~') {
        return expression(own);
    }
    let bytes = text.as_bytes();
    let is_wrong = match bytes {
        [b'*', rest @ ..] => !rest.is_empty() && (rest.len() < 2 || rest[0] != b'.'),
        [b'.'] => true,
        _ => false,
    };
    match is_wrong {
        true => Err(format!(
            "{text:?} is not a name; write NAME, *.NAME or .NAME"
        )),
        false => Ok(()),
    }
}

fn network(text: &str) -> Result<(), String> {
    if matches!(text, "all" | "unix:") {
        return Ok(());
    }
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address = address.parse::<IpAddr>().ok();
    let is_right = address.is_some_and(|address| {
        let most = if address.is_ipv4() { 32 } else { 128 };
        bits.is_none_or(|bits| {
            values::number(bits).is_ok() && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
        })
    });
    match is_right {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is neither an address nor a network; write 192.0.2.1, 10.0.0.0/8 or all"
        )),
    }
}
