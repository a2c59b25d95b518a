//! Results of `sooner sim`: as a table, as JSON, as comma-separated values, and drawn.

use super::args::SimArgs;
use super::{queue, slowdown};
use crate::output;
use crate::system::{self, Case};
use anyhow::Result;
use serde_json::{Value, json};
use sooner_report::columns::aligned;
use sooner_report::number::significant;
use sooner_simulator::replicate::{CONFIDENCE, Simulated};
use sooner_simulator::tally::{Group, SizeBucket};
use sooner_simulator::{Effort, TICKS_PER_MEAN};
use sooner_theory::little::Queue;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// In a cell with a number that is known to be infinite.
const INFINITE: &str = "infinite";

/// A number that may be infinite.
pub fn finite_or_not(value: f64) -> String {
    if value.is_infinite() {
        INFINITE.into()
    } else {
        significant(value)
    }
}

/// A case that was simulated.
pub struct Done<'a> {
    pub case: &'a Case,
    pub simulated: Simulated,
    /// Mean response time by formula, in mean sizes; perhaps infinite.
    pub exact: Option<f64>,
    /// Waiting time and numbers of jobs by formula.
    pub queue: Option<Queue>,
    /// Why the true mean is infinite, where it is.
    pub infinite: Option<String>,
    /// Why that of the mean slowdown alone is.
    pub infinite_slowdown: Option<String>,
    pub jobs_per_second: f64,
}

impl<'a> Done<'a> {
    /// What came out of `case`, beside what formulas say of it.
    pub fn new(case: &'a Case, simulated: Simulated, jobs_per_second: f64) -> Self {
        let exact = system::mean_response(&case.system);
        let infinite = system::infinite(&case.system);
        let slowdown = || slowdown::why(&case.system);
        Self {
            case,
            simulated,
            exact,
            queue: exact.and_then(|exact| system::queue(&case.system, exact)),
            infinite_slowdown: if infinite.is_none() { slowdown() } else { None },
            infinite,
            jobs_per_second,
        }
    }
}

