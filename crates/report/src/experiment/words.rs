//! What is seen, in plain English and in both directions: who gains, and who pays.

use super::palette::{Palette, compared};
use super::{Page, Peer, spread};
use crate::compare::{Both, Direction};
use crate::groups::ALL;
use crate::number::count;

/// A group's change in every case that has both peers.
struct Change<'a> {
    phrase: String,
    by_case: Vec<(&'a str, Both)>,
}

/// The sentences on the peer the page is about; empty while nothing can be compared.
pub fn headline(page: &Page) -> Vec<String> {
    compared(page)
        .and_then(|peer| sentences(page, peer))
        .unwrap_or_default()
}

/// The sentences on every other peer.
pub fn others(page: &Page, palette: &Palette) -> Vec<String> {
    let main = compared(page);
    let others = palette.names();
    let others = others.filter(|name| *name != page.baseline && Some(*name) != main);
    let told = others.filter_map(|name| sentences(page, name));
    told.map(|sentences| sentences.join(" ")).collect()
}

/// What changes, who pays, what was not answered.
fn sentences(page: &Page, peer: &str) -> Option<Vec<String>> {
    let changes: Vec<Change<'_>> = ALL.iter().map(|g| change(page, peer, g)).collect();
    let mean = changes.first().filter(|mean| !mean.by_case.is_empty())?;
    let cases = match mean.by_case.len() {
        1 => String::new(),
        n => format!(", in {n} cases"),
    };
    let told: Vec<String> = changes.iter().filter_map(in_words).collect();
    let (base, told) = (&page.baseline, told.join("; "));
    let parts = [
        Some(format!(
            "{peer} beside {base}{cases}, mean response time of {told}."
        )),
        Some(who_pays(peer, &changes)),
        not_answered(page, peer),
    ];
    Some(parts.into_iter().flatten().collect())
}

fn change<'a>(page: &'a Page, peer: &str, group: &crate::groups::Named) -> Change<'a> {
    // What may not be believed is shown in the tables, and marked there; it is not told.
    let is_believed = |name: &str, case: &super::Case| {
        let peer = case.peer(name);
        peer.is_some_and(|peer| peer.valid() > 0)
    };
    let of_case = |case: &'a super::Case| {
        if !(is_believed(&page.baseline, case) && is_believed(peer, case)) {
            return None;
        }
        let gain = spread::gain(case, &page.baseline, case.peer(peer)?, group.of)?;
        Some((case.name.as_str(), Both::new(gain.median, 1.0)?))
    };
    Change {
        phrase: match group.name {
            "all" => "all".into(),
            name => format!("the {name}"),
        },
        by_case: page.cases.iter().filter_map(of_case).collect(),
    }
}

/// `all: 2.1 times shorter (W3) to 7.8 times shorter (W1)`.
fn in_words(change: &Change<'_>) -> Option<String> {
    let (low, high) = (least(change)?, most(change)?);
    let (from, to) = (low.1.words(), high.1.words());
    let phrase = &change.phrase;
    Some(match change.by_case.len() {
        1 => format!("{phrase}: {from}"),
        _ if from == to => format!("{phrase}: {from} in each"),
        _ => format!("{phrase}: {from} ({}) to {to} ({})", low.0, high.0),
    })
}

fn least<'a, 'b>(change: &'b Change<'a>) -> Option<&'b (&'a str, Both)> {
    let cases = change.by_case.iter();
    cases.min_by(|a, b| a.1.gain().total_cmp(&b.1.gain()))
}

fn most<'a, 'b>(change: &'b Change<'a>) -> Option<&'b (&'a str, Both)> {
    let cases = change.by_case.iter();
    cases.max_by(|a, b| a.1.gain().total_cmp(&b.1.gain()))
}

/// Every group that waits longer somewhere, with the worst case; or that none does.
fn who_pays(peer: &str, changes: &[Change<'_>]) -> String {
    let losers = changes.iter().filter_map(|change| {
        let longer = |(_, both): &&(&str, Both)| both.direction() == Direction::Longer;
        let n = change.by_case.iter().filter(longer).count();
        let (case, worst) = least(change).filter(|_| n > 0)?;
        let (phrase, words, all) = (&change.phrase, worst.words(), change.by_case.len());
        Some(match all {
            1 => format!("{phrase} ({words})"),
            _ => format!("{phrase} in {n} of {all} cases (at worst {words}, {case})"),
        })
    });
    let losers: Vec<String> = losers.collect();
    if losers.is_empty() {
        return format!(
            "Who pays: under {peer} no group waits longer by more than 5 % in the mean."
        );
    }
    format!("Who pays, under {peer}: {}.", losers.join(", "))
}

/// Requests that were not answered in full, where there was any, over all runs that count.
fn not_answered(page: &Page, peer: &str) -> Option<String> {
    let lost = |peer: &Peer| -> u64 {
        let runs = peer.counted();
        runs.map(|one| one.run.all.n - one.run.all.completed).sum()
    };
    let of_name = |name: &str| -> u64 {
        let both = page.cases.iter().filter(|case| {
            let has_runs = |name| case.peer(name).is_some_and(|peer| !peer.runs.is_empty());
            has_runs(peer) && has_runs(&page.baseline)
        });
        both.filter_map(|case| case.peer(name)).map(lost).sum()
    };
    let (own, base) = (of_name(peer), of_name(&page.baseline));
    (own + base > 0).then(|| {
        let (own, base, name) = (count(own), count(base), &page.baseline);
        format!("Not answered in full: {own} under {peer}, {base} under {name}; means and percentiles leave these out.")
    })
}
