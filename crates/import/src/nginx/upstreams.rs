//! `upstream` blocks and `proxy_pass`: which servers stand behind a place.

use super::listen;
use super::scope::Scope;
use super::tree::Directive;
use super::values::{self, unbraced};
use sooner_web::proxy::Endpoint;
use std::collections::BTreeMap;

/// What `upstream.host` calls the name that a request is for, without its port.
pub const REQUESTED: &str = "$host";
/// Port of the servers in an `upstream` block, whatever is spoken to them.
const BLOCK_PORT: u16 = 80;
/// Port of PHP-FPM.
const SCRIPTS_PORT: u16 = 9000;

/// What goes to servers behind this one.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// What routes call it.
    pub name: String,
    /// Its servers.
    pub servers: Vec<String>,
    /// The `Host` that they get.
    pub host: Option<String>,
    /// The headers that they get in place of what Sooner would send.
    pub headers: BTreeMap<String, String>,
    /// Jobs inside each.
    pub limit: Option<u64>,
    /// Failures in a row that put one out.
    pub fails: Option<u64>,
    /// Time to connect, s.
    pub connect_seconds: Option<f64>,
    /// Certificates that theirs must lead to.
    pub ca: Option<String>,
    /// The scripts that they run.
    pub scripts: Option<Scripts>,
}

/// The scripts of servers over FastCGI.
#[derive(Clone, Debug, PartialEq)]
pub struct Scripts {
    /// The directory that they are below.
    pub root: String,
    /// The one that stands for its directory.
    pub index: String,
    /// The one for paths that lead to no file.
    pub fallback: Option<String>,
}

/// A place that requests are passed to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The servers.
    pub upstream: Upstream,
    /// What stands in place of the location's path.
    pub uri: Option<String>,
    /// What is left out, and why.
    pub left_out: Vec<(Directive, &'static str)>,
}

/// The `upstream` blocks by name.
pub type Blocks<'a> = BTreeMap<&'a str, &'a Directive>;

/// Where a `proxy_pass` or `grpc_pass` leads; the error says why it cannot be said.
pub fn target(pass: &Directive, scope: &Scope<'_>, blocks: &Blocks<'_>) -> Result<Target, String> {
    let url = scope.expanded(pass.first());
    let schemes = [
        ("http://", "http"),
        ("https://", "https"),
        ("grpc://", "h2c"),
        ("grpcs://", "https"),
    ];
    let found = schemes.iter().find_map(|(begin, own)| {
        let head = url.get(..begin.len())?;
        head.eq_ignore_ascii_case(begin)
            .then(|| (&url[begin.len()..], *own))
    });
    let (rest, scheme) = match found {
        Some(found) => found,
        None if pass.name == "grpc_pass" => (url.as_str(), "h2c"),
        None => return Err("an upstream begins with http:// or https://".into()),
    };
    if rest.contains('$') {
        return Err("Sooner has no variables; name the servers".into());
    }
    let (place, uri) = split(rest);
    let mut left_out = Vec::new();
    let (servers, name, block) = match blocks.get(place) {
        Some(block) => (
            servers(block, scheme, &mut left_out)?,
            place.to_owned(),
            Some(*block),
        ),
        None => {
            let port = if scheme == "https" { 443 } else { 80 };
            (vec![server(place, scheme, port)?], name_of(place), None)
        }
    };
    let host = host(scope, place).unwrap_or_else(|(set, why)| {
        left_out.push((set.clone(), why));
        None
    });
    let mut upstream = Upstream {
        name,
        servers,
        host,
        headers: BTreeMap::new(),
        limit: None,
        fails: None,
        connect_seconds: seconds(scope, "proxy_connect_timeout"),
        ca: None,
        scripts: None,
    };
    if let Some(block) = block {
        bounds(&mut upstream, block);
        left_out.extend(remarks(block));
    }
    Ok(Target {
        upstream,
        uri: uri.map(str::to_owned),
        left_out,
    })
}

