//! A server alone on one core and its clients on the other, by loopback: what a request costs the
//! server or the generator in processor time, and what a connection that waits costs the server in
//! memory.

use super::{Kind, figures, keys_of};
use crate::counters::processes::usage;
use crate::measure::bench::Bench;
use crate::measure::{Item, Measure, Record, kind::Keys};
use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use sooner_testbed::certificate::Certificate;
use sooner_testbed::{OwnedChild, nginx, port};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The server's core.
pub const SERVER_CORE: &str = "0";
/// Its clients' core.
pub const CLIENT_CORE: &str = "1";
const CONNECTIONS: &str = "32";
const START_WAIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// What a server gets to settle when its clients wait.
const SETTLED: Duration = Duration::from_secs(2);
/// A file of the smallest size that is measured.
const SMALL: &str = "1k";

/// A way: a server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    peer: Peer,
    /// Whether a response of nginx waits to fill its packets.
    #[serde(default)]
    tcp_nopush: bool,
    /// More flags of `sooner serve`.
    #[serde(default)]
    flags: Vec<String>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Peer {
    Nginx,
    Sooner,
}

/// A case: a file of this name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    bytes: usize,
}

/// A server that listens, with its files.
struct Site {
    server: OwnedChild,
    address: SocketAddr,
    is_tls: bool,
}

impl Site {
    /// Starts a server with a file of each name and size, on `cores`; it logs each request, to a
    /// file that begins empty: one of gigabytes would cost the next who writes to it.
    fn start(
        bench: &Bench<'_>,
        way: &Server,
        files: &[(&str, usize)],
        (cores, is_tls): (&str, bool),
    ) -> Result<Site> {
        let folder = bench.folder("site")?;
        let root = folder.join("root");
        fs::create_dir(&root)?;
        for (name, bytes) in files {
            fs::write(root.join(name), vec![b'x'; *bytes])?;
        }
        let certificate = is_tls.then(|| Certificate::make(&folder, &["localhost", "127.0.0.1"]));
        let certificate = certificate
            .transpose()
            .context("cannot make a certificate")?;
        let address = port::free()?;
        let mut command = on_core(cores, way.program(bench));
        match way.peer {
            Peer::Nginx => {
                way.configure_nginx(&folder, &root, address, certificate.as_ref())?;
                nginx::tell(&mut command, &folder);
            }
            Peer::Sooner => {
                command
                    .arg("serve")
                    .arg(&root)
                    .args(["--quiet", "--access-log"]);
                command.arg(folder.join("access.log"));
                command.arg(if is_tls { "--listen-tls" } else { "--listen" });
                command.arg(address.to_string());
                if let Some(files) = &certificate {
                    command.arg("--certificate").arg(&files.certificate);
                    command.arg("--key").arg(&files.key);
                }
                command.args(&way.flags);
            }
        }
        let mut server = bench.start(command)?;
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            let is_over = server.has_ended() || begin.elapsed() > START_WAIT;
            if is_over {
                server.end();
            }
            ensure!(!is_over, "the server does not listen: {}", server.message());
            bench.pause(LOOK)?;
        }
        Ok(Site {
            server,
            address,
            is_tls,
        })
    }

    fn url(&self, file: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}/{file}", self.address)
    }
}

impl Server {
    fn program(&self, bench: &Bench<'_>) -> PathBuf {
        match self.peer {
            Peer::Nginx => "nginx".into(),
            Peer::Sooner => bench.program.to_owned(),
        }
    }

