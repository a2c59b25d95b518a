//! One self-contained HTML file: no network, no script, light and dark, readable on a phone and on
//! paper.

pub(crate) mod charts;
pub(crate) mod figures;
mod tables;

use crate::escape::html as text;
use crate::finding;
use crate::groups::policy_name;
use crate::{Context, compare};
use sooner_stats::{Report, Run, Verdict};

pub(crate) const STYLE: &str = include_str!("html/style.css");
const WORDS: &str = include_str!("html/words.html");

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
    let (runs, setup) = (tables::runs(&report.runs), tables::setup(context));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} - Sooner</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"by\">{by_line}</p>\n\
         {banner}<p>{summary}</p>\n{tiles}{figures}\
         <h2>All figures</h2>\n{groups}{runs}\
         <h2>Set-up</h2>\n{setup}{WORDS}</main>\n</body>\n</html>\n"
    )
}

/// The same text, with units kept on the line of their number.
pub(crate) fn unbroken(text: &str) -> String {
    let units = [
        " %", " ms", " µs", " s ", " s,", " times", " KB", " MB", " Mbit/s",
    ];
    units.iter().fold(text.to_owned(), |text, unit| {
        text.replace(unit, &unit.replacen(' ', "\u{a0}", 1))
    })
}

/// Which runs may not be believed, and why.
fn banner(report: &Report) -> String {
    let invalid = report
        .runs
        .iter()
        .filter(|run| run.verdict == Verdict::Invalid);
    let line = |run: &Run| {
        let (policy, reason) = (text(&policy_name(run)), text(&run.verdict_reason));
        format!("<strong>INVALID</strong> ({policy}): {reason}")
    };
    let lines: Vec<String> = invalid.map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"invalid\" role=\"alert\">{}</p>\n",
        lines.join("<br>\n")
    )
}
