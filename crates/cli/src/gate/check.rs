//! `sooner gate check`: whether a configuration is right, and whether its targets can be met by a gate that runs.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use sooner_gate::{Seen, Verdict, verdict};
use sooner_postgres::config::{ClassTable, Config};
use sooner_postgres::net::Console;
use sooner_report::columns::aligned;
use sooner_report::number;

use super::look::{Class, Look, Target, look, place};
use super::{load, say};
use crate::config_file::{located, read};

/// Looks whether a configuration is right and, with --observe, whether its targets can be met.
///
/// The gate that runs may have other targets, but needs the same classes: what it sees of them decides. A password is taken from PGPASSWORD.
#[derive(Args)]
pub struct CheckArgs {
    /// The configuration.
    #[arg(value_name = "GATE.TOML")]
    config: PathBuf,
    /// Watch a gate that runs for so long.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    observe: Option<u64>,
    /// That gate: an address with a port, or the path of its socket file.
    #[arg(long, value_name = "ADDRESS|PATH", default_value = "127.0.0.1:6432")]
    gate: String,
    /// One of its admins or watchers; `sooner` through a socket file is whoever runs it.
    #[arg(long, default_value = "sooner")]
    user: String,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Checks; the exit code is 1 where targets cannot be met.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    let source = read(&args.config)?;
    let mut config = Config::parse(&source.text).map_err(|mistake| located(&source, &mistake))?;
    config.relative_to(args.config.parent().unwrap_or(&PathBuf::new()));
    load(config.clone(), &source)?;
    let Some(seconds) = args.observe else {
        let _ = writeln!(
            io::stdout(),
            "the gate would start; --observe 60 says whether targets can be met"
        );
        return Ok(ExitCode::SUCCESS);
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (before, after) = runtime.block_on(observe(args, Duration::from_secs(seconds)))?;
    let seen = seen(&config.class, &before, &after)?;
    let Some(verdict) = verdict(&seen) else {
        bail!("no transaction came in {seconds} s: nothing can be said");
    };
    let report = Report::new(&config.class, &seen, &verdict, seconds);
    match args.json {
        true => serde_json::to_writer_pretty(io::stdout().lock(), &report)?,
        false => report.print()?,
    }
    Ok(match verdict.is_feasible() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

async fn observe(args: &CheckArgs, duration: Duration) -> Result<(Look, Look)> {
    let place = place(&args.gate)?;
    let password = env::var("PGPASSWORD").ok();
    let opened = Console::open(&place, &args.user, password).await;
    let mut console = opened.map_err(anyhow::Error::msg)?;
    let before = look(&mut console, &place).await?;
    say(&format!(
        "watching {} for {} s",
        args.gate,
        duration.as_secs()
    ));
    tokio::time::sleep(duration).await;
    Ok((before, look(&mut console, &place).await?))
}

/// What was seen of each class, and behind the last of transactions in none.
fn seen(classes: &[ClassTable], before: &Look, after: &Look) -> Result<Vec<Seen>> {
    let known = |look: &Look| {
        look.classes
            .iter()
            .map(|class| class.name.clone())
            .collect::<Vec<_>>()
    };
    let mut names: Vec<String> = classes
        .iter()
        .map(|class| class.name.get_ref().clone())
        .collect();
    names.push(String::new());
    if known(before) != names || known(after) != names {
        bail!(
            "the gate that runs has other classes ({}); give it these first, their targets do not matter",
            known(after).join(", ")
        );
    }
    let aims = classes
        .iter()
        .map(|class| class.goal().aims)
        .chain([Vec::new()]);
    let looks = before.classes.iter().zip(&after.classes);
    Ok(looks
        .zip(aims)
        .map(|((then, now), aims)| of_class(then, now, aims, &after.targets))
        .collect())
}

/// Percentiles of a class that its targets are about where the gate runs: shares, and their times, us.
fn percentiles<'a>(class: &'a str, targets: &'a [Target]) -> impl Iterator<Item = (f64, u64)> + 'a {
    let own = targets.iter().filter(move |target| target.class == class);
    own.filter_map(|target| {
        let percent: f64 = target.target.strip_prefix('p')?.parse().ok()?;
        Some((percent / 100.0, target.achieved_us?))
    })
}

fn of_class(then: &Class, now: &Class, aims: Vec<sooner_gate::Aim>, targets: &[Target]) -> Seen {
    let sums = now.sums.since(then.sums);
    let mean_ns = |sum_us: u64| sum_us as f64 * 1e3 / sums.turns.max(1) as f64;
    let response_ns = mean_ns(sums.outside_us + sums.inside_us);
    let always = [(0.95, now.total_p95_us), (0.99, now.total_p99_us)];
    let always = always
        .into_iter()
        .filter_map(|(share, us)| Some((share, us?)));
    let times = |us: u64| us as f64 * 1e3 / response_ns;
    let spread = always
        .chain(percentiles(&now.name, targets))
        .map(|(share, us)| (share, times(us)));
    Seen {
        jobs: sums.turns,
        response_ns,
        inside_ns: mean_ns(sums.inside_us),
        aims,
        spread: spread
            .filter(|(_, times)| times.is_finite() && *times > 0.0)
            .collect(),
    }
}

/// What was found. Times in ms.
#[derive(Serialize)]
struct Report {
    schema: u32,
    time_unit: &'static str,
    observed_seconds: u64,
    verdict: &'static str,
    needed_ms: f64,
    allowed_ms: Option<f64>,
    left_over_ms: Option<f64>,
    relax_all_by: Option<f64>,
    classes: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    transactions: u64,
    mean_ms: f64,
    inside_ms: f64,
    target_as_mean_ms: Option<f64>,
    is_below_inside: bool,
    relaxed_mean_ms: Option<f64>,
}

const NS_PER_MS: f64 = 1e6;
const FEASIBLE: &str = "FEASIBLE";

impl Report {
    fn new(classes: &[ClassTable], seen: &[Seen], verdict: &Verdict, seconds: u64) -> Self {
        let ms = |ns: f64| ns / NS_PER_MS;
        let names = classes.iter().map(|class| class.name.get_ref().clone());
        let rows = names.chain(["(none)".to_owned()]).zip(seen).enumerate();
        let row = |(at, (name, seen)): (usize, (String, &Seen))| Row {
            name,
            transactions: seen.jobs,
            mean_ms: ms(seen.response_ns),
            inside_ms: ms(seen.inside_ns),
            target_as_mean_ms: verdict.targets_ns[at].map(ms),
            is_below_inside: verdict.impossible.contains(&at),
            relaxed_mean_ms: verdict.relaxed_ns[at].map(ms),
        };
        let is_feasible = verdict.is_feasible();
        Self {
            schema: 1,
            time_unit: "ms",
            observed_seconds: seconds,
            verdict: if is_feasible {
                FEASIBLE
            } else {
                "NOT FEASIBLE"
            },
            needed_ms: ms(verdict.needed_ns),
            allowed_ms: verdict.allowed_ns.map(ms),
            left_over_ms: verdict.left_over_ns.map(ms),
            relax_all_by: verdict.factor().filter(|factor| *factor > 1.0),
            classes: rows.map(row).collect(),
        }
    }

    fn print(&self) -> Result<()> {
        let head = [
            "class",
            "transactions",
            "mean",
            "inside",
            "target as a mean",
            "alone relaxed to",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(
            self.classes
                .iter()
                .filter(|row| row.name != "(none)" || row.transactions > 0)
                .map(Row::cells),
        );
        let mut out = io::stdout().lock();
        writeln!(out, "{}", aligned(&rows))?;
        for row in &self.classes {
            if let (true, Some(target)) = (row.is_below_inside, row.target_as_mean_ms) {
                let (name, inside) = (&row.name, row.inside_ms);
                let (target, inside) = (number::duration(target), number::duration(inside));
                writeln!(
                    out,
                    "{name}: {target} cannot be had, it is inside for {inside}; fewer at a time (limits.transactions), or a longer target"
                )?;
            }
            if row.transactions == 0 && row.name != "(none)" {
                writeln!(
                    out,
                    "{}: nothing came in {} s",
                    row.name, self.observed_seconds
                )?;
            }
        }
        Ok(writeln!(out, "{}: {}", self.verdict, self.reason())?)
    }

    fn reason(&self) -> String {
        let time = number::duration;
        let needed = time(self.needed_ms);
        match (self.allowed_ms, self.left_over_ms, self.relax_all_by) {
            (Some(allowed), _, Some(factor)) => format!(
                "the targets allow {} in the mean of all, {needed} are needed; relax all of them {} times, or one of them as in the last column",
                time(allowed),
                number::significant(factor)
            ),
            (Some(allowed), _, None) => format!(
                "the targets allow {} in the mean of all, {needed} are needed",
                time(allowed)
            ),
            (None, Some(left_over), _) if left_over < self.needed_ms => {
                format!(
                    "classes without a target would take {} instead of {needed}: targets are looser than what there is",
                    time(left_over.max(0.0))
                )
            }
            (None, Some(left_over), _) if self.verdict != FEASIBLE => format!(
                "classes without a target would take {}, and cannot be made to wait that long; the mean of all is {needed}; relax one of the others as in the last column",
                time(left_over)
            ),
            (None, left_over, _) => format!(
                "classes without a target would take {}; the mean of all is {needed}",
                time(left_over.unwrap_or(0.0))
            ),
        }
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let time = |ms: Option<f64>| ms.map_or("-".into(), number::duration);
        vec![
            self.name.clone(),
            self.transactions.to_string(),
            time(Some(self.mean_ms)),
            time(Some(self.inside_ms)),
            time(self.target_as_mean_ms),
            time(self.relaxed_mean_ms),
        ]
    }
}
