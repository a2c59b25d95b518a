//! `sooner load tpcc`: fill a database, run transactions, check that nothing was lost.

use std::process::ExitCode;
use std::rc::Rc;

use anyhow::Result;
use clap::{Args, Subcommand};
use sooner_oltp::DatabaseUrl;
use sooner_oltp::tpcc::{self, Scale, Tpcc};
use tokio::task::LocalSet;

use super::transactions::{CheckArgs, RunArgs, print, print_checks, say};
use super::{runtime, stopped};

/// Run transactions shaped like TPC-C on PostgreSQL: fill, run, check.
///
/// Five transactions of a wholesaler. Results are not comparable with published ones.
#[derive(Args)]
pub struct TpccArgs {
    #[command(subcommand)]
    command: TpccCommand,
}

#[derive(Subcommand)]
enum TpccCommand {
    /// Create the tables in an empty database, and fill them
    Fill(FillArgs),
    /// Run transactions, and measure how long they take
    Run(Box<RunArgs>),
    /// Check that the data is consistent
    Check(CheckArgs),
}

#[derive(Args)]
struct FillArgs {
    /// Database: postgresql://user@host:5432/database, or
    /// postgresql:///database?host=/run/postgresql&user=name
    #[arg(long)]
    url: DatabaseUrl,
    /// Number of warehouses; each takes about 75 MB
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    warehouses: u64,
    /// Customers of each of the ten districts of a warehouse
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u64).range(10..=3000))]
    customers: u64,
    /// Items that can be ordered
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..=100_000))]
    items: u64,
    /// Seed of the data
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the subcommand.
pub fn run(args: TpccArgs) -> Result<ExitCode> {
    let (runtime, local) = (runtime()?, LocalSet::new());
    local.block_on(&runtime, async {
        match args.command {
            TpccCommand::Fill(args) => fill(&args).await,
            TpccCommand::Run(args) => carry_out(&args).await,
            TpccCommand::Check(args) => check(&args).await,
        }
    })
}

async fn fill(args: &FillArgs) -> Result<ExitCode> {
    let client = args.url.connect("sooner load").await?;
    let scale = Scale {
        warehouses: args.warehouses,
        customers: args.customers,
        items: args.items,
    };
    tpcc::fill(&client, &scale, args.seed, say).await?;
    Ok(ExitCode::SUCCESS)
}

async fn carry_out(args: &RunArgs) -> Result<ExitCode> {
    let options = args.options(tpcc::KINDS)?;
    let client = args.url.connect("sooner load").await?;
    let kit = Rc::new(Tpcc(tpcc::scale_of(&client).await?));
    drop(client);
    let measured = kit
        .clone()
        .run(&args.url, &options, &say, Box::pin(stopped()))
        .await?;
    print(&measured, &options, kit.as_ref(), args.json)
}

async fn check(args: &CheckArgs) -> Result<ExitCode> {
    let client = args.url.connect("sooner load").await?;
    print_checks(&tpcc::check(&client).await?, args.json)
}
