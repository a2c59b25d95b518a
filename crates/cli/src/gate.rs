//! `sooner gate`: a PostgreSQL proxy that lets a bounded number of transactions into the database at a time.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use sooner_kernel::descriptors;
use sooner_postgres::auth::userlist;
use sooner_postgres::net::{self, AuthMethod, Listener, ServerAddress, Settings};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};

/// A client is to have said who it is by then.
const LOGIN_PATIENCE: Duration = Duration::from_secs(60);
/// Prepared statements that a server connection keeps; PgBouncer's default.
const STATEMENTS_MAX: usize = 200;
/// What the gate itself has open.
const OWN_DESCRIPTORS: usize = 64;

/// Lets a bounded number of transactions into a PostgreSQL at a time, and has the others wait outside, none of them dropped.
///
/// Speaks PostgreSQL's protocol on both sides; clients need no change but the port. Without TLS so far.
#[derive(Args)]
pub struct GateArgs {
    /// Where clients come in: an address with a port, or the path of a socket file. Repeatable.
    #[arg(long, value_name = "ADDRESS|PATH", default_value = "127.0.0.1:6432")]
    listen: Vec<String>,
    /// The database: postgresql://HOST:PORT, or postgresql:///?host=FOLDER&port=PORT for a socket file.
    #[arg(long, value_name = "URL")]
    backend: ServerAddress,
    /// How clients prove who they are.
    #[arg(long, value_enum, default_value_t = Auth::Scram)]
    auth: Auth,
    /// Users and their secrets, as in PgBouncer's userlist.txt.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// How many transactions may be in the database at a time.
    #[arg(long, value_name = "N", default_value = "20")]
    limit: NonZeroUsize,
    /// How long a client keeps a server connection.
    #[arg(long, value_enum, default_value_t = Mode::Transaction)]
    mode: Mode,
    /// Clients beyond so many are told to come back.
    #[arg(long, value_name = "N", default_value = "1000")]
    clients_max: NonZeroUsize,
    /// How long a client waits for a database that does not answer, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    patience: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Auth {
    /// Not at all
    Trust,
    /// By SCRAM-SHA-256
    Scram,
    /// By md5, or by SCRAM whose secret is a verifier
    Md5,
    /// By the password in clear text
    Password,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// For a transaction
    Transaction,
    /// From its first command until it leaves
    Session,
}

/// Serves until a signal comes.
pub fn run(args: &GateArgs) -> Result<ExitCode> {
    let settings = settings(args)?;
    let descriptors = settings.clients_max + settings.limit + OWN_DESCRIPTORS;
    descriptors::raise_limit(descriptors as u64).with_context(|| {
        format!(
            "--clients-max {}: too many for this process",
            settings.clients_max
        )
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, serve(args, settings))
}

fn settings(args: &GateArgs) -> Result<Settings> {
    let users = match &args.users {
        Some(path) => users(path)?,
        None if args.auth == Auth::Trust => BTreeMap::new(),
        None => bail!("nobody could log in: give --users FILE, or --auth trust if everybody may"),
    };
    Ok(Settings {
        server: args.backend.clone(),
        auth: match args.auth {
            Auth::Trust => AuthMethod::Trust,
            Auth::Scram => AuthMethod::Scram,
            Auth::Md5 => AuthMethod::Md5,
            Auth::Password => AuthMethod::Password,
        },
        users,
        limit: args.limit.get(),
        by_session: args.mode == Mode::Session,
        clients_max: args.clients_max.get(),
        connect_patience: Duration::from_secs(args.patience),
        login_patience: LOGIN_PATIENCE,
        statements_max: STATEMENTS_MAX,
    })
}

fn users(path: &Path) -> Result<BTreeMap<String, sooner_postgres::auth::Secret>> {
    let at = || format!("--users {}", path.display());
    let text = fs::read_to_string(path).with_context(at)?;
    userlist::read(&text).with_context(at)
}

async fn serve(args: &GateArgs, settings: Settings) -> Result<ExitCode> {
    let mut listeners = Vec::new();
    let mut files = SocketFiles::default();
    for place in &args.listen {
        let listener = listen(place, &mut files).await;
        listeners.push(listener.with_context(|| format!("--listen {place}"))?);
    }
    let (mut end, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let (places, server, limit) = (args.listen.join(", "), &args.backend, args.limit);
    // Whoever waits for this line may have left: that is no reason not to serve.
    let _ = writeln!(
        io::stdout(),
        "ready: clients at {places}, at most {limit} transactions at a time in {server}"
    );
    tokio::select! {
        ended = net::serve(settings, listeners) => ended?,
        _ = end.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Socket files of ours; gone when dropped.
#[derive(Default)]
struct SocketFiles(Vec<PathBuf>);

impl Drop for SocketFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // Somebody may have removed it already.
            let _ = fs::remove_file(path);
        }
    }
}

async fn listen(place: &str, files: &mut SocketFiles) -> Result<Listener> {
    if !place.starts_with(['/', '.']) {
        let address: SocketAddr = place.parse().context(
            "neither an address with a port, like 127.0.0.1:6432, nor the path of a socket file",
        )?;
        return Ok(Listener::Tcp(TcpListener::bind(address).await?));
    }
    let path = PathBuf::from(place);
    match UnixStream::connect(&path).await {
        Ok(_) => bail!("somebody serves there already"),
        // What a crash left.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(&path)?,
        Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    files.0.push(path);
    Ok(Listener::Unix(listener))
}
