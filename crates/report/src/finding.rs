//! What is seen, in plain English, computed from the numbers: what became better, what became
//! worse, how far from the ideal, and how much the measurement can carry.

use crate::compare::{Both, Direction, Pair, times};
use crate::groups::{ALL, Named, ideal_mean_ms, policy_name};
use crate::number::{count, duration, round_rate, size_range};
use sooner_stats::{Group, Report, Run, Verdict};

pub(crate) const MEAN: fn(&Group) -> Option<f64> = |group| group.mean_response_ms;
const P99: fn(&Group) -> Option<f64> = |group| group.p99_response_ms;
const SLOWDOWN: fn(&Group) -> Option<f64> = |group| group.mean_slowdown;

/// A title that claims no more than the means do.
pub fn headline(report: &Report) -> String {
    if first_invalid(report).is_some() {
        return "This measurement is not valid".to_owned();
    }
    let Some(pair) = Pair::of(report) else {
        let names: Vec<String> = report.runs.iter().map(policy_name).collect();
        return format!("{} on a limited link", names.join(", "));
    };
    let (base, other) = pair.names();
    match pair.both(ALL[0].of, MEAN) {
        Some(mean) if mean.direction() == Direction::Shorter && mean.gain() >= 1.5 => {
            format!(
                "Same link, same requests: {} times sooner",
                times(mean.gain())
            )
        }
        Some(mean) => format!(
            "Same link, same requests: {other} against {base}, {}",
            mean.words()
        ),
        None => format!("Same link, same requests: {other} against {base}"),
    }
}

/// One sentence for the end of a terminal's output.
pub fn closing(report: &Report) -> String {
    if first_invalid(report).is_some() {
        return "This measurement is INVALID: draw no conclusion from it.".to_owned();
    }
    let pair = Pair::of(report);
    let Some((pair, mean)) = pair.and_then(|pair| Some((pair, pair.both(ALL[0].of, MEAN)?))) else {
        return "There are no two runs to compare.".to_owned();
    };
    let (base, other) = pair.names();
    let words = match mean.direction() {
        Direction::Same => "not clearly different from".to_owned(),
        _ => format!("{} than", mean.words()),
    };
    let largest = pair.both(ALL[2].of, MEAN);
    let tail = largest.map_or(String::new(), |both| {
        format!("; that of the largest 1 % is {}", both.words())
    });
    format!("With {other} the mean response time is {words} with {base}{tail}.")
}

/// The paragraph, sentence by sentence.
pub fn sentences(report: &Report) -> Vec<String> {
    let mut said: Vec<String> = invalid(&report.runs).into_iter().collect();
    if let Some(pair) = Pair::of(report) {
        said.push(same_requests(&pair));
        said.extend(means(&pair));
        said.push(losses(&pair));
        said.push(by_size(&pair));
        said.extend(not_answered(&pair));
    }
    said.extend(distance_from_ideal(&report.runs));
    said.extend(caution(&report.runs));
    said
}

fn first_invalid(report: &Report) -> Option<&Run> {
    report
        .runs
        .iter()
        .find(|run| run.verdict == Verdict::Invalid)
}

fn invalid(runs: &[Run]) -> Option<String> {
    let invalid = runs.iter().filter(|run| run.verdict == Verdict::Invalid);
    let names: Vec<String> = invalid.map(policy_name).collect();
    let names = names.join(" and ");
    (!names.is_empty())
        .then(|| format!("INVALID for {names}: draw no conclusion from what follows."))
}

fn same_requests(pair: &Pair<'_>) -> String {
    let (base, other) = pair.names();
    let rate = round_rate(pair.base.rate_bits_per_sec as f64);
    let (n, m) = (count(pair.base.all.n), count(pair.other.all.n));
    if n == m && pair.base.seed == pair.other.seed {
        return format!(
            "{base} and {other} served the same {n} requests over the same link of {rate}; \
             only the order of the bytes differed."
        );
    }
    format!(
        "{base} served {n} requests and {other} {m} over a link of {rate}: the two are not the same arrivals."
    )
}

/// The mean of all, of the smallest half and of the largest 1 %, whichever way they went, and the
/// factor to expect.
fn means(pair: &Pair<'_>) -> Option<String> {
    let (_, other) = pair.names();
    let mut all = clause(ALL[0].phrase, &pair.both(ALL[0].of, MEAN)?);
    if let Some(ideal) = pair.both_ideal(ALL[0].of) {
        all.push_str(&format!(" (perfect schedulers: {})", ideal.words()));
    }
    let others = ALL[1..3]
        .iter()
        .filter_map(|group| Some(clause(group.phrase, &pair.both(group.of, MEAN)?)));
    let clauses: Vec<String> = std::iter::once(all).chain(others).collect();
    Some(format!("Under {other} {}.", clauses.join("; ")))
}