/// The servers of a `fastcgi_pass`; the error says why they cannot be said.
pub fn of_scripts(
    place: &str,
    blocks: &Blocks<'_>,
    left_out: &mut Vec<(Directive, &'static str)>,
) -> Result<Upstream, String> {
    let block = blocks.get(place).copied();
    let mut upstream = Upstream {
        name: block.map_or("php", |_| place).to_owned(),
        servers: match block {
            Some(block) => servers(block, "fastcgi", left_out)?,
            None => vec![server(place, "fastcgi", SCRIPTS_PORT)?],
        },
        host: None,
        headers: BTreeMap::new(),
        limit: None,
        fails: None,
        connect_seconds: None,
        ca: None,
        scripts: None,
    };
    if let Some(block) = block {
        bounds(&mut upstream, block);
        left_out.extend(remarks(block));
    }
    Ok(upstream)
}

/// Host with port or socket, and the path behind.
fn split(rest: &str) -> (&str, Option<&str>) {
    if let Some(socket) = rest.strip_prefix("unix:") {
        return match socket.split_once(':') {
            Some((path, uri)) => (
                &rest[.."unix:".len() + path.len()],
                Some(uri).filter(|uri| !uri.is_empty()),
            ),
            None => (rest, None),
        };
    }
    match rest.find('/') {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (rest, None),
    }
}

/// A server, with `port` where its place has none.
fn server(place: &str, scheme: &str, port: u16) -> Result<String, String> {
    if let Some(path) = place.strip_prefix("unix:") {
        return match (scheme, path.starts_with('/')) {
            (_, false) => Err("a socket has an absolute path".into()),
            ("http", _) => Ok(format!("unix:{path}")),
            ("h2c" | "fastcgi", _) => Ok(format!("{scheme}+unix:{path}")),
            _ => Err("a socket is spoken to in clear text".into()),
        };
    }
    let bare = place.rsplit_once(']').map_or(place, |(_, behind)| behind);
    let server = if bare.contains(':') {
        format!("{scheme}://{place}")
    } else {
        format!("{scheme}://{place}:{port}")
    };
    // What nginx would look up as a name may be none that the server takes.
    match Endpoint::parse(&server) {
        Ok(_) => Ok(server),
        Err(_) => Err(format!("{place:?} is not a host with a port")),
    }
}

/// A name of letters and digits.
fn name_of(place: &str) -> String {
    let words = place.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

fn servers(
    block: &Directive,
    scheme: &str,
    left_out: &mut Vec<(Directive, &'static str)>,
) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for own in block.inside().iter().filter(|own| own.name == "server") {
        let has = |flag: &str| own.args.iter().any(|arg| arg == flag);
        if has("down") {
            left_out.push((own.clone(), "it is out"));
            continue;
        }
        if has("backup") {
            left_out.push((own.clone(), "all servers of an upstream are asked alike"));
            continue;
        }
        if own
            .args
            .iter()
            .any(|arg| arg.starts_with("weight=") && arg != "weight=1")
        {
            let why = "the server with the fewest requests inside is asked, whatever its weight";
            left_out.push((own.clone(), why));
        }
        let server = server(own.first(), scheme, BLOCK_PORT)?;
        if !all.contains(&server) {
            all.push(server);
        }
    }
    if all.is_empty() {
        return Err("this upstream has no server".into());
    }
    Ok(all)
}

/// What nginx sends as `Host`: the name in `proxy_pass`, unless it is set. The error says why that
/// is not sent.
fn host<'a>(
    scope: &Scope<'a>,
    place: &str,
) -> Result<Option<String>, (&'a Directive, &'static str)> {
    let own = if place.starts_with("unix:") {
        "localhost"
    } else {
        place
    };
    let set = scope.all(&["proxy_set_header", "grpc_set_header"]);
    let set = set
        .iter()
        .find(|own| own.first().eq_ignore_ascii_case("host"));
    let Some(set) = set else {
        return Ok(Some(own.to_owned()));
    };
    let value = unbraced(&scope.expanded(set.args.get(1).map_or("", String::as_str)));
    let is_host = |text: &String| {
        !text.is_empty()
            && sooner_http::host::parse(text.as_bytes()).is_some()
            && !text.contains('@')
    };
    let error = |why| Err((*set, why));
    match value.as_str() {
        "$proxy_host" => Ok(Some(own.to_owned())),
        "$http_host" => Ok(None),
        "$host" => Ok(Some(REQUESTED.to_owned())),
        "$server_name" => match listen::first_name(scope).filter(is_host) {
            Some(name) => Ok(Some(name)),
            None => error("the server has no such name; the client's own Host is passed on"),
        },
        "$host:$server_port" | "$host:$proxy_port" | "$http_host:$server_port" => {
            error("the client's own Host is passed on, with its port if it names one")
        }
        value if value.contains('$') => {
            error("Sooner has no variables; the client's own Host is passed on")
        }
        value if is_host(&value.to_owned()) => Ok(Some(value.to_owned())),
        _ => error("this is no host; the client's own is passed on"),
    }
}

fn bounds(upstream: &mut Upstream, block: &Directive) {
    let all = |name: &str| {
        let is_out = |own: &Directive| own.args.iter().any(|arg| arg == "down" || arg == "backup");
        let servers = block
            .inside()
            .iter()
            .filter(|own| own.name == "server" && !is_out(own));
        let values: Vec<Option<u64>> = servers
            .map(|own| {
                let value = own.args.iter().find_map(|arg| arg.strip_prefix(name));
                value.and_then(|value| value.parse().ok())
            })
            .collect();
        let first = values.first().copied().flatten();
        first.filter(|_| values.iter().all(|value| *value == first))
    };
    upstream.limit = all("max_conns=").filter(|limit| (1..=65_536).contains(limit));
    upstream.fails = all("max_fails=").filter(|fails| (1..=1000).contains(fails));
}

fn remarks(block: &Directive) -> Vec<(Directive, &'static str)> {
    let mut all = Vec::new();
    for own in block.inside() {
        let why = match own.name.as_str() {
            "ip_hash" | "hash" | "sticky" => "a client has no server of its own here",
            "random" => "the server with the fewest requests inside is asked",
            "server" if own.args.iter().any(|arg| arg == "max_fails=0") => {
                "a server that fails is always put out for a while"
            }
            "server" | "least_conn" | "zone" | "queue" => continue,
            name if name.starts_with("keepalive") => continue,
            _ => "an upstream has no equivalent",
        };
        all.push((own.clone(), why));
    }
    all
}

/// A time that is said, within what Sooner takes.
pub fn seconds(scope: &Scope<'_>, name: &str) -> Option<f64> {
    let seconds = values::seconds(scope.one(name)?.first())?;
    Some(seconds.clamp(0.001, 86_400.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_apart() {
        assert_eq!(split("a:80/x"), ("a:80", Some("/x")));
        assert_eq!(split("a"), ("a", None));
        assert_eq!(
            split("unix:/run/a.sock:/x"),
            ("unix:/run/a.sock", Some("/x"))
        );
        assert_eq!(split("unix:/run/a.sock"), ("unix:/run/a.sock", None));
        let of = |place, scheme| server(place, scheme, 443).unwrap();
        assert_eq!(of("[::1]", "https"), "https://[::1]:443");
        assert_eq!(of("[::1]:1", "https"), "https://[::1]:1");
        assert_eq!(of("a", "http"), "http://a:443");
        assert_eq!(of("unix:/p", "fastcgi"), "fastcgi+unix:/p");
        let scripts = of_scripts("p", &Blocks::new(), &mut Vec::new()).unwrap();
        assert_eq!(scripts.servers, ["fastcgi://p:9000"]);
        for place in [
            "a b",
            "127.0.(.1:3001",
            "a:0",
            "a:65536",
            "[::1",
            "a@b",
            "",
            "a:",
        ] {
            assert!(server(place, "http", 80).is_err(), "{place}");
        }
        assert_eq!(name_of("127.0.0.1:3000"), "127-0-0-1-3000");
    }
}
