//! `sooner attach cpu`: the workers of a server, ordered or looked at.

use super::cpu_table;
use crate::{output, seconds};
use anyhow::{Context, Result, ensure};
use clap::{ArgGroup, Args, ValueEnum};
use sooner_attach::cpu::daemon::{self, DaemonEvent, Surroundings};
use sooner_attach::cpu::options::{Options, WantedRule};
use sooner_attach::cpu::parent::{self, Ended};
use sooner_attach::cpu::trial;
use sooner_attach::web::config::Servers;
use sooner_operate::{Supervisor, print, say_as};
use sooner_workload::parse_duration_with_unit;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Before its lines on standard error.
const NAME: &str = "sooner attach";
/// How long --explain watches where --for does not say it.
const WATCH: Duration = Duration::from_secs(30);

/// How workers are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RuleName {
    /// By processor time used since the request began, and by what requests of the same method and
    /// path used before: what is expected to end first goes first
    History,
    /// By processor time used since the request began: the least used goes first
    Used,
    /// By how often a worker has waited since its last long wait, as in the paper of 2001
    Changes,
}

/// Give short requests the processor first, for servers that use one worker for each request.
///
/// Such servers are Apache prefork, PHP-FPM, gunicorn and puma. A worker falls back as its request
/// uses processor time, and returns to the front while it waits for the next request. Where requests
/// of the same path used the like before, a long one begins at the back.
///
/// Needs CAP_SYS_NICE, and CAP_BPF with CAP_PERFMON to see requests begin. All changes are undone
/// when the command ends; after a kill, the next `sooner attach cpu` without --observe or --explain
/// undoes them, or `sooner attach remove --killed`.
#[derive(Args)]
#[command(group(ArgGroup::new("server").args(["pid", "cgroup", "port"]).required(true)))]
#[command(group(ArgGroup::new("watch").args(["observe", "explain"])))]
pub struct CpuArgs {
    /// Process ID of the server's first process
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Control group of the server's processes, such as php8.2-fpm.service
    #[arg(long, value_name = "NAME")]
    cgroup: Option<String>,
    /// Ports on which the server's processes listen, separated by commas
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = super::port)]
    port: Vec<u16>,
    /// Ports of the server in front that passes requests on, such as nginx; it gets the same weight
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = super::port)]
    front_port: Vec<u16>,
    /// Share of a processor that the server gets while another service wants all of it, in per
    /// cent; 50 changes nothing
    #[arg(long, value_name = "PERCENT", default_value_t = 80.0)]
    share: f64,
    /// Rule by which workers are ordered
    #[arg(long, value_enum, default_value_t = RuleName::History)]
    rule: RuleName,
    /// RW of the rule `changes`: workers with fewer changes go first [default: predicted]
    #[arg(long, value_name = "N")]
    rw: Option<u32>,
    /// SLP of the rule `changes`: a wait of this length, such as 100ms, ends a request [default:
    /// predicted]
    #[arg(long, value_name = "TIME", value_parser = with_unit)]
    slp: Option<Duration>,
    /// Processor time after which a request falls to the second level and to the third, such as
    /// 6ms,60ms [default: learned]
    #[arg(long, value_name = "TIME,TIME", value_parser = bounds)]
    bounds: Option<[Duration; 2]>,
    /// Longest wait for a processor; after it a worker goes before all others for 10 ms
    #[arg(long, value_name = "TIME", value_parser = seconds::patience, default_value = "1s")]
    wait_max: Duration,
    /// Give the top level real-time priority instead of a nice value
    #[arg(long)]
    realtime: bool,
    /// Count and report what the order would change, without changing anything
    #[arg(long, conflicts_with = "realtime")]
    observe: bool,
    /// Watch for a while, and report what the weight and the order would change
    #[arg(long, conflicts_with = "realtime")]
    explain: bool,
    /// Length of the watch, such as 60s or 5min; then it reports [default: 30s with --explain, with
    /// --observe until it is ended]
    #[arg(long = "for", value_name = "TIME", value_parser = seconds::run, requires = "watch", conflicts_with = "realtime")]
    duration: Option<Duration>,
    /// Print JSON instead of text
    #[arg(long, requires = "watch", conflicts_with = "realtime")]
    json: bool,
    /// Read /proc instead of using BPF programs
    #[arg(long)]
    no_bpf: bool,
    /// This is the process below the one that puts everything back
    #[arg(long, hide = true)]
    below: bool,
}

impl CpuArgs {
    /// How long it watches; none: until it is ended.
    fn watched_for(&self) -> Option<Duration> {
        self.duration.or(self.explain.then_some(WATCH))
    }

    /// Whether it prints at its end what it has seen.
    fn reports(&self) -> bool {
        self.watched_for().is_some() || self.json
    }

