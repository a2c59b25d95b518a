//! Attacks on TLS and HTTP/2, one kind after the other: what do the others notice, and what does the server keep of them?

use std::fs;

use super::Effort;
use super::check::Checks;
use super::others::{self, Stand};
use super::record::Record;
use super::server::{Root, Server};
use crate::clients::attack::KINDS;

/// What is asked for: smaller than half of all downloads in flight, so that under SRPT it comes first whenever it can.
const HOSTILE_BYTES: usize = 100_000;

/// Every kind against both mechanisms.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    kinds("others", |_| true, effort, checks)
}

/// One kind alone, kept under its own name.
pub fn only(kind: &str, effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    kinds(kind, |other| other == kind, effort, checks)
}

fn kinds(
    name: &str,
    wanted: impl Fn(&str) -> bool,
    effort: Effort,
    checks: &mut Checks,
) -> anyhow::Result<()> {
    let mut record = Record::open("attacks", name)?;
    let mut part = Checks::default();
    let mut table = format!(
        "| attack | server | {} |\n|---|---|---|---|---|---|---|---|\n",
        others::COLUMNS
    );
    let root = Root::of("epa")?;
    fs::write(root.path().join("hostile.bin"), vec![b'x'; HOSTILE_BYTES])?;
    for (kind, _) in KINDS.into_iter().filter(|(kind, _)| wanted(kind)) {
        for server in [Server::UserSpace, Server::Bands] {
            let stand = Stand {
                server,
                root: &root,
                secured: true,
                clients: &["attack-clients", kind],
                seconds: if effort.quick { 15 } else { 45 },
            };
            let repeated = others::repeat(&stand, effort, &mut record)?;
            table += &format!("| {kind} | {} | {} |\n", server.name(), repeated.row());
            repeated.hold(&format!("{kind}, {}", server.name()), &mut part);
        }
    }
    record.table(name, &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}