    /// One worker as it is best configured, logging the fields that both servers can know, in the
    /// form that ours has.
    fn configure_nginx(
        &self,
        folder: &Path,
        root: &Path,
        address: SocketAddr,
        certificate: Option<&Certificate>,
    ) -> Result<()> {
        let log_format = r#"log_format as_ours escape=json '{"time":"$time_iso8601","remote":"$remote_addr:$remote_port","method":"$request_method","target":"$request_uri","user_agent":"$http_user_agent","referer":"$http_referer","status":$status,"size_bytes":$body_bytes_sent,"service_s":$request_time}'"#;
        let nopush = if self.tcp_nopush { "on" } else { "off" };
        let (ssl, files) = match certificate {
            None => ("", String::new()),
            Some(files) => (
                " ssl http2",
                format!(
                    "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.2 TLSv1.3;\n",
                    files.certificate.display(),
                    files.key.display()
                ),
            ),
        };
        let http = format!(
            "  {log_format};\n  access_log {}/access.log as_ours buffer=64k flush=1s;\n  sendfile on;\n  \
             tcp_nopush {nopush};\n  keepalive_requests 100000000;\n  open_file_cache max=10000 inactive=60s;\n  \
             open_file_cache_valid 60s;\n{files}  server {{ listen {address} backlog=4096{ssl}; root {}; }}\n",
            folder.display(),
            root.display()
        );
        nginx::write_config(folder, 16384, &http)?;
        Ok(())
    }
}

/// A program that will run on this core.
pub fn on_core(core: &str, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program.as_ref());
    command
}

/// The requests that wrk says it has made, all of them answered with 200.
pub fn requests_of_wrk(text: &str) -> Result<f64> {
    let is_clean = !text.contains("Non-2xx") && !text.contains("Socket errors");
    ensure!(is_clean, "not every answer was 200");
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.trim().split_once(" requests in "));
    Ok(count.context("wrk printed no count")?.0.parse()?)
}

fn wrk(bench: &Bench<'_>, cores: &str, url: &str, seconds: u64) -> Result<OwnedChild> {
    let mut command = on_core(cores, "wrk");
    command.args(["-t1", "-c", CONNECTIONS, "-d", &seconds.to_string(), url]);
    bench.start(command)
}

/// `request-cost`: processor time of the server for a request.
#[derive(Debug)]
pub struct RequestCost {
    keys: CostKeys,
    ways: Vec<Server>,
    cases: Vec<Body>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostKeys {
    #[serde(default)]
    tls: bool,
    /// As taskset names them: `0`, `0,1`.
    #[serde(default = "server_cores")]
    server_cores: String,
    #[serde(default = "client_cores")]
    client_cores: String,
}

fn server_cores() -> String {
    SERVER_CORE.into()
}

fn client_cores() -> String {
    CLIENT_CORE.into()
}

impl RequestCost {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
            cases: keys.cases()?,
        }))
    }

    fn cost(
        &self,
        bench: &Bench<'_>,
        way: &Server,
        file: &str,
        bytes: usize,
    ) -> Result<Map<String, Value>> {
        let keys = &self.keys;
        let cores = (keys.server_cores.as_str(), keys.tls);
        let site = Site::start(bench, way, &[(file, bytes)], cores)?;
        let (before, begin) = (usage(site.server.id()).cpu_s, Instant::now());
        let seconds = bench.seconds(5, 1);
        let client = wrk(bench, &keys.client_cores, &site.url(file), seconds)?;
        let text = bench.finish("wrk", client, &[0])?;
        let cpu = usage(site.server.id()).cpu_s - before;
        let elapsed = begin.elapsed().as_secs_f64();
        let requests = requests_of_wrk(&text)?;
        Ok(figures([
            ("us_per_request", cpu * 1e6 / requests),
            ("requests_per_sec", requests / elapsed),
            ("cores", cpu / elapsed),
        ]))
    }
}

impl Kind for RequestCost {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["wrk", "nginx", "taskset"])?;
        bench.by_turns(measure, record, |case, way, _| {
            let body = keys_of(measure.place_of_case(case), &self.cases)?;
            let server = keys_of(measure.place_of_way(way), &self.ways)?;
            self.cost(bench, server, case.text("file"), body.bytes)
        })
    }
}

/// `idle-memory`: memory of the server for a connection that waits after one request.
#[derive(Debug)]
pub struct IdleMemory {
    keys: IdleKeys,
    ways: Vec<Server>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdleKeys {
    #[serde(default)]
    tls: bool,
    connections: u32,
}

impl IdleMemory {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        }))
    }
}

