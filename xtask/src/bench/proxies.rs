//! The reverse proxies that are compared, each in front of the same backend with the same limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::link::Running;
use super::server::{Root, nginx_temporary, sooner};

/// Where proxies listen.
pub const LISTEN: &str = "127.0.0.1:18080";
/// Where the backend listens.
const BACKEND: &str = "127.0.0.1:18090";
/// Jobs inside the backend at once, where a proxy can hold the others.
pub const LIMIT: u32 = 2;
/// Longer than any request waits here, s.
const TIMEOUT_SECONDS: u32 = 600;

/// A proxy and how it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// nginx, which can let everything in.
    NginxAllInside,
    /// nginx with max_conns: what is above the limit is turned away, because it has no queue.
    NginxLimited,
    /// HAProxy with maxconn and its queue; by class where paths tell one.
    Haproxy,
    /// Ours, first come, first served.
    SoonerFcfs,
    /// Ours, shortest expected time first.
    SoonerExpected,
}

impl Proxy {
    /// As it is reported.
    pub fn name(self) -> &'static str {
        match self {
            Self::NginxAllInside => "nginx, all inside",
            Self::NginxLimited => "nginx, max_conns",
            Self::Haproxy => "HAProxy, maxconn",
            Self::SoonerFcfs => "sooner, limit, first come first served",
            Self::SoonerExpected => "sooner, limit, expected time",
        }
    }

    /// Starts it on a core of its own and the generator's; paths below `/fast/` go before those below `/slow/`, where it can.
    pub fn start(self, root: &Root) -> anyhow::Result<Running> {
        let folder = root.scratch();
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]);
        match self {
            Self::NginxAllInside => {
                command.args(["nginx", "-c"]).arg(nginx_config(folder, "")?);
            }
            Self::NginxLimited => {
                let limit = format!(" max_conns={LIMIT}");
                command
                    .args(["nginx", "-c"])
                    .arg(nginx_config(folder, &limit)?);
            }
            Self::Haproxy => {
                command
                    .args(["haproxy", "-q", "-db", "-f"])
                    .arg(haproxy_config(folder)?);
            }
            Self::SoonerFcfs | Self::SoonerExpected => {
                let order = if self == Self::SoonerFcfs {
                    "fcfs"
                } else {
                    "expected"
                };
                command
                    .args([&sooner(), "serve", "--quiet", "--config"])
                    .arg(sooner_config(folder, order)?);
            }
        }
        running(&mut command)
    }
}

/// The backend: its files are in `root`, its core is not the proxy's.
pub fn backend(root: &Root, rate_mbit: u64) -> anyhow::Result<Running> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(std::env::current_exe()?);
    command
        .args(["backend", BACKEND])
        .arg(root.path())
        .arg(rate_mbit.to_string());
    running(&mut command)
}

fn running(command: &mut Command) -> anyhow::Result<Running> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let mut running = Running(child);
    std::thread::sleep(Duration::from_millis(800));
    anyhow::ensure!(running.0.try_wait()?.is_none(), "{command:?} ended at once");
    Ok(running)
}

fn nginx_config(folder: &Path, limit: &str) -> anyhow::Result<PathBuf> {
    let scratch = folder.join("nginx-proxy");
    fs::create_dir_all(&scratch)?;
    let (at, temporary) = (scratch.display(), nginx_temporary(&scratch));
    let text = format!(
        "daemon off;\nworker_processes 1;\nworker_rlimit_nofile 65536;\npid {at}/pid;\nerror_log {at}/error.log crit;\n\
         events {{ worker_connections 16384; }}\nhttp {{\n{temporary}  access_log off;\n  keepalive_requests 100000000;\n  \
         upstream app {{ zone app 64k; server {BACKEND}{limit}; keepalive 1024; }}\n  \
         server {{ listen {LISTEN}; location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; \
         proxy_read_timeout {TIMEOUT_SECONDS}s; proxy_next_upstream off; }} }}\n}}\n"
    );
    write(scratch.join("nginx.conf"), &text)
}

fn haproxy_config(folder: &Path) -> anyhow::Result<PathBuf> {
    let text = format!(
        "global\n  maxconn 4096\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client {TIMEOUT_SECONDS}s\n  \
         timeout server {TIMEOUT_SECONDS}s\n  timeout queue {TIMEOUT_SECONDS}s\n  http-reuse always\n\
         frontend web\n  bind {LISTEN}\n  http-request set-priority-class int(-1) if {{ path_beg /fast/ }}\n  \
         http-request set-priority-class int(1) if {{ path_beg /slow/ }}\n  default_backend app\n\
         backend app\n  server app {BACKEND} maxconn {LIMIT}\n"
    );
    write(folder.join("haproxy.cfg"), &text)
}

fn sooner_config(folder: &Path, order: &str) -> anyhow::Result<PathBuf> {
    let route = |path: &str, class: u8| {
        format!("[[route]]\npath = \"{path}\"\nupstream = \"app\"\nclass = {class}\n")
    };
    let text = format!(
        "listen = [\"{LISTEN}\"]\n\n[[upstream]]\nname = \"app\"\nservers = [\"http://{BACKEND}\"]\nlimit = {LIMIT}\norder = \"{order}\"\n\
         response_seconds = {TIMEOUT_SECONDS}.0\n\n{}{}{}",
        route("/fast/", 1),
        route("/slow/", 5),
        route("/", 3)
    );
    write(folder.join("sooner-proxy.toml"), &text)
}

fn write(path: PathBuf, text: &str) -> anyhow::Result<PathBuf> {
    fs::write(&path, text)?;
    Ok(path)
}
