//! `sooner attach status`, `top` and `remove`, whatever is attached.

use super::{cpu_table, left, postgres_table, processes, web, web_table};
use crate::{output, with_causes};
use anyhow::{Result, bail, ensure};
use clap::Args;
use sooner_attach::control;
use sooner_attach::cpu::changes::Changes;
use sooner_attach::cpu::snapshot::Snapshot as WorkersSnapshot;
use sooner_attach::postgres::leftovers::Leftovers;
use sooner_attach::postgres::snapshot::Snapshot as ServerSnapshot;
use sooner_attach::web::exposition;
use sooner_attach::web::snapshot::Snapshot as DeviceSnapshot;
use sooner_operate::say_as;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Flags of `attach status`.
#[derive(Args)]
pub struct StatusArgs {
    /// Show only this device
    #[arg(long, value_name = "DEVICE")]
    dev: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Flags of `attach remove`.
#[derive(Args)]
pub struct RemoveArgs {
    /// Remove only what is attached to this device
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["postgres", "cpu"])]
    dev: Option<String>,
    /// Remove only what is attached to network devices
    #[arg(long, conflicts_with_all = ["postgres", "cpu"])]
    web: bool,
    /// Remove only what is attached to PostgreSQL servers
    #[arg(long, conflicts_with = "cpu")]
    postgres: bool,
    /// Remove only what is attached to the workers of servers
    #[arg(long)]
    cpu: bool,
}

/// Flags of `attach top`.
#[derive(Args)]
pub struct TopArgs {
    /// Device to watch; required where several are attached
    #[arg(long, value_name = "DEVICE")]
    dev: Option<String>,
    /// Print one JSON object and exit
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print metrics in the Prometheus format once and exit
    #[arg(long)]
    prometheus: bool,
    /// Print once and exit; this is the default when standard output is not a terminal
    #[arg(long)]
    once: bool,
}

/// Something that is attached.
enum Snapshot {
    /// To a device.
    Device(Box<DeviceSnapshot>),
    /// To a PostgreSQL server.
    Server(ServerSnapshot),
    /// To the workers of a server.
    Workers(Box<WorkersSnapshot>),
}

impl Snapshot {
    fn json(&self) -> Result<serde_json::Value> {
        Ok(match self {
            Self::Device(device) => serde_json::to_value(device)?,
            Self::Server(server) => serde_json::to_value(server)?,
            Self::Workers(workers) => serde_json::to_value(workers)?,
        })
    }

    fn status_line(&self) -> String {
        match self {
            Self::Device(device) => web_table::status_line(device),
            Self::Server(server) => postgres_table::status_line(server),
            Self::Workers(workers) => cpu_table::status_line(workers),
        }
    }

    fn page(&self) -> String {
        match self {
            Self::Device(device) => web_table::page(device),
            Self::Server(server) => postgres_table::page(server),
            Self::Workers(workers) => cpu_table::page(workers),
        }
    }
}

/// All that answer; with a device, only its own.
fn attached(device: Option<&str>) -> Result<Vec<Snapshot>> {
    let mut found: Vec<Snapshot> = web::attached(device)?
        .into_iter()
        .map(|device| Snapshot::Device(Box::new(device)))
        .collect();
    if device.is_none() {
        let servers = processes::attached::<Leftovers, _>()?;
        found.extend(servers.into_iter().map(Snapshot::Server));
        let workers = processes::attached::<Changes, WorkersSnapshot>()?.into_iter();
        found.extend(workers.map(|one| Snapshot::Workers(Box::new(one))));
    }
    Ok(found)
}

/// What this user cannot see; none where that is nothing.
fn unseen() -> Option<String> {
    let folder = control::unseen_folder()?;
    Some(format!(
        "what other users have attached cannot be seen: {} is not yours; run it with sudo",
        folder.display()
    ))
}

/// What is attached to devices and does not answer this user, who sees all that does.
fn out_of_sight(device: Option<&str>) -> Result<Vec<String>> {
    match unseen() {
        Some(_) => Ok(Vec::new()),
        None => web::out_of_sight(device),
    }
}

