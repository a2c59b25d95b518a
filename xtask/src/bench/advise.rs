//! `sooner advise` on a large log: how fast it is, beside what only decompresses and counts lines, and how much memory it needs.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use super::Effort;
use super::check::{Checks, median};
use super::proc;
use super::record::Record;
use crate::process;

/// Of the log, uncompressed.
const LOG_BYTES: u64 = 1_000_000_000;
/// Resident memory at most.
const MEMORY_MIB_MAX: f64 = 200.0;
/// Clients of the log, and seconds between its lines.
const CLIENTS: u64 = 200_000;
const LINES_A_SECOND: u64 = 20;

/// Runs it; the log is made in a folder that is thrown away.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let bytes = if effort.quick {
        LOG_BYTES / 50
    } else {
        LOG_BYTES
    };
    let plain = folder.path().join("access.log");
    write_log(&plain, bytes)?;
    let packed = folder.path().join("access.log.gz");
    let gzip = Command::new("gzip")
        .args(["-1", "-k", "-c"])
        .arg(&plain)
        .stdout(File::create(&packed)?)
        .status()?;
    anyhow::ensure!(gzip.success(), "gzip failed");
    let mut record = Record::open("advise", "advise")?;
    let mut part = Checks::default();
    let mut table = String::from(
        "| log | tool | MB of log a second | resident at most, MiB |\n|---|---|---|---|\n",
    );
    for (name, path, reader) in [("plain", &plain, "cat"), ("gzip", &packed, "zcat")] {
        let (mut ours, mut theirs, mut memory) = (Vec::new(), Vec::new(), 0.0_f64);
        for round in 1..=effort.repetitions {
            let (seconds, mib) = advise(path)?;
            let counted = count_lines(reader, path)?;
            record.add(&json!({"log": name, "round": round, "bytes": bytes, "seconds": seconds, "resident_mib_max": mib, "count_lines_seconds": counted}))?;
            ours.push(bytes as f64 / 1e6 / seconds);
            theirs.push(bytes as f64 / 1e6 / counted);
            memory = memory.max(mib);
        }
        let (ours, theirs) = (median(&ours), median(&theirs));
        table += &format!(
            "| {name} | sooner advise | {ours:.0} | {memory:.0} |\n| {name} | {reader} LOG, wc -l | {theirs:.0} | |\n"
        );
        part.at_most(
            &format!("{name}: resident memory, MiB"),
            memory,
            MEMORY_MIB_MAX,
        );
    }
    record.table("advise", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// A combined log of heavy-tailed sizes; the same every time.
fn write_log(path: &Path, bytes: u64) -> anyhow::Result<()> {
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
fn advise(log: &Path) -> anyhow::Result<(f64, f64)> {
    let start = Instant::now();
    let mut child = Command::new(process::root().join("target/release/sooner"))
        .arg("advise")
        .arg(log)
        .args(["--uplink", "100mbit", "--json"])
        .stdout(Stdio::null())
        .spawn()?;
    let mut most_kib = 0.0_f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        most_kib = most_kib.max(proc::resident_kib(child.id()));
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    anyhow::ensure!(status.success(), "sooner advise failed");
    Ok((start.elapsed().as_secs_f64(), most_kib / 1024.0))
}

fn count_lines(reader: &str, log: &Path) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut source = Command::new(reader)
        .arg(log)
        .stdout(Stdio::piped())
        .spawn()?;
    let Some(output) = source.stdout.take() else {
        anyhow::bail!("no output of {reader}");
    };
    let counted = Command::new("wc")
        .arg("-l")
        .stdin(output)
        .stdout(Stdio::null())
        .status()?;
    anyhow::ensure!(
        source.wait()?.success() && counted.success(),
        "{reader} or wc failed"
    );
    Ok(start.elapsed().as_secs_f64())
}