/// Every figure of the table that is longer under the other policy; or that none is.
fn losses(pair: &Pair<'_>) -> String {
    let (base, other) = pair.names();
    let figures = [
        ("mean", MEAN),
        ("99th percentile", P99),
        ("mean slowdown", SLOWDOWN),
    ];
    let mut worse = Vec::new();
    for Named { name, of, .. } in &ALL {
        // of one request, the mean says it all
        let told = if pair.base.all.n > 1 && of(pair.base).n == 1 {
            1
        } else {
            figures.len()
        };
        for (figure, value) in &figures[..told] {
            let both = pair
                .both(*of, *value)
                .filter(|both| both.direction() == Direction::Longer);
            worse.extend(
                both.map(|both| {
                    format!("the {figure} of {} ({})", group_words(name), both.words())
                }),
            );
        }
    }
    if worse.is_empty() {
        return format!(
            "No figure of the table is worse under {other} than under {base}, beyond 5 %."
        );
    }
    format!("{other} made worse: {}.", worse.join(", "))
}

/// A group's name where a sentence goes on.
fn group_words(name: &str) -> String {
    if name == "all" {
        name.to_owned()
    } else {
        format!("the {name}")
    }
}

/// How many of the size buckets became slower, and the worst of them.
fn by_size(pair: &Pair<'_>) -> String {
    let (base, other) = pair.names();
    let buckets = pair.base.by_size.iter().zip(&pair.other.by_size);
    let both: Vec<_> = buckets
        .filter_map(|(b, o)| Some((b, Both::new(b.mean_response_ms?, o.mean_response_ms?)?)))
        .collect();
    let (all, each) = (both.len(), both.first().map_or(0, |(bucket, _)| bucket.n));
    let groups = format!("Of {all} groups by size, with about {each} requests each");
    let slower = || {
        both.iter()
            .filter(|(_, both)| both.direction() == Direction::Longer)
    };
    let Some((bucket, worst)) = slower().min_by(|a, b| a.1.gain().total_cmp(&b.1.gain())) else {
        return format!("{groups}, none is slower under {other} than under {base}.");
    };
    let (n, words) = (slower().count(), worst.words());
    let are = if n == 1 { "is" } else { "are" };
    let sizes = size_range(bucket.min_size_bytes, bucket.max_size_bytes);
    format!(
        "{groups}, {n} {are} slower under {other} than under {base}, the worst {words} ({sizes})."
    )
}

fn not_answered(pair: &Pair<'_>) -> Option<String> {
    let lost = |run: &Run| run.all.errors + run.unanswered();
    let (of_base, of_other) = (lost(pair.base), lost(pair.other));
    let (base, other) = pair.names();
    (of_base + of_other > 0).then(|| {
        let (of_base, of_other) = (count(of_base), count(of_other));
        format!("Not answered in full: {of_base} with {base}, {of_other} with {other}; the means leave these out.")
    })
}

fn distance_from_ideal(runs: &[Run]) -> Option<String> {
    let distance = |run: &Run| {
        let both = Both::new(
            ideal_mean_ms(&run.policy, &run.all)?,
            run.all.mean_response_ms?,
        )?;
        let percent = (both.other / both.base - 1.0) * 100.0;
        let words = match percent {
            _ if percent.abs() < 0.5 => "at its ideal".to_owned(),
            _ if percent > 0.0 => format!("{percent:.0} % above its ideal"),
            _ => format!("{:.0} % below its ideal", -percent),
        };
        Some(format!("{} is {words}", policy_name(run)))
    };
    let all: Vec<String> = runs.iter().filter_map(distance).collect();
    (!all.is_empty()).then(|| format!("In the mean of all, {}.", all.join(" and ")))
}

fn caution(runs: &[Run]) -> Option<String> {
    let run = runs.first()?;
    let (n, seed) = (count(run.largest_1_percent.n), run.seed);
    Some(format!(
        "This is one run a policy, with seed {seed}; the largest 1 % are {n} requests, and other seeds move them most."
    ))
}

/// `the mean response took 38.1 ms instead of 201 ms, 5.3 times shorter`.
fn clause(phrase: &str, both: &Both) -> String {
    let (other, base) = (duration(both.other), duration(both.base));
    format!("{phrase} took {other} instead of {base}, {}", both.words())
}