    fn options(&self) -> Result<Options> {
        ensure!(
            (50.0..=99.0).contains(&self.share),
            "--share {} is out of range; give 50 to 99 per cent",
            self.share
        );
        ensure!(self.rw != Some(0), "--rw 0 is out of range; give 1 or more");
        ensure!(
            self.slp != Some(Duration::ZERO),
            "--slp 0s is out of range; give a time, such as 100ms"
        );
        ensure!(
            self.bounds.is_none() || self.rule != RuleName::Changes,
            "--bounds is of the rules history and used; --rule changes has --rw and --slp"
        );
        let of_changes = self.rw.is_some() || self.slp.is_some();
        ensure!(
            !of_changes || self.rule == RuleName::Changes,
            "--rw and --slp need --rule changes"
        );
        let server = match (self.pid, &self.cgroup) {
            (Some(pid), _) => Servers::Process(pid),
            (_, Some(name)) => Servers::Group(name.clone()),
            _ => Servers::Ports(self.port.clone()),
        };
        Ok(Options {
            server,
            front_ports: self.front_port.clone(),
            rule: match self.rule {
                RuleName::History => WantedRule::History,
                RuleName::Used => WantedRule::Used,
                RuleName::Changes => WantedRule::RunWait {
                    changes: self.rw,
                    long: self.slp,
                },
            },
            bounds: self.bounds,
            wait_max: self.wait_max,
            share: (self.share > 50.0).then_some(self.share / 100.0),
            real_time: self.realtime,
            observes: self.observe || self.explain,
            uses_programs: !self.no_bpf,
        })
    }
}

/// Two times, the second longer than the first.
fn bounds(text: &str) -> Result<[Duration; 2], String> {
    let (first, second) = text.split_once(',').ok_or("two times, like 6ms,60ms")?;
    let bounds = [with_unit(first.trim())?, with_unit(second.trim())?];
    match Duration::ZERO < bounds[0] && bounds[0] < bounds[1] {
        true => Ok(bounds),
        false => Err("the second must be longer than the first, and the first longer than 0; write for example 6ms,60ms".into()),
    }
}

/// A time that may as well be milliseconds as seconds.
fn with_unit(text: &str) -> Result<Duration, String> {
    parse_duration_with_unit(text).map_err(|error| error.to_string())
}

/// Attaches until told to stop, or looks for a while.
pub fn run(args: &CpuArgs) -> Result<ExitCode> {
    let options = args.options()?;
    if args.below {
        parent::end_with_parent()?;
    } else if !options.observes {
        return above();
    }
    let supervisor = match args.below {
        true => Supervisor::from_environment().of_above(),
        false => Supervisor::from_environment(),
    };
    let mut named = [&args.port[..], &args.front_port].concat();
    let tell = |event| match event {
        DaemonEvent::Cleaned(servers) => {
            let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
            let servers = servers.join(", ");
            let line = format_args!("put back what a killed one changed of server {servers}");
            say_as(NAME, line);
        }
        DaemonEvent::Tried(trials) => {
            let trials: Vec<String> = trials.iter().map(ToString::to_string).collect();
            say_as(NAME, format_args!("{}", trials.join(", ")));
        }
        DaemonEvent::Ready(how) if args.explain => say_as(NAME, format_args!("{how}")),
        DaemonEvent::Ready(how) => {
            // Standard output is the report's.
            match args.reports() {
                true => say_as(NAME, format_args!("ready: {how}")),
                false => print(format_args!("ready: {how}")),
            }
            supervisor.ready(&how);
            // Once, and not each time the server starts again.
            let named = std::mem::take(&mut named);
            if let Some(hint) = super::silent_ports(&named) {
                say_as(NAME, hint);
            }
        }
        DaemonEvent::Problem(words) => say_as(NAME, format_args!("{words}")),
        DaemonEvent::Stopping => supervisor.stopping(super::STOPPING),
    };
    let mut surroundings = Surroundings {
        tell: Box::new(tell),
        competitor: Box::new(competitor),
        ends_after: args.watched_for(),
    };
    let last = daemon::run(&options, &mut surroundings)?;
    match last.filter(|_| args.reports()) {
        Some(snapshot) if args.json => output::json(&snapshot)?,
        Some(snapshot) => output::print(&cpu_table::explanation(&snapshot))?,
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The process above: it begins this program once more, and puts everything back where that is
/// killed.
fn above() -> Result<ExitCode> {
    let mut below = Command::new("/proc/self/exe");
    below.args(std::env::args_os().skip(1)).arg("--below");
    match parent::watch(&mut below).context("cannot begin the process that orders workers")? {
        Ended::Well => Ok(ExitCode::SUCCESS),
        Ended::Badly { code, cleaned } => {
            for problem in &cleaned.problems {
                say_as(NAME, format_args!("{problem}"));
            }
            if code.is_none() {
                say_as(
                    NAME,
                    format_args!("the process that orders workers was killed"),
                );
            }
            if !cleaned.servers.is_empty() {
                say_as(NAME, format_args!("what it changed is restored"));
            }
            Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
        }
    }
}

/// This program as a competitor.
fn competitor() -> Command {
    let mut competitor = Command::new("/proc/self/exe");
    competitor.args(["attach", "compete"]);
    competitor
}

/// Keeps a processor busy for a moment, to see what nice values do here.
#[derive(Args)]
pub struct CompeteArgs {
    /// In a session of its own
    #[arg(long)]
    own_session: bool,
}

/// Competes until it is ended.
pub fn compete(args: &CompeteArgs) -> Result<ExitCode> {
    trial::compete(args.own_session)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_have_units() {
        let ms = |count| Duration::from_millis(count);
        assert_eq!(bounds("6ms, 60ms"), Ok([ms(6), ms(60)]));
        for text in ["6,60", "6ms,60", "6,60ms"] {
            let refused = bounds(text).unwrap_err();
            assert!(refused.contains("has no unit"), "{text}: {refused}");
        }
    }
}
