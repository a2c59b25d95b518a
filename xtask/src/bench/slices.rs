//! Throughput at several limits by turns, in slices of half a second under one load: what a machine does meanwhile concerns all alike.
//!
//! Each limit reaches the gate by SIGHUP; what is counted are the transactions that it tells at its metrics' address.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::link::Running;
use super::oltp::{Load, METRICS, Place};
use super::stolen::undisturbed;

/// Left out after a change: the gate reads its file, and transactions that went in under another limit are still there.
const LEFT_OUT: Duration = Duration::from_millis(300);
/// So long at most until those that are too many have left, looked at this often.
const LEAVING_MAX: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// Counted.
const SLICE: Duration = Duration::from_millis(600);

/// Of a slice in which processor time was stolen.
const TRIES_MAX: u32 = 10;

/// A gate under load whose limit changes.
pub struct Slices<'a> {
    place: &'a Place,
    users: Running,
    gate: Running,
}

impl<'a> Slices<'a> {
    /// Begins with this load; its users are there when this returns.
    pub fn start(place: &'a Place, load: &Load<'_>) -> anyhow::Result<Self> {
        let gate = place.gate(&config(1))?;
        let users = place.users_meanwhile(load)?;
        let slices = Self { place, users, gate };
        let begin = Instant::now();
        while slices.transactions()? == 0 {
            ensure!(begin.elapsed() < Duration::from_secs(60), "nobody comes");
            sleep(SLICE);
        }
        sleep(Duration::from_secs(u64::from(load.warm_up_seconds)));
        Ok(slices)
    }

    /// Transactions a second with so many inside.
    pub fn rate(&mut self, limit: u32) -> anyhow::Result<f64> {
        let is_over = self.users.0.try_wait()?.is_some();
        ensure!(!is_over, "the users went before the measurement was over");
        self.place.configure(&config(limit))?;
        let mut hup = Command::new("kill");
        hup.args(["-HUP", &self.gate.id().to_string()]);
        ensure!(hup.status()?.success(), "the gate is gone");
        sleep(LEFT_OUT);
        self.wait_until_inside(limit)?;
        undisturbed(TRIES_MAX, || {
            let (before, begin) = (self.transactions()?, Instant::now());
            sleep(SLICE);
            let (after, seconds) = (self.transactions()?, begin.elapsed().as_secs_f64());
            Ok((after - before) as f64 / seconds)
        })
    }

    /// Until no more are inside than may be: those that went in under a higher limit leave when they are done.
    fn wait_until_inside(&self, limit: u32) -> anyhow::Result<()> {
        let begin = Instant::now();
        loop {
            let text = metrics()?;
            let (may, inside) = (
                sum(&text, "sooner_gate_limit_transactions"),
                sum(&text, "sooner_gate_inside_transactions"),
            );
            if may == f64::from(limit) && inside <= may {
                return Ok(());
            }
            ensure!(
                begin.elapsed() < LEAVING_MAX,
                "{inside} are inside, {may} may be, and {limit} should"
            );
            sleep(LOOK);
        }
    }

    fn transactions(&self) -> anyhow::Result<u64> {
        Ok(sum(&metrics()?, "sooner_gate_transactions_total") as u64)
    }
}

/// Of all rows of this name.
fn sum(metrics: &str, name: &str) -> f64 {
    let rows = metrics.lines().filter_map(|row| row.strip_prefix(name));
    let rows = rows.filter(|rest| rest.starts_with('{'));
    let last = |row: &str| row.rsplit(' ').next()?.parse::<f64>().ok();
    // The sum of nothing is -0.
    0.0 + rows.filter_map(last).sum::<f64>()
}

fn config(limit: u32) -> String {
    format!("[limits]\ntransactions = {limit}\n")
}

fn metrics() -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(METRICS).context("the gate tells no figures")?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// The sum of the one over the sum of the other, and half of its 95 % interval: the error of a ratio estimator (Cochran 1977, 6.4).
pub fn ratio(one: &[f64], other: &[f64]) -> (f64, f64) {
    let count = one.len() as f64;
    let ratio = one.iter().sum::<f64>() / other.iter().sum::<f64>();
    let mean = other.iter().sum::<f64>() / count;
    let pairs = one.iter().zip(other);
    let squares: f64 = pairs
        .map(|(one, other)| (one - ratio * other).powi(2))
        .sum();
    let error = (squares / (count * (count - 1.0).max(1.0))).sqrt() / mean;
    (ratio, 2.0 * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_one_name_are_added() {
        let text = "# TYPE sooner_gate_inside_transactions gauge\nsooner_gate_inside_transactions{server=\"a:5432\"} 3.0\n\
            sooner_gate_inside_transactions{server=\"b:5432\"} 4.0\nsooner_gate_inside_transactions_more{server=\"a:5432\"} 9.0\n";
        assert_eq!(sum(text, "sooner_gate_inside_transactions"), 7.0);
        assert_eq!(sum(text, "sooner_gate_limit_transactions"), 0.0);
    }
}
