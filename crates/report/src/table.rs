//! The table for people: at most 100 columns, no colours, the same on a terminal and in a pipe.

use crate::groups::{self, policy_name};
use crate::number::{NO_VALUE, bits_per_sec, count, duration, significant};
use sooner_stats::{Group, Report, Run, Verdict};
use std::fmt::Write;

const NAME_WIDTH: usize = 18;
const WIDTHS: [usize; 5] = [10, 10, 10, 13, 11];
const HEADINGS: [&str; 5] = ["mean", "p99", "slowdown", "ideal SRPT", "ideal PS"];

/// Groups with one row a policy, then one row a run saying how it was measured. Times are in ms.
/// A run does not keep the load that was requested: the table has the one that was planned.
pub fn render(report: &Report) -> String {
    render_requested(report, &[])
}

/// The same with the loads that were requested of the runs, in their order, where they are known.
pub fn render_requested(report: &Report, loads: &[Option<f64>]) -> String {
    let mut out = String::new();
    row(&mut out, "response time, ms", HEADINGS.map(str::to_owned));
    for group in &groups::ALL {
        let sizes: Vec<u64> = report.runs.iter().map(|run| (group.of)(run).n).collect();
        let mut name = group.name.to_owned();
        if let (Some(n), true) = (
            sizes.first(),
            sizes.windows(2).all(|pair| pair[0] == pair[1]),
        ) {
            name = format!("{name} ({})", count(*n));
        }
        line(&mut out, &name);
        for run in &report.runs {
            row(
                &mut out,
                &format!("  {}", run.policy),
                figures((group.of)(run)),
            );
        }
    }
    out.push('\n');
    runs(&mut out, &report.runs, loads);
    out
}

fn figures(group: &Group) -> [String; 5] {
    [
        group.mean_response_ms,
        group.p99_response_ms,
        group.mean_slowdown,
        group.ideal_srpt_mean_response_ms,
        group.ideal_ps_mean_response_ms,
    ]
    .map(|figure| figure.map_or(NO_VALUE.to_owned(), significant))
}

/// How each run was measured, and loudly what may not be believed.
fn runs(out: &mut String, runs: &[Run], loads: &[Option<f64>]) {
    let load = if loads.is_empty() {
        "offered"
    } else {
        "load asked"
    };
    let heading = format!(
        "run      verdict  {load:>10}  realised       goodput  errors  incomplete  send lag p99"
    );
    line(out, &heading);
    for (at, run) in runs.iter().enumerate() {
        let requested = loads.get(at).copied().flatten();
        let text = format!(
            "{:<8} {:<7} {:>11.3} {:>9.3} {:>13} {:>7} {:>11} {:>13}",
            run.policy,
            if run.verdict == Verdict::Valid {
                "VALID"
            } else {
                "INVALID"
            },
            requested.unwrap_or(run.offered_load),
            run.realised_load,
            bits_per_sec(run.goodput_bits_per_sec),
            count(run.all.errors),
            count(run.unanswered()),
            duration(run.send_lag_p99_us / 1e3),
        );
        line(out, &text);
    }
    if runs.iter().any(|run| run.verdict == Verdict::Invalid) {
        out.push('\n');
    }
    for run in runs.iter().filter(|run| run.verdict == Verdict::Invalid) {
        let text = format!("INVALID: {}: {}", policy_name(run), run.verdict_reason);
        line(out, &text);
    }
}

fn row(out: &mut String, name: &str, cells: [String; 5]) {
    let mut text = format!("{name:<NAME_WIDTH$}");
    for (cell, width) in cells.iter().zip(WIDTHS) {
        write!(text, "{cell:>width$}").expect("writing to a string");
    }
    line(out, &text);
}

/// Appends `text` without blanks at its end.
fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}