impl Kind for IdleMemory {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let connections = if bench.is_quick {
            200
        } else {
            self.keys.connections
        };
        bench.by_turns(measure, record, |_, way, _| {
            let server = keys_of(measure.place_of_way(way), &self.ways)?;
            let site = Site::start(
                bench,
                server,
                &[(SMALL, 1024)],
                (SERVER_CORE, self.keys.tls),
            )?;
            let resident_kib = || usage(site.server.id()).resident_bytes as f64 / 1024.0;
            let before_kib = resident_kib();
            let words = ["lab", "client", "idle-clients"];
            let mut clients = bench.sooner(&words);
            clients.arg(site.address.to_string());
            clients.args([&connections.to_string(), &format!("/{SMALL}")]);
            let mut clients = bench.start(clients)?;
            loop {
                // They say when all of them wait.
                match clients.next_line(LOOK) {
                    Ok(_) => break,
                    Err(_) if clients.has_ended() => {
                        clients.end();
                        return Err(anyhow!(
                            "not all connections could be made: {}",
                            clients.message()
                        ));
                    }
                    Err(_) => bench.pause(LOOK)?,
                }
            }
            bench.pause(SETTLED)?;
            let kib = (resident_kib() - before_kib) / f64::from(connections);
            let mut row = figures([("kib_per_connection", kib)]);
            row.insert("idle_connections".into(), connections.into());
            Ok(row)
        })
    }
}

/// `generator-cost`: processor time of the generator for a request, of the same nginx.
#[derive(Debug)]
pub struct GeneratorCost {
    cases: Vec<Body>,
}

impl GeneratorCost {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            cases: keys.cases()?,
        }))
    }

    /// Processor time and requests.
    fn cost(bench: &Bench<'_>, way: &Item, url: &str, seconds: u64) -> Result<(f64, f64)> {
        if way.id == "wrk" {
            let client = wrk(bench, CLIENT_CORE, url, seconds)?;
            let (id, before) = (client.id(), children_cpu_s());
            let text = bench
                .finish("wrk", client, &[0])
                .with_context(|| format!("process {id}"))?;
            return Ok((children_cpu_s() - before, requests_of_wrk(&text)?));
        }
        let mut command = on_core(CLIENT_CORE, bench.program);
        command.args(["load", "closed", "--json", "--url", url]);
        command.args(["--connections", CONNECTIONS, "--for", &seconds.to_string()]);
        let before = children_cpu_s();
        let run = bench.run_of(bench.start(command)?)?;
        // All requests of the run: the warm-up, a fifth, costs as well and is not counted by the
        // report.
        let number = |pointer: &str| {
            run.pointer(pointer)
                .and_then(Value::as_f64)
                .unwrap_or(f64::NAN)
        };
        let per_sec = number("/all/completed") / number("/measured_s");
        Ok((children_cpu_s() - before, per_sec * seconds as f64))
    }
}

/// Processor time of all children of this process that have ended and were waited for, and of
/// theirs.
fn children_cpu_s() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = crate::counters::processes::stat(&text).map_or(0, |stat| stat.children_ticks);
    ticks as f64 / crate::counters::processes::TICKS_PER_SEC
}

impl Kind for GeneratorCost {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["wrk", "nginx", "taskset"])?;
        let names: Vec<String> = measure
            .listed_cases()
            .iter()
            .map(|case| case.text("file").to_owned())
            .collect();
        let files = names
            .iter()
            .map(String::as_str)
            .zip(self.cases.iter().map(|body| body.bytes));
        let server = Server {
            peer: Peer::Nginx,
            tcp_nopush: true,
            flags: Vec::new(),
        };
        let site = Site::start(
            bench,
            &server,
            &files.collect::<Vec<_>>(),
            (SERVER_CORE, false),
        )?;
        let seconds = bench.seconds(5, 1);
        bench.by_turns(measure, record, |case, way, _| {
            let (cpu, requests) = Self::cost(bench, way, &site.url(case.text("file")), seconds)?;
            Ok(figures([
                ("us_per_request", cpu * 1e6 / requests),
                ("requests_per_sec", requests / seconds as f64),
            ]))
        })
    }
}
