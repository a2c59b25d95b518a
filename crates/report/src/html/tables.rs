//! The page's key figures, tables and set-up.

use crate::compare::{Both, Pair};
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
    let tile = |Named { name, of, .. }: &Named| {
        let both = pair.both(*of, finding::MEAN)?;
        let (from, to) = (duration(both.base), duration(both.other));
        let ideal = pair
            .both_ideal(*of)
            .map_or(String::new(), |ideal| ideal_words(&ideal));
        let (name, words) = (capital(name), both.short_words());
        Some(format!(
            "<li><span>{name}</span><strong>{words}</strong><span>{from} &rarr; {to}</span><span>{ideal}</span></li>\n"
        ))
    };
    let tiles: String = groups::ALL.iter().filter_map(tile).collect();
    let label = text(&format!("Mean response time, {base} to {other}"));
    format!(
        "<ul class=\"tiles\" aria-label=\"{label}\">\n{tiles}</ul>\n<p class=\"note under\">{label}, by rank of size.</p>\n"
    )
}

fn ideal_words(ideal: &Both) -> String {
    format!("ideal: {}", ideal.short_words())
}

/// The groups, one row a policy.
pub fn groups(report: &Report) -> String {
    let mut rows = String::new();
    for group in &groups::ALL {
        let n = report.runs.first().map_or(0, |run| (group.of)(run).n);
        let (name, n) = (capital(group.name), count(n));
        rows.push_str(&format!("<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"6\">{name} <span class=\"note\">({n})</span></th></tr>\n"));
        for (i, run) in report.runs.iter().enumerate() {
            let cells: String = figures((group.of)(run))
                .iter()
                .map(|cell| format!("<td>{cell}</td>"))
                .collect();
            let (class, policy) = (policy_class(&report.runs, i), text(&policy_name(run)));
            rows.push_str(&format!(
                "<tr><th scope=\"row\"><i class=\"dot {class}\"></i>{policy}</th>{cells}</tr>\n"
            ));
        }
        rows.push_str("</tbody>\n");
    }
    let heads = [
        "Mean",
        "99th percentile",
        "Mean slowdown",
        "Ideal SRPT, mean",
        "Ideal PS, mean",
    ];
    let heads: String = heads
        .iter()
        .map(|head| format!("<th scope=\"col\">{head}</th>"))
        .collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Response time</th>{heads}</tr></thead>\n{rows}</table></div>\n"
    )
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
    let mut rows = String::new();
    for (i, run) in runs.iter().enumerate() {
        let verdict = match run.verdict {
            Verdict::Valid => "<td>VALID</td>",
            Verdict::Invalid => "<td class=\"bad\">INVALID</td>",
        };
        let cells = [
            format!("{:.3}", run.offered_load),
            format!("{:.3}", run.realised_load),
            bits_per_sec(run.goodput_bits_per_sec),
            count(run.all.errors),
            count(run.incompletes),
            duration(run.send_lag_p99_us / 1e3),
        ];
        let cells: String = cells
            .iter()
            .map(|cell| format!("<td>{cell}</td>"))
            .collect();
        let (class, policy) = (policy_class(runs, i), text(&policy_name(run)));
        rows.push_str(&format!("<tr><th scope=\"row\"><i class=\"dot {class}\"></i>{policy}</th>{verdict}{cells}</tr>\n"));
    }
    let heads = [
        "Verdict",
        "Load asked",
        "Realised",
        "Goodput",
        "Errors",
        "Incomplete",
        "Send lag p99",
    ];
    let heads: String = heads
        .iter()
        .map(|head| format!("<th scope=\"col\">{head}</th>"))
        .collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Run</th>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
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
