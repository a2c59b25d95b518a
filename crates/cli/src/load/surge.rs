//! `sooner load surge`: SURGE's users against a server.

use super::measure::MeasureArgs;
use anyhow::Result;
use clap::Args;
use sooner_load::model::Model;
use sooner_report::number;
use sooner_workload::surge::{self, FileSet, SurgeModel};
use sooner_workload::users::USERS_MAX;
use sooner_workload::{Behaviour, Distribution};
use std::process::ExitCode;

#[derive(Args)]
pub struct SurgeArgs {
    /// Number of users
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(USERS_MAX)))]
    users: u32,
    #[command(flatten)]
    pauses: PauseArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    /// Seed of the files, as in `surge:SEED` [default: the seed of the run]
    #[arg(long, value_name = "SEED")]
    files: Option<u64>,
    /// Seed that chooses requests and pauses
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What users do, where it shall be something else than was published.
#[derive(Args)]
pub struct PauseArgs {
    /// Number of embedded files in a page, rounded down [default: pareto:k=1,alpha=2.43]
    #[arg(long, value_name = "DISTRIBUTION")]
    embedded: Option<Distribution>,
    /// Pause before an embedded file, in seconds [default: weibull:scale=1.46,shape=0.382]
    #[arg(long, value_name = "DISTRIBUTION")]
    active_off: Option<Distribution>,
    /// Pause after a page, in seconds [default: pareto:k=1,alpha=1.5]
    #[arg(long, value_name = "DISTRIBUTION")]
    inactive_off: Option<Distribution>,
}

impl PauseArgs {
    /// The published model with what was changed.
    pub fn model(&self) -> SurgeModel {
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

/// Lets the users loose and prints the figures.
pub fn run(args: &SurgeArgs) -> Result<ExitCode> {
    let model = args.pauses.model();
    let files = args.files.unwrap_or(args.seed);
    // One round asks for every file, and that is all that is needed of the trace.
    let trace = || Ok(surge::trace(&model, files, 1)?);
    let users = Model::Closed {
        users: args.users,
        behaviour: Behaviour::Surge(model.clone().into()),
    };
    let options = args.measure.options(users, trace, args.seed)?;
    let mean_bytes = FileSet::new(&model, files)?.mean_request_bytes();
    args.measure.run(&options, |_| {
        let words = format!(
            "SURGE: {} users, {} files, {} a request in the mean",
            args.users,
            model.files,
            number::bytes(mean_bytes)
        );
        words.into()
    })
}
