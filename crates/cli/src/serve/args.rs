//! The command line of `sooner serve`. A flag that was not given leaves its key to the file, and
//! the file to the default.

use super::import::ImportArgs;
use crate::choice;
use crate::seconds;
use clap::{Args, Subcommand, ValueEnum};
use sooner_config::Limit;
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
    /// Configuration file; flags override its keys
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check configuration, certificates, directories and permissions, and exit
    #[arg(long)]
    pub check: bool,
    /// Check whether a reload would take the configuration, and exit; what only the next start
    /// needs (an address, a device, the directory of the log) causes a warning
    #[arg(long, conflicts_with_all = ["check", "observe", "json"])]
    pub check_reload: bool,
    /// With --check: watch the running server through its admin address for this long, such as 60s
    /// or 5min, and report whether the targets of the classes can be met
    #[arg(long, value_name = "TIME", value_parser = seconds::whole::<1>, requires = "check")]
    pub observe: Option<u64>,
    /// With --observe: print JSON instead of a table
    #[arg(long, requires = "observe")]
    pub json: bool,
    /// Address and port to listen on; repeatable [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<ListenAddress>,
    /// Address and port to listen on with TLS; repeatable
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen_tls: Vec<ListenAddress>,
    /// PEM file with the certificate chain for TLS
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// PEM file with the private key of the certificate
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// Order of the responses on the uplink [default: srpt]
    #[arg(long, value_name = "POLICY", value_parser = choice::link_policy::<Policy>())]
    pub policy: Option<Policy>,
    /// Share the uplink among clients first: the one that recently received least goes first
    /// [default: the policy orders all responses]
    #[arg(long, value_enum, value_name = "KEY")]
    pub share_by: Option<ShareArg>,
    /// Rate of the link out of this machine, such as 100mbit or 12.5MB/s; `auto` finds it while
    /// traffic flows, auto:100mbit up to a maximum [default: responses are not ordered]
    #[arg(long, value_name = "RATE|auto")]
    pub uplink: Option<UplinkRate>,
    /// Network device that leads to the uplink, for the kernel's bands [default: the device that
    /// carries the first address]
    #[arg(long, value_name = "DEVICE")]
    pub uplink_device: Option<String>,
    /// Where responses are ordered [default: auto]
    #[arg(long, value_enum)]
    pub mechanism: Option<MechanismArg>,
    /// Number of the kernel's bands, 2 to 8 [default: 8]
    #[arg(long, value_name = "N")]
    pub bands: Option<u8>,
    /// Amount that may wait in the kernel ahead of the link: packets such as 5, bytes such as 30kB,
    /// or time such as 20ms [default: one turn]
    #[arg(long, value_name = "AMOUNT")]
    pub ahead: Option<AheadAmount>,
    /// Allow the bands to replace a queueing discipline that the operator configured
    #[arg(long)]
    pub replace_qdisc: bool,
    /// Destination of the access log: a file, `-` for standard output, or `off` [default: off]
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<Destination>,
    /// Format of the access log [default: json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log_format: Option<LogFormatArg>,
    /// Address and port for metrics and the live page [default: none]
    #[arg(long, value_name = "ADDR:PORT")]
    pub admin: Option<ListenAddress>,
    /// User to become after all addresses are bound: NAME or NAME:GROUP [default: no change]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Threads that serve, or `auto` for as many as processors may be used [default: 1]
    #[arg(long, value_name = "N|auto")]
    pub workers: Option<Limit>,
    /// Time that responses in flight may take after SIGTERM, such as 10s or 1min [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = seconds::grace)]
    pub grace: Option<u32>,
    /// Do not print a line on standard error when the server is ready
    #[arg(long)]
    pub quiet: bool,
}

/// What else can be done about a server.
#[derive(Subcommand)]
pub enum ServeCommand {
    /// Convert an nginx.conf to a sooner.toml.
    Import(ImportArgs),
}

/// [`ShareName`] as the command line lists it.
#[derive(Clone, Copy, ValueEnum)]
pub enum ShareArg {
    /// By client address; --policy orders the responses of each client
    Client,
}

/// [`MechanismName`] as the command line lists it.
#[derive(Clone, Copy, ValueEnum)]
pub enum MechanismArg {
    /// The best mechanism that this process has permission for
    Auto,
    /// In user space, by turns to write; needs no privilege
    UserSpace,
    /// In the kernel's priority bands; needs CAP_NET_ADMIN
    Bands,
    /// In both
    Both,
    /// Nowhere: responses are not ordered
    None,
}

/// The forms of the access log.
#[derive(Clone, Copy, ValueEnum)]
pub enum LogFormatArg {
    /// One JSON object for each response, with what the order cost
    Json,
    /// The combined format of Apache and nginx
    Combined,
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
