//! nginx and `sooner serve` on loopback, each with the same files and the same backends.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use super::super::run::Run;
use super::super::servers::die_with_us;
use sooner_testbed::certificate::Certificate;

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What a route leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Http,
    WebSocket,
    Grpc,
}

/// Requests below a path go to a backend.
#[derive(Clone, Copy)]
pub struct Route {
    pub path: &'static str,
    pub port: u16,
    pub kind: Kind,
}

/// What both servers serve.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    pub root: &'a Path,
    pub routes: &'a [Route],
}

/// How client and server speak: in clear text, or over TLS.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Clear,
    Tls,
}

impl Way {
    pub const ALL: [Self; 2] = [Self::Clear, Self::Tls];

    pub fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear text",
            Self::Tls => "TLS",
        }
    }

    /// For names of folders, which nginx wants without spaces.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Tls => "tls",
        }
    }
}

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Nginx,
    Sooner,
}

impl Which {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Sooner => "sooner",
        }
    }
}

/// A response, as the access log has it.
#[derive(Debug, Deserialize)]
pub struct Answered {
    pub method: Option<String>,
    pub target: Option<String>,
    pub status: u16,
}

/// A server that is ended when dropped.
pub struct Server {
    pub which: Which,
    /// HTTP/1.1 in clear text.
    pub clear: u16,
    /// HTTP/2 in clear text.
    pub clear2: u16,
    pub tls: u16,
    folder: PathBuf,
    child: Child,
}

impl Server {
    /// Starts it with what it writes in `folder`, which is made.
    pub fn start(run: &Run, which: Which, setup: &Setup, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let [clear, clear2, tls] = free_ports()?;
        let clear2 = if which == Which::Sooner {
            clear
        } else {
            clear2
        };
        let certificate = Certificate::of_authority(&run.folder, &["localhost", "127.0.0.1"])?;
        let mut command = match which {
            Which::Nginx => {
                let config = folder.join("nginx.conf");
                let ports = [clear, clear2, tls];
                fs::write(&config, nginx_config(setup, folder, &certificate, ports))?;
                let mut command = die_with_us();
                command
                    .arg("nginx")
                    .arg("-c")
                    .arg(config)
                    .arg("-p")
                    .arg(folder);
                command
            }
            Which::Sooner => {
                let config = folder.join("sooner.toml");
                fs::write(
                    &config,
                    sooner_config(setup, folder, &certificate, [clear, tls]),
                )?;
                let mut command = die_with_us();
                command
                    .arg(&run.sooner)
                    .args(["serve", "--config"])
                    .arg(config);
                command
            }
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("said"))?)
            .spawn()
            .with_context(|| format!("cannot start {}", which.name()))?;
        let server = Self {
            which,
            clear,
            clear2,
            tls,
            folder: folder.to_owned(),
            child,
        };
        server.await_start()?;
        Ok(server)
    }

    fn await_start(&self) -> Result<()> {
        let begin = Instant::now();
        for port in [self.clear, self.clear2, self.tls] {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            while TcpStream::connect(address).is_err() {
                if begin.elapsed() > PATIENCE {
                    let said = fs::read_to_string(self.folder.join("said"))?;
                    bail!("{} did not start: {said}", self.which.name());
                }
                sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }

    /// Where `path` is found.
    pub fn url(&self, way: Way, path: &str) -> String {
        match way {
            Way::Clear => format!("http://127.0.0.1:{}{path}", self.clear),
            Way::Tls => format!("https://127.0.0.1:{}{path}", self.tls),
        }
    }

    /// Ends it, and reads what it answered.
    pub fn stop(mut self) -> Result<Vec<Answered>> {
        self.end();
        let log = fs::read_to_string(self.folder.join("access.log")).unwrap_or_default();
        let lines = log.lines().map(|line| {
            serde_json::from_str(line).with_context(|| format!("{}: {line}", self.which.name()))
        });
        lines.collect()
    }

    /// Whether it has ended by itself.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn end(&mut self) {
        end(&mut self.child);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends a process: asked first, and killed when it does not listen.
pub fn end(child: &mut Child) {
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Ok(Some(_)) = child.try_wait() {
            return;
        }
        sleep(LOOK_EVERY);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(free_ports()?[0])
}

fn free_ports() -> Result<[u16; 3]> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = [bind()?, bind()?, bind()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn sooner_config(setup: &Setup, at: &Path, made: &Certificate, ports: [u16; 2]) -> String {
    let [clear, tls] = ports;
    let mut text = format!(
        "listen = [\"127.0.0.1:{clear}\"]\nlisten_tls = [\"127.0.0.1:{tls}\"]\n\
         [limits]\ngrace_seconds = 1\n[log]\naccess = \"{}\"\n\
         [[tls]]\ncertificate = \"{}\"\nkey = \"{}\"\n[[site]]\nroot = \"{}\"\nlisting = \"html\"\n",
        at.join("access.log").display(),
        made.certificate.display(),
        made.key.display(),
        setup.root.display(),
    );
    for Route { path, port, kind } in setup.routes {
        let scheme = if *kind == Kind::Grpc { "h2c" } else { "http" };
        text += &format!(
            "[[upstream]]\nname = \"{path}\"\nservers = [\"{scheme}://127.0.0.1:{port}\"]\n\
             [[route]]\npath = \"{path}\"\nupstream = \"{path}\"\n"
        );
    }
    text
}

/// As its manual has it for such backends: nothing is buffered, and WebSockets may be opened.
fn nginx_config(setup: &Setup, at: &Path, made: &Certificate, ports: [u16; 3]) -> String {
    let [clear, clear2, tls] = ports;
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", at.display()))
        .concat();
    let mut locations = String::new();
    for Route { path, port, kind } in setup.routes {
        locations += &match kind {
            Kind::Grpc => format!("location {path} {{ grpc_pass grpc://127.0.0.1:{port}; }}\n"),
            Kind::Http | Kind::WebSocket => format!(
                "location {path} {{ proxy_pass http://127.0.0.1:{port}; proxy_http_version 1.1; \
                 proxy_buffering off; proxy_request_buffering off; proxy_set_header Host $http_host; \
                 proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; \
                 proxy_read_timeout 3600s; }}\n"
            ),
        };
    }
    let server = format!("root {}; autoindex on; {locations}", setup.root.display());
    let user = if is_root() { "user root;" } else { "" };
    format!(
        "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error.log; {user}\n\
         worker_rlimit_nofile 8192; events {{ worker_connections 4096; }}\nhttp {{\n{temporary}\
         include /etc/nginx/mime.types; default_type application/octet-stream;\n\
         log_format as_ours escape=json '{{\"method\":\"$request_method\",\"target\":\"$request_uri\",\"status\":$status}}';\n\
         access_log {at}/access.log as_ours; client_max_body_size 1g; sendfile on; tcp_nopush on;\n\
         map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}\n\
         server {{ listen 127.0.0.1:{clear}; {server} }}\n\
         server {{ listen 127.0.0.1:{clear2} http2; {server} }}\n\
         server {{ listen 127.0.0.1:{tls} ssl http2; ssl_protocols TLSv1.2 TLSv1.3;\n\
         ssl_certificate {}; ssl_certificate_key {}; {server} }}\n}}\n",
        made.certificate.display(),
        made.key.display(),
        at = at.display(),
    )
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
