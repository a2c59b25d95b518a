//! A backend that computes, at load 0.9 of its core, behind reverse proxies: by expected time, and with two classes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::Effort;
use super::attempts::until_undisturbed;
use super::check::{Checks, median, spread};
use super::parse::{figure, run_of};
use super::proxies::{self, LISTEN, Proxy};
use super::record::{Record, slim};
use super::replays::{all, ratios};
use super::server::{Root, sooner};
use crate::process;

/// The backend computes as long as a link of this rate would take: a millisecond for a kilobyte.
const RATE_MBIT: u64 = 8;
/// Kinds of requests: extension, kilobytes (so milliseconds), how many in a hundred. They can be told apart by their paths.
const KINDS: [(&str, u64, u64); 4] = [
    ("page", 5, 60),
    ("search", 20, 25),
    ("report", 80, 12),
    ("export", 400, 3),
];
const REQUESTS: u64 = 6_000;
/// The mean by expected time, in means of HAProxy's queue and of nginx with all inside.
const OF_HAPROXY_MAX: f64 = 0.5;
const OF_NGINX_MAX: f64 = 0.9;
/// A class in means of HAProxy's, which also has strict classes.
const CLASS_MAX: f64 = 1.1;

const ONE_CLASS: [Proxy; 5] = [
    Proxy::NginxAllInside,
    Proxy::NginxLimited,
    Proxy::Haproxy,
    Proxy::SoonerFcfs,
    Proxy::SoonerExpected,
];
const TWO_CLASSES: [Proxy; 3] = [Proxy::NginxAllInside, Proxy::Haproxy, Proxy::SoonerExpected];

/// Both questions.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    if !process::is_installed("haproxy") {
        checks.claim(false, "proxied: haproxy is needed (Debian: haproxy)".into());
        return Ok(());
    }
    let mut record = Record::open("proxied", "proxied")?;
    let mut part = Checks::default();
    let root = Root::empty()?;
    let bench = Bench {
        trace: write_trace(root.scratch())?,
        root,
        effort,
    };
    bench.make_files()?;
    let mut table = bench.by_expected_time(&mut record, &mut part)?;
    table += &bench.by_class(&mut record, &mut part)?;
    record.table("proxied", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

struct Bench {
    trace: PathBuf,
    root: Root,
    effort: Effort,
}

impl Bench {
    fn make_files(&self) -> anyhow::Result<()> {
        let mut mkroot = Command::new(sooner());
        mkroot.args(["load", "mkroot"]);
        mkroot.arg(&self.trace).arg(self.root.path());
        process::output(&mut mkroot)?;
        Ok(())
    }

    /// One stream of requests at load 0.9.
    fn by_expected_time(&self, record: &mut Record, part: &mut Checks) -> anyhow::Result<String> {
        let mut runs = ONE_CLASS.map(|_| Vec::new());
        for repetition in 0..self.effort.repetitions {
            for (proxy, runs) in ONE_CLASS.into_iter().zip(&mut runs) {
                let [run] = self.until_undisturbed(proxy, [("", "0.9")], repetition, record)?;
                runs.push(run);
            }
        }
        let mut table = String::from(
            "| load 0.9 | mean, ms | / nginx, all inside | smallest half, ms | largest 1 %, ms | errors |\n|---|---|---|---|---|---|\n",
        );
        let mean = |index: usize| all(&runs[index], "/all/mean_response_ms");
        for (index, proxy) in ONE_CLASS.into_iter().enumerate() {
            let shown = |pointer: &str| spread(&all(&runs[index], pointer), 0);
            table += &format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                proxy.name(),
                shown("/all/mean_response_ms"),
                spread(&ratios(&mean(index), &mean(0)), 2),
                shown("/smallest_half/mean_response_ms"),
                shown("/largest_1_percent/mean_response_ms"),
                all(&runs[index], "/all/errors").iter().sum::<f64>()
            );
        }
        let [nginx, _, haproxy, _, ours] = [0, 1, 2, 3, 4].map(mean);
        part.at_most(
            "expected time: mean / nginx's with all inside",
            median(&ratios(&ours, &nginx)),
            OF_NGINX_MAX,
        );
        part.at_most(
            "expected time: mean / HAProxy's",
            median(&ratios(&ours, &haproxy)),
            OF_HAPROXY_MAX,
        );
        believe(part, "expected time", &[&runs[0], &runs[2], &runs[4]]);
        Ok(table)
    }

    /// Two streams of requests at load 0.45 each; the one goes before the other.
    fn by_class(&self, record: &mut Record, part: &mut Checks) -> anyhow::Result<String> {
        let mut fast = TWO_CLASSES.map(|_| Vec::new());
        let mut slow = TWO_CLASSES.map(|_| Vec::new());
        for repetition in 0..self.effort.repetitions {
            for (index, proxy) in TWO_CLASSES.into_iter().enumerate() {
                let streams = [("/fast", "0.45"), ("/slow", "0.45")];
                let [first, second] = self.until_undisturbed(proxy, streams, repetition, record)?;
                fast[index].push(first);
                slow[index].push(second);
            }
        }
        let mean = |runs: &[Value]| all(runs, "/all/mean_response_ms");
        let mut table = String::from(
            "\n| two classes, load 0.45 each | first class, mean, ms | second class, mean, ms |\n|---|---|---|\n",
        );
        for (index, proxy) in TWO_CLASSES.into_iter().enumerate() {
            table += &format!(
                "| {} | {} | {} |\n",
                proxy.name(),
                spread(&mean(&fast[index]), 0),
                spread(&mean(&slow[index]), 0)
            );
        }
        for (class, runs) in [("first", &fast), ("second", &slow)] {
            part.at_most(
                &format!("two classes: the {class}'s mean / HAProxy's"),
                median(&ratios(&mean(&runs[2]), &mean(&runs[1]))),
                CLASS_MAX,
            );
            believe(
                part,
                &format!("two classes, the {class}"),
                &[&runs[1], &runs[2]],
            );
        }
        Ok(table)
    }

    /// One repetition, its attempts kept.
    fn until_undisturbed<const STREAMS: usize>(
        &self,
        proxy: Proxy,
        streams: [(&str, &str); STREAMS],
        repetition: u32,
        record: &mut Record,
    ) -> anyhow::Result<[Value; STREAMS]> {
        until_undisturbed(
            || self.measure(proxy, streams, repetition),
            |runs| runs.iter().collect(),
            |runs, attempt| {
                let slim_runs: Vec<Value> = runs.iter().map(slim).collect();
                record.add(&json!({"proxy": proxy.name(), "streams": streams.to_vec(), "repetition": repetition,
                    "attempt": attempt.number, "stolen_cpu_seconds": attempt.stolen_cpu_seconds, "runs": slim_runs}))
            },
        )
    }

    /// One run for each stream of requests (path below which they are, load), all at the same time.
    fn measure<const STREAMS: usize>(
        &self,
        proxy: Proxy,
        streams: [(&str, &str); STREAMS],
        repetition: u32,
    ) -> anyhow::Result<[Value; STREAMS]> {
        eprintln!("{}, repetition {repetition}", proxy.name());
        let backend = proxies::backend(&self.root, RATE_MBIT)?;
        let running = proxy.start(&self.root)?;
        let seeds = 1 + 10 * u64::from(repetition)..;
        let clients: Vec<Child> = streams
            .into_iter()
            .zip(seeds)
            .map(|((path, load), seed)| self.client(path, load, seed))
            .collect::<anyhow::Result<_>>()?;
        let runs: Vec<Value> = clients
            .into_iter()
            .map(run_of)
            .collect::<anyhow::Result<_>>()?;
        drop((running, backend));
        runs.try_into()
            .map_err(|_| anyhow::anyhow!("not every generator has reported"))
    }

    fn client(&self, path: &str, load: &str, seed: u64) -> anyhow::Result<Child> {
        let seconds = if self.effort.quick { 15 } else { 60 };
        let mut command = Command::new("taskset");
        command.args(["-c", "0", &sooner(), "load", "replay"]);
        command.arg(&self.trace).args(["--poisson", "--json"]);
        command.args(["--url", &format!("http://{LISTEN}{path}"), "--rho", load]);
        command.args(["--uplink", &format!("{RATE_MBIT}mbit")]);
        command.args(["--requests-per-connection", "1000000"]);
        command.args(["--for", &seconds.to_string(), "--seed", &seed.to_string()]);
        Ok(command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?)
    }
}

