//! What a queueing discipline costs the machine.

use super::super::{Keys, Kind, figures, keys_of};
use super::Site;
use crate::counters::processes::TICKS_PER_SEC;
use crate::hosts::{HostsSpec, SERVER_DEVICE, Shaper};
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use crate::peers::{PORT, TLS_PORT};
use anyhow::{Result, ensure};
use serde::Deserialize;
use sooner_testbed::OwnedChild;
use std::fs;
use std::time::{Duration, Instant};

/// `link-cost`: processor time of the whole machine for a gigabit, behind a queueing discipline.
///
/// A gigabit through HTB and the programs is work of the softirq of whatever runs at the moment, so
/// the figures of no process show it. Server and client are the same for all, so what differs is
/// the queueing discipline's.
#[derive(Debug)]
pub struct LinkCost {
    keys: LinkKeys,
    ways: Vec<BeforeDevice>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkKeys {
    rate: String,
    #[serde(default)]
    tls: bool,
    /// Of a response: a few of TCP's windows by default.
    #[serde(default = "some_windows")]
    body_bytes: usize,
}

fn some_windows() -> usize {
    100 * 1024
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BeforeDevice {
    before: Discipline,
    /// Of `attach`.
    #[serde(default)]
    flags: Vec<String>,
    /// The most that TCP hands to the device at once, bytes; without it what the device takes.
    super_packet_bytes: Option<u32>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Discipline {
    Nothing,
    Tbf,
    Attach,
}

/// Until connections have their windows.
const WARM_UP: Duration = Duration::from_secs(1);
const READY_WAIT: Duration = Duration::from_secs(10);

impl LinkCost {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            keys: keys.own()?,
            ways: keys.ways()?,
        }))
    }

    fn port(&self) -> u16 {
        if self.keys.tls { TLS_PORT } else { PORT }
    }

    /// Puts it before the device; gone when what it returns is dropped, or with the link.
    fn install(
        &self,
        bench: &Bench<'_>,
        site: &Site,
        way: &BeforeDevice,
    ) -> Result<Option<OwnedChild>> {
        if let Some(bytes) = way.super_packet_bytes {
            let mut ip = site.hosts.on_server("ip");
            ip.args(["link", "set", "dev", SERVER_DEVICE]);
            ip.args(["gso_max_size", &bytes.to_string()]);
            bench.output(ip)?;
        }
        match way.before {
            Discipline::Nothing => Ok(None),
            Discipline::Tbf => {
                let mut tbf = site.hosts.on_server("tc");
                tbf.args([
                    "qdisc",
                    "add",
                    "dev",
                    SERVER_DEVICE,
                    "root",
                    "tbf",
                    "rate",
                    &self.keys.rate,
                ]);
                tbf.args(["burst", "128kb", "latency", "50ms"]);
                bench.output(tbf)?;
                Ok(None)
            }
            Discipline::Attach => {
                let mut attach = site.hosts.on_server(bench.program);
                attach.args([
                    "attach",
                    "web",
                    "--dev",
                    SERVER_DEVICE,
                    "--uplink",
                    &self.keys.rate,
                ]);
                attach
                    .args(["--port", &self.port().to_string()])
                    .args(&way.flags);
                let mut running = bench.start(attach)?;
                let ready = running.next_line(READY_WAIT);
                ensure!(
                    ready.is_ok_and(|line| line.starts_with("ready:")),
                    "it did not attach"
                );
                Ok(Some(running))
            }
        }
    }
}

impl Kind for LinkCost {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let root = bench.folder("root")?;
        fs::write(root.join("large"), vec![b'x'; self.keys.body_bytes])?;
        bench.by_turns(measure, record, |_, way, _| {
            let way = keys_of(measure.place_of_way(way), &self.ways)?;
            // The link is limited by what is put before the device.
            let spec = HostsSpec {
                shaper: Shaper::Server,
                congestion_control: Some("cubic".into()),
                super_packets: true,
                ..HostsSpec::new(&format!("m{}", bench.number()), 1_000_000_000)
            };
            let site = Site::unshaped(bench, spec, &root, self.keys.tls)?;
            let _installed = self.install(bench, &site, way)?;
            let window = Duration::from_secs(bench.seconds(5, 1));
            let seconds = ((WARM_UP + window).as_secs() + 1).to_string();
            let url = format!("{}/large", Site::origin(self.keys.tls));
            let mut words = vec![
                "load",
                "closed",
                "--json",
                "--connections",
                "32",
                "--for",
                &seconds,
                "--url",
                &url,
            ];
            if self.keys.tls {
                words.push("--insecure");
            }
            let _load = site.load(bench, &words)?;
            bench.pause(WARM_UP)?;
            let (busy, sent, begin) =
                (busy_cpu_seconds(), site.hosts.sent_bytes()?, Instant::now());
            bench.pause(window)?;
            let gigabits = (site.hosts.sent_bytes()? - sent) as f64 * 8.0 / 1e9;
            Ok(figures([
                (
                    "cpu_seconds_per_gigabit",
                    (busy_cpu_seconds() - busy) / gigabits,
                ),
                ("gigabits_per_sec", gigabits / begin.elapsed().as_secs_f64()),
            ]))
        })
    }
}

/// Processor seconds of the whole machine in which it was not idle, of all processors together;
/// what a hypervisor took is not counted.
fn busy_cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|ticks| ticks.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq (proc(5))
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|field| ticks.get(*field));
    busy.sum::<f64>() / TICKS_PER_SEC
}
