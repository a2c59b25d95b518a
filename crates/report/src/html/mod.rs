//! One self-contained HTML file: no network, no script, light and dark, readable on a phone and on paper.

mod figures;
mod tables;

use crate::escape::html as text;
use crate::finding;
use crate::{Context, compare};
use sooner_stats::{Report, Verdict};

const STYLE: &str = include_str!("style.css");

/// The whole file.
pub fn render(report: &Report, context: &Context) -> String {
    let title = text(&finding::headline(report));
    let (banner, summary) = (
        banner(report),
        unbroken(&text(&finding::sentences(report).join(" "))),
    );
    let (by_line, tiles) = (
        text(&context.summary),
        tables::tiles(compare::Pair::of(report)),
    );
    let (figures, groups) = (figures::render(report), tables::groups(report));
    let (runs, setup, words) = (tables::runs(&report.runs), tables::setup(context), WORDS);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} - Sooner</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"by\">{by_line}</p>\n{banner}<p>{summary}</p>\n{tiles}{figures}\
         <h2>All figures</h2>\n{groups}{runs}<h2>Set-up</h2>\n{setup}{words}</main>\n</body>\n</html>\n"
    )
}

const WORDS: &str = "<h2>Words</h2>\n<dl>\n\
    <dt>FAIR</dt><dd>Every response gets an equal share of the link, as in almost every web server.</dd>\n\
    <dt>SRPT</dt><dd>The response with the fewest bytes left goes first.</dd>\n\
    <dt>Ideal</dt><dd>The very same arrivals on a link without handshakes, round trips or buffers, scheduled perfectly: \
    processor sharing (PS) for FAIR, SRPT for SRPT. Computed, not measured.</dd>\n\
    <dt>Response time</dt><dd>From the planned arrival, before the first packet, to the last byte.</dd>\n\
    <dt>Slowdown</dt><dd>Response time divided by the time the response would take alone on the link.</dd>\n\
    <dt>Load</dt><dd>Work offered, with all headers and handshakes, divided by what the link carries.</dd>\n</dl>\n";

/// The same text, with units kept on the line of their number.
fn unbroken(text: &str) -> String {
    let units = [
        " %", " ms", " µs", " s ", " s,", " times", " KB", " MB", " Mbit/s",
    ];
    units.iter().fold(text.to_owned(), |text, unit| {
        text.replace(unit, &unit.replacen(' ', "\u{a0}", 1))
    })
}

fn banner(report: &Report) -> String {
    let invalid = report
        .runs
        .iter()
        .filter(|run| run.verdict == Verdict::Invalid);
    let line = |run: &sooner_stats::Run| {
        let (policy, reason) = (text(&run.policy), text(&run.verdict_reason));
        format!(
            "<p class=\"invalid\" role=\"alert\"><strong>INVALID</strong> ({policy}): {reason}</p>\n"
        )
    };
    invalid.map(line).collect()
}
