//! What TLS costs: processor time a request beside nginx, and memory of ten thousand connections that only wait.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::Running;
use super::proc::resident_kib;
use super::record::Record;
use super::server::{NginxOptions, Root, config_file, nginx_config, sooner};
use super::wrk;
use crate::certificate::Certificate;

const LISTEN: &str = "127.0.0.1:18443";
/// File, its size, and what a request may cost in units of nginx's.
const FILES: [(&str, usize, f64); 2] = [("1k", 1_024, 0.8), ("100k", 102_400, 0.6)];
const IDLE_CONNECTIONS: u32 = 10_000;
/// Resident memory of one of them, KiB.
const IDLE_KIB_MAX: f64 = 32.0;

#[derive(Clone, Copy)]
enum Subject {
    Nginx,
    Sooner,
}

const SUBJECTS: [Subject; 2] = [Subject::Nginx, Subject::Sooner];

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx, sendfile, open_file_cache",
            Self::Sooner => "sooner serve",
        }
    }

    fn start(self, root: &Root) -> anyhow::Result<Running> {
        let certificate = Certificate::of(root.scratch())?;
        let log = root.scratch().join("access.log");
        let mut command = wrk::on_server_core();
        match self {
            Self::Nginx => {
                let options = NginxOptions {
                    listen: LISTEN.into(),
                    tcp_nopush: true,
                    open_file_cache: true,
                    access_log: Some(log.clone()),
                    certificate: Some(certificate),
                };
                let config = nginx_config(root.path(), &options)?;
                command.args(["nginx", "-c"]).arg(config);
            }
            Self::Sooner => {
                let config = config_file(root.path(), LISTEN, &certificate, "")?;
                command.args([&sooner(), "serve", "--quiet", "--access-log"]);
                command.arg(&log).arg("--config").arg(config);
            }
        }
        wrk::start(command, &log)
    }
}

/// CPU a request at both sizes, then memory.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("tls-cpu", "tls-cpu")?;
    let mut part = Checks::default();
    let root = Root::empty()?;
    for (file, bytes, _) in FILES {
        fs::write(root.path().join(file), vec![b'x'; bytes])?;
    }
    let mut table = String::from(
        "| body | server | CPU, us a request | requests a second |\n|---|---|---|---|\n",
    );
    for (file, _, factor) in FILES {
        let mut figures = SUBJECTS.map(|_| [Vec::new(), Vec::new()]);
        // Interleaved, so that a busy spell of the machine meets both.
        for repetition in 0..effort.repetitions.max(if effort.quick { 1 } else { 5 }) {
            for (subject, figures) in SUBJECTS.into_iter().zip(&mut figures) {
                let measured = cost(subject, &root, file, effort.quick)?;
                record.add(
                    &json!({"file": file, "server": subject.name(), "repetition": repetition,
                    "us_per_request": measured[0], "requests_per_sec": measured[1]}),
                )?;
                figures
                    .iter_mut()
                    .zip(measured)
                    .for_each(|(all, one)| all.push(one));
            }
        }
        for (subject, [us, per_sec]) in SUBJECTS.into_iter().zip(&figures) {
            table += &format!(
                "| {file} | {} | {} | {} |\n",
                subject.name(),
                spread(us, 1),
                spread(per_sec, 0)
            );
        }
        part.at_most(
            &format!("{file} over TLS: CPU per request / nginx's"),
            median(&figures[1][0]) / median(&figures[0][0]),
            factor,
        );
    }
    table += &memory(&root, &mut record, &mut part)?;
    record.table("tls-cpu", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// CPU us a request, requests a second.
fn cost(subject: Subject, root: &Root, file: &str, quick: bool) -> anyhow::Result<[f64; 2]> {
    let running = subject.start(root)?;
    let cost = wrk::cost(&running, &format!("https://{LISTEN}/{file}"), quick)?;
    Ok([cost.us_per_request, cost.requests_per_sec])
}

/// Resident memory of idle connections, of both servers.
fn memory(root: &Root, record: &mut Record, part: &mut Checks) -> anyhow::Result<String> {
    let mut table = format!(
        "\n| server | KiB a connection, {IDLE_CONNECTIONS} idle after one request |\n|---|---|\n"
    );
    for subject in SUBJECTS {
        let kib = idle_kib(&subject.start(root)?, root.path())?;
        record.add(&json!({"server": subject.name(), "idle_connections": IDLE_CONNECTIONS, "kib_per_connection": kib}))?;
        table += &format!("| {} | {kib:.1} |\n", subject.name());
        if matches!(subject, Subject::Sooner) {
            part.at_most("KiB of an idle TLS connection", kib, IDLE_KIB_MAX);
        }
    }
    Ok(table)
}

fn idle_kib(running: &Running, root: &Path) -> anyhow::Result<f64> {
    let before = resident_kib(running.id());
    let mut client = Running(
        Command::new(std::env::current_exe()?)
            .args(["idle-clients", LISTEN, &IDLE_CONNECTIONS.to_string(), "/1k"])
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    // It says when all of them wait.
    let said = client.0.stdout.take().context("no pipe")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    anyhow::ensure!(line.trim() == "idle", "not all connections could be made");
    std::thread::sleep(Duration::from_secs(2));
    let kib = (resident_kib(running.id()) - before) / f64::from(IDLE_CONNECTIONS);
    drop(client);
    Ok(kib)
}
