//! What programs print by themselves: the demo, `sooner advise` on a large log, and any
//! subcommand's report; and what is only kept.

use super::{Keys, Kind, NoKeys, figures};
use crate::counters::processes::usage;
use crate::measure::bench::Bench;
use crate::measure::{Measure, Record};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Map;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(20);

/// `demo`: the demo with a seed of its own.
#[derive(Debug)]
pub struct Demo;

impl Demo {
    /// Its keys: none.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        keys.own::<NoKeys>()?;
        Ok(Box::new(Demo))
    }
}

impl Kind for Demo {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.by_turns(measure, record, |_, _, turn| {
            let (seed, seconds) = ((turn + 1).to_string(), bench.seconds(35, 10).to_string());
            let mut demo = bench.sooner(&[
                "demo", "--json", "--seed", &seed, "--for", &seconds, "--report",
            ]);
            demo.arg(bench.scratch().join("demo.html"));
            let mut report = bench.report(bench.start(demo)?)?;
            let mut run = |at: usize| super::slim(report["runs"][at].take());
            Ok(Map::from_iter([
                ("fair".to_owned(), run(0)),
                ("srpt".to_owned(), run(1)),
            ]))
        })
    }
}

/// `command`: the JSON that a subcommand prints, in a file of its own beside the rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subcommand {
    /// Behind `sooner`.
    arguments: Vec<String>,
    /// The same where all is short.
    quick_arguments: Vec<String>,
}

impl Subcommand {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(keys.own::<Self>()?))
    }
}

impl Kind for Subcommand {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.by_turns(measure, record, |_, _, _| {
            let words = if bench.is_quick {
                &self.quick_arguments
            } else {
                &self.arguments
            };
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut command = bench.sooner(&words);
            command.current_dir(bench.scratch());
            // 1 says that something is not as it should be, and the report what.
            let printed = bench.finish(
                &format!("sooner {}", words.join(" ")),
                bench.start(command)?,
                &[0, 1],
            )?;
            let report =
                serde_json::from_str(&printed).unwrap_or_else(|_| printed.lines().collect());
            Ok(Map::from_iter([("report".to_owned(), report)]))
        })
    }
}

/// `kept`: rows that something else measured, or measures now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// What measures it now.
    by: String,
}

impl Kept {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(keys.own::<Self>()?))
    }
}

impl Kind for Kept {
    fn run(&self, bench: &Bench<'_>, _: &Measure, _: &mut Record) -> Result<()> {
        bail!("{} is measured by `{}` now", bench.experiment.name, self.by)
    }
}

/// `large-log`: how fast `sooner advise` reads a log, beside what only decompresses and counts
/// lines, and how much memory it needs.
#[derive(Debug)]
pub struct LargeLog {
    log_bytes: u64,
    readers: Vec<Reader>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogKeys {
    log_bytes: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reader {
    reader: String,
}

/// Clients of the log, and its lines a second.
const CLIENTS: u64 = 200_000;
const LINES_A_SECOND: u64 = 20;

impl LargeLog {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            log_bytes: keys.own::<LogKeys>()?.log_bytes,
            readers: keys.cases()?,
        }))
    }
}

impl Kind for LargeLog {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        bench.need(&["gzip", "zcat"])?;
        let bytes = if bench.is_quick {
            self.log_bytes / 500
        } else {
            self.log_bytes
        };
        let plain = bench.scratch().join("access.log");
        write_log(&plain, bytes)?;
        let mut gzip = Command::new("gzip");
        bench.output({
            gzip.args(["-1", "-k"]).arg(&plain);
            gzip
        })?;
        let packed = plain.with_extension("log.gz");
        bench.by_turns(measure, record, |case, _, _| {
            let log: &PathBuf = if case.text("log") == "gzip" {
                &packed
            } else {
                &plain
            };
            let reader = super::keys_of(measure.place_of_case(case), &self.readers)?;
            let (seconds, mib) = advise(bench, log)?;
            let mut row = figures([
                ("seconds", seconds),
                ("resident_mib_max", mib),
                (
                    "count_lines_seconds",
                    count_lines(bench, &reader.reader, log)?,
                ),
            ]);
            row.insert("bytes".into(), bytes.into());
            Ok(row)
        })
    }
}

/// A combined log of heavy-tailed sizes; the same every time.
fn write_log(path: &Path, bytes: u64) -> Result<()> {
    let mut log = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let (mut state, mut written, mut line) = (1_u64, 0, 0_u64);
    while written < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let random = state >> 33;
        let client = random % CLIENTS;
        // A Pareto law with index 1.1 from 1000 bytes on, to a gigabyte.
        let uniform = (random as f64 + 1.0) / (1_u64 << 31) as f64;
        let size = (1000.0 * uniform.powf(-1.0 / 1.1)).min(1e9) as u64;
        let at = line / LINES_A_SECOND;
        let text = format!(
            "10.{}.{}.{} - - [{:02}/Nov/2026:{:02}:{:02}:{:02} +0000] \"GET /images/{}.html HTTP/1.1\" 200 {size} \"https://www.example.org/index.html\" \"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\"\n",
            client >> 16,
            client >> 8 & 255,
            client & 255,
            1 + at / 86_400,
            at / 3600 % 24,
            at / 60 % 60,
            at % 60,
            random % 10_000,
        );
        log.write_all(text.as_bytes())?;
        written += text.len() as u64;
        line += 1;
    }
    Ok(log.flush()?)
}

/// Seconds, and the most memory it had, MiB.
fn advise(bench: &Bench<'_>, log: &Path) -> Result<(f64, f64)> {
    let begin = Instant::now();
    let mut command = bench.sooner(&["advise"]);
    command.arg(log).args(["--uplink", "100mbit", "--json"]);
    let child = bench.start(command)?;
    let mut most_bytes = 0;
    while !child.has_ended() {
        most_bytes = most_bytes.max(usage(child.id()).resident_bytes);
        bench.pause(LOOK)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    bench.finish("sooner advise", child, &[0])?;
    Ok((seconds, most_bytes as f64 / 1_048_576.0))
}

fn count_lines(bench: &Bench<'_>, reader: &str, log: &Path) -> Result<f64> {
    let begin = Instant::now();
    let mut command = Command::new("sh");
    command
        .args(["-c", "\"$0\" \"$1\" | wc -l", reader])
        .arg(log);
    bench.output(command).context("cannot count lines")?;
    Ok(begin.elapsed().as_secs_f64())
}
