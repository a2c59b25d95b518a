//! CPU time per request, one core each for server and client, access logs on: `sooner serve` beside nginx as it is best configured.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::Running;
use super::record::Record;
use super::server::{NginxOptions, Root, nginx_config, sooner};
use super::wrk;

const LISTEN: &str = "127.0.0.1:18080";
/// What 100 KB may cost in units of nginx's best: its sendfile does not copy.
const LARGE_MAX: f64 = 1.35;
/// The share of a core that ordering a full gigabit may take.
const GIGABIT_CORES_MAX: f64 = 0.25;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Nginx { tcp_nopush: bool },
    Sooner { uplink: Option<&'static str> },
}

impl Subject {
    fn name(self) -> String {
        match self {
            Self::Nginx { tcp_nopush: true } => {
                "nginx, sendfile, tcp_nopush, open_file_cache".into()
            }
            Self::Nginx { tcp_nopush: false } => "nginx, sendfile, open_file_cache".into(),
            Self::Sooner { uplink: None } => "sooner serve".into(),
            Self::Sooner { uplink: Some(rate) } => format!("sooner serve --uplink {rate}"),
        }
    }

    fn start(self, root: &Path) -> anyhow::Result<Running> {
        let mut command = wrk::on_server_core();
        let log = root.with_file_name("access.log");
        match self {
            Self::Nginx { tcp_nopush } => {
                let options = NginxOptions {
                    listen: LISTEN.into(),
                    tcp_nopush,
                    open_file_cache: true,
                    access_log: Some(log.clone()),
                    certificate: None,
                };
                command
                    .args(["nginx", "-c"])
                    .arg(nginx_config(root, &options)?);
            }
            Self::Sooner { uplink } => {
                command
                    .args([&sooner(), "serve"])
                    .arg(root)
                    .args(["--listen", LISTEN, "--quiet", "--access-log"])
                    .arg(&log);
                command.args(uplink.iter().flat_map(|rate| ["--uplink", rate]));
            }
        }
        wrk::start(command, &log)
    }
}

/// CPU per request at 1 KB and 100 KB, and the cores that ordering 1 Gbit/s takes.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("cpu", "cpu")?;
    let mut part = Checks::default();
    let mut table = String::from(
        "| body | server | CPU, us a request | requests a second | cores |\n|---|---|---|---|---|\n",
    );
    let root = Root::empty()?;
    fs::write(root.path().join("1k"), vec![b'x'; 1_024])?;
    fs::write(root.path().join("100k"), vec![b'x'; 102_400])?;
    let (nopush, plain) = (
        Subject::Nginx { tcp_nopush: true },
        Subject::Nginx { tcp_nopush: false },
    );
    let (ours, gigabit) = (
        Subject::Sooner { uplink: None },
        Subject::Sooner {
            uplink: Some("1gbit"),
        },
    );
    for (file, subjects) in [
        ("1k", &[nopush, plain, ours][..]),
        ("100k", &[nopush, plain, ours, gigabit]),
    ] {
        let mut figures = vec![[const { Vec::new() }; 3]; subjects.len()];
        // Interleaved, so that a busy spell of the machine meets all of them.
        for repetition in 0..effort.repetitions.max(if effort.quick { 1 } else { 5 }) {
            for (subject, figures) in subjects.iter().zip(&mut figures) {
                let measured = measure(*subject, root.path(), file, effort.quick)?;
                record.add(&json!({"file": file, "server": subject.name(), "repetition": repetition, "us_per_request": measured[0],
                    "requests_per_sec": measured[1], "cores": measured[2]}))?;
                figures
                    .iter_mut()
                    .zip(measured)
                    .for_each(|(all, one)| all.push(one));
            }
        }
        let cost = |index: usize| median(&figures[index][0]);
        for (subject, figures) in subjects.iter().zip(&figures) {
            let [us, per_sec, cores] = figures;
            table += &format!(
                "| {file} | {} | {} | {} | {} |\n",
                subject.name(),
                spread(us, 1),
                spread(per_sec, 0),
                spread(cores, 2)
            );
        }
        let factor = if file == "1k" { 1.0 } else { LARGE_MAX };
        part.at_most(
            &format!("{file}: CPU per request / nginx's best"),
            cost(2) / cost(0).min(cost(1)),
            factor,
        );
        part.at_most(
            &format!("{file}: CPU per request / nginx's with tcp_nopush"),
            cost(2) / cost(0),
            factor,
        );
        if subjects.contains(&gigabit) {
            part.at_most(
                "cores for ordering 1 Gbit/s",
                median(&figures[3][2]),
                GIGABIT_CORES_MAX,
            );
        }
    }
    record.table("cpu", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// CPU us a request, requests a second, cores used.
fn measure(subject: Subject, root: &Path, file: &str, quick: bool) -> anyhow::Result<[f64; 3]> {
    let running = subject.start(root)?;
    let cost = wrk::cost(&running, &format!("http://{LISTEN}/{file}"), quick)?;
    Ok([cost.us_per_request, cost.requests_per_sec, cost.cores])
}
