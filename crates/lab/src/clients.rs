//! Processes that the laboratory starts beside servers: clients that wait, clients that attack, and
//! a backend that works.
//!
//! They are this program itself with another task (`sooner lab client NAME`, which no help shows),
//! because they run in namespaces and on cores of their own.

mod attack;
mod backend;
mod frames;
mod hostile;
mod idle;
mod secure;

type Client = fn(&[&str]) -> anyhow::Result<()>;

const CLIENTS: [(&str, Client); 4] = [
    ("hostile-clients", hostile::run),
    ("attack-clients", attack::run),
    ("idle-clients", idle::run),
    ("backend", backend::run),
];

/// Does what the first word names, with the others.
pub fn run(words: &[&str]) -> anyhow::Result<()> {
    let name = words.first().copied().unwrap_or_default();
    match CLIENTS.iter().find(|(known, _)| *known == name) {
        Some((_, client)) => client(&words[1..]),
        None => anyhow::bail!("there is no client {name}"),
    }
}
