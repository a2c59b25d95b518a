//! Another generator and ours on the same link.

use super::super::{Keys, Kind, figures, keys_of};
use super::{PeerSpec, Site};
use crate::measure::bench::Bench;
use crate::measure::rows::number;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use std::fs;

/// `generators`: another generator and ours on the same link, one after the other.
#[derive(Debug)]
pub struct Generators {
    is_tls: bool,
    cases: Vec<Spoken>,
    ways: Vec<Generator>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GeneratorsKeys {
    #[serde(default)]
    tls: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spoken {
    bytes: usize,
    /// Arguments of `sooner load closed`, and of the other.
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    other: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Generator {
    generator: String,
}

const CONNECTIONS: &str = "8";
/// The summary of wrk rounds; this prints microseconds.
const WRK_SCRIPT: &str = "done = function(summary, latency) io.write(string.format('{\"per_sec\": %f, \"mean_ms\": %f}\\n', \
                  summary.requests / summary.duration * 1e6, latency.mean / 1e3)) end";

impl Generators {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            is_tls: keys.own::<GeneratorsKeys>()?.tls,
            cases: keys.cases()?,
            ways: keys.ways()?,
        }))
    }

    /// Requests a second and mean response time, ms.
    fn measure(
        &self,
        bench: &Bench<'_>,
        site: &Site,
        generator: &str,
        spoken: &Spoken,
    ) -> Result<[f64; 2]> {
        let seconds = bench.seconds(10, 3).to_string();
        let url = format!("{}/file", Site::origin(self.is_tls));
        match generator {
            "wrk" => {
                let script = bench.scratch().join("wrk.lua");
                fs::write(&script, WRK_SCRIPT)?;
                let mut command = site.hosts.on_client("wrk");
                command.args(["-t1", "-c", CONNECTIONS, "-d", &seconds, "-s"]);
                let text = bench.output({
                    command.arg(script).arg(url);
                    command
                })?;
                let line = text.lines().find(|line| line.starts_with('{'));
                let summary: Value = serde_json::from_str(line.context("wrk printed no summary")?)?;
                Ok([number(&summary["per_sec"]), number(&summary["mean_ms"])])
            }
            "h2load" => {
                let mut command = site.hosts.on_client("h2load");
                command.args(["-c", CONNECTIONS, "-D", &seconds, "--warm-up-time", "2"]);
                // Windows of 2^30 - 1 and 2^30: the client's flow control limits neither generator.
                command
                    .args(["-w", "30", "-W", "30"])
                    .args(&spoken.other)
                    .arg(url);
                let text = bench.output(command)?;
                h2load(&text).context("h2load printed no summary")
            }
            _ => {
                let mut words = vec![
                    "load",
                    "closed",
                    "--url",
                    &url,
                    "--connections",
                    CONNECTIONS,
                ];
                words.extend(["--for", &seconds, "--json"]);
                if self.is_tls {
                    words.push("--insecure");
                }
                words.extend(spoken.flags.iter().map(String::as_str));
                let run = bench.run_of(site.load(bench, &words)?)?;
                let per_sec = number(&run["all"]["completed"]) / number(&run["measured_s"]);
                Ok([per_sec, number(&run["all"]["mean_response_ms"])])
            }
        }
    }
}

impl Kind for Generators {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        let programs: Vec<&str> = self.ways.iter().map(|way| way.generator.as_str()).collect();
        bench.need(
            &programs
                .into_iter()
                .filter(|name| *name != "sooner")
                .collect::<Vec<_>>(),
        )?;
        bench.by_turns(measure, record, |case, way, _| {
            let spoken = keys_of(measure.place_of_case(case), &self.cases)?;
            let generator = keys_of(measure.place_of_way(way), &self.ways)?;
            let root = bench.folder("root")?;
            fs::write(root.join("file"), vec![b'x'; spoken.bytes])?;
            let rate_mbit = case
                .fields
                .get("rate_mbit")
                .and_then(Value::as_u64)
                .unwrap_or(10);
            let spec = PeerSpec {
                peer: "nginx",
                rate_mbit,
                is_tls: self.is_tls,
            };
            let site = Site::start(bench, &spec, &root)?;
            let [per_sec, mean_ms] = self.measure(bench, &site, &generator.generator, spoken)?;
            Ok(figures([("per_sec", per_sec), ("mean_ms", mean_ms)]))
        })
    }
}

/// Requests a second and mean response time in ms, from what h2load prints.
fn h2load(printed: &str) -> Option<[f64; 2]> {
    let after = |start: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(start))?;
        Some(line.split_whitespace().collect::<Vec<_>>())
    };
    // finished in 10.01s, 1143.40 req/s, 1.13MB/s
    let finished = after("finished in ")?;
    // time for request: min, max, mean, sd, +/- sd
    let times = after("time for request:")?;
    Some([finished.get(1)?.parse().ok()?, milliseconds(times.get(2)?)?])
}

/// A time as h2load writes it: `853us`, `6.99ms`, `1.02s`.
fn milliseconds(text: &str) -> Option<f64> {
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
    let (number, factor) = units
        .into_iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_h2load() {
        let printed = "finished in 10.01s, 1143.40 req/s, 1.13MB/s\nrequests: 1 total\n\
            time for request:     1.20ms     12.33ms      6.99ms      1.02ms    70.00%\n";
        assert_eq!(h2load(printed), Some([1143.4, 6.99]));
        assert_eq!(h2load("nothing"), None);
        assert_eq!(milliseconds("853us"), Some(0.853));
        assert_eq!(milliseconds("1.5s"), Some(1500.0));
    }
}