/// The generators kept to their schedules, and nothing failed.
fn believe(part: &mut Checks, what: &str, runs: &[&Vec<Value>]) {
    let sound = runs
        .iter()
        .copied()
        .flatten()
        .all(|run| run["verdict"] == "VALID" && figure(run, "/all/errors") == 0.0);
    part.claim(sound, format!("{what}: all runs VALID, without errors"));
}

/// A trace of the kinds in random order, ten requests a second (a replay makes its own gaps).
fn write_trace(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut chance = 1_u64;
    let mut lines = String::from("t,bytes,client,object,status\n");
    let mut counts = [0; KINDS.len()];
    for nth in 0..REQUESTS {
        // Knuth's multiplicative generator: the upper bits are random enough to choose by.
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let kind = kind_of((chance >> 33) % 100);
        counts[kind] += 1;
        lines += &format!("{},{},0,{kind},200\n", nth / 10, KINDS[kind].1 * 1_000);
    }
    let mut objects = String::from("object,requests,max_bytes,ext\n");
    for (index, (ext, kb, _)) in KINDS.into_iter().enumerate() {
        objects += &format!("{index},{},{},{ext}\n", counts[index], kb * 1_000);
    }
    let path = folder.join("backend.csv");
    fs::write(&path, lines)?;
    fs::write(folder.join("backend.objects.csv"), objects)?;
    Ok(path)
}

/// The kind whose share of a hundred `chance` falls in.
fn kind_of(chance: u64) -> usize {
    let mut below = 0;
    KINDS
        .iter()
        .position(|(_, _, share)| {
            below += share;
            chance < below
        })
        .unwrap_or(0)
}
