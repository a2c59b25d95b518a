//! The proxy's tables of the configuration file: `[proxy]`, `[[upstream]]` and `[[route]]`.

use super::fastcgi::FastCgiTable;
use crate::config::Misconfigured;
use serde::Deserialize;
use sooner_config::Limit;
use sooner_config::classes::OrderName;
use sooner_config::quantity;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

/// The longest time that can be set, s (a day): what is longer is a slip of the finger.
const SECONDS_MAX: f64 = 86_400.0;

/// `[proxy]`: what holds for all upstreams.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxyTable {
    /// Networks of which `X-Forwarded-*` and `Forwarded` are believed and added to; those of others
    /// are replaced.
    pub trusted: Vec<Spanned<String>>,
    /// Bytes of one response that are read ahead of its client, so that its backend is free early.
    #[serde(deserialize_with = "quantity::bytes")]
    pub response_buffer_bytes: usize,
    /// Bytes of all responses together that are read ahead; beyond it one piece each. As many of
    /// requests that are looked at, or that come in chunks for a script.
    #[serde(deserialize_with = "quantity::bytes")]
    pub buffer_bytes: usize,
    /// Bytes of a request's body that are looked at where a class names a field of it.
    #[serde(deserialize_with = "quantity::bytes")]
    pub look_bytes: usize,
}

impl Default for ProxyTable {
    fn default() -> Self {
        Self {
            trusted: Vec::new(),
            response_buffer_bytes: 256 << 10,
            buffer_bytes: 64 << 20,
            look_bytes: 256 << 10,
        }
    }
}

/// `[[upstream]]`: servers that answer the same requests.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamTable {
    /// The name routes use.
    pub name: Spanned<String>,
    /// `http://HOST:PORT`, `https://...`, `h2c://...` (HTTP/2 in clear text), `unix:/PATH`,
    /// `h2c+unix:/PATH`, `fastcgi://HOST:PORT`, `fastcgi+unix:/PATH`.
    pub servers: Vec<Spanned<String>>,
    /// Jobs inside each server at once, or `"auto"`: as many as are found to be enough; the others
    /// wait. Without it all go in.
    #[serde(default)]
    pub limit: Option<Spanned<Limit>>,
    /// The most that are tried at each server where the number is found. 256: a bound of the
    /// search, to be raised for a server that does more at once.
    #[serde(default)]
    pub limit_max: Option<Spanned<NonZeroUsize>>,
    /// The throughput that may be lost, of the most that can be had, where the number is found.
    /// 0.05.
    #[serde(default)]
    pub throughput_loss: Option<Spanned<f64>>,
    /// Jobs that may wait; those beyond it get status 503. Without it all wait that the server has
    /// connections for.
    #[serde(default)]
    pub waiting_max: Option<Spanned<usize>>,
    /// Who goes in first within a class: what is expected to be short, the default, or who came
    /// first.
    #[serde(default)]
    pub order: Option<Spanned<OrderName>>,
    /// What makes two of its requests alike, so that the time that one took tells how long the
    /// other will take: `"method"`, `"route"`, `"path"`, which are the default, `"query"`,
    /// `"query:NAME"`, `"host"`, `"header:NAME"`, `"body:FIELD"`.
    #[serde(default)]
    pub kind: Option<Vec<Spanned<String>>>,
    /// What tells how large the work of a request is: the `length` of its body, or a number in it,
    /// `body:FIELD`, or in its query, `query:NAME`.
    #[serde(default)]
    pub amount: Option<Spanned<String>>,
    /// Who is charged for what requests take: `client`, `header:NAME`, `cookie:NAME` or
    /// `body:FIELD`. Of one class goes first who had the least of late.
    #[serde(default)]
    pub share_by: Option<Spanned<String>>,
    /// Who is told how long a request waited here: `server`, in fields of its head, `client`, in
    /// `Server-Timing`, `stream`, in comments on event streams that a client waits for.
    #[serde(default)]
    pub tell_wait: Option<Vec<Spanned<String>>>,
    /// Whether nothing is held back, and it is only found out what would be.
    #[serde(default)]
    pub observe: Option<Spanned<bool>>,
    /// How long a job may wait to go in, s. Without it as long as its client does.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub queue_seconds: Option<Spanned<f64>>,
    /// How long connecting may take, TLS included, s.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub connect_seconds: Option<Spanned<f64>>,
    /// How long a server may take to begin its answer once it has the request, s.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub response_seconds: Option<Spanned<f64>>,
    /// How long a server may pause within its answer, s.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub idle_seconds: Option<Spanned<f64>>,
    /// How long a connection without a job is kept for the next one, s.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub keep_seconds: Option<Spanned<f64>>,
    /// How often a request that may be repeated is tried again.
    #[serde(default)]
    pub retries: Option<u32>,
    /// Failures in a row that put a server out.
    #[serde(default)]
    pub fails: Option<Spanned<u32>>,
    /// What to ask the servers regularly.
    #[serde(default)]
    pub health: Option<HealthTable>,
    /// The `Host` a server gets: without it the client's, `"$host"` for the name in it without the
    /// port, `"upstream"` for the server's own name, else this text.
    #[serde(default)]
    pub host: Option<Spanned<String>>,
    /// Headers that each request has, in place of what the client sent or Sooner would send; an
    /// empty value takes one away.
    #[serde(default)]
    pub headers: Option<BTreeMap<String, Spanned<String>>>,
    /// Certificates (PEM) a server's must lead to; without it the system's.
    #[serde(default)]
    pub ca: Option<Spanned<PathBuf>>,
    /// Where the scripts of servers over FastCGI are.
    #[serde(default)]
    pub fastcgi: Option<FastCgiTable>,
}

