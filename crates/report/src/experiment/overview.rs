//! All cases in one table: what was published, ours, what ideal schedulers would give, and what it does to the largest.

use super::cases::times;
use super::{Case, Page, Peer, spread};
use crate::compare::Both;
use crate::escape::html as text;
use crate::groups::ALL;
use crate::number::{NO_VALUE, count, duration};
use sooner_stats::summary::Spread;

const HEADS: [&str; 9] = [
    "Case, and who",
    "Published gain",
    "Our gain",
    "Ideal gain",
    "Mean",
    "Ideal SRPT",
    "Ideal PS",
    "Largest 1 %, beside baseline",
    "Largest, beside baseline",
];

/// The table; empty for a single case, whose own table says it all.
pub fn table(page: &Page) -> String {
    if page.cases.len() < 2 {
        return String::new();
    }
    let heads = HEADS.map(|head| format!("<th scope=\"col\">{head}</th>"));
    let bodies: String = page.cases.iter().map(|case| body(page, case)).collect();
    format!(
        "<h2>All cases</h2>\n<p class=\"note\">Gain: how many times shorter the mean response time is than {}'s, with the very same \
         arrivals.</p>\n<div class=\"scroll\"><table class=\"dense\">\n<thead><tr>{}<th scope=\"col\">Not answered</th></tr></thead>\n\
         {bodies}</table></div>\n",
        text(&page.baseline),
        heads.concat()
    )
}

fn body(page: &Page, case: &Case) -> String {
    let measured = case.peers.iter().filter(|peer| !peer.runs.is_empty());
    let rows: String = measured.map(|peer| row(page, case, peer)).collect();
    let rows = match rows.is_empty() {
        true => "<tr><td class=\"note\" colspan=\"10\">not measured</td></tr>\n".to_owned(),
        false => rows,
    };
    let words = case.published.as_ref().map_or(String::new(), |words| {
        format!(" <span class=\"note\">{}</span>", text(words))
    });
    let name = text(&case.name);
    format!(
        "<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"10\">{name}{words}</th></tr>\n{rows}</tbody>\n"
    )
}

fn row(page: &Page, case: &Case, peer: &Peer) -> String {
    let is_baseline = peer.name == page.baseline;
    let [all, _, large, largest] = ALL.map(|named| named.of);
    let gain = |group| spread::gain(case, &page.baseline, peer, group).filter(|_| !is_baseline);
    let ideal = |mean| spread::cell(spread::of_group(peer, all, mean), duration);
    let published = case.published_gain.filter(|_| peer.name.contains("srpt"));
    let lost: u64 = peer
        .counted()
        .map(|one| one.run.all.n - one.run.all.completed)
        .sum();
    let cells = [
        published.map_or(NO_VALUE.to_owned(), times),
        spread::cell(gain(all), times),
        match is_baseline {
            true => NO_VALUE.to_owned(),
            false => spread::cell(spread::ideal_gain(peer), times),
        },
        spread::cell(
            spread::of_group(peer, all, |g| g.mean_response_ms),
            duration,
        ),
        ideal(|g| g.ideal_srpt_mean_response_ms),
        ideal(|g| g.ideal_ps_mean_response_ms),
        words(gain(large)),
        words(gain(largest)),
        count(lost),
    ];
    let cells = cells.map(|cell| format!("<td>{cell}</td>")).concat();
    let name = text(&peer.name);
    format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
}

/// `1.4× longer`; markup.
fn words(gain: Option<Spread>) -> String {
    let both = gain.and_then(|gain| Both::new(gain.median, 1.0));
    both.map_or(NO_VALUE.to_owned(), |both| text(&both.short_words()))
}