/// Says what is attached, and what killed processes left.
pub fn status(args: &StatusArgs) -> Result<ExitCode> {
    let found = attached(args.dev.as_deref())?;
    let left = left::of_killed(args.dev.as_deref())?;
    let out_of_sight = out_of_sight(args.dev.as_deref())?;
    for line in &out_of_sight {
        say_as("sooner attach", line);
    }
    let is_nothing = found.is_empty() && left.is_empty() && out_of_sight.is_empty();
    match unseen() {
        Some(words) if is_nothing => bail!("{words}"),
        Some(words) => say_as("sooner attach", format_args!("{words}")),
        None => {}
    }
    let text = if args.json {
        let found = found.iter().map(Snapshot::json);
        let left = left.iter().map(|one| Ok(serde_json::to_value(one)?));
        let all = found.chain(left).collect::<Result<Vec<_>>>()?;
        serde_json::to_string(&all)? + "\n"
    } else if is_nothing {
        "nothing is attached\n".into()
    } else {
        let found = found.iter().map(Snapshot::status_line);
        let left = left.iter().map(|one| format!("{}\n", one.line()));
        found.chain(left).collect()
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Why there is nothing to show: what is left of killed ones, or cannot be seen, or is not there.
fn nothing(device: Option<&str>) -> Result<String> {
    if let Some(left) = left::of_killed(device)?.first() {
        return Ok(left.line());
    }
    if let Some(line) = out_of_sight(device)?.pop() {
        return Ok(line);
    }
    Ok(unseen().unwrap_or_else(|| {
        "nothing is attached here; start it with `sooner attach web`, `sooner attach postgres` or `sooner attach cpu`".into()
    }))
}

/// Shows what it does.
pub fn top(args: &TopArgs) -> Result<ExitCode> {
    let ask = || {
        let mut found = attached(args.dev.as_deref())?;
        match found.len() {
            0 => bail!("{}", nothing(args.dev.as_deref())?),
            1 => Ok(found.remove(0)),
            _ => bail!(
                "several things are attached; choose a device with --dev, or see `sooner attach status`"
            ),
        }
    };
    if args.json {
        output::line(ask()?.json()?)?;
    } else if args.prometheus {
        match ask()? {
            Snapshot::Device(device) => output::print(&exposition::encode(&device)?)?,
            Snapshot::Server(_) | Snapshot::Workers(_) => {
                bail!("--prometheus is for web servers only; use --json")
            }
        }
    } else if args.once || !io::stdout().is_terminal() {
        output::print(&ask()?.page())?;
    } else {
        loop {
            let page = ask()?.page();
            // home, the page, and nothing below it
            output::print(&format!("\x1b[H{}\x1b[J", page.replace('\n', "\x1b[K\n")))?;
            thread::sleep(Duration::from_secs(1));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends what is attached. What fails of one kind is told after the other was tried.
pub fn remove(args: &RemoveArgs) -> Result<ExitCode> {
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    if !(args.postgres || args.cpu) {
        match web::remove(args.dev.as_deref()) {
            Ok(lines) => done.extend(lines),
            Err(error) => problems.push(with_causes(&error)),
        }
        problems.extend(out_of_sight(args.dev.as_deref())?);
    }
    let of_processes = args.dev.is_none() && !args.web;
    let mut ended = Vec::new();
    if of_processes && !args.cpu {
        ended.push(processes::remove::<Leftovers>());
    }
    if of_processes && !args.postgres {
        ended.push(processes::remove::<Changes>());
    }
    for ended in ended {
        match ended {
            Ok((lines, failed)) => {
                done.extend(lines);
                problems.extend(failed);
            }
            Err(error) => problems.push(with_causes(&error)),
        }
    }
    match unseen() {
        Some(words) if done.is_empty() => problems.push(words),
        Some(words) => say_as("sooner attach", format_args!("{words}")),
        None if done.is_empty() && problems.is_empty() => done.push("nothing is attached".into()),
        None => {}
    }
    output::print(
        &done
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )?;
    ensure!(problems.is_empty(), "{}", problems.join("; "));
    Ok(ExitCode::SUCCESS)
}
