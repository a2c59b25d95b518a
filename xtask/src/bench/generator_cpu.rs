//! What a request costs the generator in processor time, beside wrk: the same nginx on one core, either generator on the other.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::Context;
use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::parse::{figure, run_of};
use super::proc::ended_children_cpu_seconds;
use super::record::Record;
use super::server::{NginxOptions, Root, nginx_config, sooner};
use super::wrk;

const LISTEN: &str = "127.0.0.1:18080";
const CONNECTIONS: &str = "32";
/// What a request may cost us in units of what it costs wrk.
const COST_MAX: f64 = 1.1;
const BODIES: [(&str, usize); 2] = [("1k", 1_024), ("10k", 10_240)];
const GENERATORS: [&str; 2] = ["wrk", "sooner load closed"];

/// Both generators, interleaved.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("generator", "cpu")?;
    let mut part = Checks::default();
    let mut table = String::from(
        "| body | generator | CPU, us a request | requests a second |\n|---|---|---|---|\n",
    );
    let root = Root::empty()?;
    for (file, bytes) in BODIES {
        fs::write(root.path().join(file), vec![b'x'; bytes])?;
    }
    let options = NginxOptions {
        listen: LISTEN.into(),
        tcp_nopush: true,
        open_file_cache: true,
        ..NginxOptions::default()
    };
    let mut nginx = wrk::on_server_core();
    nginx
        .args(["nginx", "-c"])
        .arg(nginx_config(root.path(), &options)?);
    let nginx = wrk::start(nginx, &root.scratch().join("access.log"))?;
    for (file, _) in BODIES {
        let mut figures = GENERATORS.map(|_| [Vec::new(), Vec::new()]);
        for repetition in 0..effort.repetitions.max(if effort.quick { 1 } else { 5 }) {
            for (generator, figures) in GENERATORS.into_iter().zip(&mut figures) {
                let measured = cost(generator, file, effort.quick)?;
                record.add(
                    &json!({"file": file, "generator": generator, "repetition": repetition,
                    "us_per_request": measured[0], "requests_per_sec": measured[1]}),
                )?;
                figures
                    .iter_mut()
                    .zip(measured)
                    .for_each(|(all, one)| all.push(one));
            }
        }
        for (generator, [us, per_sec]) in GENERATORS.into_iter().zip(&figures) {
            table += &format!(
                "| {file} | {generator} | {} | {} |\n",
                spread(us, 1),
                spread(per_sec, 0)
            );
        }
        part.at_most(
            &format!("{file}: the generator's CPU a request / wrk's"),
            median(&figures[1][0]) / median(&figures[0][0]),
            COST_MAX,
        );
    }
    drop(nginx);
    record.table("cpu", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// CPU us a request, requests a second.
fn cost(generator: &str, file: &str, quick: bool) -> anyhow::Result<[f64; 2]> {
    let seconds = if quick { 2 } else { 5 };
    let url = format!("http://{LISTEN}/{file}");
    let before = ended_children_cpu_seconds();
    let requests = match generator {
        "wrk" => by_wrk(&url, seconds)?,
        _ => by_us(&url, seconds)?,
    };
    let cpu_seconds = ended_children_cpu_seconds() - before;
    Ok([cpu_seconds * 1e6 / requests, requests / f64::from(seconds)])
}

fn by_wrk(url: &str, seconds: u32) -> anyhow::Result<f64> {
    let mut command = wrk::on_client_core("wrk");
    command.args(["-t1", "-c", CONNECTIONS, "-d", &seconds.to_string(), url]);
    let output = command.output().context("wrk is needed")?;
    wrk::requests(&String::from_utf8_lossy(&output.stdout))
}

/// All requests of the run: the warm-up, a fifth, costs as well and is not counted by the report.
fn by_us(url: &str, seconds: u32) -> anyhow::Result<f64> {
    let mut command: Command = wrk::on_client_core(&sooner());
    command.args(["load", "closed", "--json", "--url", url]);
    command.args(["--connections", CONNECTIONS, "--for", &seconds.to_string()]);
    let run = run_of(
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?,
    )?;
    let per_sec = figure(&run, "/all/completed") / figure(&run, "/measured_s");
    Ok(per_sec * f64::from(seconds))
}
