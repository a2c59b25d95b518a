//! The command line of `sooner serve`. A flag that was not given leaves its key to the file, and
//! the file to the default.

use super::import::ImportArgs;
use crate::feasibility::whole_seconds;
use clap::{Args, Subcommand, ValueEnum};
use sooner_policy::PolicyName;
use sooner_web::access_log::{Destination, LogFormat};
use sooner_web::config::{AheadAmount, ListenAddress, MechanismName, Policy, ShareName};
use sooner_workload::UplinkRate;
use std::path::PathBuf;

/// Arguments of `sooner serve`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ServeArgs {
    #[command(subcommand)]
    pub command: Option<ServeCommand>,
    /// Directory of the files to serve
    #[arg(required_unless_present = "config")]
    pub dir: Option<PathBuf>,
    /// Configuration file; flags go before what it says
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only look whether it would start: configuration, certificates, directories, permissions
    #[arg(long)]
    pub check: bool,
    /// With --check: watch the server that runs, by its admin address, for so long, like 60s or
    /// 5min, and say whether the classes' targets can be met; a number alone is seconds
    #[arg(long, value_name = "TIME", value_parser = whole_seconds, requires = "check")]
    pub observe: Option<u64>,
    /// With --observe: print JSON instead of a table
    #[arg(long, requires = "observe")]
    pub json: bool,
    /// Address and port to listen on; may be given several times [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<ListenAddress>,
    /// Address and port to listen on with TLS; may be given several times
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen_tls: Vec<ListenAddress>,
    /// Certificate chain for TLS, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    // The list is of the table of policies.
    #[arg(long, help = policy_help())]
    pub policy: Option<Policy>,
    /// Among whom the one goes first that received the least of late [default: the policy orders all
    /// responses]
    #[arg(long, value_enum)]
    pub share_by: Option<ShareArg>,
    /// Rate of the link out of this machine, such as 100mbit or 100M; without it responses are not
    /// ordered. Where it is not known, auto finds it while traffic flows; auto:100mbit is a most
    #[arg(long, value_name = "RATE|auto")]
    pub uplink: Option<UplinkRate>,
    /// Network device towards that link, for the kernel's bands [default: the one that carries the
    /// first address]
    #[arg(long, value_name = "DEV")]
    pub uplink_device: Option<String>,
    /// Where responses are put in order [default: auto]
    #[arg(long, value_enum)]
    pub mechanism: Option<MechanismArg>,
    /// How many bands the kernel's are, 2 to 8 [default: 8]
    #[arg(long, value_name = "N")]
    pub bands: Option<u8>,
    /// How much may lie in the kernel ahead of the link: packets, or such as 30kb or 20ms [default:
    /// one turn]
    #[arg(long, value_name = "AMOUNT")]
    pub ahead: Option<AheadAmount>,
    /// Let the bands replace a queueing discipline that the operator configured
    #[arg(long)]
    pub replace_qdisc: bool,
    /// One line a response: a file, - for standard output, or off [default: off]
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<Destination>,
    /// Form of the access log [default: json]
    #[arg(long, value_enum)]
    pub log_format: Option<LogFormatArg>,
    /// Address and port for metrics and the live page
    #[arg(long, value_name = "ADDR:PORT")]
    pub admin: Option<ListenAddress>,
    /// User to become once all addresses are bound
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Seconds that responses in flight may take after SIGTERM [default: 10]
    #[arg(long, value_name = "SECONDS")]
    pub grace: Option<u32>,
    /// Do not say on standard error when it is ready
    #[arg(long)]
    pub quiet: bool,
}

/// What else can be done about a server.
#[derive(Subcommand)]
pub enum ServeCommand {
    /// Make a sooner.toml of an nginx.conf.
    Import(ImportArgs),
}

/// [`ShareName`] as the command line lists it.
#[derive(Clone, Copy, ValueEnum)]
pub enum ShareArg {
    /// Clients, by their addresses; --policy orders the responses of one
    Client,
}

/// [`MechanismName`] as the command line lists it.
#[derive(Clone, Copy, ValueEnum)]
pub enum MechanismArg {
    /// The best that this process may use
    Auto,
    /// Turns to write, without privilege
    UserSpace,
    /// The kernel's priority bands; needs CAP_NET_ADMIN
    Bands,
    /// Turns above, bands below
    Both,
    /// No order
    None,
}

/// The forms of the access log.
#[derive(Clone, Copy, ValueEnum)]
pub enum LogFormatArg {
    /// One JSON object a line, with what the order cost
    Json,
    /// As Apache and nginx write it
    Combined,
}

fn policy_help() -> String {
    format!(
        "Who goes first on the uplink: {} [default: srpt]",
        PolicyName::offered()
    )
}

impl From<ShareArg> for ShareName {
    fn from(arg: ShareArg) -> Self {
        match arg {
            ShareArg::Client => Self::Client,
        }
    }
}

impl From<MechanismArg> for MechanismName {
    fn from(arg: MechanismArg) -> Self {
        match arg {
            MechanismArg::Auto => Self::Auto,
            MechanismArg::UserSpace => Self::UserSpace,
            MechanismArg::Bands => Self::Bands,
            MechanismArg::Both => Self::Both,
            MechanismArg::None => Self::None,
        }
    }
}

impl From<LogFormatArg> for LogFormat {
    fn from(arg: LogFormatArg) -> Self {
        match arg {
            LogFormatArg::Json => Self::Json,
            LogFormatArg::Combined => Self::Combined,
        }
    }
}
