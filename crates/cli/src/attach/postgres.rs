//! `sooner attach postgres`: attached, or with --explain a look.

use super::explanation;
use crate::choice;
use crate::{config_file, output, seconds};
use anyhow::{Result, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use sooner_attach::postgres::connection::Login;
use sooner_attach::postgres::daemon::{self, DaemonEvent, GateAt};
use sooner_attach::postgres::explain::{Explanation, Options, explain};
use sooner_attach::postgres::mechanism::Mechanism;
use sooner_attach::postgres::server::Wanted;
use sooner_attach::postgres::told::Guests;
use sooner_config::Misconfigured;
use sooner_kernel::privilege::{Account, group_id};
use sooner_kernel::signals::EndSignals;
use sooner_operate::{Supervisor, print, say_as};
use sooner_pooler::config::{ClassTable, Config};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Before its lines on standard error.
const NAME: &str = "sooner attach";
/// What --explain cannot do: a flag that needs --explain is wrong beside each of them. clap takes what
/// a flag needs for given where that conflicts with another flag.
const OF_ORDERING: [&str; 6] = [
    "inherit",
    "lower",
    "mechanism",
    "gate",
    "gate_user",
    "gate_group",
];

/// Give some sessions of a PostgreSQL server the processor first, or report where its transactions
/// spend their time.
///
/// The classes of --config say which sessions go first. With --explain nothing is changed.
///
/// Needs CAP_SYS_NICE; --explain needs only a role that is a member of pg_monitor. As root it logs
/// in as the user that runs the server. PGUSER and PGPASSWORD work as for psql. All changes are
/// undone when the command ends; after a kill, the next `sooner attach postgres` or `sooner attach
/// remove --killed` undoes them.
#[derive(Args)]
pub struct PostgresArgs {
    /// Report where transactions spend their time, and what each way of ordering could gain
    #[arg(long)]
    explain: bool,
    /// Length of the watch, such as 60s or 5min
    #[arg(long = "for", value_name = "TIME", value_parser = seconds::run, default_value = "60s", requires = "explain", conflicts_with_all = OF_ORDERING)]
    duration: Duration,
    /// Address of the server, such as postgresql://monitor@/app?host=/run/postgresql
    #[arg(long, value_name = "URL", conflicts_with_all = ["pid", "data"])]
    url: Option<String>,
    /// Process ID of the server's first process, where several servers run
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "data")]
    pid: Option<u32>,
    /// Data directory of the server, where several servers run
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Role to log in as
    #[arg(long, value_name = "ROLE")]
    user: Option<String>,
    /// Classes: a gate.toml, or a file with only its `[[class]]` tables
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Most processor time that watching may use, in per cent of all processors [default: 1 with
    /// --explain, else 0.5]
    #[arg(long, value_name = "PERCENT")]
    cost: Option<f64>,
    /// Print JSON instead of tables
    #[arg(long, requires = "explain", conflicts_with_all = OF_ORDERING)]
    json: bool,
    /// Write the same figures to this file as a web page
    #[arg(long, value_name = "FILE", requires = "explain", conflicts_with_all = OF_ORDERING)]
    html: Option<PathBuf>,
    /// Raise a session that holds a lock as long as a raised session waits for it
    #[arg(long, conflicts_with = "explain")]
    inherit: bool,
    /// Put classes with a priority above 100 behind the server's other sessions; one that holds a
    /// lock returns to normal priority while another session waits for the lock
    #[arg(long, conflicts_with = "explain")]
    lower: bool,
    /// Mechanism that gives the processor first [default: the first in this order that works]
    #[arg(long, value_name = "MECHANISM", value_parser = choice::mechanism(), conflicts_with = "explain")]
    mechanism: Option<Mechanism>,
    /// Socket file on which a gate reports the priority of each transaction (its key `priorities`)
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    gate: Option<PathBuf>,
    /// User of the gate, if different; needs CAP_CHOWN
    #[arg(
        long,
        value_name = "USER",
        requires = "gate",
        conflicts_with = "explain"
    )]
    gate_user: Option<String>,
    /// Group that contains both this user and the gate's user
    #[arg(
        long,
        value_name = "GROUP",
        requires = "gate",
        conflicts_with = "explain"
    )]
    gate_group: Option<String>,
}

/// Looks, and prints.
pub fn run(args: &PostgresArgs) -> Result<ExitCode> {
    let cost = args.cost_percent();
    ensure!(
        cost > 0.0 && cost <= 50.0,
        "--cost {cost} is out of range; give more than 0 and at most 50 per cent",
    );
    if let Some(path) = &args.html {
        output::check_file("--html", path)?;
    }
    if !args.explain {
        return attach(args);
    }
    let options = Options {
        login: args.login(),
        duration: args.duration,
        cost_share: args.cost_percent() / 100.0,
        classes: args.classes()?,
    };
    let found = look(&options)?;
    if args.json {
        output::json(&found)?;
    } else {
        output::print(&explanation::text(&found))?;
    }
    output::html(args.html.as_deref(), || explanation::page(&found))?;
    let is_seen = !found.classes.is_empty();
    Ok(ExitCode::from(u8::from(!is_seen)))
}

