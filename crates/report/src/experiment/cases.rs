//! A case's table: all peers that served, then both ideals and what was published; who pays stands
//! in the same line as who gains.

use super::palette::Palette;
use super::{Case, Impatience, Page, Patience, Peer, Repetition, spread};
use crate::escape::html as text;
use crate::groups::ALL;
use crate::number::{NO_VALUE, count, duration, significant};
use sooner_stats::{Group, Run, Verdict};

/// Groups of columns, each with its columns.
const COLUMNS: [(&str, &[&str]); 6] = [
    (
        "All",
        &[
            "requests",
            "mean",
            "99th percentile",
            "C²",
            "mean slowdown",
            "gain",
            "mean / ideal SRPT",
        ],
    ),
    ("Smallest half", &["mean"]),
    ("Largest 1 %", &["mean", "mean slowdown", "incomplete"]),
    ("Largest", &["mean", "mean slowdown", "incomplete"]),
    ("Not answered", &["errors", "incomplete"]),
    ("", &["valid runs"]),
];
const COLUMN_COUNT: usize = 17;
const GAIN: usize = 5;
/// The columns of the four groups' means.
const MEANS: [usize; 4] = [1, 7, 8, 11];

/// The table and why runs are not valid.
pub fn table(page: &Page, case: &Case, palette: &Palette) -> String {
    let peers = case.peers.iter().map(|peer| {
        let class = palette.class(&peer.name);
        row(
            &format!("<i class=\"dot {class}\"></i>{}", text(&peer.name)),
            &cells(page, case, peer),
        )
    });
    let peers: String = peers.collect();
    let (ideals, published) = (ideals(case), published(case));
    format!(
        "<div class=\"scroll\"><table class=\"dense grouped\">\n<thead>{}</thead>\n<tbody>\n{peers}</tbody>\n\
         <tbody class=\"ideals\">\n{ideals}{published}</tbody></table></div>\n{}",
        head(),
        invalid(case)
    )
}

fn head() -> String {
    let groups = COLUMNS.iter().map(|(name, columns)| {
        format!(
            "<th scope=\"colgroup\" class=\"first\" colspan=\"{}\">{name}</th>",
            columns.len()
        )
    });
    let columns = COLUMNS.iter().flat_map(|(_, columns)| {
        let columns = columns.iter().enumerate();
        columns.map(|(i, name)| format!("<th scope=\"col\"{}>{name}</th>", first(i == 0)))
    });
    let (groups, columns): (String, String) = (groups.collect(), columns.collect());
    format!(
        "<tr><td></td>{groups}</tr><tr class=\"heads\"><th scope=\"col\">Who</th>{columns}</tr>"
    )
}

/// Marks the first column of a group, which stands a little apart.
fn first(is_first: bool) -> &'static str {
    if is_first { " class=\"first\"" } else { "" }
}

/// A row of `cells`, which are markup.
fn row(name: &str, cells: &[String; COLUMN_COUNT]) -> String {
    let firsts: Vec<usize> = COLUMNS
        .iter()
        .scan(0, |at, (_, columns)| {
            let start = *at;
            *at += columns.len();
            Some(start)
        })
        .collect();
    let cell =
        |(i, cell): (usize, &String)| format!("<td{}>{cell}</td>", first(firsts.contains(&i)));
    let cells: String = cells.iter().enumerate().map(cell).collect();
    format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
}

fn cells(page: &Page, case: &Case, peer: &Peer) -> [String; COLUMN_COUNT] {
    let time = |group: fn(&Run) -> &Group| {
        spread::cell(
            spread::of_group(peer, group, |g| g.mean_response_ms),
            duration,
        )
    };
    let slowdown = |group: fn(&Run) -> &Group| {
        spread::cell(
            spread::of_group(peer, group, |g| g.mean_slowdown),
            significant,
        )
    };
    let [all, half, large, largest] = ALL.map(|named| named.of);
    let gain = spread::gain(case, &page.baseline, peer, all).filter(|_| peer.name != page.baseline);
    let of_ideal = spread::of(peer, |one| {
        Some(one.run.all.mean_response_ms? / one.run.all.ideal_srpt_mean_response_ms?)
    });
    let whole = |value: f64| count(value.round() as u64);
    [
        spread::cell(spread::of_group(peer, all, |g| Some(g.n as f64)), whole),
        time(all),
        spread::cell(spread::of_group(peer, all, |g| g.p99_response_ms), duration),
        spread::cell(spread::of_group(peer, all, |g| g.response_c2), significant),
        slowdown(all),
        spread::cell(gain, times),
        spread::cell(of_ideal, |value| format!("{value:.2}")),
        time(half),
        time(large),
        slowdown(large),
        incomplete(peer, large, |patience| patience.largest_1_percent),
        time(largest),
        slowdown(largest),
        incomplete(peer, largest, |patience| patience.largest),
        spread::cell(
            spread::of_group(peer, all, |g| Some(g.errors as f64)),
            whole,
        ),
        incomplete(peer, all, |patience| patience.all),
        verdict(peer),
    ]
}

