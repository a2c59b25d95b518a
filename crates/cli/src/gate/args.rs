//! The flags of `sooner gate`.

use clap::{Args, Subcommand, ValueEnum};
use sooner_config::Limit;
use sooner_config::{SourceText, Spanned, from_command_line};
use sooner_pooler::config::{AuthMethod, Config, DatabaseTable, Mode, ServerAddress};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::check::CheckArgs;
use super::import::ImportArgs;
use super::top::TopArgs;
use crate::config_file::{all_located, put, put_all, read};

/// Where clients come in when nothing is said.
const DEFAULT_LISTEN: &str = "127.0.0.1:6432";

/// Lets a bounded number of transactions into a PostgreSQL at a time, and has the others wait
/// outside, none of them dropped.
///
/// Speaks PostgreSQL's protocol on both sides; clients need no change but the port.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct GateArgs {
    #[command(subcommand)]
    pub command: Option<GateCommand>,
    /// The configuration; flags go over it. SIGHUP reads it again.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only look whether it would start.
    #[arg(long)]
    pub check: bool,
    /// Where clients come in: an address with a port, or the path of a socket file; by default
    /// 127.0.0.1:6432. Repeatable.
    #[arg(long, value_name = "ADDRESS|PATH")]
    listen: Vec<String>,
    /// The database: postgresql://HOST:PORT, or postgresql:///?host=FOLDER&port=PORT for a socket
    /// file.
    #[arg(long, value_name = "URL")]
    backend: Option<ServerAddress>,
    /// How clients prove who they are, by default by SCRAM.
    #[arg(long, value_enum)]
    auth: Option<Auth>,
    /// Users and their secrets, as in PgBouncer's userlist.txt.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// How many transactions may be in a server at a time, by default 20; `auto`: as few as cost no
    /// throughput.
    #[arg(long, value_name = "N|auto")]
    limit: Option<Limit>,
    /// How long a client keeps a server connection, by default for a transaction.
    #[arg(long, value_enum)]
    mode: Option<ModeName>,
    /// Clients beyond so many are told to come back, by default 1000.
    #[arg(long, value_name = "N")]
    clients_max: Option<NonZeroUsize>,
    /// How long a client waits for a database that does not answer, by default 15 s.
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u64>,
    /// A user who may do everything in the console (the database `sooner`). Repeatable.
    #[arg(long, value_name = "NAME")]
    admin: Vec<String>,
    /// A user who may look there. Repeatable.
    #[arg(long, value_name = "NAME")]
    watcher: Vec<String>,
    /// Where Prometheus finds metrics, by default nowhere.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Whom root becomes once it listens: NAME or NAME:GROUP; by default it stays root.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

/// What else can be done about a gate.
#[derive(Subcommand)]
pub enum GateCommand {
    /// Look whether targets can be met.
    Check(CheckArgs),
    /// Make a gate.toml of a pgbouncer.ini.
    Import(ImportArgs),
    /// Watch a gate that runs.
    Top(TopArgs),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Auth {
    /// Not at all
    Trust,
    /// By SCRAM-SHA-256
    #[value(alias = "scram-sha-256")]
    Scram,
    /// By md5, or by SCRAM where the user's secret is a SCRAM verifier
    Md5,
    /// By the password in clear text
    #[value(alias = "plain")]
    Password,
}

impl From<Auth> for AuthMethod {
    fn from(auth: Auth) -> Self {
        match auth {
            Auth::Trust => Self::Trust,
            Auth::Scram => Self::Scram,
            Auth::Md5 => Self::Md5,
            Auth::Password => Self::Password,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// For a transaction
    Transaction,
    /// From its first command until it leaves
    Session,
}

impl GateArgs {
    /// The file with the flags over it, and its text for mistakes that are found later.
    pub fn config(&self) -> anyhow::Result<(Config, SourceText)> {
        let source = match &self.config {
            Some(file) => read(file)?,
            None => SourceText::default(),
        };
        let at = |mistakes: Vec<_>| all_located(&source, &mistakes);
        let mut config = Config::parse_all(&source.text).map_err(at)?;
        if let Some(folder) = self.config.as_deref().and_then(std::path::Path::parent) {
            config.relative_to(folder);
        }
        self.put_over(&mut config);
        let mistakes = config.mistakes();
        if !mistakes.is_empty() {
            return Err(at(mistakes));
        }
        let lets_anybody_in = config.auth == AuthMethod::Trust || !config.rule.is_empty();
        let knows_somebody = config.users.is_some()
            || config.auth_query.is_some()
            || config.user.iter().any(|user| user.password.is_some());
        if !lets_anybody_in && !knows_somebody {
            anyhow::bail!(
                "nobody could log in: give --users FILE, or --auth trust if everybody may"
            );
        }
        Ok((config, source))
    }

    fn put_over(&self, config: &mut Config) {
        put_all(&mut config.listen, &self.listen);
        if config.listen.is_empty() {
            config.listen = vec![Spanned::new(0..0, DEFAULT_LISTEN.into())];
        }
        if let Some(backend) = &self.backend {
            config.database = vec![DatabaseTable::all_at(from_command_line(backend.clone()))];
        }
        put(&mut config.users, self.users.as_ref());
        put_all(&mut config.admins, &self.admin);
        put_all(&mut config.watchers, &self.watcher);
        put(&mut config.metrics, self.metrics.as_ref());
        put(&mut config.system_user, self.user.as_ref());
        if let Some(auth) = self.auth {
            config.auth = auth.into();
        }
        if let Some(mode) = self.mode {
            config.mode = match mode {
                ModeName::Transaction => Mode::Transaction,
                ModeName::Session => Mode::Session,
            };
        }
        let limits = &mut config.limits;
        if let Some(limit) = self.limit {
            limits.transactions = limit;
        }
        if let Some(clients) = self.clients_max {
            limits.clients = from_command_line(clients);
        }
        if let Some(seconds) = self.patience {
            limits.patience_seconds = from_command_line(seconds);
        }
    }
}
