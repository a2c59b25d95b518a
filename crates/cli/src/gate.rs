//! `sooner gate`: a PostgreSQL proxy that lets a bounded number of transactions into the database
//! at a time.

mod args;
mod check;
mod import;
mod listen;
mod look;
mod orders;
mod own_socket;
mod place;
mod top;
mod user;

pub use args::GateArgs;

use crate::output;
use anyhow::{Context, Result};
use args::GateCommand;
use listen::SocketFiles;
use sooner_config::Limit;
use sooner_config::SourceText;
use sooner_kernel::descriptors;
use sooner_pooler::config::Config;
use sooner_pooler::{Configuration, Gateway, Listener, Stop};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::config_file::located;
use sooner_operate::{Action, Signals, Supervisor};

/// What the gate itself has open, and connections beside those of clients.
const OWN_DESCRIPTORS: usize = 256;

/// Serves until a signal comes, or does one of the commands.
pub fn run(args: GateArgs) -> Result<ExitCode> {
    match &args.command {
        Some(GateCommand::Check(check)) => return check::run(check),
        Some(GateCommand::Import(import)) => return import::run(import),
        Some(GateCommand::Top(top)) => return top::run(top),
        None => {}
    }
    let (config, source) = args.config()?;
    let descriptors = descriptors_of(&config);
    user::check(&config, &source)?;
    if args.check {
        listen::check_all(&config, &source)?;
        let settings = check::load_strictly(config, &source)?;
        check::probe_servers(&settings)?;
        output::line("the gate would start")?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.check_reload {
        return check::before_reload(config, &source);
    }
    let settings = load(config.clone(), &source)?;
    let clients = config.limits.clients.get_ref();
    let allowed = descriptors::raise_hard_limit(descriptors as u64)
        .with_context(|| format!("{clients} clients: too many for this process"))?;
    if allowed < descriptors as u64 {
        say(&format!(
            "{clients} clients and their server connections may need {descriptors} descriptors, and this process may have {allowed}: \
             raise its limit (ulimit -n, LimitNOFILE), or lower limits.clients"
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    sooner_operate::run_local(&runtime, serve(args, config, source, settings))
}

/// How long it may take to tell the last clients why they are ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Server connections where nothing is said and no server has been asked yet: few allow more.
const CONNECTIONS_UNASKED: usize = 500;

/// Each client has one, and so has each server connection.
fn descriptors_of(config: &Config) -> usize {
    let limits = &config.limits;
    let unasked = limits.transactions_most().max(CONNECTIONS_UNASKED);
    let connections = limits.connections.map_or(unasked, |max| max.get());
    let servers = connections * config.database.len();
    config.limits.clients.get_ref().get() + servers + OWN_DESCRIPTORS
}

/// Reads all files; says what works and needs a look, and who cannot enter the console.
fn load(config: Config, source: &SourceText) -> Result<Configuration> {
    let settings = read_files(config, source)?;
    for mistake in settings.shut_out() {
        say(&source.render(&mistake));
    }
    Ok(settings)
}

/// Reads all files; says what works and needs a look.
fn read_files(config: Config, source: &SourceText) -> Result<Configuration> {
    let loaded = Configuration::load(config, SystemTime::now());
    let (settings, warnings) = loaded.map_err(|mistake| located(source, &mistake))?;
    for warning in warnings {
        say(&source.render(&warning));
    }
    Ok(settings)
}

fn say(line: &str) {
    sooner_operate::say_as("sooner gate", line);
}

async fn serve(
    args: GateArgs,
    config: Config,
    source: SourceText,
    settings: Configuration,
) -> Result<ExitCode> {
    let supervisor = Supervisor::from_environment();
    let mut files = SocketFiles::default();
    // First: a signal that comes while sockets are opened must not leave their files behind.
    let mut signals = Signals::new(args.config.is_some() || args.users.is_some())?;
    let (mut listeners, metrics) = listeners(&config, &source, &mut files).await?;
    listeners.extend(own_socket::listen(&listeners, &mut files).await);
    user::adopt(&config, &source, args.config.as_deref(), &files)?;
    let args = Rc::new(args);
    let again = args.clone();
    let started = config.clone();
    let reload = move || {
        let load = || {
            let (config, source) = again.config()?;
            user::check(&config, &source)?;
            let settings = load(config, &source)?;
            for key in started.fixed_keys_changed(&settings.config) {
                say(&format!("{key}: changed; takes effect at the next start"));
            }
            Ok(settings)
        };
        load().map_err(|error: anyhow::Error| format!("{error:#}").replace('\n', "; "))
    };
    let gateway = Gateway::new(settings, Box::new(reload))?;
    let ready = ready_line(&config);
    sooner_operate::print(&ready);
    supervisor.ready(&ready);
    let looks = gateway.clone();
    // Nothing waits for it: a server may come later.
    tokio::task::spawn_local(async move {
        for line in looks.probe_servers().await {
            say(&line);
        }
    });
    let grace = Duration::from_secs(config.limits.grace_seconds);
    tokio::select! {
        ended = gateway.serve(listeners, metrics) => ended?,
        () = obey(&gateway, &supervisor, &mut signals, grace) => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn listeners(
    config: &Config,
    source: &SourceText,
    files: &mut SocketFiles,
) -> Result<(Vec<Listener>, Option<TcpListener>)> {
    let mut listeners = Vec::new();
    for place in &config.listen {
        let listener = listen::listen(place.get_ref(), files).await;
        listeners
            .extend(listener.map_err(|error| located(source, &listen::refused(place, &error)))?);
    }
    let metrics = match &config.metrics {
        Some(address) => {
            let bound = TcpListener::bind(address.get_ref()).await;
            Some(bound.with_context(|| format!("--metrics {}", address.get_ref()))?)
        }
        None => None,
    };
    Ok((listeners, metrics))
}

fn ready_line(config: &Config) -> String {
    let places: Vec<&str> = config
        .listen
        .iter()
        .map(|at| at.get_ref().as_str())
        .collect();
    let mut servers: Vec<String> = config
        .database
        .iter()
        .map(|table| table.server.get_ref().to_string())
        .collect();
    servers.sort();
    servers.dedup();
    let (places, servers) = (places.join(", "), servers.join(", "));
    let limit = match config.limits.transactions {
        Limit::Fixed(limit) => format!("at most {limit} transactions at a time"),
        Limit::Auto => "a limit of transactions that is found by itself".into(),
    };
    let user = user::told(config);
    format!("ready: clients at {places}, {limit} in {servers}{user}")
}

/// Does what signals ask for; returns when everything has to end: at the second signal to stop, or
/// when those who are here have had the time that they may take.
async fn obey(gateway: &Gateway, supervisor: &Supervisor, signals: &mut Signals, grace: Duration) {
    loop {
        match signals.next().await {
            Action::Stop => break,
            Action::Reload => {
                supervisor.reloading();
                gateway.reload();
                supervisor.ready("serving");
            }
            Action::ReopenLogs => {}
        }
    }
    supervisor.stopping("letting transactions under way end");
    gateway.stop(Stop::WhenIdle);
    if gateway.clients() > 0 {
        let (clients, seconds) = (clients(gateway.clients()), grace.as_secs());
        say(&format!(
            "stopping: {clients} may end their transactions, for {seconds} s; a second signal ends them now"
        ));
    }
    // Those who are done in time let `serve` return first.
    let second = timeout(grace, stop_signal(signals)).await;
    let why = match second {
        Ok(()) => "a second signal".to_owned(),
        Err(_) => format!("limits.grace_seconds ({} s) are over", grace.as_secs()),
    };
    if gateway.clients() > 0 {
        let clients = clients(gateway.clients());
        say(&format!("{why}: ending {clients}, and what runs for them"));
    }
    // Each is told so, and its statement is cancelled; `serve` returns when that is done.
    gateway.stop(Stop::Now);
    let _ = timeout(LAST_WORDS, stop_signal(signals)).await;
    sooner_operate::finish();
}

async fn stop_signal(signals: &mut Signals) {
    while signals.next().await != Action::Stop {}
}

fn clients(count: usize) -> String {
    match count {
        1 => "1 client".into(),
        _ => format!("{count} clients"),
    }
}