/// How many of a group were not answered and did not fail; below it what impatient users did, where
/// that was told.
fn incomplete(peer: &Peer, group: fn(&Run) -> &Group, of: fn(&Patience) -> Impatience) -> String {
    let whole = |value: f64| count(value.round() as u64);
    let told = |name: &str, amount: fn(&Impatience) -> Option<u64>| {
        let spread = spread::of(peer, |one: &Repetition| {
            amount(&of(&one.patience)).map(|n| n as f64)
        });
        let some = spread.filter(|spread| spread.max > 0.0);
        some.map_or(String::new(), |spread| {
            format!("<small>{} {name}</small>", whole(spread.median))
        })
    };
    [
        spread::cell(spread::of_group(peer, group, spread::incomplete), whole),
        told("aborts", |impatience| impatience.aborts),
        told("given up", |impatience| impatience.given_up),
    ]
    .concat()
}

/// A factor, `5.3×`.
pub fn times(factor: f64) -> String {
    format!("{}×", significant(factor))
}

fn verdict(peer: &Peer) -> String {
    match (peer.valid(), peer.runs.len()) {
        (_, 0) => NO_VALUE.to_owned(),
        (0, _) => "<span class=\"bad\">INVALID</span>".to_owned(),
        (valid, all) if valid == all => format!("VALID ({all})"),
        (valid, all) => format!("{valid} of {all}, <span class=\"bad\">rest INVALID</span>"),
    }
}

/// The ideals as rows, from the peer that answered most.
fn ideals(case: &Case) -> String {
    let Some(peer) = spread::fullest(case) else {
        return String::new();
    };
    let ideal = |name: &str, class: &str, mean: fn(&Group) -> Option<f64>| {
        let mut cells = [const { String::new() }; COLUMN_COUNT];
        for (column, named) in MEANS.into_iter().zip(&ALL) {
            cells[column] = spread::cell(spread::of_group(peer, named.of, mean), duration);
        }
        if class == "srpt" {
            cells[GAIN] = spread::cell(spread::ideal_gain(peer), times);
        }
        row(
            &format!("<i class=\"dot hollow {class}\"></i>{name}"),
            &cells,
        )
    };
    // Runs of before it was computed have none.
    let las: fn(&Group) -> Option<f64> = |g| g.ideal_las_mean_response_ms;
    let has_las = spread::of_group(peer, |run| &run.all, las).is_some();
    let las = if has_las {
        ideal("Ideal LAS", "las", las)
    } else {
        String::new()
    };
    ideal("Ideal PS", "fair", |g| g.ideal_ps_mean_response_ms)
        + &las
        + &ideal("Ideal SRPT", "srpt", |g| g.ideal_srpt_mean_response_ms)
}

fn published(case: &Case) -> String {
    let Some(gain) = case.published_gain else {
        return String::new();
    };
    let mut cells = [const { String::new() }; COLUMN_COUNT];
    cells[GAIN] = times(gain);
    row("Published", &cells)
}

fn invalid(case: &Case) -> String {
    let lines = case.peers.iter().flat_map(|peer| {
        let invalid = peer
            .runs
            .iter()
            .filter(|one| one.run.verdict == Verdict::Invalid);
        invalid.map(|one| {
            let (name, seed, reason) = (
                text(&peer.name),
                one.run.seed,
                text(&one.run.verdict_reason),
            );
            format!("<strong>INVALID</strong> ({name}, seed {seed}): {reason}")
        })
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"invalid\" role=\"alert\">{}</p>\n",
        lines.join("<br>\n")
    )
}
