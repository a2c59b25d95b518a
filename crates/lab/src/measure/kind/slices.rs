//! Throughput at several limits by turns, in slices of half a second or more under one load: what a
//! machine does meanwhile concerns all alike.
//!
//! Each limit reaches the gate by SIGHUP; what is counted are the transactions that it tells at its
//! metrics' address.

use super::oltp::{Load, LoadedDatabase};
use crate::measure::calm::undisturbed;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use sooner_testbed::OwnedChild;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Left out after a change at least: the gate reads its file, and transactions that went in under
/// another limit are still there.
const LEFT_OUT: Duration = Duration::from_millis(300);
/// So many times as long as a transaction is inside is left out, and counted: of many that went in
/// at once the short ones are done first, so that what is counted too early is too much, and the
/// long ones end in no slice.
const TIMES_INSIDE: u32 = 3;
/// So long at most until those that are too many have left, looked at this often.
const LEAVING_MAX: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// Counted at least.
const SLICE: Duration = Duration::from_millis(600);
/// The same where response times are compared, of which there are few that are short.
const RESPONSES_SLICE: Duration = Duration::from_secs(1);

/// Of a slice in which processor time was stolen.
const TRIES_MAX: u32 = 10;

/// What a gate told of a slice.
#[derive(Debug, PartialEq)]
pub struct SliceFigures {
    /// Those that are tried again not counted.
    pub transactions_per_sec: f64,
    /// Mean response time of the class `rest` at the gate, ms; NaN where it had none.
    pub low_ms: f64,
    /// Of all classes.
    pub all_ms: f64,
}

impl SliceFigures {
    /// By the metrics before and after.
    fn between(before: &str, after: &str, seconds: f64) -> Self {
        let more = |name: &str| sum(after, name) - sum(before, name);
        let mean_ms = |class: &str| {
            let of = |what: &str| more(&format!("sooner_gate_class_{what}{class}"));
            // One that failed in the way of others is tried again: its time is part of that of the
            // one which was done.
            let done = of("response_time_seconds_count") - of("conflicts_total");
            1e3 * of("response_time_seconds_sum") / done
        };
        Self {
            transactions_per_sec: (more("sooner_gate_transactions_total")
                - more("sooner_gate_conflicts_total"))
                / seconds,
            low_ms: mean_ms("{class=\"rest\"}"),
            all_ms: mean_ms(""),
        }
    }
}

/// A gate under load, with a limit that changes.
pub struct Slices<'a> {
    loaded: &'a LoadedDatabase<'a>,
    users: OwnedChild,
    gate: OwnedChild,
    /// In the last slice.
    transactions_per_sec: f64,
}

impl<'a> Slices<'a> {
    /// Begins with this load; its users are there when this returns.
    pub fn start(loaded: &'a LoadedDatabase<'a>, load: &Load<'_>) -> Result<Self> {
        let gate = loaded.gate(&config(1))?;
        let users = loaded.users_meanwhile(load)?;
        let mut slices = Self {
            loaded,
            users,
            gate,
            transactions_per_sec: 1.0,
        };
        let begin = Instant::now();
        while slices.transactions()? == 0 {
            ensure!(
                begin.elapsed() < Duration::from_secs(60),
                "no transaction comes"
            );
            loaded.bench.pause(SLICE)?;
        }
        loaded
            .bench
            .pause(Duration::from_secs(load.warm_up_seconds))?;
        slices.slice(RESPONSES_SLICE)?;
        Ok(slices)
    }

    /// Transactions a second with so many inside.
    pub fn rate(&mut self, limit: u32) -> Result<f64> {
        let settled = self.settled(limit);
        self.turn_to(limit, "", LEFT_OUT.max(settled))?;
        Ok(self.slice(SLICE.max(settled))?.transactions_per_sec)
    }

    /// What all see with so many inside and these classes in the gate's configuration, where a
    /// response takes `response`: what was there before is not counted, and a slice is at least as
    /// long.
    pub fn seen(&mut self, limit: u32, classes: &str, response: Duration) -> Result<SliceFigures> {
        let settled = self.settled(limit).max(response);
        self.turn_to(limit, classes, LEFT_OUT.max(settled))?;
        self.slice(RESPONSES_SLICE.max(settled))
    }

