//! `sooner serve`: a web server that sends responses in the order a policy decides.

mod args;
mod check;
mod effective;
mod import;
mod link;
mod observe;
mod ready_line;
mod running;
mod user;

pub use args::ServeArgs;

use args::ServeCommand;

use anyhow::Context;
use effective::Effective;
use link::Link;
use running::Running;
use sooner_kernel::descriptors::{limit, raise_limit};
use sooner_operate::Supervisor;
use sooner_operate::say;
use sooner_operate::{PassedListeners, passed_listeners};
use sooner_operate::{Signals, polled_when_woken};
use sooner_uplink::{Uplink, UplinkError};
use sooner_web::config::{Config, Misconfigured};
use sooner_web::{Listening, Means, Server, reading_threads_max};
use std::process::ExitCode;

/// Serves until SIGTERM or SIGINT, or only looks whether it would.
pub fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    if let Some(ServeCommand::Import(import)) = &args.command {
        return import::run(import);
    }
    let descriptors = raise_limit(u64::MAX).unwrap_or_else(|_| limit());
    let effective = Effective::load(&args)?;
    let link = Link::of(&effective.config.uplink).map_err(|mistake| effective.located(mistake))?;
    let means = Means {
        chunk_bytes: link.chunk_bytes(),
        record_bytes: link.record_bytes(),
        descriptors,
        workers: effective.config.worker_count(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(reading_threads_max(means.workers))
        .build()
        .context("cannot start the runtime")?;
    if let Some(before) = check::Before::of(&args) {
        return runtime.block_on(async {
            check::look(&effective, means, before)?;
            match args.observe {
                Some(seconds) => observe::run(&effective, seconds, args.json).await,
                None => check::say_ok(&effective),
            }
        });
    }
    runtime.block_on(serve(args, effective, link, means))?;
    // A read that hangs on its disk must not keep the process.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    args: ServeArgs,
    effective: Effective,
    link: Link,
    means: Means,
) -> anyhow::Result<()> {
    let supervisor = Supervisor::from_environment();
    remove_leftovers();
    let located = |mistake| effective.located(mistake);
    let passed = passed(&effective.config)?;
    let mut listening = Server::from_config(&effective.config, means)
        .and_then(|server| server.with_passed(passed).start())
        .map_err(located)?;
    listening.note_config(effective.source.hash());
    effective.say(listening.warnings().iter().cloned());
    // Before the uplink: a signal that comes while bands are set up must not leave them behind.
    let has_files = args.config.is_some() || args.certificate.is_some();
    let mut signals = Signals::new(has_files).context("cannot watch for signals")?;
    let uplink = start_uplink(&effective, &link, &listening)?;
    link.remark(&listening.addresses())
        .into_iter()
        .for_each(say);
    user::adopt(&effective, uplink.uses_bands()).map_err(located)?;
    // Capabilities are those of a thread, and inherited.
    listening.start_workers(&uplink).map_err(located)?;
    let status = ready_line::ready_line(&effective.config, &link, &listening, &uplink);
    if !args.quiet {
        say(&status);
    }
    let mut running = Running::new(args, effective, listening.control(), supervisor, status);
    let serving = listening.run(uplink, running.stopped());
    tokio::select! {
        () = serving => {}
        () = polled_when_woken(running.obey(&mut signals)) => {}
    }
    Ok(())
}

/// Listeners that a service manager holds for this process, if it does.
fn passed(config: &Config) -> anyhow::Result<PassedListeners> {
    let sockets = sooner_kernel::activation::take()?;
    let named = sockets
        .into_iter()
        .map(|passed| (passed.name, passed.socket));
    Ok(passed_listeners(named, config.limits.stall_time())?)
}

/// Bands that a killed process left would go on ordering the traffic of other programs; any start
/// takes them down.
fn remove_leftovers() {
    match sooner_kernel::bands::remove_leftovers() {
        Ok(left) => left.iter().for_each(say),
        Err(error) => say(error),
    }
}

fn start_uplink(
    effective: &Effective,
    link: &Link,
    listening: &Listening,
) -> anyhow::Result<Uplink> {
    let table = &effective.config.uplink;
    let Some(config) = link.uplink_config(table, &listening.addresses()) else {
        return Ok(Uplink::unlimited());
    };
    Uplink::start(&config).map_err(|error| match (error, &table.device) {
        (UplinkError::NoSuchDevice(error), Some(device)) => {
            effective.located(Misconfigured::at(device, "uplink.device", error))
        }
        (error, _) => error.into(),
    })
}
