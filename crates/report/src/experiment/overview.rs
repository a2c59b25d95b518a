//! All cases in one table: what was published, ours, what ideal schedulers would give, and what it
//! does to the largest.

use super::cases::times;
use super::{Case, Page, Peer, spread};
use crate::compare::Both;
use crate::escape::html as text;
use crate::groups::ALL;
use crate::number::{NO_VALUE, count, duration, significant};
use sooner_stats::summary::Spread;
use sooner_stats::{Group, Run};

const HEADS: [&str; 10] = [
    "Case, and who",
    "Published gain",
    "Ideal gain",
    "Gain",
    "Ideal SRPT",
    "Ideal PS",
    "Mean",
    "Largest 1 %, beside the baseline",
    "Largest, beside the baseline",
    "Not answered",
];

/// The table; empty for a single case, as its own table says it all.
pub fn table(page: &Page) -> String {
    if page.cases.len() < 2 {
        return String::new();
    }
    let heads = HEADS.map(|head| format!("<th scope=\"col\">{head}</th>"));
    let bodies: String = page.cases.iter().map(|case| body(page, case)).collect();
    format!(
        "<h2>All cases</h2>\n<p class=\"note\">Gain: how many times shorter the mean response time is than {}'s, with the very same \
         arrivals.</p>\n<div class=\"scroll\"><table class=\"dense\">\n<thead><tr>{}</tr></thead>\n\
         {bodies}</table></div>\n",
        text(&page.baseline),
        heads.concat()
    )
}

fn body(page: &Page, case: &Case) -> String {
    let measured = case.peers.iter().filter(|peer| !peer.runs.is_empty());
    let rows: String = measured.map(|peer| row(page, case, peer)).collect();
    format!("<tbody>\n{}{rows}</tbody>\n", heading(case))
}

/// The case, what was published for it, and what perfect schedulers would give.
fn heading(case: &Case) -> String {
    let ideal = |mean| {
        let spread = spread::fullest(case).and_then(|peer| spread::of_group(peer, ALL[0].of, mean));
        spread::cell(spread, duration)
    };
    let last = match spread::fullest(case) {
        Some(_) => "",
        None => "not measured",
    };
    let cells = [
        case.published_gain.map_or(NO_VALUE.to_owned(), times),
        spread::cell(spread::fullest(case).and_then(spread::ideal_gain), times),
        String::new(),
        ideal(|g| g.ideal_srpt_mean_response_ms),
        ideal(|g| g.ideal_ps_mean_response_ms),
        last.to_owned(),
        String::new(),
        String::new(),
        String::new(),
    ];
    format!(
        "<tr class=\"heading\"><th scope=\"rowgroup\">{}</th>{}</tr>\n",
        text(&case.name),
        joined(&cells)
    )
}

fn row(page: &Page, case: &Case, peer: &Peer) -> String {
    let is_baseline = peer.name == page.baseline;
    let [all, _, large, largest] = ALL.map(|named| named.of);
    let gain = |group| spread::gain(case, &page.baseline, peer, group).filter(|_| !is_baseline);
    let mean = spread::of_group(peer, all, |g| g.mean_response_ms);
    let lost = spread::of_group(peer, all, |g| Some((g.n - g.completed) as f64));
    let cells = [
        String::new(),
        String::new(),
        spread::cell(gain(all), times),
        String::new(),
        String::new(),
        spread::cell(mean, duration),
        words(gain(large)) + &price(peer, large),
        words(gain(largest)) + &price(peer, largest),
        spread::cell(lost, |lost| count(lost.round() as u64)),
    ];
    let (name, cells) = (text(&peer.name), joined(&cells));
    format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
}

fn joined(cells: &[String]) -> String {
    cells
        .iter()
        .map(|cell| format!("<td>{cell}</td>"))
        .collect()
}

/// Response time and slowdown of a group, and how many of it were incomplete; markup.
fn price(peer: &Peer, group: fn(&Run) -> &Group) -> String {
    let mean = spread::of_group(peer, group, |g| g.mean_response_ms);
    let mean = mean.map_or(NO_VALUE.to_owned(), |s| duration(s.median));
    let slowdown = spread::of_group(peer, group, |g| g.mean_slowdown);
    let incomplete = spread::of_group(peer, group, spread::incomplete);
    let slowdown = slowdown.map_or(NO_VALUE.to_owned(), |s| significant(s.median));
    let incomplete = incomplete.map_or(0, |n| n.median.round() as u64);
    let incomplete = match incomplete {
        0 => String::new(),
        n => format!(", {} incomplete", count(n)),
    };
    format!("<small>{mean}, slowdown {slowdown}{incomplete}</small>")
}

/// `1.4× longer`; markup.
fn words(gain: Option<Spread>) -> String {
    let both = gain.and_then(|gain| Both::new(gain.median, 1.0));
    both.map_or(NO_VALUE.to_owned(), |both| text(&both.short_words()))
}
