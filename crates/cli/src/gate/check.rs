//! `sooner gate check`: whether a configuration is right, and whether its targets can be met by a
//! gate that runs.

use crate::output;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use sooner_admission::{Observed, ResponseTarget};
use sooner_config::SourceText;
use sooner_config::classes::ClassAims;
use sooner_pooler::Configuration;
use sooner_pooler::config::{ClassTable, Config};

use super::listen;
use super::look::{Class, Look, Target, look};
use super::orders::{self, Orders};
use super::place::Place as GatePlace;
use super::{load, read_files, say};
use crate::config_file::{all_located, at_next_start, located, read};
use crate::feasibility::{Found, Jobs, Place, Seen, no_target};
use crate::seconds;

/// Check a configuration, and whether its targets can be met.
///
/// With --observe it watches a running gate. That gate may have other targets but needs the same
/// classes: the check uses what it sees of them. The password is read from PGPASSWORD.
#[derive(Args)]
pub struct CheckArgs {
    /// Configuration file to check
    #[arg(value_name = "GATE.TOML")]
    config: PathBuf,
    /// Watch the running gate for this long, such as 60s or 5min, in whole seconds
    #[arg(long, value_name = "TIME", value_parser = seconds::whole::<1>)]
    observe: Option<u64>,
    /// Running gate: an address with a port, or the path of its socket file [default: as for `gate
    /// top`]
    #[arg(long, value_name = "ADDRESS|PATH")]
    gate: Option<String>,
    /// User of the console: an admin or a watcher; through a socket file, `sooner` is the user that
    /// runs the gate
    #[arg(long, default_value = "sooner")]
    user: String,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Checks; the exit code is 1 where targets cannot be met.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    let source = read(Some(&args.config), &[])?;
    let mut config =
        Config::parse_all(&source.text).map_err(|mistakes| all_located(&source, &mistakes))?;
    config.relative_to(args.config.parent().unwrap_or(&PathBuf::new()));
    let mistakes = config.mistakes();
    if !mistakes.is_empty() {
        return Err(all_located(&source, &mistakes));
    }
    listen::check_all(&config, &source)?;
    let settings = load_strictly(config.clone(), &source)?;
    let Some(seconds) = args.observe else {
        probe_servers(&settings)?;
        output::line("the gate would start; --observe 60s says whether targets can be met")?;
        return Ok(ExitCode::SUCCESS);
    };
    if config.class.iter().all(|class| class.target.is_empty()) {
        return Err(located(&source, &no_target("no class has a target")));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (before, after, orders) = runtime.block_on(observe(args, Duration::from_secs(seconds)))?;
    let seen = seen(&config.class, &before, &after)?;
    let aims: Vec<ClassAims<'_>> = config.class.iter().map(ClassTable::aims).collect();
    let place = Place {
        jobs: Jobs::Transactions,
        limit_key: "limits.transactions",
        source: &source,
    };
    let Some(found) = Found::new(&aims, &seen, place) else {
        bail!(
            "no transaction arrived within {seconds} s, so nothing can be said; watch for longer"
        );
    };
    let is_feasible = found.is_feasible();
    if args.json {
        output::json(&Report {
            schema: 1,
            time_unit: "ms",
            observed_seconds: seconds,
            found,
            orders,
        })?
    } else {
        orders.print()?;
        found.print(seconds)?
    }
    Ok(match is_feasible {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
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

/// Refuses what a reload would refuse, and says what only the next start would. It asks no server,
/// as a reload asks none.
pub fn before_reload(config: Config, source: &SourceText) -> Result<ExitCode> {
    let refused = listen::refused_by_start(&config)?;
    load(config, source)?;
    for mistake in refused {
        say(&source.render(&at_next_start(mistake)));
    }
    output::line("a reload would take this configuration")?;
    Ok(ExitCode::SUCCESS)
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
    let place = GatePlace::of(args.gate.as_deref()).await?;
    let mut console = place.open(&args.user).await?;
    let place = place.endpoint;
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
            "the running gate has {} servers ({}), and its classes are counted over all of them together; watch a gate with one server",
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
            "the running gate has other classes ({}); give it the classes of this file first, with any targets",
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
    let ns = |us: u64| us as f64 * 1e3;
    let always = [(0.95, now.total_p95_us), (0.99, now.total_p99_us)];
    let always = always
        .into_iter()
        .filter_map(|(share, us)| Some((share, us?)));
    let percentiles = always.chain(percentiles(&now.name, targets));
    let seen = Seen {
        jobs: sums.turns,
        response_sum_ns: ns(sums.outside_us + sums.inside_us),
        inside_sum_ns: ns(sums.inside_us),
        percentiles_ns: percentiles.map(|(share, us)| (share, ns(us))).collect(),
    };
    seen.observed(response_targets)
}

/// What was found, and how long it took.
#[derive(Serialize)]
struct Report {
    schema: u32,
    time_unit: &'static str,
    observed_seconds: u64,
    #[serde(flatten)]
    found: Found,
    #[serde(flatten)]
    orders: Orders,
}
