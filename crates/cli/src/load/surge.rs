//! `sooner load surge` and `sooner load surge-fit`: SURGE's users against a server, and whether they are SURGE's.

use super::{print_json, run_seconds, runtime, seconds, show};
use anyhow::{Context, Result};
use clap::Args;
use sooner_load::play::Progress;
use sooner_load::samples;
use sooner_load::socket::SocketOptions;
use sooner_load::surge::{self, SurgeOptions};
use sooner_load::target::Target;
use sooner_load::tls::TlsOptions;
use sooner_report::{number, table};
use sooner_stats::Report;
use sooner_workload::surge::check::{Row, check};
use sooner_workload::surge::{FileSet, SurgeModel};
use sooner_workload::{Distribution, Rate};
use std::io::{self, IsTerminal};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Version of the JSON form of the comparison.
const FIT_SCHEMA: u32 = 1;

#[derive(Args)]
pub struct SurgeArgs {
    /// Where the files of `sooner load mkroot surge:SEED DIR` are served, like `http://127.0.0.1:8080`.
    #[arg(long)]
    url: String,
    /// Number of user equivalents.
    #[arg(long)]
    users: u32,
    /// Length of the run in seconds, warm-up included.
    #[arg(long = "for", value_name = "SECONDS", value_parser = run_seconds)]
    duration: Duration,
    /// Rate of the link that load, slowdown and ideals refer to, like 10mbit (bit, kbit, mbit, gbit).
    #[arg(long)]
    uplink: Rate,
    #[command(flatten)]
    pauses: PauseArgs,
    /// Close a user's connection after K requests.
    #[arg(long, value_name = "K", default_value = "1")]
    requests_per_connection: NonZeroU32,
    /// First seconds of the run, left out of the statistics [default: 10 % of the run].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    warm_up: Option<Duration>,
    /// How many seconds to wait for the last responses.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    drain: Duration,
    /// Chooses files, requests and pauses; the files must be those of `surge:SEED`.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Name of the policy under test, for the report.
    #[arg(long, default_value = "unnamed")]
    label: String,
    /// TCP congestion control of the client's sockets, like cubic.
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Write every request as a line of JSON to this file.
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// What users do, where it shall be something else than was published.
#[derive(Args)]
struct PauseArgs {
    /// Number of embedded files of a page, rounded down [default: pareto:k=1,alpha=2.43].
    #[arg(long, value_name = "DISTRIBUTION")]
    embedded: Option<Distribution>,
    /// Pause before an embedded file in seconds [default: weibull:scale=1.46,shape=0.382].
    #[arg(long, value_name = "DISTRIBUTION")]
    active_off: Option<Distribution>,
    /// Pause after a page in seconds [default: pareto:k=1,alpha=1.5].
    #[arg(long, value_name = "DISTRIBUTION")]
    inactive_off: Option<Distribution>,
}

impl PauseArgs {
    fn model(&self) -> SurgeModel {
        let published = SurgeModel::default();
        let or = |given: &Option<Distribution>, published| given.clone().unwrap_or(published);
        SurgeModel {
            embedded: or(&self.embedded, published.embedded),
            active_off_s: or(&self.active_off, published.active_off_s),
            inactive_off_s: or(&self.inactive_off, published.inactive_off_s),
            ..SurgeModel::default()
        }
    }
}

#[derive(Args)]
pub struct FitArgs {
    #[command(flatten)]
    pauses: PauseArgs,
    /// Sizes in bytes [default: surge].
    #[arg(long, value_name = "DISTRIBUTION")]
    sizes: Option<Distribution>,
    /// Numbers drawn of each quantity.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    draws: u64,
    /// Chooses the numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

pub fn run(args: SurgeArgs) -> Result<()> {
    let options = SurgeOptions {
        target: Target::resolve(&args.url, &TlsOptions::default())?,
        model: args.pauses.model(),
        users: args.users,
        rate: args.uplink,
        duration: args.duration,
        warm_up: args.warm_up.unwrap_or(args.duration.mul_f64(0.1)),
        drain: args.drain,
        requests_per_connection: args.requests_per_connection,
        seed: args.seed,
        label: args.label,
        socket: SocketOptions {
            congestion_control: args.congestion_control,
        },
    };
    let shows_progress = io::stderr().is_terminal();
    let mut progress = |progress: Progress| {
        if shows_progress {
            show(progress, options.duration);
        }
    };
    let replay = runtime()?.block_on(surge::run(&options, &mut progress))?;
    if shows_progress {
        eprintln!();
    }
    if let Some(path) = &args.samples {
        samples::write(path, &replay.samples, replay.warm_up_samples)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let report = Report::new(vec![replay.run]);
    if args.json {
        return print_json(&report);
    }
    print!("{}", table::render(&report));
    let mean_bytes = FileSet::new(&options.model, options.seed)?.mean_request_bytes();
    println!(
        "\nSURGE: {} users, {} files, {} a request in the mean",
        options.users,
        options.model.files,
        number::bytes(mean_bytes)
    );
    Ok(())
}

pub fn run_fit(args: FitArgs) -> Result<ExitCode> {
    let published = args.pauses.model();
    let model = SurgeModel {
        sizes: args.sizes.unwrap_or(published.sizes.clone()),
        ..published
    };
    let rows = check(&model, args.seed, args.draws)?;
    let fits = rows.iter().all(|row| row.fits);
    if args.json {
        print_json(
            &serde_json::json!({ "schema": FIT_SCHEMA, "seed": args.seed, "fits": fits, "rows": rows }),
        )?;
    } else {
        print_fit(&rows);
    }
    Ok(if fits {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_fit(rows: &[Row]) {
    let line = |cells: [&str; 7]| {
        let [quantity, what, n, published, found, may_be, verdict] = cells;
        println!(
            "{quantity:<16} {what:<20} {n:>8} {published:>11} {found:>13}  {may_be:<23} {verdict}"
        );
    };
    line([
        "quantity",
        "what",
        "n",
        "published",
        "found",
        "99.9 %, bound or p",
        "verdict",
    ]);
    for row in rows {
        let may_be = match (row.p_value, row.interval) {
            (Some(p_value), _) => format!("p = {p_value:.4}"),
            (None, Some((low, high))) => format!("{} to {}", figure(low), figure(high)),
            (None, None) => String::new(),
        };
        line([
            row.quantity,
            row.what,
            &row.n.to_string(),
            &row.published.map_or("-".into(), figure),
            &figure(row.found),
            &may_be,
            if row.fits { "fits" } else { "DIFFERS" },
        ]);
    }
    let misfits = rows.iter().filter(|row| !row.fits).count();
    match misfits {
        0 => println!("\nall {} lines agree with what was published", rows.len()),
        misfits => println!(
            "\n{misfits} of {} lines DIFFER from what was published",
            rows.len()
        ),
    }
}

/// A number with up to six decimals, without those that say nothing.
fn figure(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}
