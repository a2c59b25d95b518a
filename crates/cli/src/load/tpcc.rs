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

/// TPC-C in its shape: five transactions of a wholesaler. Not comparable with published results.
#[derive(Args)]
pub struct TpccArgs {
    #[command(subcommand)]
    command: TpccCommand,
}

#[derive(Subcommand)]
enum TpccCommand {
    /// Make the tables in an empty database, and fill them.
    Fill(FillArgs),
    /// Carry out transactions, and measure how long they take.
    Run(Box<RunArgs>),
    /// Look whether the data is as it must be, whatever ran.
    Check(CheckArgs),
}

#[derive(Args)]
struct FillArgs {
    /// The database: postgresql://user@host:5432/database, or
    /// postgresql:///database?host=/run/postgresql&user=name.
    #[arg(long)]
    url: DatabaseUrl,
    /// Warehouses: about 75 MB each.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    warehouses: u64,
    /// Customers of each of a warehouse's ten districts.
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u64).range(10..=3000))]
    customers: u64,
    /// Items that can be ordered.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..=100_000))]
    items: u64,
    /// Of the data.
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
