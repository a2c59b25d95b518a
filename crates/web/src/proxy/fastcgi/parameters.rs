//! What a script is told of its request: the names of CGI (RFC 3875), as nginx's `fastcgi_params`
//! has them.

use super::scripts::Script;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use sooner_http::fastcgi::Parameters;
use sooner_http::forwarding::request::Outgoing;
use sooner_http::forwarding::routes::host_name;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where a request comes from, and where it came in.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The client, as a trusted proxy names it.
    pub client: IpAddr,
    /// The address of the connection that it came on.
    pub remote: SocketAddr,
    /// Where it came in.
    pub local: SocketAddr,
    /// `http` or `https`.
    pub scheme: &'static str,
}

/// The name of a user that was let in by a password: an extension of requests.
#[derive(Clone, Debug)]
pub struct User(pub Box<[u8]>);

/// The parameters of a request but for the length of its body and the fields of its head.
pub fn of_request(
    parts: &Parts,
    outgoing: &Outgoing,
    script: &Script,
    root: &Path,
    origin: &Origin,
) -> Parameters {
    let mut all = of_script(script, root);
    let mut put = |name: &str, value: &[u8]| all.push((name.into(), value.to_vec()));
    let headers = &outgoing.headers;
    let text = |value: Option<&HeaderValue>| value.map_or(Vec::new(), |it| it.as_bytes().to_vec());
    put("REQUEST_METHOD", parts.method.as_str().as_bytes());
    put(
        "QUERY_STRING",
        parts.uri.query().unwrap_or_default().as_bytes(),
    );
    put("CONTENT_TYPE", &text(headers.get(CONTENT_TYPE)));
    put("REQUEST_URI", outgoing.target.as_str().as_bytes());
    put("DOCUMENT_URI", &script.name);
    put("SERVER_PROTOCOL", format!("{:?}", parts.version).as_bytes());
    put("REQUEST_SCHEME", origin.scheme.as_bytes());
    if origin.scheme == "https" {
        put("HTTPS", b"on");
    }
    put(
        "REMOTE_ADDR",
        origin.client.to_canonical().to_string().as_bytes(),
    );
    if origin.client == origin.remote.ip() {
        put("REMOTE_PORT", origin.remote.port().to_string().as_bytes());
    }
    if let Some(User(user)) = parts.extensions.get() {
        put("REMOTE_USER", user);
        put("AUTH_TYPE", b"Basic");
    }
    let ip = origin.local.ip().to_canonical();
    push_server(
        outgoing.host.as_ref(),
        SocketAddr::new(ip, origin.local.port()),
        &mut all,
    );
    all
}

/// The parameters of a request that asks how a server is, in the name of `host` if that is fixed.
/// It comes in nowhere: it is told of the address that requests of this machine to itself have.
pub fn of_probe(path: &str, root: &Path, host: Option<&HeaderValue>) -> Parameters {
    let script = Script {
        name: path.into(),
        info: Vec::new(),
    };
    let mut all = of_script(&script, root);
    for (name, value) in [
        ("REQUEST_METHOD", "GET"),
        ("REQUEST_URI", path),
        ("DOCUMENT_URI", path),
        ("QUERY_STRING", ""),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_SCHEME", "http"),
        ("REMOTE_ADDR", "127.0.0.1"),
    ] {
        all.push((name.into(), value.into()));
    }
    push_server(host, (Ipv4Addr::LOCALHOST, 80).into(), &mut all);
    all
}

/// Who is asked for at which address; scripts rely on a name and a port (RFC 3875, 4.1.14 and
/// 4.1.15), and where no host is named the address stands for it.
fn push_server(host: Option<&HeaderValue>, local: SocketAddr, all: &mut Parameters) {
    let host = host.and_then(|host| host.to_str().ok());
    let host = host.filter(|host| !host.is_empty());
    let name = match (host, local.ip()) {
        (Some(host), _) => host_name(host).to_owned(),
        (None, IpAddr::V6(ip)) => format!("[{ip}]"),
        (None, ip) => ip.to_string(),
    };
    let mut put = |name: &str, value: String| all.push((name.into(), value.into()));
    put("SERVER_ADDR", local.ip().to_string());
    put("SERVER_PORT", local.port().to_string());
    put("SERVER_NAME", name);
    if let Some(host) = host {
        put("HTTP_HOST", host.to_owned());
    }
}

fn of_script(script: &Script, root: &Path) -> Parameters {
    let root = root.as_os_str().as_bytes();
    [
        ("GATEWAY_INTERFACE", b"CGI/1.1".to_vec()),
        ("SERVER_SOFTWARE", b"sooner".to_vec()),
        // PHP that was built to ask for it runs no script without.
        ("REDIRECT_STATUS", b"200".to_vec()),
        ("DOCUMENT_ROOT", root.to_vec()),
        ("SCRIPT_FILENAME", [root, &script.name[..]].concat()),
        ("SCRIPT_NAME", script.name.clone()),
        ("PATH_INFO", script.info.clone()),
    ]
    .map(|(name, value)| (name.as_bytes().to_vec(), value))
    .to_vec()
}