    /// How long it takes until those inside are of all ages, by Little's law.
    fn settled(&self, limit: u32) -> Duration {
        let inside = f64::from(limit) / self.transactions_per_sec.max(1.0);
        (TIMES_INSIDE * Duration::from_secs_f64(inside)).min(LEAVING_MAX)
    }

    /// Has the gate read another configuration, and waits until it is all that counts.
    fn turn_to(&mut self, limit: u32, classes: &str, left_out: Duration) -> Result<()> {
        ensure!(
            !self.users.has_ended(),
            "the users went before the measurement was over"
        );
        self.loaded.configure(&(config(limit) + classes))?;
        self.gate.signal(Signal::HUP).context("the gate is gone")?;
        self.loaded.bench.pause(left_out)?;
        self.wait_until_inside(limit)
    }

    fn slice(&mut self, length: Duration) -> Result<SliceFigures> {
        let tries = if self.loaded.bench.is_quick {
            1
        } else {
            TRIES_MAX
        };
        let seen = undisturbed(tries, || {
            let (before, begin) = (metrics(self.loaded.metrics)?, Instant::now());
            self.loaded.bench.pause(length)?;
            let (after, seconds) = (metrics(self.loaded.metrics)?, begin.elapsed().as_secs_f64());
            Ok(SliceFigures::between(&before, &after, seconds))
        })?;
        self.transactions_per_sec = seen.transactions_per_sec;
        Ok(seen)
    }

    /// Until no more are inside than may be: those that went in under a higher limit leave when
    /// they are done.
    fn wait_until_inside(&self, limit: u32) -> Result<()> {
        let begin = Instant::now();
        loop {
            let text = metrics(self.loaded.metrics)?;
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
            self.loaded.bench.pause(LOOK)?;
        }
    }

    fn transactions(&self) -> Result<u64> {
        Ok(sum(
            &metrics(self.loaded.metrics)?,
            "sooner_gate_transactions_total",
        ) as u64)
    }
}

/// Of all rows of this name, which may have its labels.
fn sum(metrics: &str, name: &str) -> f64 {
    let rows = metrics.lines().filter_map(|row| row.strip_prefix(name));
    let rows = rows.filter(|rest| rest.starts_with(['{', ' ']));
    let last = |row: &str| row.rsplit(' ').next()?.parse::<f64>().ok();
    // The sum of nothing is -0.
    0.0 + rows.filter_map(last).sum::<f64>()
}

fn config(limit: u32) -> String {
    format!("[limits]\ntransactions = {limit}\n")
}

fn metrics(address: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(address).context("the gate tells no figures")?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
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

    #[test]
    fn what_is_seen_is_what_came_meanwhile() {
        let class = |name: &str, seconds: f64, count: u32, conflicts: u32| {
            format!(
                "sooner_gate_class_response_time_seconds_sum{{class=\"{name}\"}} {seconds}\n\
                 sooner_gate_class_response_time_seconds_count{{class=\"{name}\"}} {count}\n\
                 sooner_gate_class_conflicts_total{{class=\"{name}\"}} {conflicts}\n"
            )
        };
        let all = |transactions: u32, conflicts: u32| {
            format!(
                "sooner_gate_transactions_total{{database=\"shop\"}} {transactions}.0\n\
                 sooner_gate_conflicts_total{{database=\"shop\"}} {conflicts}.0\n"
            )
        };
        let before = all(100, 5) + &class("high", 1.0, 10, 0) + &class("rest", 20.0, 90, 5);
        let after = all(320, 25) + &class("high", 1.5, 30, 0) + &class("rest", 56.0, 290, 25);
        let seen = SliceFigures {
            transactions_per_sec: 100.0,
            low_ms: 200.0,
            all_ms: 182.5,
        };
        assert_eq!(SliceFigures::between(&before, &after, 2.0), seen);
    }
}
