//! nginx: one worker, as for one core; files by sendfile, full packets, descriptors kept open, a
//! buffered access log.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::process::Command;

use super::{PORT, Setting, TLS_PORT, program};
use crate::hosts::{Hosts, SERVER_ADDRESS};
use sooner_testbed::nginx;

/// Its names.
pub const PROGRAMS: [&str; 1] = ["nginx"];

/// How the backend of a proxying one is called in a name.
pub fn speed(is_slow: bool) -> &'static str {
    if is_slow { "slow" } else { "fast" }
}

/// The configuration; with a limit, more requests at a time than that get status 503
/// (ngx_http_limit_conn_module).
pub fn config(setting: &Setting<'_>, limit_conn: Option<NonZeroU32>) -> String {
    // All requests have the key, which must not be empty.
    let admission = limit_conn.map_or(String::new(), |count| {
        format!(
            "  limit_conn_zone $server_port zone=all:1m;\n  limit_conn all {count};\n  limit_conn_log_level info;\n"
        )
    });
    let root = format!("root {};", setting.root.display());
    with_server(setting, &admission, &root)
}

/// The same before another one that has the files, over a socket beside it: with nginx's own
/// defaults for what it keeps of an answer.
pub fn proxy_config(setting: &Setting<'_>, is_slow: bool) -> String {
    let (at, root) = (setting.folder.display(), setting.root.display());
    let pace = if is_slow { " limit_rate 500k;" } else { "" };
    let backend = format!(
        "  upstream backend {{ server unix:{at}/backend; keepalive 64; }}
  server {{ listen unix:{at}/backend backlog=4096; root {root};{pace} access_log off; }}
"
    );
    let front = "location / { proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection \"\"; }";
    with_server(setting, &backend, front)
}

/// What stands before the server, and where that has its answers from.
fn with_server(setting: &Setting<'_>, before: &str, answers: &str) -> String {
    let at = setting.folder.display();
    let backlog = setting.options.backlog;
    let keep_alive = if setting.options.keep_alive {
        "65s"
    } else {
        "0"
    };
    let tls = setting.options.tls.as_ref().map_or(String::new(), |tls| {
        let (certificate, key) = (tls.certificate.display(), tls.key.display());
        let http2 = if setting.options.http2 { " http2" } else { "" };
        format!(
            "\n    listen {SERVER_ADDRESS}:{TLS_PORT} ssl{http2} backlog={backlog};\n    ssl_certificate {certificate};\n    \
             ssl_certificate_key {key};\n    ssl_protocols TLSv1.2 TLSv1.3;\n "
        )
    });
    let http = format!(
        "{before}  access_log {at}/access.log combined buffer=64k flush=1s;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=10000 inactive=60s;
  open_file_cache_valid 60s;
  keepalive_timeout {keep_alive};
  keepalive_requests 100000000;
  send_timeout 300s;
  types {{ text/html html; text/css css; image/bmp bmp; }}
  server {{ listen {SERVER_ADDRESS}:{PORT} backlog={backlog}; {answers}{tls} }}
"
    );
    nginx::config(&setting.folder, 16384, &http)
}

/// The command that runs it in the foreground.
pub fn command(hosts: &Hosts, setting: &Setting<'_>, config: &str) -> io::Result<Command> {
    fs::write(setting.folder.join("nginx.conf"), config)?;
    let mut command = hosts.on_server(program::find(&PROGRAMS).unwrap_or(PROGRAMS[0].into()));
    nginx::tell(&mut command, &setting.folder);
    Ok(command)
}
