//! What `sooner attach` costs a machine end to end: processor seconds a gigabit of the whole machine, beside a shaper that orders nothing.
//!
//! A gigabit through HTB and the programs is work of the softirq of whatever runs at the moment, so no process can be asked for it. Server
//! and client are the same for all, so what differs is the queueing discipline's.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::{DEVICE, Link, Running, SERVER_ADDRESS, Shaper};
use super::proc::busy_cpu_seconds;
use super::record::Record;
use super::server::{CLEAR_PORT, Root, Server, sooner};

const RATE: &str = "900mbit";
/// Of a response: a few of TCP's windows.
const BODY_BYTES: usize = 100 * 1024;
const CONNECTIONS: &str = "32";
/// Until connections have their windows.
const WARM_UP: Duration = Duration::from_secs(1);
/// Cores a gigabit a second that the order may cost beside a shaper without one.
const CORES_MAX: f64 = 0.10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum BeforeDevice {
    Unlimited,
    Tbf,
    Attach,
}

impl BeforeDevice {
    const ALL: [Self; 3] = [Self::Unlimited, Self::Tbf, Self::Attach];

    fn name(self) -> &'static str {
        match self {
            Self::Unlimited => "no limit",
            Self::Tbf => "tbf, 900 Mbit/s",
            Self::Attach => "sooner attach, 900 Mbit/s",
        }
    }

    /// Puts it before the device; gone when what it returns is dropped, or with the link.
    fn install(self, link: &Link) -> anyhow::Result<Option<Running>> {
        match self {
            Self::Unlimited => Ok(None),
            Self::Tbf => {
                let mut tbf = link.on_server("tc");
                tbf.args(["qdisc", "add", "dev", DEVICE, "root", "tbf", "rate", RATE]);
                tbf.args(["burst", "128kb", "latency", "50ms"]);
                anyhow::ensure!(tbf.status()?.success(), "tc refused");
                Ok(None)
            }
            Self::Attach => {
                let mut attach = link.on_server(&sooner());
                attach.args(["attach", "web", "--dev", DEVICE, "--uplink", RATE]);
                attach.args(["--port", &CLEAR_PORT.to_string()]);
                let mut running = Running(attach.stdout(Stdio::piped()).spawn()?);
                let said = running.0.stdout.take().context("no pipe")?;
                let mut ready = String::new();
                BufReader::new(said).read_line(&mut ready)?;
                anyhow::ensure!(ready.starts_with("ready:"), "it did not attach: {ready}");
                Ok(Some(running))
            }
        }
    }
}

/// Processor seconds a gigabit, and Gbit/s, by turns.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let mut record = Record::open("classifier", "attach-cpu")?;
    let root = Root::empty()?;
    fs::write(root.path().join("large"), vec![b'x'; BODY_BYTES])?;
    let mut costs = [const { Vec::new() }; 3];
    let mut rates = [const { Vec::new() }; 3];
    for repetition in 0..effort.repetitions.max(if effort.quick { 1 } else { 5 }) {
        for (index, link) in BeforeDevice::ALL.into_iter().enumerate() {
            let [seconds_per_gigabit, gigabits_per_sec] = measure(link, &root, effort.quick)?;
            record.add(&json!({"link": link.name(), "repetition": repetition,
                "cpu_seconds_per_gigabit": seconds_per_gigabit, "gigabits_per_sec": gigabits_per_sec}))?;
            costs[index].push(seconds_per_gigabit);
            rates[index].push(gigabits_per_sec);
        }
    }
    let mut table = String::from(
        "| before the device | processor seconds a gigabit | Gbit/s |\n|---|---|---|\n",
    );
    for (index, link) in BeforeDevice::ALL.into_iter().enumerate() {
        let (cost, rate) = (spread(&costs[index], 3), spread(&rates[index], 2));
        table += &format!("| {} | {cost} | {rate} |\n", link.name());
    }
    let mut part = Checks::default();
    part.at_most(
        "cores a Gbit/s more than a shaper that orders nothing",
        median(&costs[2]) - median(&costs[1]),
        CORES_MAX,
    );
    record.table("attach-cpu", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// Processor seconds a gigabit that left the server's host, and gigabits a second.
fn measure(before_device: BeforeDevice, root: &Root, quick: bool) -> anyhow::Result<[f64; 2]> {
    let link = Link::up("attach-cpu", 1000, Shaper::Server)?;
    link.allow_super_packets()?;
    let _nginx = Server::Nginx.start(&link, root.path(), 1000)?;
    let _installed = before_device.install(&link)?;
    let window = Duration::from_secs(if quick { 1 } else { 5 });
    let seconds = (WARM_UP + window).as_secs() + 1;
    let mut load = link.on_client(&sooner());
    load.args(["load", "closed", "--json", "--connections", CONNECTIONS]);
    load.args(["--for", &seconds.to_string(), "--url"]);
    load.arg(format!("http://{SERVER_ADDRESS}:{CLEAR_PORT}/large"));
    let _load = Running(load.stdout(Stdio::null()).spawn()?);
    sleep(WARM_UP);
    let (busy, sent, start) = (
        busy_cpu_seconds(),
        link.sent_bytes()?,
        std::time::Instant::now(),
    );
    sleep(window);
    let gigabits = (link.sent_bytes()? - sent) * 8.0 / 1e9;
    let seconds_per_gigabit = (busy_cpu_seconds() - busy) / gigabits;
    Ok([
        seconds_per_gigabit,
        gigabits / start.elapsed().as_secs_f64(),
    ])
}
