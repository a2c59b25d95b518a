//! The flags of `sooner gate`.

use crate::seconds;
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

/// Keys that flags put over the file.
const FLAGS: &[(&str, &str)] = &[
    ("listen", "--listen"),
    ("database.server", "--backend"),
    ("users", "--users"),
    ("admins", "--admin"),
    ("watchers", "--watcher"),
    ("metrics", "--metrics"),
    ("system_user", "--user"),
    ("limits.clients", "--clients-max"),
    ("limits.patience_seconds", "--patience"),
];

/// Limit concurrent transactions in PostgreSQL, and order the rest.
///
/// Transactions beyond the limit wait in the gate, in order; it drops none. The gate speaks
/// PostgreSQL's protocol on both sides; clients change only the port.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct GateArgs {
    #[command(subcommand)]
    pub command: Option<GateCommand>,
    /// Configuration file; flags override its keys, and SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check whether the gate would start, and exit
    #[arg(long)]
    pub check: bool,
    /// Check whether a reload would take the configuration, and exit; an address that the machine
    /// does not have now causes a warning, and databases are not asked
    #[arg(long, conflicts_with = "check")]
    pub check_reload: bool,
    /// Where clients connect: an address with a port, or the path of a socket file [default:
    /// 127.0.0.1:6432]; repeatable
    #[arg(long, value_name = "ADDRESS|PATH")]
    listen: Vec<String>,
    /// Database server: postgresql://HOST:PORT, or postgresql:///?host=DIRECTORY&port=PORT for a
    /// socket file
    #[arg(long, value_name = "URL")]
    backend: Option<ServerAddress>,
    /// How clients authenticate [default: scram]
    #[arg(long, value_enum)]
    auth: Option<Auth>,
    /// File of users and their secrets, in the format of PgBouncer's userlist.txt
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Most transactions in a server at a time; `auto` finds the fewest that cost no throughput
    /// [default: 20]
    #[arg(long, value_name = "N|auto")]
    limit: Option<Limit>,
    /// How long a client keeps a server connection [default: transaction]
    #[arg(long, value_enum)]
    mode: Option<ModeName>,
    /// Most clients at a time; further ones are rejected [default: 1000]
    #[arg(long, value_name = "N")]
    clients_max: Option<NonZeroUsize>,
    /// Time that a client waits for a database that does not answer, such as 15s or 1min [default:
    /// 15s]
    #[arg(long, value_name = "TIME", value_parser = seconds::whole::<1>)]
    patience: Option<u64>,
    /// User with full access to the console (the database `sooner`); repeatable
    #[arg(long, value_name = "NAME")]
    admin: Vec<String>,
    /// User with read access to the console; repeatable
    #[arg(long, value_name = "NAME")]
    watcher: Vec<String>,
    /// Address of metrics for Prometheus and of the live page [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// User to become after all addresses are bound: NAME or NAME:GROUP [default: no change]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

/// What else can be done about a gate.
#[derive(Subcommand)]
pub enum GateCommand {
    Check(CheckArgs),
    Import(ImportArgs),
    Top(TopArgs),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Auth {
    /// Without proof
    Trust,
    /// By SCRAM-SHA-256
    #[value(alias = "scram-sha-256")]
    Scram,
    /// By md5, or by SCRAM if the user's secret is a SCRAM verifier
    Md5,
    /// By a password in clear text
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
    /// For one transaction
    Transaction,
    /// From its first command until it disconnects
    Session,
}

impl GateArgs {
    /// The file with the flags over it, and its text for mistakes that are found later.
    pub fn config(&self) -> anyhow::Result<(Config, SourceText)> {
        let source = read(self.config.as_deref(), FLAGS)?;
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
                "no client could log in: give --users FILE (key `users`), or --auth trust (key `auth`) to let every client in"
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
