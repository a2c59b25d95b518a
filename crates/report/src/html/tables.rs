//! The page's key figures, tables and set-up.

use crate::compare::Pair;
use crate::escape::html as text;
use crate::groups::{self, Named, policy_class, policy_name};
use crate::number::{NO_VALUE, bits_per_sec, count, duration, significant};
use crate::{Context, finding};
use sooner_stats::{Group, Report, Run, Verdict};

/// One tile a group: how much its mean changed, and from what to what.
pub fn tiles(pair: Option<Pair<'_>>) -> String {
    let Some(pair) = pair else {
        return String::new();
    };
    let (base, other) = pair.names();
    let tiles: String = groups::ALL
        .iter()
        .filter_map(|group| tile(&pair, group))
        .collect();
    let label = text(&format!("Mean response time, {base} to {other}"));
    format!(
        "<ul class=\"tiles\" aria-label=\"{label}\">\n{tiles}</ul>\n\
         <p class=\"note under\">{label}, by rank of size.</p>\n"
    )
}

fn tile(pair: &Pair<'_>, Named { name, of, .. }: &Named) -> Option<String> {
    let both = pair.both(*of, finding::MEAN)?;
    let (from, to) = (duration(both.base), duration(both.other));
    let ideal = pair
        .both_ideal(*of)
        .map(|ideal| format!("ideal: {}", ideal.short_words()));
    let lines = [format!("{from} &rarr; {to}"), ideal.unwrap_or_default()];
    let lines: String = lines
        .iter()
        .map(|line| format!("<span>{line}</span>"))
        .collect();
    let (name, words) = (capital(name), both.short_words());
    Some(format!(
        "<li><span>{name}</span><strong>{words}</strong>{lines}</li>\n"
    ))
}

/// The groups, one row a policy.
pub fn groups(report: &Report) -> String {
    let mut bodies = String::new();
    for group in &groups::ALL {
        let n = report.runs.first().map_or(0, |run| (group.of)(run).n);
        let (name, n) = (capital(group.name), count(n));
        let rows = (0..report.runs.len())
            .map(|i| row(&report.runs, i, &figures((group.of)(&report.runs[i]))));
        let rows: String = rows.collect();
        bodies.push_str(&format!(
            "<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"6\">{name} \
             <span class=\"note\">({n})</span></th></tr>\n{rows}</tbody>\n"
        ));
    }
    let heads = [
        "Mean",
        "99th percentile",
        "Mean slowdown",
        "Ideal SRPT, mean",
        "Ideal PS, mean",
    ];
    table("Response time", &heads, &bodies)
}

fn figures(group: &Group) -> [String; 5] {
    let time = |ms: Option<f64>| ms.map_or(NO_VALUE.to_owned(), duration);
    [
        time(group.mean_response_ms),
        time(group.p99_response_ms),
        group.mean_slowdown.map_or(NO_VALUE.to_owned(), significant),
        time(group.ideal_srpt_mean_response_ms),
        time(group.ideal_ps_mean_response_ms),
    ]
}

/// How each run was measured.
pub fn runs(runs: &[Run]) -> String {
    let rows: String = (0..runs.len())
        .map(|i| row(runs, i, &conditions(&runs[i])))
        .collect();
    let heads = [
        "Verdict",
        "Load offered",
        "Realised",
        "Goodput",
        "Errors",
        "Incomplete",
        "Send lag p99",
    ];
    table("Run", &heads, &format!("<tbody>\n{rows}</tbody>\n"))
}

fn conditions(run: &Run) -> [String; 7] {
    let verdict = match run.verdict {
        Verdict::Valid => "VALID",
        Verdict::Invalid => "<strong class=\"bad\">INVALID</strong>",
    };
    [
        verdict.to_owned(),
        format!("{:.3}", run.offered_load),
        format!("{:.3}", run.realised_load),
        bits_per_sec(run.goodput_bits_per_sec),
        count(run.all.errors),
        count(run.unanswered()),
        duration(run.send_lag_p99_us / 1e3),
    ]
}

/// A table that scrolls by itself where it does not fit.
fn table(first: &str, heads: &[&str], bodies: &str) -> String {
    let head = |head: &&str| format!("<th scope=\"col\">{head}</th>");
    let heads: String = std::iter::once(&first).chain(heads).map(head).collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{heads}</tr></thead>\n{bodies}</table></div>\n"
    )
}

/// A run's row: its colour and policy, then `cells`, which are markup.
fn row(runs: &[Run], index: usize, cells: &[String]) -> String {
    let (class, policy) = (policy_class(runs, index), text(&policy_name(&runs[index])));
    let cells: String = cells
        .iter()
        .map(|cell| format!("<td>{cell}</td>"))
        .collect();
    format!("<tr><th scope=\"row\"><i class=\"dot {class}\"></i>{policy}</th>{cells}</tr>\n")
}

/// Everything needed to repeat the measurement.
pub fn setup(context: &Context) -> String {
    let row = |(name, value): (&str, &str)| {
        let value = text(value);
        let value = if matches!(name, "Command" | "Commit") {
            format!("<code>{value}</code>")
        } else {
            value
        };
        format!("<dt>{name}</dt><dd>{value}</dd>\n")
    };
    let rows: String = context.rows().into_iter().map(row).collect();
    format!("<dl>\n{rows}</dl>\n")
}

fn capital(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}
