//! `sooner attach status`, `top` and `remove`, whatever is attached.

use super::chosen::{Choice, Snapshot, attached};
use super::{Partly, left, processes, web};
use crate::{output, with_causes};
use anyhow::{Result, bail, ensure};
use clap::Args;
use sooner_attach::control;
use sooner_attach::cpu::changes::Changes;
use sooner_attach::detach::Which;
use sooner_attach::postgres::leftovers::Leftovers;
use sooner_attach::web::exposition;
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
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["postgres", "cpu", "server_pid"])]
    dev: Option<String>,
    /// Remove only what is attached to network devices
    #[arg(long, conflicts_with_all = ["postgres", "cpu", "server_pid"])]
    web: bool,
    /// Remove only what is attached to PostgreSQL servers
    #[arg(long, conflicts_with = "cpu")]
    postgres: bool,
    /// Remove only what is attached to the workers of servers
    #[arg(long)]
    cpu: bool,
    /// Remove only what is attached to the server with this first process, as `attach status` prints
    /// it
    #[arg(long = "pid", value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    server_pid: Option<u32>,
    /// End no attachment: only restore what killed processes left changed
    #[arg(long)]
    killed: bool,
}

/// Flags of `attach top`.
#[derive(Args)]
pub struct TopArgs {
    #[command(flatten)]
    choice: Choice,
    /// Print one JSON object and exit
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print metrics of all devices, or of one, in the Prometheus format once and exit
    #[arg(long, conflicts_with_all = ["postgres", "cpu", "server_pid"])]
    prometheus: bool,
    /// Print once and exit; this is the default when standard output is not a terminal
    #[arg(long)]
    once: bool,
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

/// Says what is attached, and what killed processes left. What could not be found out is told after
/// all that was.
pub fn status(args: &StatusArgs) -> Result<ExitCode> {
    let (found, mut problems) = attached(args.dev.as_deref())?;
    let (left, failed) = left::of_killed(args.dev.as_deref())?;
    problems.extend(failed);
    let out_of_sight = out_of_sight(args.dev.as_deref())?;
    for line in &out_of_sight {
        say_as("sooner attach", line);
    }
    let is_nothing =
        found.is_empty() && left.is_empty() && out_of_sight.is_empty() && problems.is_empty();
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
    all_is_well(&problems)?;
    Ok(ExitCode::SUCCESS)
}

/// An error with all of these in a line, where there are some.
fn all_is_well(problems: &[String]) -> Result<()> {
    ensure!(problems.is_empty(), "{}", problems.join("; "));
    Ok(())
}

/// Why there is nothing to show: what is left of killed ones, or cannot be seen, or is not there.
fn nothing(device: Option<&str>) -> Result<String> {
    let (left, problems) = left::of_killed(device)?;
    if let Some(left) = left.first() {
        return Ok(left.line());
    }
    all_is_well(&problems)?;
    if let Some(line) = out_of_sight(device)?.pop() {
        return Ok(line);
    }
    Ok(unseen().unwrap_or_else(|| {
        "nothing is attached here; start it with `sooner attach web`, `sooner attach postgres` or `sooner attach cpu`".into()
    }))
}

/// The one that the flags choose.
fn chosen(choice: &Choice) -> Result<Snapshot> {
    match choice.one()? {
        Some(one) => Ok(one),
        None => bail!("{}", nothing(choice.device())?),
    }
}

/// Prints the metrics of all devices that answer, or of the one that was named.
fn metrics(device: Option<&str>) -> Result<()> {
    let (devices, problems) = web::attached(device)?;
    if devices.is_empty() {
        all_is_well(&problems)?;
        ensure!(
            device.is_some() || attached(None)?.0.is_empty(),
            "--prometheus is of devices only, and none has an attachment; use --json"
        );
        bail!("{}", nothing(device)?);
    }
    output::print(&exposition::encode(&devices)?)?;
    all_is_well(&problems)
}

/// Shows what it does.
pub fn top(args: &TopArgs) -> Result<ExitCode> {
    let page = || Ok::<_, anyhow::Error>(chosen(&args.choice)?.page());
    if args.json {
        output::line(chosen(&args.choice)?.json()?)?;
    } else if args.prometheus {
        metrics(args.choice.device())?;
    } else if args.once || !io::stdout().is_terminal() {
        output::print(&page()?)?;
    } else {
        loop {
            let page = page()?;
            // home, the page, and nothing below it
            output::print(&format!("\x1b[H{}\x1b[J", page.replace('\n', "\x1b[K\n")))?;
            thread::sleep(Duration::from_secs(1));
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl RemoveArgs {
    fn which(&self) -> Which {
        match self.killed {
            true => Which::OfKilled,
            false => Which::All,
        }
    }

    /// Whether devices are meant.
    fn is_of_devices(&self) -> bool {
        !(self.postgres || self.cpu) && self.server_pid.is_none()
    }

    /// Whether servers' processes are meant.
    fn is_of_processes(&self) -> bool {
        self.dev.is_none() && !self.web
    }

    /// Where there was nothing to do.
    fn nothing(&self) -> String {
        match (self.killed, self.server_pid) {
            (true, None) => "no killed process left anything changed".into(),
            (true, Some(pid)) => format!(
                "no killed process left anything of a server with first process {pid} changed"
            ),
            (false, None) => "nothing is attached".into(),
            (false, Some(pid)) => {
                format!("nothing is attached to a server with first process {pid}")
            }
        }
    }

    /// What is attached to devices, or left there.
    fn of_devices(&self) -> Result<Partly<String>> {
        let device = self.dev.as_deref();
        let (done, mut problems) = web::remove(device, self.which())?;
        if !self.killed {
            match out_of_sight(device) {
                Ok(lines) => problems.extend(lines),
                Err(error) => problems.push(with_causes(&error)),
            }
        }
        Ok((done, problems))
    }
}

/// Ends what is attached. What fails of one is told after all others were tried.
pub fn remove(args: &RemoveArgs) -> Result<ExitCode> {
    let (which, server) = (args.which(), args.server_pid);
    let mut ended = Vec::new();
    if args.is_of_devices() {
        ended.push(args.of_devices());
    }
    if args.is_of_processes() && !args.cpu {
        ended.push(processes::remove::<Leftovers>(which, server));
    }
    if args.is_of_processes() && !args.postgres {
        ended.push(processes::remove::<Changes>(which, server));
    }
    let (mut done, mut problems) = (Vec::new(), Vec::new());
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
        None if done.is_empty() && problems.is_empty() => done.push(args.nothing()),
        None => {}
    }
    output::print(
        &done
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )?;
    all_is_well(&problems)?;
    Ok(ExitCode::SUCCESS)
}
