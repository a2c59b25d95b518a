//! `sooner gate check`: whether a configuration is right, and whether its targets can be met by a
//! gate that runs.

use crate::output;
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use sooner_admission::{Observed, ResponseTarget, Verdict, verdict};
use sooner_config::classes::time_ns;
use sooner_config::{Misconfigured, SourceText, Spanned};
use sooner_pooler::config::{ClassTable, Config};
use sooner_pooler::{Configuration, ConsoleClient};
use sooner_report::columns::aligned;
use sooner_report::number;

use super::look::{Class, Look, Target, explained, look, place_of};
use super::orders::{self, Orders};
use super::{read_files, say};
use crate::config_file::{all_located, read};

/// Looks whether a configuration is right and, with --observe, whether its targets can be met.
///
/// The gate that runs may have other targets, but needs the same classes: what it sees of them
/// decides. A password is taken from PGPASSWORD.
#[derive(Args)]
pub struct CheckArgs {
    /// The configuration.
    #[arg(value_name = "GATE.TOML")]
    config: PathBuf,
    /// Watch a gate that runs for so long, like 60s or 5min; a number alone is seconds.
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    observe: Option<u64>,
    /// That gate: an address with a port, or the path of its socket file; by default as for `gate
    /// top`.
    #[arg(long, value_name = "ADDRESS|PATH")]
    gate: Option<String>,
    /// One of its admins or watchers; `sooner` through a socket file is the user who runs the gate.
    #[arg(long, default_value = "sooner")]
    user: String,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// A time with its unit, as targets have it, or seconds without one: as whole seconds.
fn whole_seconds(text: &str) -> Result<u64, String> {
    let ns = match text.parse::<u64>() {
        Ok(seconds) => seconds.saturating_mul(NS_PER_S),
        Err(_) => time_ns(text)?,
    };
    match ns {
        1.. if ns.is_multiple_of(NS_PER_S) => Ok(ns / NS_PER_S),
        _ => Err("watch for whole seconds, one or more, like 60s or 5min".into()),
    }
}

/// Checks; the exit code is 1 where targets cannot be met.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    let source = read(&args.config)?;
    let mut config =
        Config::parse_all(&source.text).map_err(|mistakes| all_located(&source, &mistakes))?;
    config.relative_to(args.config.parent().unwrap_or(&PathBuf::new()));
    let mistakes = config.mistakes();
    if !mistakes.is_empty() {
        return Err(all_located(&source, &mistakes));
    }
    let settings = load_strictly(config.clone(), &source)?;
    let Some(seconds) = args.observe else {
        probe_servers(&settings)?;
        output::line("the gate would start; --observe 60s says whether targets can be met")?;
        return Ok(ExitCode::SUCCESS);
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (before, after, orders) = runtime.block_on(observe(args, Duration::from_secs(seconds)))?;
    let seen = seen(&config.class, &before, &after)?;
    let Some(verdict) = verdict(&seen) else {
        bail!("no transaction came in {seconds} s: nothing can be said");
    };
    let mut report = Report::new(&config.class, &seen, &verdict, seconds, &source);
    report.orders = orders;
    if args.json {
        output::json(&report)?
    } else {
        report.print()?
    }
    Ok(if verdict.is_feasible() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Reads all files, and refuses what a gate would start with and could never do.
pub fn load_strictly(config: Config, source: &SourceText) -> Result<Configuration> {
    let settings = read_files(config, source)?;
    let mistakes = settings.shut_out();
    let lines = mistakes.iter().map(|mistake| source.render(mistake));
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        Ok(settings)
    } else {
        bail!("{}", lines.join("\n"))
    }
}

/// Says which servers do not answer, or allow too little; that is no reason not to start.
pub fn probe_servers(settings: &Configuration) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let lines = runtime.block_on(sooner_pooler::probe_servers(settings));
    lines.iter().for_each(|line| say(line));
    Ok(())
}

async fn observe(args: &CheckArgs, duration: Duration) -> Result<(Look, Look, Orders)> {
    let place = place_of(args.gate.as_deref())?;
    let password = env::var("PGPASSWORD").ok();
    let opened = ConsoleClient::open(&place, &args.user, password).await;
    let mut console = opened.map_err(|error| explained(error, args.gate.as_deref()))?;
    let before = of_one_server(look(&mut console, &place).await?)?;
    say(&format!("watching {} for {} s", place, duration.as_secs()));
    tokio::time::sleep(duration).await;
    let after = of_one_server(look(&mut console, &place).await?)?;
    let orders = orders::ask(&mut console, &place).await?;
    Ok((before, after, orders))
}

/// A look at a gate that has one server at most: what is left over in one server pays for nothing
/// in another.
fn of_one_server(look: Look) -> Result<Look> {
    if look.servers.len() > 1 {
        let servers = look.servers.iter().map(|server| server.address.as_str());
        let servers: Vec<&str> = servers.collect();
        bail!(
            "the gate that runs has {} servers ({}), and its classes are counted over all of them together; watch one whose configuration has one server",
            servers.len(),
            servers.join(", ")
        );
    }
    Ok(look)
}

/// What was seen of each class, and behind the last of transactions in none.
fn seen(classes: &[ClassTable], before: &Look, after: &Look) -> Result<Vec<Observed>> {
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
    let response_targets = classes
        .iter()
        .map(|class| class.aims().goal().response_targets)
        .chain([Vec::new()]);
    let looks = before.classes.iter().zip(&after.classes);
    Ok(looks
        .zip(response_targets)
        .map(|((then, now), response_targets)| {
            of_class(then, now, response_targets, &after.targets)
        })
        .collect())
}

/// Percentiles of a class that its targets are about where the gate runs: shares, and their times,
/// us.
fn percentiles<'a>(class: &'a str, targets: &'a [Target]) -> impl Iterator<Item = (f64, u64)> + 'a {
    let own = targets.iter().filter(move |target| target.class == class);
    own.filter_map(|target| {
        let percent: f64 = target.target.strip_prefix('p')?.parse().ok()?;
        Some((percent / 100.0, target.achieved_us?))
    })
}

fn of_class(
    then: &Class,
    now: &Class,
    response_targets: Vec<ResponseTarget>,
    targets: &[Target],
) -> Observed {
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
    Observed {
        jobs: sums.turns,
        response_ns,
        inside_ns: mean_ns(sums.inside_us),
        response_targets,
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
    #[serde(flatten)]
    orders: Orders,
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
    /// A line for each target that is below the time inside, with its place.
    #[serde(skip)]
    below_inside: Vec<String>,
}

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: u64 = 1_000_000_000;
const FEASIBLE: &str = "FEASIBLE";

impl Report {
    fn new(
        classes: &[ClassTable],
        seen: &[Observed],
        verdict: &Verdict,
        seconds: u64,
        source: &SourceText,
    ) -> Self {
        let ms = |ns: f64| ns / NS_PER_MS;
        let classes = classes.iter().map(Some).chain([None]);
        let rows = classes.zip(seen).enumerate();
        let row = |(at, (class, seen)): (usize, (Option<&ClassTable>, &Observed))| Row {
            name: class
                .map_or("(none)", |class| class.name.get_ref().as_str())
                .to_owned(),
            transactions: seen.jobs,
            mean_ms: ms(seen.response_ns),
            inside_ms: ms(seen.inside_ns),
            target_as_mean_ms: verdict.targets_ns[at].map(ms),
            is_below_inside: verdict.impossible.contains(&at),
            relaxed_mean_ms: verdict.relaxed_ns[at].map(ms),
            below_inside: class
                .map(|class| below_inside(class, seen, source))
                .unwrap_or_default(),
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
            orders: Orders::default(),
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
        output::line(aligned(&rows))?;
        for row in &self.classes {
            for line in &row.below_inside {
                output::line(line)?;
            }
            if row.transactions == 0 && row.name != "(none)" {
                output::line(format_args!(
                    "{}: nothing came in {} s",
                    row.name, self.observed_seconds
                ))?;
            }
        }
        self.orders.print()?;
        let line = format!("{}: {}", self.verdict, self.reason());
        Ok(output::line(line)?)
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

/// A line for each target of a class that is below its time inside, with its place.
fn below_inside(class: &ClassTable, seen: &Observed, source: &SourceText) -> Vec<String> {
    // Both are in the order of the names.
    let targets = class.target.iter().zip(&seen.response_targets);
    let line = |((name, written), response_target): (
        (&String, &Spanned<String>),
        &ResponseTarget,
    )| {
        let alone = Observed {
            response_targets: vec![*response_target],
            ..seen.clone()
        };
        let verdict = verdict(&[alone])?;
        let target_ns = verdict.targets_ns[0].filter(|_| !verdict.impossible.is_empty())?;
        let time = |ns: f64| number::duration(ns / NS_PER_MS);
        let as_mean = if name == "mean" { "" } else { " in the mean" };
        let words = format!(
            "{}: {}{as_mean} cannot be had, it is inside for {}; fewer at a time (limits.transactions), or a longer target",
            class.name.get_ref(),
            time(target_ns),
            time(seen.inside_ns)
        );
        let key = format!("class.target.{name}");
        Some(source.render(&Misconfigured::at(written, &key, words)))
    };
    targets.filter_map(line).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_watched_for_whole_seconds() {
        for (text, seconds) in [
            ("60", 60),
            ("60s", 60),
            ("5min", 300),
            ("1000ms", 1),
            ("0.7min", 42),
        ] {
            assert_eq!(whole_seconds(text), Ok(seconds), "{text}");
        }
        for (text, says) in [
            ("0", "whole seconds"),
            ("0s", "whole seconds"),
            ("500ms", "whole seconds"),
            ("1.5s", "whole seconds"),
            ("1.5", "no unit"),
            ("1 hour", "no unit is called \"hour\""),
            ("soon", "no unit is called \"soon\""),
            ("", "no unit"),
        ] {
            let error = whole_seconds(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
