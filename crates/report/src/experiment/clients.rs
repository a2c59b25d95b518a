//! What each client host saw: who is far away, and whether the order is at their cost.

use super::{Case, Client, Peer, spread};
use crate::escape::html as text;
use crate::number::{duration, significant};

/// The table by client host; empty where there was only one.
pub fn table(case: &Case) -> String {
    let peers: Vec<&Peer> = case.peers.iter().filter(|p| !p.runs.is_empty()).collect();
    let first = peers.first().and_then(|peer| peer.counted().next());
    let clients = first.map_or(&[][..], |one| &one.clients);
    if clients.len() < 2 {
        return String::new();
    }
    let heads: String = peers
        .iter()
        .map(|peer| format!("<th scope=\"col\">{}</th>", text(&peer.name)))
        .collect();
    let rows: String = clients.iter().map(|client| row(client, &peers)).collect();
    format!(
        "<h3>By client</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Mean, and mean slowdown</th>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn row(client: &Client, peers: &[&Peer]) -> String {
    let of = |peer: &Peer, figure: fn(&Client) -> Option<f64>| {
        spread::of(peer, |one| {
            let mut clients = one.clients.iter();
            figure(clients.find(|other| other.address == client.address)?)
        })
    };
    let cell = |peer: &&Peer| {
        let mean = spread::cell(of(peer, |one| one.mean_response_ms), duration);
        let slowdown = of(peer, |one| one.mean_slowdown);
        let slowdown = slowdown.map_or(String::new(), |s| {
            format!("<small>slowdown {}</small>", significant(s.median))
        });
        format!("<td>{mean}{slowdown}</td>")
    };
    let (address, cells) = (text(&client.address), peers.iter().map(cell));
    let cells: String = cells.collect();
    format!("<tr><th scope=\"row\">{address}</th>{cells}</tr>\n")
}