/// Prints all of them.
pub fn print(args: &SimArgs, effort: &Effort, done: &[Done<'_>]) -> Result<()> {
    let drawn = output::html(args.html.as_deref(), || super::drawing::page(done));
    print_runs(args, effort, done)?;
    drawn?;
    if let Some(path) = &args.html {
        output::say(format_args!("sooner: drawn in {}", path.display()));
    }
    Ok(())
}

fn print_runs(args: &SimArgs, effort: &Effort, done: &[Done<'_>]) -> Result<()> {
    if args.json {
        let runs: Vec<Value> = done.iter().map(|one| run(one, effort)).collect();
        let document = json!({"schema": SCHEMA, "time_unit": "mean_service", "runs": runs});
        output::json(&document)?;
        return Ok(());
    }
    if done.is_empty() {
        return Ok(());
    }
    let rows = rows(done);
    if args.csv {
        output::print(&comma_separated(&rows, done)?)?;
        for line in done.iter().flat_map(invalid) {
            output::say(format_args!("sooner: {line}"));
        }
        return Ok(());
    }
    output::line(format_args!("{}\n", described(done, effort)))?;
    output::print(&aligned(&rows))?;
    let varied = done.first().map_or(0, |one| one.case.varied.len());
    let named = rows.iter().map(|row| &row[..=varied]);
    let queues: Vec<Vec<String>> = named
        .zip(queue_rows(done))
        .map(|(name, more)| [name, &more].concat())
        .collect();
    output::print(&format!("\n{}", aligned(&queues)))?;
    for one in done {
        if let Some(why) = &one.infinite {
            let (name, found) = (
                name(one),
                significant(one.simulated.controlled(CONFIDENCE).mean),
            );
            output::line(format_args!(
                "infinite mean, {name}: {why}; the simulation shows {found} only because it ends"
            ))?;
        }
        if let Some(why) = &one.infinite_slowdown {
            output::line(format_args!("infinite mean slowdown, {}: {why}", name(one)))?;
        }
        invalid(one).try_for_each(output::line)?;
    }
    Ok(())
}

/// Both tables as one of comma-separated values.
fn comma_separated(rows: &[Vec<String>], done: &[Done<'_>]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (place, (row, more)) in rows.iter().zip(queue_rows(done)).enumerate() {
        let row = [row.as_slice(), &more].concat();
        let is_head = place == 0;
        writer.write_record(if is_head { named_apart(&row) } else { row })?;
    }
    let text = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8(text)?)
}

/// Why a case may not be believed, a line for each reason.
fn invalid(done: &Done<'_>) -> impl Iterator<Item = String> {
    let warnings = done.simulated.warnings.iter();
    warnings.map(move |warning| format!("INVALID, {}: {warning}", name(done)))
}

/// What all have in common, in words.
fn described(done: &[Done<'_>], effort: &Effort) -> String {
    let common = done.first().map(|one| one.case.in_common());
    let effort = format!(
        "{} jobs in {} replications, seed {}; times in mean sizes{}",
        effort.jobs,
        effort.replications,
        effort.seed,
        done.first()
            .map_or(String::new(), |one| one.case.in_seconds())
    );
    common
        .into_iter()
        .chain([effort])
        .collect::<Vec<_>>()
        .join(", ")
}

fn name(done: &Done<'_>) -> String {
    let varied = done
        .case
        .varied
        .iter()
        .map(|(name, value)| format!("{name} {value}"));
    let all: Vec<String> = varied.chain([done.case.policy.to_string()]).collect();
    all.join(", ")
}

fn rows(done: &[Done<'_>]) -> Vec<Vec<String>> {
    let Some(first) = done.first() else {
        return Vec::new();
    };
    let has_exact = done.iter().any(|one| one.exact.is_some());
    let mut head: Vec<String> = first
        .case
        .varied
        .iter()
        .map(|(name, _)| (*name).into())
        .collect();
    head.extend(["policy", "mean response", "± 95 %"].map(String::from));
    head.extend(has_exact.then(|| "exact".into()));
    head.extend(
        [
            "mean slowdown",
            "p50",
            "p99",
            "smallest half",
            "largest 1 %",
            "load",
        ]
        .map(String::from),
    );
    let row = |one: &Done<'_>| {
        let Simulated { tally, .. } = &one.simulated;
        let all = tally.all();
        let best = one.simulated.controlled(CONFIDENCE);
        let figure = |value: Option<f64>| {
            value.map_or("-".into(), |ticks| significant(ticks / TICKS_PER_MEAN))
        };
        let mut row: Vec<String> = one
            .case
            .varied
            .iter()
            .map(|(_, value)| value.clone())
            .collect();
        let is_finite = one.infinite.is_none();
        let mean = |value: f64| {
            if is_finite {
                significant(value)
            } else {
                INFINITE.into()
            }
        };
        let half_width = best.half_width.filter(|_| is_finite);
        row.extend([
            one.case.policy.to_string(),
            mean(best.mean),
            half_width.map_or("-".into(), significant),
        ]);
        row.extend(has_exact.then(|| one.exact.map_or("-".into(), finite_or_not)));
        row.extend([
            match one.infinite_slowdown {
                Some(_) => INFINITE.into(),
                None => mean(one.simulated.slowdown(CONFIDENCE).mean),
            },
            figure(all.quantile(0.5)),
            figure(all.quantile(0.99)),
            figure(tally.smallest_half.mean_response()),
            figure(tally.largest_1_percent.mean_response()),
            significant(one.simulated.realised_load),
        ]);
        row
    };
    [head].into_iter().chain(done.iter().map(row)).collect()
}

/// The heads of all columns, each another one: what belongs to a figure has its name before it.
fn named_apart(heads: &[String]) -> Vec<String> {
    let mut figure = "";
    let mut names: Vec<String> = Vec::with_capacity(heads.len());
    for head in heads {
        names.push(match head.as_str() {
            "± 95 %" | "exact" => format!("{figure} {head}"),
            "load" if !figure.is_empty() && figure != "load" => "realised load".into(),
            _ => head.clone(),
        });
        if !["± 95 %", "exact"].contains(&head.as_str()) {
            figure = head;
        }
    }
    names
}

/// Heads and cells of waiting times and numbers of jobs, a row a case.
fn queue_rows(done: &[Done<'_>]) -> Vec<Vec<String>> {
    let has_exact = done.iter().any(|one| one.queue.is_some());
    let cells = done.iter().map(|one| queue::cells(one, has_exact));
    [queue::heads(has_exact)].into_iter().chain(cells).collect()
}

fn run(done: &Done<'_>, effort: &Effort) -> Value {
    let Done {
        case, simulated, ..
    } = done;
    let (plain, controlled) = (
        simulated.mean_response(CONFIDENCE),
        simulated.controlled(CONFIDENCE),
    );
    let largest = simulated.tally.largest.map(|job| {
        json!({"n": 1, "mean_response": job.response as f64 / TICKS_PER_MEAN,
            "mean_slowdown": job.response as f64 / job.alone as f64, "size": job.size as f64 / TICKS_PER_MEAN})
    });
    let infinite = done.infinite.iter();
    let infinite = infinite.map(|why| format!("the mean response time is infinite: {why}"));
    let reasons: Vec<String> = infinite.chain(simulated.warnings.iter().cloned()).collect();
    // What is infinite is null: a figure of this run alone would be taken for the mean.
    let finite = |value: Value| match done.infinite {
        None => value,
        Some(_) => Value::Null,
    };
    let mut all = group(&simulated.tally.all());
    for name in ["mean_response", "mean_slowdown", "response_c2"] {
        all[name] = finite(all[name].take());
    }
    let mut smallest_half = group(&simulated.tally.smallest_half);
    let mut by_size: Vec<Value> = simulated.tally.by_size.iter().map(bucket).collect();
    if done.infinite_slowdown.is_some() {
        let smallest = [&mut all, &mut smallest_half].into_iter();
        for group in smallest.chain(by_size.first_mut()) {
            group["mean_slowdown"] = Value::Null;
        }
    }
    let is_slowdown_finite = done.infinite.is_none() && done.infinite_slowdown.is_none();
    let slowdown = is_slowdown_finite.then(|| simulated.slowdown(CONFIDENCE).mean);
    let mut run = json!({
        "policy": case.policy.to_string(),
        "system": case.described(),
        "verdict": if reasons.is_empty() { "VALID" } else { "INVALID" },
        "verdict_reason": reasons.join("; "),
        "mean_is_infinite": done.infinite.is_some(),
        "mean_slowdown_is_infinite": done.infinite_slowdown.is_some() || done.infinite.is_some(),
        "seed": effort.seed,
        "jobs": simulated.tally.sums().0,
        "replications": effort.replications,
        "offered_load": case.system.offered_load(),
        "mean_service_s": case.system.mean_service_s(),
        "realised_load": simulated.realised_load,
        "throughput": simulated.throughput,
        "jobs_per_second": done.jobs_per_second,
        "max_jobs_present": simulated.present_max,
        "mean_response_ci95": finite(json!(plain.interval())),
        "controlled_mean_response": finite(json!(controlled.mean)),
        "controlled_mean_response_ci95": finite(json!(controlled.interval())),
        "controlled_mean_slowdown": slowdown,
        "exact_mean_response": done.exact,
        "p99_response_ci95": simulated.quantile(0.99, CONFIDENCE).interval(),
        "p99_9_response_ci95": simulated.quantile(0.999, CONFIDENCE).interval(),
        "all": all,
        "smallest_half": smallest_half,
        "largest_1_percent": group(&simulated.tally.largest_1_percent),
        "largest": largest,
        "by_size": by_size,
    });
    queue::add_to(&mut run, done);
    run
}

fn group(group: &Group) -> Value {
    let in_means = |ticks: Option<f64>| ticks.map(|ticks| ticks / TICKS_PER_MEAN);
    json!({
        "n": group.n,
        "mean_response": in_means(group.mean_response()),
        "p50_response": in_means(group.quantile(0.5)),
        "p95_response": in_means(group.quantile(0.95)),
        "p99_response": in_means(group.quantile(0.99)),
        "p99_9_response": in_means(group.quantile(0.999)),
        "max_response": in_means(group.max_response()),
        "response_c2": group.response_c2(),
        "mean_slowdown": group.mean_slowdown(),
    })
}

fn bucket(bucket: &SizeBucket) -> Value {
    let n = bucket.n.max(1) as f64;
    json!({"n": bucket.n, "mean_size": bucket.size_sum / n / TICKS_PER_MEAN,
        "mean_response": bucket.response_sum / n / TICKS_PER_MEAN, "mean_slowdown": bucket.slowdown_sum / n})
}
