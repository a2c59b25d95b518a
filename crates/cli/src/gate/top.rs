//! `sooner gate top`: what a gate that runs is doing, every second.

use crate::output;
use crate::seconds;
use anyhow::Result;
use clap::Args;
use sooner_pooler::config::Endpoint;
use sooner_report::columns::aligned;
use sooner_report::number;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::look::{Class, Look, Target, look};
use super::place::Place;

/// Watch a running gate.
///
/// Shows servers and classes, waiting transactions, and how long transactions take. The password is
/// read from PGPASSWORD.
#[derive(Args)]
pub struct TopArgs {
    /// Running gate: an address with a port, or the path of its socket file [default: the one gate
    /// of this user that runs, found by its socket file; if none runs, 127.0.0.1:6432]
    #[arg(long, value_name = "ADDRESS|PATH")]
    gate: Option<String>,
    /// User of the console: an admin or a watcher; through a socket file, `sooner` is the user that
    /// runs the gate
    #[arg(long, default_value = "sooner")]
    user: String,
    /// Time between two updates, in whole seconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds::whole::<1>)]
    every: u64,
    /// Number of updates; 0 continues until interrupted
    #[arg(long, value_name = "N", default_value_t = 0)]
    count: u64,
    /// Print one line of JSON for each update instead of tables
    #[arg(long)]
    json: bool,
}

/// Prints tables until it is ended.
pub fn run(args: &TopArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(watch(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn watch(args: &TopArgs) -> Result<()> {
    let place = Place::of(args.gate.as_deref()).await?;
    let mut console = place.open(&args.user).await?;
    let place = place.endpoint;
    let mut before: Option<(Instant, BTreeMap<String, u64>)> = None;
    let mut looks = 0;
    loop {
        let mut look = look(&mut console, &place).await?;
        let now = Instant::now();
        if let Some((then, counts)) = &before {
            look.compare(counts, now.duration_since(*then));
        }
        before = Some((now, look.counts()));
        print(&look, &place, args)?;
        looks += 1;
        if looks == args.count {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(args.every)).await;
    }
}

fn time(us: Option<u64>) -> String {
    us.map_or("-".into(), |us| number::duration(us as f64 / 1e3))
}

impl Target {
    fn cells(&self) -> Vec<String> {
        let percent = self.achieved_percent;
        vec![
            self.class.clone(),
            self.server.clone(),
            self.target.clone(),
            time(Some(self.target_us)),
            time(self.achieved_us),
            percent.map_or("-".into(), |percent| percent.to_string()),
        ]
    }
}

impl Class {
    fn cells(&self) -> Vec<String> {
        let name = if self.name.is_empty() {
            "(none)"
        } else {
            &self.name
        };
        vec![
            name.to_owned(),
            self.priority
                .map_or("-".into(), |priority| priority.to_string()),
            self.clients.to_string(),
            self.waiting_clients.to_string(),
            self.transactions_per_sec
                .map_or("-".into(), number::significant),
            time(self.outside_p50_us),
            time(self.outside_p95_us),
            time(self.opening_p95_us),
            time(self.inside_p50_us),
            time(self.inside_p95_us),
            time(self.total_p99_us),
        ]
    }
}

fn print(look: &Look, place: &Endpoint, args: &TopArgs) -> Result<()> {
    if args.json {
        return Ok(output::line(serde_json::to_string(look)?)?);
    }
    let mut page = String::new();
    if io::stdout().is_terminal() && args.count != 1 {
        // From the upper left corner, on a screen that is empty.
        page.push_str("\x1b[H\x1b[2J");
    }
    page += &format!("{place} is {}\n\n", look.state);
    let head = ["server", "limit", "inside", "waiting", "connections"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for server in &look.servers {
        rows.push(vec![
            server.address.clone(),
            server.limit_transactions.to_string(),
            server.inside_transactions.to_string(),
            server.waiting_transactions.to_string(),
            format!("{} of {}", server.connections, server.limit_connections),
        ]);
    }
    page += &format!("{}\n", aligned(&rows));
    let head = [
        "class",
        "priority",
        "clients",
        "waiting",
        "a second",
        "outside p50",
        "p95",
        "opening p95",
        "inside p50",
        "p95",
        "total p99",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(look.classes.iter().map(Class::cells));
    page += &format!("{}\n", aligned(&rows));
    if !look.targets.is_empty() {
        let head = ["class", "server", "target", "", "achieved", "percent"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(look.targets.iter().map(Target::cells));
        page += &format!("{}\n", aligned(&rows));
    }
    Ok(output::print(&page)?)
}
