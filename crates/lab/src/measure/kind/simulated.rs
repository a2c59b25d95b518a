//! `simulated`: policies by `sooner sim`, on the same arrivals. Nothing is timed, so no quiet moment is
//! waited for.

use super::{Keys, Kind, figures, keys_of};
use crate::measure::bench::Bench;
use crate::measure::rows::number;
use crate::measure::{Item, Measure, Record};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

/// `simulated`.
#[derive(Debug)]
pub struct Simulated {
    jobs: u64,
    systems: Vec<System>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimulatedKeys {
    jobs: u64,
}

/// A system.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct System {
    /// Law of the sizes.
    sizes: String,
    /// Whether a job is expected to take the mean of all that have its estimate.
    #[serde(default)]
    calibrated: bool,
}

impl Simulated {
    /// Its keys.
    pub fn of(keys: &mut Keys) -> Result<Box<dyn Kind>, (String, String)> {
        Ok(Box::new(Self {
            jobs: keys.own::<SimulatedKeys>()?.jobs,
            systems: keys.cases()?,
        }))
    }
}

impl Kind for Simulated {
    fn run(&self, bench: &Bench<'_>, measure: &Measure, record: &mut Record) -> Result<()> {
        for case in &bench.cases(measure) {
            let system = keys_of(measure.place_of_case(case), &self.systems)?;
            let ways: Vec<&str> = measure.ways.iter().map(|way| way.text("policy")).collect();
            for (way, figures) in measure
                .ways
                .iter()
                .zip(self.runs(bench, case, system, &ways)?)
            {
                let mut row = figures;
                row.extend(measure.is.clone());
                row.extend(case.fields.clone());
                row.extend(way.fields.clone());
                record.add(row)?;
            }
        }
        Ok(())
    }
}

impl Simulated {
    /// The figures of each policy.
    fn runs(
        &self,
        bench: &Bench<'_>,
        case: &Item,
        system: &System,
        policies: &[&str],
    ) -> Result<Vec<Map<String, Value>>> {
        let jobs = if bench.is_quick {
            self.jobs / 1_000
        } else {
            self.jobs
        };
        let words = format!(
            "sim --sizes {} --load {} --right-pairs {} --policy {} --jobs {jobs} --threads 1 --json",
            system.sizes,
            case.text("load"),
            case.text("right_pairs"),
            policies.join(",")
        );
        let mut words: Vec<&str> = words.split(' ').collect();
        words.extend(system.calibrated.then_some("--calibrated"));
        let printed = bench.output(bench.sooner(&words))?;
        let document: Value =
            serde_json::from_str(&printed).context("sooner sim printed no JSON")?;
        let runs = document["runs"]
            .as_array()
            .context("sooner sim has no runs")?;
        Ok(runs.iter().map(of_run).collect())
    }
}

/// Mean, p99 and p99.9 of a run, and half of their intervals, in mean sizes.
fn of_run(run: &Value) -> Map<String, Value> {
    let half = |name: &str| (number(&run[name][1]) - number(&run[name][0])) / 2.0;
    let all = &run["all"];
    // What the mean is corrected to where it is finite.
    figures([
        ("mean", number(&run["controlled_mean_response"])),
        ("mean_half", half("controlled_mean_response_ci95")),
        ("p50", number(&all["p50_response"])),
        ("p99", number(&all["p99_response"])),
        ("p99_half", half("p99_response_ci95")),
        ("p99_9", number(&all["p99_9_response"])),
        ("p99_9_half", half("p99_9_response_ci95")),
        ("realised_load", number(&run["realised_load"])),
    ])
}