/// `health = {...}` of an upstream.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthTable {
    /// The path to get; any status from 200 to 399 is well.
    pub path: Spanned<String>,
    /// The time from one question to the next, and for each answer, s.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub seconds: Option<Spanned<f64>>,
    /// Bad answers in a row that put a server out.
    #[serde(default)]
    pub fails: Option<Spanned<u32>>,
    /// Good answers in a row that take it back in.
    #[serde(default)]
    pub passes: Option<Spanned<u32>>,
}

/// `[[route]]`: which requests go to which upstream.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteTable {
    /// The beginning of the paths; ends where a path's segment ends.
    pub path: Spanned<String>,
    /// Names, or `*.NAME`; without any all.
    #[serde(default)]
    pub hosts: Vec<Spanned<String>>,
    /// The upstream's name.
    pub upstream: Spanned<String>,
    /// The class of its requests, 0 to 7; lower goes first, 3 is the middle.
    #[serde(default)]
    pub class: Option<Spanned<u8>>,
    /// Whether the upstream gets the path without the route's.
    #[serde(default)]
    pub strip_prefix: bool,
    /// Whether a file of the site goes before the upstream, where there is one.
    #[serde(default)]
    pub files_first: bool,
    /// Whether its responses are compressed on their way; default: what the site says.
    #[serde(default)]
    pub compress: Option<bool>,
    /// Protocols a client may switch to through the proxy.
    #[serde(default = "websocket_alone")]
    pub upgrade: Vec<Spanned<String>>,
    /// In place of the upstream's, s.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub queue_seconds: Option<Spanned<f64>>,
    /// In place of the upstream's, s.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub response_seconds: Option<Spanned<f64>>,
    /// In place of the upstream's, s.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub idle_seconds: Option<Spanned<f64>>,
    /// How long a switched connection may be silent in both directions, s.
    #[serde(default, deserialize_with = "quantity::some_seconds")]
    pub tunnel_seconds: Option<Spanned<f64>>,
}

fn websocket_alone() -> Vec<Spanned<String>> {
    vec![Spanned::new(0..0, "websocket".into())]
}

/// The duration `value` asks for, or `default_seconds`.
pub(super) fn duration(
    value: &Option<Spanned<f64>>,
    key: &str,
    default_seconds: f64,
) -> Result<Duration, Misconfigured> {
    Ok(some_duration(value, key)?.unwrap_or(Duration::from_secs_f64(default_seconds)))
}

/// The duration `value` asks for, if it does.
pub(super) fn some_duration(
    value: &Option<Spanned<f64>>,
    key: &str,
) -> Result<Option<Duration>, Misconfigured> {
    let Some(value) = value else { return Ok(None) };
    let seconds = *value.get_ref();
    if !(0.001..=SECONDS_MAX).contains(&seconds) {
        return Err(Misconfigured::at(
            value,
            key,
            format!("{seconds} s is out of range; write 0.001 to {SECONDS_MAX} seconds"),
        ));
    }
    Ok(Some(Duration::from_secs_f64(seconds)))
}

/// A number that is at least 1, or `default`.
pub(super) fn at_least_one(
    value: &Option<Spanned<u32>>,
    key: &str,
    default: u32,
) -> Result<u32, Misconfigured> {
    match value {
        Some(value) if *value.get_ref() == 0 => Err(Misconfigured::at(
            value,
            key,
            "0 is out of range; write 1 or more",
        )),
        Some(value) => Ok(*value.get_ref()),
        None => Ok(default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_manual_is_read() {
        let upstream: UpstreamTable = toml::from_str(
            r#"
            name = "app"
            servers = ["http://127.0.0.1:3000", "unix:/run/app.sock"]
            limit = 8
            limit_max = 64
            throughput_loss = 0.1
            waiting_max = 1000
            order = "fcfs"
            share_by = "header:authorization"
            tell_wait = ["server", "client", "stream"]
            kind = ["method", "path", "query", "header:x-model"]
            amount = "body:max_tokens"
            queue_seconds = 30
            connect_seconds = 0.5
            response_seconds = 60
            idle_seconds = 60
            keep_seconds = 30
            retries = 2
            fails = 3
            health = { path = "/health", seconds = 5, fails = 2, passes = 1 }
            host = "upstream"
            headers = { X-Forwarded-Proto = "https", Accept-Encoding = "" }
            ca = "ca.pem"
            fastcgi = { root = "/srv/www", index = "index.php", fallback = "/index.php" }
            "#,
        )
        .unwrap();
        assert_eq!(upstream.order.unwrap().into_inner(), OrderName::Fifo);
        assert_eq!(
            duration(&upstream.connect_seconds, "connect_seconds", 5.0).unwrap(),
            Duration::from_millis(500)
        );
        let route: RouteTable = toml::from_str(
            r#"
            path = "/api"
            hosts = ["example.org", "*.example.org"]
            upstream = "app"
            class = 2
            strip_prefix = true
            files_first = true
            compress = false
            upgrade = []
            queue_seconds = 1
            response_seconds = 1
            idle_seconds = 1
            tunnel_seconds = 1
            "#,
        )
        .unwrap();
        assert!(route.upgrade.is_empty());
        assert!(toml::from_str::<RouteTable>("path = '/'\nupstream = 'a'\npaht = 1").is_err());
    }

    #[test]
    fn a_time_that_makes_no_sense_is_refused() {
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            let value = Some(Spanned::new(3..4, seconds));
            let error = duration(&value, "idle_seconds", 1.0).unwrap_err();
            assert_eq!(error.span, Some(3..4));
        }
        assert!(at_least_one(&Some(Spanned::new(1..2, 0)), "fails", 3).is_err());
    }
}
