//! The section on the queue as text.

use super::curve::Curve;
use super::figures::{QueueFigures, Timed};
use super::law::LawFigures;
use sooner_report::columns::aligned;
use sooner_report::number::{count, duration, significant};

/// Levels of the curve that are shown unless all are wanted.
const LEVELS_SHOWN: usize = 8;
/// Kinds that are shown unless all are wanted.
const KINDS_SHOWN: usize = 5;
/// Longer names of kinds are cut.
const KIND_LETTERS: usize = 40;

/// The section, with all levels and kinds or with those that matter most.
pub fn text(figures: &QueueFigures, all: bool) -> String {
    let mut page = String::from("The queue before the servers\n");
    for sentence in &figures.advice {
        page += &format!("- {sentence}\n");
    }
    page += &times(figures);
    page += &inside(figures);
    page += &kinds(figures);
    page += &tokens(figures);
    if let Some(curve) = &figures.curve {
        page += "\n";
        page += &levels(curve, all);
    }
    if !figures.orders.is_empty() {
        page += &tried(figures);
        page += "\n";
        page += &orders(figures);
        page += "\n";
        page += &by_kind(figures, all);
    }
    page += "\n";
    for sentence in &figures.caveats {
        page += &format!("- {sentence}\n");
    }
    page
}

fn times(figures: &QueueFigures) -> String {
    let which = match figures.timed {
        Timed::AtServer => "at the server",
        Timed::Whole => "of the whole request",
    };
    let mut said = format!(
        "times {which}: {} requests, {} others; {}\n",
        count(figures.requests),
        count(figures.other_requests),
        law(&figures.times)
    );
    if let Some(waits) = &figures.waits {
        said += &format!("waiting before: {}\n", law(waits));
    }
    said
}

fn law(law: &LawFigures) -> String {
    let tail = match (law.tail, law.tail_index) {
        (Some(tail), Some(index)) => format!("; {tail} tail, index {}", significant(index)),
        (Some(tail), None) => format!("; {tail} tail"),
        _ => String::new(),
    };
    format!(
        "mean {}, median {}, 99 % up to {}, longest {}; C² {}{tail}",
        duration(law.mean_ms),
        duration(law.p50_ms),
        duration(law.p99_ms),
        duration(law.max_ms),
        significant(law.c2)
    )
}

fn inside(figures: &QueueFigures) -> String {
    let inside = &figures.inside;
    let shares = inside
        .time_with_at_least
        .iter()
        .map(|(level, share)| format!("{level} in {} %", significant(100.0 * share)));
    let shares: Vec<String> = shares.collect();
    format!(
        "inside: {} in the mean, {} in the busiest minute, {} at most; of the time with at least {}\n",
        significant(inside.mean),
        significant(inside.busiest_minute),
        count(inside.peak),
        shares.join(", ")
    )
}

fn kinds(figures: &QueueFigures) -> String {
    let kinds = &figures.kinds;
    let share = |share: Option<f64>| match share {
        Some(share) => format!("{} %", significant(100.0 * share)),
        None => "an unknown part".into(),
    };
    format!(
        "kinds: {}, which explain {} of the variance of times; {} of pairs of requests are ranked correctly by what earlier requests let expect\n",
        count(kinds.kinds),
        share(kinds.explained_share),
        share(kinds.ranked_rightly_share)
    )
}

fn tokens(figures: &QueueFigures) -> String {
    let Some(tokens) = &figures.tokens else {
        return String::new();
    };
    let mut said = format!(
        "tokens: {} requests, {} of the prompt and {} of the answer in the mean",
        count(tokens.requests),
        significant(tokens.mean_prompt_tokens),
        significant(tokens.mean_completion_tokens)
    );
    if let (Some(base), Some(prompt), Some(completion), Some(r2)) = (
        tokens.base_ms,
        tokens.prompt_token_ms,
        tokens.completion_token_ms,
        tokens.r2,
    ) {
        said += &format!(
            "; time = {} + {} a token of the prompt + {} a token of the answer, which explains {} % of the variance",
            duration(base),
            duration(prompt),
            duration(completion),
            significant(100.0 * r2)
        );
    }
    said.push('\n');
    if let Some(first) = &figures.first_token {
        said += &format!("first token: {}\n", law(first));
    }
    said
}

fn levels(curve: &Curve, all: bool) -> String {
    let mut rows =
        vec![["inside", "of the time", "left a second", "a request takes"].map(String::from)];
    let step = match curve.levels.len() {
        many if !all && many > LEVELS_SHOWN => many.div_ceil(LEVELS_SHOWN),
        _ => 1,
    };
    let last = curve.levels.len().saturating_sub(1);
    for (place, level) in curve.levels.iter().enumerate() {
        if !place.is_multiple_of(step) && place != last {
            continue;
        }
        rows.push([
            significant(level.inside),
            format!("{} %", significant(100.0 * level.time_share)),
            significant(level.per_sec),
            duration(level.mean_ms),
        ]);
    }
    aligned(&rows)
}

fn tried(figures: &QueueFigures) -> String {
    let tried = figures.limits_tried.iter();
    let tried = tried.map(|tried| format!("{} inside {}", tried.limit, duration(tried.mean_ms)));
    let tried: Vec<String> = tried.collect();
    format!("means by the limit, shortest first: {}\n", tried.join(", "))
}

fn orders(figures: &QueueFigures) -> String {
    let mut rows = vec![["order", "limit", "mean", "50 %", "99 %"].map(String::from)];
    for order in &figures.orders {
        rows.push([
            order.order.to_owned(),
            order.limit.map_or("-".into(), |limit| limit.to_string()),
            duration(order.mean_ms),
            duration(order.p50_ms),
            duration(order.p99_ms),
        ]);
    }
    aligned(&rows)
}

/// A row a kind: alone, and the mean and 99 % under each order.
fn by_kind(figures: &QueueFigures, all: bool) -> String {
    let Some(first) = figures.orders.first() else {
        return String::new();
    };
    let mut head: Vec<String> = ["kind", "requests", "alone"].map(String::from).to_vec();
    head.extend(figures.orders.iter().map(|order| order.order.to_owned()));
    let mut rows = vec![head];
    let shown = if all {
        first.by_kind.len()
    } else {
        KINDS_SHOWN
    };
    for (place, kind) in first.by_kind.iter().enumerate().take(shown) {
        let mut row = vec![
            kind.kind.chars().take(KIND_LETTERS).collect(),
            count(kind.requests),
            duration(kind.alone_ms),
        ];
        row.extend(figures.orders.iter().map(|order| {
            order.by_kind.get(place).map_or(String::new(), |of| {
                format!("{}, {}", duration(of.mean_ms), duration(of.p99_ms))
            })
        }));
        rows.push(row);
    }
    aligned(&rows)
}