/// Until a signal comes.
fn attach(args: &PostgresArgs) -> Result<ExitCode> {
    let user = args.gate_user.as_deref().map(Account::find).transpose()?;
    let group = args.gate_group.as_deref().map(group_id).transpose()?;
    let guests = Guests {
        user: user.map(|account| account.uid),
        group,
    };
    let options = daemon::Options {
        login: args.login(),
        classes: args.classes()?,
        mechanism: args.mechanism,
        inherits: args.inherit,
        lowers: args.lower,
        gate_socket: args.gate.clone().map(|path| GateAt { path, guests }),
        cost_share: args.cost_percent() / 100.0,
    };
    let supervisor = Supervisor::from_environment();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let tell = |event| match event {
        DaemonEvent::Cleaned(servers) => {
            let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
            let servers = servers.join(", ");
            say_as(
                NAME,
                format_args!("put back what a killed one changed of server {servers}"),
            );
        }
        DaemonEvent::Tested(trials) => {
            let trials: Vec<String> = trials.iter().map(ToString::to_string).collect();
            say_as(NAME, format_args!("{}", trials.join(", ")));
        }
        DaemonEvent::Ready(how) => {
            print(format_args!("ready: {how}"));
            supervisor.ready(&how);
        }
        DaemonEvent::Gone(why) => say_as(
            NAME,
            format_args!("the session on the server is lost ({why}); it is waited for"),
        ),
        DaemonEvent::Problem(words) => say_as(NAME, format_args!("{words}")),
        DaemonEvent::Stopping => supervisor.stopping(super::STOPPING),
    };
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, daemon::run(&options, Box::new(tell)))?;
    Ok(ExitCode::SUCCESS)
}

impl PostgresArgs {
    fn login(&self) -> Login {
        let wanted = match (self.pid, &self.data) {
            (Some(pid), _) => Wanted::Process(pid),
            (_, Some(folder)) => Wanted::Data(folder.clone()),
            _ => Wanted::Only,
        };
        Login {
            url: self.url.clone(),
            wanted,
            user: self.user.clone(),
        }
    }

    /// What stays takes less than what looks for a minute.
    fn cost_percent(&self) -> f64 {
        let usual = if self.explain { 1.0 } else { 0.5 };
        self.cost.unwrap_or(usual)
    }

    fn classes(&self) -> Result<Vec<ClassTable>> {
        // Only looked at, what a gate would do changes nothing.
        let has_gate = self.gate.is_some() || self.explain;
        let read = |path: &Path| classes(path, has_gate);
        self.config.as_deref().map_or(Ok(Vec::new()), read)
    }
}

/// The classes of a file; what else a gate.toml says is read and left.
fn classes(path: &Path, has_gate: bool) -> Result<Vec<ClassTable>> {
    let source = config_file::read(Some(path), &[])?;
    let config = Config::parse_all(&source.text)
        .map_err(|mistakes| config_file::all_located(&source, &mistakes))?;
    let mistakes = config.class_mistakes();
    if !mistakes.is_empty() {
        return Err(config_file::all_located(&source, &mistakes));
    }
    for class in &config.class {
        if let (Some(target), false) = (&class.wait_target, has_gate) {
            let words = "a gate does that, on connections of its own: run sooner gate with this class and name it by --gate, or leave the key out";
            let mistake = Misconfigured::at(target, "class.wait_target", words);
            return Err(config_file::located(&source, &mistake));
        }
        if class.session.is_some() {
            let words = "pg_stat_activity does not show what a session sets; name user, database, application_name or comment";
            let mistake = Misconfigured::at(&class.name, "class.session", words);
            return Err(config_file::located(&source, &mistake));
        }
    }
    Ok(config.class)
}

/// Until the time is over, or a signal comes: what was seen until then counts.
fn look(options: &Options) -> Result<Explanation> {
    let bar = ProgressBar::new(options.duration.as_secs());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} s{msg}") {
        bar.set_style(style);
    }
    // On a full processor it may take its time to let us in.
    bar.set_message(", logging in");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (is_over, has_begun) = (Cell::new(false), Cell::new(false));
    let local = tokio::task::LocalSet::new();
    let found = local.block_on(&runtime, async {
        let mut ends = EndSignals::listen()?;
        let looking = explain(
            options,
            Box::new(|| is_over.get()),
            Box::new(|elapsed| {
                has_begun.set(true);
                bar.set_message("");
                bar.set_position(elapsed.as_secs());
            }),
        );
        let ended = async {
            ends.next().await;
            is_over.set(true);
            // The second one ends at once, and the first while there is nothing to show.
            if has_begun.get() {
                ends.next().await;
            }
        };
        tokio::select! {
            found = looking => Ok::<_, anyhow::Error>(found?),
            () = ended => anyhow::bail!("ended before anything was measured"),
        }
    });
    bar.finish_and_clear();
    found
}
