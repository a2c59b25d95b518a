//! `sooner load tpcw`: a bookstore; filled, visited, checked.

use crate::choice;
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::Result;
use clap::{Args, Subcommand};
use sooner_oltp::DatabaseUrl;
use sooner_oltp::tpcw::{self, Mix, Scale, Tpcw};
use tokio::task::LocalSet;

use super::transactions::{CheckArgs, RunArgs, print, print_checks, say};
use super::{runtime, stopped};

/// Run the visits of a bookstore, shaped like TPC-W, on PostgreSQL: fill, run, check.
///
/// Fourteen interactions of visitors. Results are not comparable with published ones.
#[derive(Args)]
pub struct TpcwArgs {
    #[command(subcommand)]
    command: TpcwCommand,
}

#[derive(Subcommand)]
enum TpcwCommand {
    /// Create the tables in an empty database, and fill them
    Fill(FillArgs),
    /// Run interactions, and measure how long they take
    Run(Box<VisitArgs>),
    /// Check that the data is consistent
    Check(CheckArgs),
}

#[derive(Args)]
struct FillArgs {
    /// Database: postgresql://user@host:5432/database, or
    /// postgresql:///database?host=/run/postgresql&user=name
    #[arg(long)]
    url: DatabaseUrl,
    /// Number of books; there are a quarter as many authors
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    items: u64,
    /// Number of customers; there are 9 orders for 10 customers
    #[arg(long, value_name = "N", default_value_t = 28_800, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    customers: u64,
    /// Seed of the data
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Args)]
struct VisitArgs {
    /// Mix of looking and buying
    #[arg(long, default_value = "shopping", value_parser = choice::mix())]
    mix: Mix,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs the subcommand.
pub fn run(args: TpcwArgs) -> Result<ExitCode> {
    let (runtime, local) = (runtime()?, LocalSet::new());
    local.block_on(&runtime, async {
        match args.command {
            TpcwCommand::Fill(args) => fill(&args).await,
            TpcwCommand::Run(args) => visit(&args).await,
            TpcwCommand::Check(args) => check(&args).await,
        }
    })
}

async fn fill(args: &FillArgs) -> Result<ExitCode> {
    let client = args.url.connect("sooner load").await?;
    let scale = Scale {
        items: args.items,
        customers: args.customers,
    };
    tpcw::fill(&client, &scale, args.seed, say).await?;
    Ok(ExitCode::SUCCESS)
}

async fn visit(args: &VisitArgs) -> Result<ExitCode> {
    let VisitArgs { mix, run } = args;
    let options = run.options(tpcw::KINDS)?;
    let client = run.url.connect("sooner load").await?;
    let scale = tpcw::scale_of(&client).await?;
    drop(client);
    let kit = Rc::new(Tpcw { scale, mix: *mix });
    let measured = kit
        .clone()
        .run(&run.url, &options, &say, Box::pin(stopped()))
        .await?;
    print(&measured, &options, kit.as_ref(), run.json)
}

async fn check(args: &CheckArgs) -> Result<ExitCode> {
    let client = args.url.connect("sooner load").await?;
    print_checks(&tpcw::check(&client).await?, args.json)
}
