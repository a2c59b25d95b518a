//! What the server's host and the clients' paths did meanwhile: one row a figure, one column a
//! peer.

use super::{Amount, Case, Peer, Repetition};
use crate::escape::html as text;
use crate::number::{NO_VALUE, significant};
use sooner_stats::summary::median_and_spread;

/// The table of counters; empty where none were kept.
pub fn table(case: &Case) -> String {
    let peers: Vec<&Peer> = case.peers.iter().filter(|p| !p.runs.is_empty()).collect();
    let names = names(&peers);
    if names.is_empty() {
        return String::new();
    }
    let heads: String = peers
        .iter()
        .map(|peer| format!("<th scope=\"col\">{}</th>", text(&peer.name)))
        .collect();
    let rows: String = names.iter().map(|name| row(name, &peers)).collect();
    format!(
        "<h3>The host meanwhile</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Figure, median over the seeds</th>{heads}\
         </tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// Every figure that some run has, in the order in which they come.
fn names(peers: &[&Peer]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let all = peers.iter().flat_map(|peer| peer.counted());
    for (name, _) in all.flat_map(figures) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The run's own figures of the network, then what was counted beside it.
fn figures(one: &Repetition) -> Vec<(String, Amount)> {
    let own = [
        ("SYNs dropped", one.run.syn_drops),
        ("SYNs sent again", one.run.syn_retransmissions),
    ];
    let own = own
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Amount::Number(value? as f64))));
    own.chain(one.host.iter().cloned()).collect()
}

fn row(name: &str, peers: &[&Peer]) -> String {
    let cells: String = peers
        .iter()
        .map(|peer| format!("<td>{}</td>", cell(name, peer)))
        .collect();
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", text(name))
}

/// The median of numbers; of other things the first.
fn cell(name: &str, peer: &Peer) -> String {
    let amounts: Vec<Amount> = peer
        .counted()
        .flat_map(figures)
        .filter_map(|(own, amount)| (own == name).then_some(amount))
        .collect();
    let numbers = amounts.iter().filter_map(|amount| match amount {
        Amount::Number(value) => Some(*value),
        Amount::Text(_) => None,
    });
    let words = amounts.iter().find_map(|amount| match amount {
        Amount::Text(words) => Some(text(words)),
        Amount::Number(_) => None,
    });
    let median = median_and_spread(&numbers.collect::<Vec<f64>>());
    words
        .or(median.map(|spread| number(spread.median)))
        .unwrap_or(NO_VALUE.to_owned())
}

/// Whole numbers as they are, others with three digits.
fn number(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e12 {
        true if value < 0.0 => format!("{value}"),
        true => crate::number::count(value as u64),
        false => significant(value),
    }
}
